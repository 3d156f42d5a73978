"""Several members in one process, each in a thread of its own: mode `threads`. Started by collo: python collo_host.py

In: `COLLO_HOST`, one line of JSON with the members' scripts, arguments, environments and channels. Scripts run as they
are, as `__main__`; each speaks the ordinary protocol on its own channel, and when its thread has ended the host says
`left` there, last of all. The process stays until every member has left. What a member has of its own: `collo_own.py`.

Members are set up one after another, until each has said hello: so two never load a library at the same moment, and
whose set-up has changed a setting of the process is known (`collo_regime.py`). Standard library only.
"""

import atexit
import builtins
import importlib.machinery
import json
import os
import signal
import sys
import threading
import time
import traceback
import types

import collo_hosted
import collo_imports
import collo_own
import collo_regime

TURN_S = 60.0  # then the next member is set up beside one that has not said hello
STACK_BYTES = 16 << 20  # at least what a main thread has
FAILED = 1
HOST_FILES = {__file__, collo_imports.__file__, collo_regime.__file__}


def main():
    orders = os.environ.pop("COLLO_HOST", None)
    if not orders:
        hint = "hint: collo starts this program, for the sharing mode `threads`"
        sys.exit(f"error: nothing to host: `COLLO_HOST` is not set\n{hint}")
    orders = json.loads(orders)
    share_environment(orders["members"])
    outputs = [collo_hosted._high(number, close=False) for number in (1, 2)]
    regime = collo_regime.Regime()
    seats = [collo_hosted.Seat(order, outputs) for order in orders["members"]]
    beside = os.path.dirname(os.path.abspath(__file__))
    collo_own.install()
    collo_imports.install({beside, *(seat.folder for seat in seats)}, regime.load)
    regime.open()
    host(seats, regime, collo_regime.cannot_keep(orders))
    atexit._run_exitfuncs()  # those of libraries
    sys.stdout.flush()
    os._exit(0)  # a thread that a member has left behind could bring down an interpreter that is being taken apart


def share_environment(members):
    """What all members have alike is put into the process's environment, where libraries written in C look."""
    first, *others = (member["env"] for member in members)
    os.environ.update({name: value for name, value in first.items() if all(env.get(name) == value for env in others)})


def host(seats, regime, refused):
    """Start them in turn and wait until the last has left."""
    threads = [threading.Thread(target=member, args=(seat, regime, refused)) for seat in seats]
    for seat, thread in zip(seats, threads):
        thread.name = f"member {seat.index}"
        usual = threading.stack_size(STACK_BYTES)
        thread.start()
        threading.stack_size(usual)
        if seat.settled.wait(TURN_S):  # else it is set up beside the others, and settings stay as they are found
            regime.end(seat, last=seat is seats[-1])
    for seat in seats:
        seat.left.wait()


def member(seat, regime, refused):
    """A member's thread, from its first line to its last word."""
    process = os.getpid()
    code = FAILED
    try:
        seat.sit()
        seat.look = lambda: regime.look(seat)
        seat.look_again = regime.look_again
        regime.begin(seat)
        seat.take_stream()
        code = run(seat, refused)
        seat.leaves()
        seat.wind_up()
    except SystemExit:
        code = 0  # asked to leave, and obeyed after its script was over
    except BaseException:
        traceback.print_exc()
    if os.getpid() != process:  # a fork that came out of the script's end
        os._exit(code & 0xFF)
    seat.leaves()
    forget(seat)
    seat.say_left(json.dumps({"event": "left", "code": code}).encode() + b"\n")
    seat.settled.set()
    seat.left.set()
    stay()


def stay():
    """The thread waits for the end of the process, which takes no thread down. When a thread ends, torch lets go of the Python objects
    that it kept for it, and by then a free-threaded interpreter has forgotten the thread: that is a crash (seen with torch 2.12 on
    CPython 3.13t: ~ThreadLocalPythonObjects, gil_scoped_acquire, PyThreadState_Attach)."""
    while True:
        time.sleep(3600.0)


def run(seat, refused):
    """The script, as `python SCRIPT ARGUMENTS` would run it: its exit status."""
    try:
        if refused:
            refuse(refused)
        script(seat)
        return 0
    except SystemExit as end:
        return status(end.code)
    except BaseException:
        kind, error, found = sys.exc_info()
        error.__traceback__ = found = without_host(found)
        tell(seat, kind, error, found)
        return FAILED


def script(seat):
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", seat.script)
    vars(main).update(__file__=seat.script, __builtins__=builtins, __cached__=None, __loader__=loader)
    seat.modules["__main__"] = main
    with open(seat.script, "rb") as file:
        code = compile(file.read(), seat.script, "exec", dont_inherit=True)
    exec(code, vars(main))


def refuse(why):
    """Told as a member tells its errors."""
    import collo

    collo.connect()
    raise collo.SettingError(why)


def status(code):
    """The exit status for what was given to `sys.exit`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return FAILED


def tell(seat, kind, error, found):
    """As the interpreter does with what nobody caught."""
    try:
        seat.excepthook(kind, error, found)
    except SystemExit:
        pass
    except BaseException:
        print("Error in sys.excepthook:", file=sys.stderr)
        traceback.print_exc()
        print("\nOriginal exception was:", file=sys.stderr)
        traceback.print_exception(kind, error, found)


def without_host(found):
    """A traceback without the host's own lines, as Python leaves out those of an import."""
    lines = list(traceback.walk_tb(found))
    inner = None
    for frame, line in reversed([each for each in lines if each[0].f_code.co_filename not in HOST_FILES] or lines):
        inner = types.TracebackType(inner, frame, frame.f_lasti, line)
    return inner


def forget(seat):
    """What a member held is free for the others, as when a process ends. Threads that go on keep what they use."""
    main = seat.modules.get("__main__")
    if main and not any(thread.is_alive() and thread.name != "collo" for thread in list(seat.threads)):
        vars(main).clear()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as a Python that runs C: members' threads would be waited for
    try:
        main()
    except Exception:
        traceback.print_exc()
        os._exit(FAILED)
