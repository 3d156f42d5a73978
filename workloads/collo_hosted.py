"""A member's place in a process of several, and which thread is whose.

In: what collo orders of a member. Out: its seat, which has what is the member's own, its channel whatever anybody closes,
its CUDA stream, and what is done at its end. Knows no order of events (`collo_host.py`) and no setting
(`collo_regime.py`); `collo_own.py` shows each thread what its member's seat has. Standard library only.
"""

import ctypes
import fcntl
import os
import resource
import socket
import stat
import sys
import threading
import time
import traceback
import weakref

import collo_log

A_MOMENT_NS = 500_000  # of CPU time in 20 ms: who only wakes up for once has less
CLONE_FS = 0x200  # of unshare(2): from then on a thread has its own working directory and umask, its threads share them

here = threading.local()  # its `seat` is that of the thread's member
seats = []
_gpu_usable = None  # known once torch is loaded
forked = False  # this process is a fork of the host, which leaves the host's part to it


def seat():
    """That of this thread's member; None in a thread that no member has started."""
    return getattr(here, "seat", None)


class Seat:
    """A member's place in the process."""

    def __init__(self, order, outputs):
        self.index, self.script, self.folder = order["index"], order["script"], order["folder"]
        self.argv = [self.script, *order["arguments"]]
        self.path = [self.folder, *sys.path]
        self.environ = dict(os.environ._data)
        for name, value in order["env"].items():
            self.environ[os.fsencode(name)] = os.fsencode(value)
        self.own_variables = set(map(os.fsencode, order["env"]))  # given to it, or written by its own code
        self.excepthook = sys.__excepthook__
        prefix = f"member {self.index}: "
        self.lines = [collo_log.Lines(output, number, prefix) for number, output in enumerate(outputs, start=1)]
        self.stdout, self.stderr = self.outputs = [collo_log.text(lines) for lines in self.lines]
        self.modules, self.lock = {}, threading.RLock()  # see collo_imports.py
        self.at_exit, self.threads, self.children = [], weakref.WeakSet(), set()
        self.ident = self.native_id = self.stream = None
        self.settled, self.left = threading.Event(), threading.Event()  # hello is said, or it has left; it has left
        self.look = self.look_again = None  # at the settings that the process has once: functions
        self._leaving, self._leave_lock = False, threading.Lock()
        self._sockets, self._taken = [_identity(_high(order["fd"]))], False
        seats.append(self)

    def sit(self):
        """This thread is the member's own from here on: the one that runs its script."""
        here.seat = self
        self.ident, self.native_id = threading.get_ident(), threading.get_native_id()
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_FS) == 0:
            os.chdir(self.folder)
        elif os.path.realpath(self.folder) != os.path.realpath(os.getcwd()):  # some containers forbid it
            reason = os.strerror(ctypes.get_errno())
            print(f"works in `{os.getcwd()}`, as a thread cannot have a folder of its own here: {reason}", file=sys.stderr)

    # --- the channel ---

    def channel(self):
        """The member's end, for its `collo.connect`: once."""
        if self._taken:
            return None
        self._taken = True
        return self.channel_again()

    def channel_again(self):
        """Another descriptor of the channel; None when it is closed for good. For who finds his own closed by somebody."""
        for number, inode in self._sockets:
            if _identity(number) == (number, inode):  # nobody has closed it, and no other file has its number
                descriptor = _high(number, close=False)
                self._sockets.append(_identity(descriptor))
                return socket.socket(fileno=descriptor)
        return None

    def say_left(self, line):
        """The last words, and the end of the channel, whatever the member has done to its own end of it."""
        channel = self.channel_again()
        try:
            if channel:  # else a member has closed every descriptor of it: then collo hears nothing
                channel.sendall(line)
                channel.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # collo is gone

    def forget_channel(self):
        """In a fork: nothing of the channel is left to it. A number that has become another file's is left alone."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor, inode in self._sockets:
            if _identity(descriptor) == (descriptor, inode):
                os.dup2(nowhere, descriptor, inheritable=False)
        os.close(nowhere)

    # --- the GPU ---

    def take_stream(self):
        """A stream of its own, current in this thread, as soon as torch is loaded and has a GPU to use.

        c10/cuda/CUDAStream.h: "every OS thread has a separate current stream".
        """
        global _gpu_usable
        torch = sys.modules.get("torch")
        if torch is None or getattr(torch.__spec__, "_initializing", False) or forked:
            return
        try:
            if _gpu_usable is None:
                _gpu_usable = torch.cuda.is_available()
            if self.stream is None and _gpu_usable:
                self.stream = torch.cuda.Stream()
            if self.stream is not None:
                torch.cuda.set_stream(self.stream)
        except Exception:
            pass  # the script will meet it where it uses the GPU, and tell it; its hello says that it has no stream

    def thread(self):
        """What its hello says of the thread: as the system, Python and CUDA show it to the member."""
        cuda = sys.modules.get("torch.cuda")
        on_gpu = cuda is not None and cuda.is_initialized()
        return {
            "id": threading.get_native_id(),
            "lock": has_lock(),
            "stream": cuda.current_stream().cuda_stream if on_gpu else None,
        }

    # --- the end ---

    def ask_to_leave(self):
        """SystemExit at the next line of Python that its script runs, if it computes. Who waits is left alone."""
        while not self._leaving:
            if _computing([self.native_id]):
                with self._leave_lock:
                    if not self._leaving:
                        _raise_in(self.ident, SystemExit)
                return
            time.sleep(1)  # it may yet come back to its script

    def leaves(self):
        """From here on nobody asks any more."""
        while not self._leaving:
            try:
                with self._leave_lock:
                    self._leaving = True
                for _ in range(100):  # what was asked at the last moment arrives here
                    pass
            except SystemExit:
                pass  # asked at the last moment

    def wind_up(self):
        """What the interpreter does at a script's end: wait for threads, run what was left to `atexit`, end children."""
        self._close_pools()
        for thread in self._others(daemon=False):
            thread.join()
        while self.at_exit:
            function, arguments, named = self.at_exit.pop()
            try:
                function(*arguments, **named)
            except BaseException:
                print("Exception ignored in atexit callback:", file=sys.stderr)
                traceback.print_exc()
        self._end_children()
        others = {thread.native_id: thread.ident for thread in self._others(daemon=True)}
        for native_id in _computing(others):
            _raise_in(others[native_id], SystemExit)
        for stream in (self.stdout, self.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # its own replacement, or its log cannot be written any more
        for lines in self.lines:
            lines.end_line()

    def _others(self, daemon):
        return [t for t in list(self.threads) if t.is_alive() and t.daemon == daemon and t.ident != self.ident]

    def _close_pools(self):
        """The interpreter tells the threads of pools that no more will come (`concurrent.futures.thread._python_exit`)."""
        futures = sys.modules.get("concurrent.futures.thread")
        for thread in self._others(daemon=False) if futures else ():
            if thread in futures._threads_queues:
                pool = getattr(thread, "_args", None) and thread._args[0]()
                if pool is not None:
                    pool.shutdown(wait=False)

    def _end_children(self):
        """As `multiprocessing.util._exit_function` does for a process: daemons are ended, the others are waited for."""
        for child in list(self.children):
            try:
                if child.daemon and child.is_alive():
                    child.terminate()
                child.join()
            except (OSError, ValueError, AssertionError):
                pass  # closed, or gone


def has_lock():
    """Whether this interpreter runs one thread at a time."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def _computing(native_ids):
    """Which of these threads compute just now. What is raised in one that waits slows all others, until it runs again."""
    before = {native_id: _cpu_ns(native_id) for native_id in native_ids}
    if before:
        time.sleep(0.02)
    after = {native_id: _cpu_ns(native_id) for native_id in before}
    return [one for one, had in before.items() if None not in (had, after[one]) and after[one] - had > A_MOMENT_NS]


def _cpu_ns(native_id):
    try:
        with open(f"/proc/self/task/{native_id}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError):
        return None  # it has ended, or the kernel does not tell


def _raise_in(ident, exception):
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(exception))


def _high(descriptor, close=True):
    """The same descriptor by a high number, closed on exec: out of the way of who closes the first few."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    higher = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, min(512, max(3, most // 2)))
    if close:
        os.close(descriptor)
    return higher


def _identity(descriptor):
    """(number, inode) of a socket; None where it is none."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return (descriptor, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None


def is_own_code(here, names):
    """Whether these are the names of a module of the member's own, not of a library."""
    module = here.modules.get(names.get("__name__"))
    return module is not None and vars(module) is names
