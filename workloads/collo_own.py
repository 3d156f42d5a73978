"""What each member of a process of several sees as its own: `sys`, `os.environ`, `threading`, `atexit` answer by the thread.

A thread that a member starts is that member's; what no member has started sees the process's own. In: the seats of
`collo_hosted.py`. Out: `install`, which puts these answers in the place of Python's. Per member are `sys.argv`, `path`,
`stdout`, `stderr`, `excepthook`; `os.environ`; what its own code gives to `atexit`; its threads, and its processes of
`multiprocessing`, which end with it. Modules are in `collo_imports.py`. Standard library only.
"""

import _thread
import atexit
import collections.abc
import multiprocessing.process
import os
import subprocess
import sys
import threading
import types

import collo_hosted
from collo_hosted import seat

OWN_OF_SYS = ("argv", "path", "stdout", "stderr", "excepthook")


class Output:
    """`sys.stdout` or `sys.stderr` of whichever thread writes: a library that keeps it writes for the one it serves."""

    def __init__(self, name, common):
        self.__dict__.update(_name=name, _common=common)

    def _meant(self):
        here = seat()
        return getattr(here, self._name) if here else self._common

    def __getattr__(self, attribute):
        meant = self._meant()
        if meant is None and attribute in ("write", "flush"):  # as `print` has it
            return lambda *_: None
        return getattr(meant, attribute)

    def __setattr__(self, attribute, value):
        setattr(self._meant(), attribute, value)


# --- sys, os.environ ---


def _own(name):
    common = vars(sys)[name]  # a stream's is kept here: in its place in `sys`, where `print` looks, stands an Output

    def read(_):
        here = seat()
        found = getattr(here, name) if here else common
        return vars(sys)[name] if here and found in here.outputs else found

    def write(_, value):
        nonlocal common
        here = seat()
        if here and isinstance(value, Output):  # put back after it was replaced for a while
            setattr(here, name, here.outputs[value._name == "stderr"])
        elif here:
            setattr(here, name, value)
        else:
            common = value

    return property(read, write)


class Environ(collections.abc.MutableMapping):
    """The bytes behind `os.environ`. What a member's own code writes does not reach the C library's environment."""

    def __init__(self, common):
        self.common = common

    def _meant(self):
        here = seat()
        return here.environ if here else self.common

    def __getitem__(self, name):
        return self._meant()[name]

    def __setitem__(self, name, value):
        self._meant()[name] = value

    def __delitem__(self, name):
        del self._meant()[name]

    def __iter__(self):
        return iter(self._meant())

    def __len__(self):
        return len(self._meant())


# Beginnings of the names that libraries in C look up in the environment of the process, not in Python's `os.environ`: torch's
# allocator and its libraries (c10/util/env.cpp), CUDA, the threads of OpenMP and of the linear algebra, malloc.
READ_IN_C = tuple(b"PYTORCH_ TORCH_ ATEN_ CUDA_ CUBLAS CUDNN_ NCCL_ NVIDIA_ OMP_ GOMP_ KMP_ MKL_ OPENBLAS_ MALLOC_".split())

PLACES = (b"_HOME", b"_DIR", b"_PATH")  # of toolkits and caches, which change no number


def _putenv(name, value, original=os.putenv):
    here, name, value = seat(), os.fsencode(name), os.fsencode(value)
    if here and _asked_by_own_code(here):
        if name.startswith(READ_IN_C) and not name.endswith(PLACES) and os.environ._data.common.get(name) != value:
            wants = f"this member sets `{os.fsdecode(name)}={os.fsdecode(value)}`, which libraries read where it cannot be its own"
            refused = getattr(here.modules.get("collo"), "SettingError", RuntimeError)
            raise refused(f"{wants}: put it under [variables] in workload.toml, or share the device in another mode")
        here.environ[name] = value
        here.own_variables.add(name)
        return
    original(name, value)
    if here:  # a library, which is one for all: it will look for it in whichever thread, or in C
        os.environ._data.common[name] = value
        for each in collo_hosted.seats:
            if name not in each.own_variables:
                each.environ[name] = value


def _unsetenv(name, original=os.unsetenv):
    here = seat()
    if not here or not _asked_by_own_code(here):
        original(name)


def _asked_by_own_code(here):
    """Whether the member's own code is behind this call of `os`, not a library."""
    frame = sys._getframe(2)
    while frame and frame.f_globals.get("__name__") in ("os", "collections.abc", "_collections_abc"):
        frame = frame.f_back
    return frame is None or collo_hosted.is_own_code(here, frame.f_globals)


# --- threads, processes, atexit ---


def _bound(here, function):
    def run(*arguments, **named):
        collo_hosted.here.seat = here
        if here.stream is not None:
            here.take_stream()
        return function(*arguments, **named)

    return run


def _start_thread(thread, original=threading.Thread.start):
    here = seat()
    if here:
        thread._bootstrap = _bound(here, thread._bootstrap)  # what the new thread runs first
        here.threads.add(thread)
    return original(thread)


def _start_new_thread(function, *arguments, original=_thread.start_new_thread):
    here = seat()
    return original(_bound(here, function) if here else function, *arguments)


def _start_process(process, original=multiprocessing.process.BaseProcess.start):
    original(process)
    here = seat()
    if here:
        here.children.add(process)


def _start_program(popen, *arguments, original=subprocess.Popen.__init__, **named):
    if seat() and len(arguments) < 11 and named.get("env") is None:  # `env` is the eleventh
        named["env"] = dict(os.environ)
    original(popen, *arguments, **named)


def _register(function, *arguments, original=atexit.register, **named):
    here = seat()
    if here and collo_hosted.is_own_code(here, sys._getframe(1).f_globals):
        here.at_exit.append((function, arguments, named))
        return function
    return original(function, *arguments, **named)  # a library's: it is the process's


def _unregister(function, original=atexit.unregister):
    here = seat()
    if here:
        here.at_exit[:] = [entry for entry in here.at_exit if entry[0] != function]
    original(function)


def _in_fork():
    """A fork is no member and no host."""
    collo_hosted.forked = True
    for each in collo_hosted.seats:
        each.forget_channel()
        each._leave_lock, each.lock = threading.Lock(), threading.RLock()
        for lines in each.lines:
            lines.lock = threading.Lock()
        each.children.clear()


def install():
    """Once, before the first member sits down."""
    members = {name: _own(name) for name in OWN_OF_SYS}
    for name in ("stdout", "stderr"):
        vars(sys)[name] = Output(name, vars(sys)[name])
    sys.__class__ = type("Sys", (types.ModuleType,), members)
    environ = Environ(os.environ._data)
    os.environ._data = os.environb._data = environ
    os.putenv, os.unsetenv = _putenv, _unsetenv
    threading.Thread.start = _start_thread
    _thread.start_new_thread = _start_new_thread
    multiprocessing.process.BaseProcess.start = _start_process
    subprocess.Popen.__init__ = _start_program
    atexit.register, atexit.unregister = _register, _unregister
    os.register_at_fork(after_in_child=_in_fork)
