"""A member like `good.py` that does one thing which no member of a process of several should do: `--act NAME`.

`ACTS` has a sentence for each, when it is done, and what comes of it beside a good member:

- an exit status: this member has left with it, with an error told where it raised; the others go on;
- `completes`: nothing comes of it that the others, or collo, could notice on the channels; 0 is its exit status;
- `garbles`, `garbles another`: there is something on its channel, or another's, that is no message, or cannot be true;
- `stays`: it never leaves by itself, and the others go on;
- `process`: the process ends, or is another program's, or nothing in it runs any more.

Standard library and collo only. `python hostile.py` lists them.
"""

import argparse
import atexit
import builtins
import ctypes
import faulthandler
import gc
import itertools
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time

import collo

STAGES = ("import", "connect", "warm_up", "ready", "epoch", "tail", "end")
ACTS = {}
LONG_S = 600


def act(stage, comes_of_it):
    """It is done before or at this stage: `import` comes before connect, `epoch` in the middle of epoch 1."""

    def keep(function):
        ACTS[function.__name__] = (function.__doc__, stage, comes_of_it, function)
        return function

    return keep


# --- exits ---


@act("epoch", 3)
def sys_exit():
    """Exits with 3."""
    sys.exit(3)


@act("epoch", 0)
def sys_exit_0():
    """Exits with success, without being done."""
    sys.exit(0)


@act("epoch", 1)
def sys_exit_text():
    """Exits with a text."""
    sys.exit("enough of this")


@act("epoch", 1)
def exit_large():
    """Exits with a status that is no number."""
    sys.exit([1 << 40])


@act("epoch", "process")
def os_exit():
    """Ends the process with 4."""
    os._exit(4)


@act("epoch", "process")
def os_exit_0():
    """Ends the process with success."""
    os._exit(0)


@act("import", "process")
def os_exit_early():
    """Ends the process before it has said anything."""
    os._exit(5)


@act("epoch", "process")
def abort():
    """Aborts."""
    without_core_file()
    os.abort()


@act("epoch", "process")
def segfault():
    """Reads where there is nothing."""
    without_core_file()
    ctypes.string_at(0)


@act("epoch", "process")
def become_another():
    """Becomes another program, which knows nothing of collo."""
    os.execv(sys.executable, [sys.executable, "-c", f"import time; time.sleep({LONG_S})"])


@act("epoch", "process")
def terminate():
    """Sends TERM to its process."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LONG_S)


@act("epoch", "process")
def kill():
    """Sends KILL to its process."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(LONG_S)


@act("epoch", "process")
def stop():
    """Sends STOP to its process."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(1)


@act("epoch", "process")
def interrupt():
    """Sends INT to its process, as a terminal would."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(LONG_S)


@act("epoch", "process")
def alarm():
    """Sets an alarm that nobody handles."""
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(LONG_S)


@act("epoch", "process")
def watchdog():
    """Sets a watchdog that ends the process."""
    faulthandler.dump_traceback_later(0.01, exit=True)
    time.sleep(LONG_S)


# --- exceptions ---


@act("epoch", 1)
def raise_error():
    """Raises; `--at` says when."""
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (32x64 and 128x10)")


@act("import", 1)
def raise_early():
    """Raises before it has said anything."""
    raise ImportError("libcudart.so.13: cannot open shared object file")


@act("epoch", 1)
def raise_out_of_memory():
    """Raises what torch raises when the card is full."""
    raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")


@act("epoch", 1)
def take_a_pebibyte():
    """Asks for more memory than there is."""
    bytearray(1 << 50)


@act("epoch", 1)
def raise_no_exception():
    """Raises what is no Exception."""
    raise type("Worse", (BaseException,), {})("than an error")


@act("epoch", 1)
def raise_keyboard_interrupt():
    """Raises KeyboardInterrupt."""
    raise KeyboardInterrupt


@act("epoch", 1)
def recurse():
    """Calls itself without end."""
    recurse()


@act("epoch", 1)
def raise_with_bad_text():
    """Raises what cannot even be shown."""

    def fail(_):
        raise ValueError("no text")

    raise type("Unshown", (RuntimeError,), {"__str__": fail})()


@act("epoch", 1)
def replace_excepthook():
    """Replaces the hook by which collo is told of errors, then raises."""
    sys.excepthook = lambda *_: None
    raise RuntimeError("nobody hears of it")


@act("epoch", 1)
def break_excepthook():
    """Has a hook that raises, then raises."""
    sys.excepthook = lambda *_: 1 / 0
    raise RuntimeError("the hook fails")


@act("epoch", 1)
def handle_a_signal():
    """Sets a signal's handler, which only a main thread may."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@act("epoch", 1)
def read_stdin():
    """Waits for somebody to type."""
    input()


# --- threads ---


@act("epoch", "completes")
def raise_in_a_thread():
    """Raises in a thread of its own."""
    in_a_thread(raise_error)


@act("epoch", "completes")
def exit_in_a_thread():
    """Exits in a thread of its own."""
    in_a_thread(sys_exit)


@act("epoch", "process")
def os_exit_in_a_thread():
    """Ends the process in a thread of its own."""
    in_a_thread(os_exit)


@act("epoch", "stays")
def leave_a_thread():
    """Leaves a thread behind that never ends, which a process waits for."""
    threading.Thread(target=spin).start()
    sys.exit(0)


@act("epoch", 0)
def leave_a_daemon_thread():
    """Leaves a thread behind that never ends, which no process waits for."""
    threading.Thread(target=spin, daemon=True).start()
    sys.exit(0)


@act("epoch", "completes")
def many_threads():
    """Starts a hundred threads at once."""
    threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(100)]
    for thread in threads:
        thread.start()


@act("epoch", "stays")
def deadlock():
    """Waits for a lock that it has."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@act("epoch", "stays")
def loop():
    """Computes without end, in Python."""
    spin()


@act("epoch", "process")
def loop_with_the_lock():
    """Computes without end and never gives Python's lock to another thread."""
    sum(itertools.repeat(0))


@act("epoch", "stays")
def wait_outside_python():
    """Waits without end, outside Python and without its lock."""
    ctypes.CDLL(None).pause()


@act("epoch", "process")
def wait_with_the_lock():
    """Waits without end, and has Python's lock."""
    ctypes.PyDLL(None).pause()


@act("tail", "stays")
def ignore_stop():
    """Is told to stop, and goes on."""
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass


@act("import", "stays")
def never_hello():
    """Never says hello."""
    time.sleep(LONG_S)


@act("ready", "stays")
def never_ready():
    """Never says ready."""
    time.sleep(LONG_S)


@act("end", "stays")
def hang_at_exit():
    """Leaves something to be done at its exit that never ends."""
    atexit.register(time.sleep, LONG_S)


@act("end", "completes")
def raise_at_exit():
    """Leaves something to be done at its exit that raises."""
    atexit.register(raise_error)


# --- processes ---


@act("epoch", "completes")
def fork():
    """Forks; the child stays, with all that is open."""
    if os.fork() == 0:
        time.sleep(LONG_S)
        os._exit(0)


@act("epoch", "completes")
def fork_and_go_on():
    """Forks, and parent and child go on as this member."""
    os.fork()


@act("epoch", "completes")
def fork_in_a_thread():
    """Forks in a thread of its own; the child stays."""
    in_a_thread(fork)


@act("epoch", "completes")
def double_fork():
    """Leaves a process behind that got away from its parent, session and process group."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(LONG_S)
        os._exit(0)
    os.waitpid(child, 0)


@act("epoch", "completes")
def leave_a_program():
    """Leaves a program behind."""
    subprocess.Popen(["sleep", str(LONG_S)], start_new_session=True)


@act("epoch", "completes")
def fork_many():
    """Forks twenty times and waits for nobody."""
    for _ in range(20):
        if os.fork() == 0:
            os._exit(0)


# --- channels and descriptors ---


@act("epoch", "completes")
def close_own_channel():
    """Closes its channel."""
    member.channel.close()


@act("epoch", "completes")
def close_own_descriptor():
    """Closes its channel's descriptor."""
    os.close(member.channel.fileno())


@act("epoch", "completes")
def close_another_channel():
    """Closes the channel by which another member speaks: `--other` its descriptor, else one that it finds."""
    os.close(settings.other if settings.other >= 0 else others_channels()[0])


@act("epoch", "process")
def close_all_channels():
    """Closes every socket that there is."""
    for descriptor in all_sockets():
        os.close(descriptor)


@act("epoch", "process")
def close_everything():
    """Closes every descriptor but the first three."""
    os.closerange(3, 1 << 16)


@act("epoch", "completes")
def close_stdio():
    """Closes standard input, output and error."""
    for descriptor in (0, 1, 2):
        os.close(descriptor)


@act("epoch", "garbles")
def say_garbage():
    """Says what is no message."""
    member.channel.sendall(b"epoch 1 loss 0.4\n")


@act("epoch", "garbles")
def say_a_huge_line():
    """Says ten megabytes without an end, then the end."""
    for _ in range(10):
        member.channel.sendall(b"x" * 1_000_000)
    member.channel.sendall(b"\n")


@act("epoch", "garbles")
def say_half_a_line():
    """Says half a message and leaves."""
    member.channel.sendall(b'{"event":"epo')
    sys.exit(0)


@act("epoch", "garbles")
def say_left():
    """Says itself what only the host says."""
    member._send("left", code=0)


@act("epoch", "garbles another")
def say_garbage_for_another():
    """Says what is no message on another's channel: `--other` its descriptor, else one that it finds."""
    os.write(settings.other if settings.other >= 0 else others_channels()[0], b"epoch 1 loss 0.4\n")


@act("ready", 1)
def ready_twice():
    """Says ready twice."""
    member.ready()


@act("warm_up", 1)
def hello_twice():
    """Says hello twice."""
    member.hello()


@act("epoch", 1)
def end_an_epoch_twice():
    """Ends an epoch twice."""
    epoch.finish()
    epoch.finish()


# --- what is the process's ---


@act("connect", "completes")
def change_folder():
    """Works in another folder."""
    os.chdir("/")


@act("connect", "completes")
def change_umask():
    """Lets nobody else read what it writes."""
    os.umask(0o777)


@act("connect", "completes")
def clear_environment():
    """Removes all variables and sets one that others have, too."""
    os.environ.clear()
    os.environ["COLLO_MEMBER"] = "7"


@act("connect", "completes")
def change_arguments():
    """Has other arguments than it was given."""
    sys.argv[:] = ["nothing"]
    sys.argv = None


@act("connect", "completes")
def change_path():
    """Looks for modules nowhere."""
    sys.path.clear()


@act("connect", "completes")
def forget_modules():
    """Takes its modules out of the list of modules."""
    sys.modules.pop("collo", None)


@act("epoch", "completes")
def replace_output():
    """Prints to something that is no file."""
    sys.stdout = sys.stderr = None
    print("nobody reads this")


@act("epoch", "completes")
def close_output():
    """Closes its standard output."""
    sys.stdout.close()


@act("epoch", "completes")
def print_much():
    """Prints ten thousand lines, and a line without an end."""
    for number in range(10_000):
        print("line", number)
    sys.stdout.write("x" * 3_000_000)


@act("connect", 1)
def switch_rarely():
    """Keeps Python's lock for ten seconds at a time."""
    sys.setswitchinterval(10)


@act("epoch", 1)
def switch_rarely_later():
    """Keeps Python's lock for ten seconds at a time, after all have agreed on less."""
    sys.setswitchinterval(10)


@act("epoch", 1)
def lift_the_recursion_limit():
    """Lifts the limit of calls within calls."""
    sys.setrecursionlimit(1 << 30)


@act("epoch", 1)
def collect_no_garbage():
    """Switches the garbage collector off."""
    gc.disable()


@act("connect", 1)
def collect_garbage_always():
    """Has garbage collected at every turn."""
    gc.set_threshold(1)


@act("epoch", 1)
def limit_memory():
    """Limits the memory of its process."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, resource.getrlimit(resource.RLIMIT_AS)[1]))


@act("connect", "completes")
def trace():
    """Has every line of its own traced."""
    sys.settrace(lambda *_: None)


@act("connect", 1)
def trace_threads():
    """Has every thread traced that begins."""
    threading.settrace(lambda *_: None)


@act("connect", 1)
def break_threads():
    """Replaces the method that starts threads."""
    threading.Thread.start = None


@act("connect", 1)
def stop_the_clock():
    """Replaces the clock."""
    time.monotonic_ns = lambda: 0


@act("connect", 1)
def break_print():
    """Takes print away."""
    del builtins.print


@act("connect", 1)
def replace_thread_hook():
    """Replaces the hook for exceptions in threads, of all of them."""
    threading.excepthook = lambda *_: os._exit(9)


@act("connect", 1)
def break_collo():
    """Replaces what ends an epoch by nothing."""
    collo.Epoch.finish = lambda *_, **__: None


@act("connect", "completes")
def fault_handler():
    """Has a traceback written where the process crashes."""
    faulthandler.enable()


# --- with what ---


def without_core_file():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def spin():
    while True:
        pass


def all_sockets():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                found.append(int(name))
        except OSError:
            pass  # the folder's own, closed again
    return found


def others_channels():
    """Where other members speak: of the descriptors of each socket the newest but one, for the host's come first."""
    mine = os.fstat(member.channel.fileno()).st_ino
    return [number for number in sorted(all_sockets()) if os.fstat(number).st_ino != mine]


settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--act", choices=ACTS, help="what it does")
settings.add_argument("--at", choices=STAGES, help="when; by itself as the act has it")
settings.add_argument("--who", type=int, default=-1, help="the member that does it, -1 for every one")
settings.add_argument("--other", type=int, default=-1, help="the descriptor of another's channel")
settings.add_argument("--seconds", type=float, default=0.05, help="per epoch")
settings.add_argument("--items", type=int, default=5, help="per epoch")
settings = settings.parse_args()
if not settings.act:
    print(*(f"{name}: {what} ({stage}; {comes})" for name, (what, stage, comes, _) in ACTS.items()), sep="\n")
    sys.exit(0)
at = settings.at or ACTS[settings.act][1]
mine = settings.who in (-1, int(os.environ.get("COLLO_MEMBER", "0")))


def reach(stage):
    if mine and stage == at:
        ACTS[settings.act][3]()


reach("import")
member = collo.connect()
reach("connect")
member.hello(device="cpu")
member.wait_for_warm_up()
reach("warm_up")
if mine and at == "ready" and settings.act == "ready_twice":
    member.ready()
reach("ready")
member.ready()
try:
    for epoch in member.epochs():
        for item in epoch.batches(range(settings.items)):
            if item == settings.items // 2 and epoch.index == 1:
                reach("epoch")
            if item == settings.items // 2 and epoch.index > 1 and not epoch.measured:
                reach("tail")
            time.sleep(settings.seconds / settings.items)
        epoch.finish(items=settings.items)
finally:
    reach("end")
