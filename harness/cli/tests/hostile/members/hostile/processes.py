"""Processes that will not end, and those that end others."""

import ctypes
import os
import signal
import subprocess
import sys
import time

FOR_EVER = 600
PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE = 15, 36, 4


def _ignore_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def _daemon(act=lambda: None):
    """Twice forked, in a session of its own, deaf to all that can be ignored."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _ignore_signals()
            act()
            time.sleep(FOR_EVER)
        os._exit(0)
    os.wait()


def _parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def _supervisor():
    pid = os.getpid()
    while b"__supervise" not in open(f"/proc/{pid}/cmdline", "rb").read():
        pid = _parent(pid)
    return pid


def _finish(wire):
    wire.epoch()
    wire.epoch()
    wire.done()


def daemon(wire):
    wire.start()
    _daemon()
    _finish(wire)


def daemons_of_many_kinds(wire):
    wire.start()
    _daemon()
    if os.fork() == 0:  # a child that stays, deaf
        _ignore_signals()
        time.sleep(FOR_EVER)
    subprocess.Popen(["sleep", str(FOR_EVER)], start_new_session=True)
    _finish(wire)


def daemon_without_environment(wire):
    wire.start()
    # Its only mark is in its command line.
    name = f"hostile-{os.environ['COLLO_TEST_MARK']}"
    _daemon(lambda: os.execve(sys.executable, [sys.executable, "-c", f"import time; time.sleep({FOR_EVER})", name], {}))
    _finish(wire)


def daemons_and_crash(wire):
    wire.start()
    for _ in range(5):
        _daemon()
    os.kill(os.getpid(), signal.SIGSEGV)


def daemon_before_hello(wire):
    _daemon()
    wire.start()
    _finish(wire)


def daemon_that_reaps(wire):
    """A subreaper of its own: what it loses comes back to it, not to the supervisor."""
    wire.start()

    def reap():
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for _ in range(5):
            _daemon()

    _daemon(reap)
    _finish(wire)


def daemon_unseen(wire):
    """Not dumpable: its files in /proc belong to root."""
    wire.start()
    _daemon(lambda: ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    _finish(wire)


def daemon_that_holds_everything_open(wire):
    wire.start()
    if os.fork() == 0:
        _ignore_signals()
        time.sleep(FOR_EVER)
    os._exit(3)


def chain_of_forks(wire):
    """Each child forks and ends, so that a list of processes is never true."""
    wire.start()

    def run():
        began = time.monotonic()
        while time.monotonic() - began < FOR_EVER:
            if os.fork():
                os._exit(0)
            time.sleep(0.001)

    if os.fork() == 0:
        os.setsid()
        run()
    _finish(wire)


def many_children(wire):
    wire.start()
    for _ in range(300):
        if os.fork() == 0:
            _ignore_signals()
            time.sleep(FOR_EVER)
    _finish(wire)


def children_in_namespaces(wire):
    wire.start()
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "sleep", str(FOR_EVER)]
    subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    _finish(wire)


def deaf(wire):
    wire.start()
    _ignore_signals()
    wire.epoch()
    wire.until("stop")
    print("stays", flush=True)
    time.sleep(FOR_EVER)


def trains_long(wire):
    """An epoch in which much can happen to collo."""
    wire.start()
    wire.epoch()
    wire.epoch(seconds=2)
    wire.done()


def deaf_after_done(wire):
    wire.start()
    _ignore_signals()
    wire.epoch()
    wire.epoch()
    wire.say("done")
    while True:
        time.sleep(FOR_EVER)


def frozen(wire):
    wire.start()
    wire.epoch()
    os.kill(os.getpid(), signal.SIGSTOP)


def becomes_another_program(wire):
    wire.start()
    os.execvp("sleep", ["sleep", str(FOR_EVER)])


def strange_name(wire):
    """A name that breaks whoever reads /proc/PID/stat word by word."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, b") S 1 1 (\n", 0, 0, 0)
    wire.start()
    _daemon()
    _finish(wire)


def kills_its_supervisor(wire):
    wire.start()
    _daemon()
    wire.epoch()
    os.kill(_supervisor(), signal.SIGKILL)
    time.sleep(FOR_EVER)


def stops_its_supervisor(wire):
    wire.start()
    wire.epoch()
    os.kill(_supervisor(), signal.SIGSTOP)
    wire.epoch()
    wire.done()


def stops_its_supervisor_and_hangs(wire):
    wire.start()
    _daemon()
    _ignore_signals()
    os.kill(_supervisor(), signal.SIGSTOP)
    time.sleep(FOR_EVER)


def kills_its_supervisor_and_collo(wire):
    wire.start()
    _daemon()
    wire.epoch()
    supervisor = _supervisor()
    collo = _parent(supervisor)
    os.kill(supervisor, signal.SIGSTOP)  # so that it does nothing in between
    os.kill(collo, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    time.sleep(FOR_EVER)


def stops_its_supervisor_and_kills_collo(wire):
    wire.start()
    _daemon()
    wire.epoch()
    supervisor = _supervisor()
    collo = _parent(supervisor)
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(collo, signal.SIGKILL)
    time.sleep(FOR_EVER)


def stops_collo_for_a_moment(wire):
    wire.start()
    wire.epoch()
    collo = _parent(_supervisor())
    subprocess.Popen(["sh", "-c", f"kill -STOP {collo}; sleep 1; kill -CONT {collo}"])
    wire.epoch()
    wire.done()


def kills_its_group(wire):
    wire.start()
    wire.epoch()
    os.kill(0, signal.SIGKILL)


def kills_the_others(wire):
    """All members beside it that trained from here."""
    wire.start()
    wire.epoch()
    mark = f"COLLO_TEST_MARK={os.environ['COLLO_TEST_MARK']}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environ, line = (open(f"/proc/{pid}/{name}", "rb").read() for name in ("environ", "cmdline"))
        except OSError:
            continue
        if mark in environ and b"attack.py" in line and int(pid) != os.getpid():
            os.kill(int(pid), signal.SIGKILL)
    wire.epoch()
    wire.done()


def many_files_open(wire):
    wire.start()
    kept = []
    try:
        while True:
            kept.append(open("/dev/null"))
    except OSError:
        pass
    del kept[-20:]
    _finish(wire)


def low_priority(wire):
    os.nice(19)
    wire.start()
    _finish(wire)


def children_with_real_time_clocks(wire):
    """A signal every millisecond."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    wire.start()
    _finish(wire)
