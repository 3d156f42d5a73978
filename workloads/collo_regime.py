"""Settings that a process has once: which they are, how they are read and put back, what members may make of them.

In: the moments at which members are looked at. Out: a SettingError of the member that wants another value than the
others. Each member's set-up finds what the process began with, as in a process of its own, and what is in force when it
says hello is what it wants. All members must want the same; where they do not, those end that did not leave it as it was,
and whoever changes it later ends. Functions that somebody replaced in modules that all use are such settings, too.
Standard library only: torch's settings are read once a member has loaded it.
"""

import builtins
import functools
import gc
import json
import multiprocessing
import os
import queue
import resource
import socket
import sys
import threading
import time
import tracemalloc
from typing import Any, Callable, NamedTuple

import collo_hosted


ONCE = "the threads of a process have one value of it"
WAY_OUT = "set it alike in all members before they say hello, or share the device in another mode"


class Setting(NamedTuple):
    name: str
    read: Callable[[], Any]
    write: Callable[[Any], Any]


def _flag(holder, name):
    """An attribute of a module or of an object of switches, by its full name."""
    return Setting(f"{holder}.{name}", lambda: getattr(_at(holder), name), lambda value: setattr(_at(holder), name, value))


def _at(name):
    found, *rest = name.split(".")
    found = sys.modules[found]
    for part in rest:
        found = getattr(found, part)
    return found


def _limit(kind):
    number = getattr(resource, kind)
    return Setting(f"resource.{kind}", lambda: resource.getrlimit(number), lambda value: resource.setrlimit(number, value))


def _start_method():
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def _put_trace(on):
    tracemalloc.start() if on else tracemalloc.stop()


OF_PYTHON = (
    Setting("gc.enable", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    Setting("gc.set_threshold", gc.get_threshold, lambda value: gc.set_threshold(*value)),
    Setting("sys.setswitchinterval", sys.getswitchinterval, sys.setswitchinterval),
    Setting("sys.setrecursionlimit", sys.getrecursionlimit, sys.setrecursionlimit),
    Setting("threading.settrace", lambda: threading._trace_hook, threading.settrace),
    Setting("threading.setprofile", lambda: threading._profile_hook, threading.setprofile),
    Setting("tracemalloc.start", tracemalloc.is_tracing, _put_trace),
    Setting("socket.setdefaulttimeout", socket.getdefaulttimeout, socket.setdefaulttimeout),
    Setting(
        "multiprocessing.set_start_method",
        _start_method,
        lambda value: multiprocessing.set_start_method(value, force=True),
    ),
    _limit("RLIMIT_AS"),
    _limit("RLIMIT_DATA"),
)


def _deterministic():
    torch = sys.modules["torch"]
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _put_deterministic(on, warn_only):
    sys.modules["torch"].use_deterministic_algorithms(on, warn_only=warn_only)


def _of_torch(name, read, write):
    return Setting(f"torch.{name}", lambda: getattr(_at("torch"), read)(), lambda value: getattr(_at("torch"), write)(value))


OF_TORCH = (
    # With OpenMP a thread keeps what was set in it, and one that begins takes what was set last anywhere
    # (ATen/ParallelOpenMP.cpp, `init_num_threads`): read and compared in each member's own thread.
    _of_torch("set_num_threads", "get_num_threads", "set_num_threads"),
    _of_torch("set_default_dtype", "get_default_dtype", "set_default_dtype"),
    _of_torch("set_float32_matmul_precision", "get_float32_matmul_precision", "set_float32_matmul_precision"),
    Setting("torch.use_deterministic_algorithms", _deterministic, lambda value: _put_deterministic(*value)),
    _of_torch("autograd.set_detect_anomaly", "is_anomaly_enabled", "set_anomaly_enabled"),
    _flag("torch.backends.cudnn", "enabled"),
    _flag("torch.backends.cudnn", "benchmark"),
    _flag("torch.backends.cudnn", "deterministic"),
    _flag("torch.backends.cudnn", "allow_tf32"),
    _flag("torch.backends.cuda.matmul", "allow_tf32"),
    _flag("torch.backends.cuda.matmul", "allow_fp16_reduced_precision_reduction"),
    _flag("torch.backends.cuda.matmul", "allow_bf16_reduced_precision_reduction"),
    *(
        Setting(
            f"torch.backends.cuda.enable_{kind}_sdp",
            lambda kind=kind: getattr(_at("torch.backends.cuda"), f"{kind}_sdp_enabled")(),
            lambda value, kind=kind: getattr(_at("torch.backends.cuda"), f"enable_{kind}_sdp")(value),
        )
        for kind in ("flash", "mem_efficient", "math", "cudnn")
    ),
    Setting(
        "torch.multiprocessing.set_sharing_strategy",
        lambda: _at("torch.multiprocessing").get_sharing_strategy(),
        lambda value: _at("torch.multiprocessing").set_sharing_strategy(value),
    ),
)

# Whose functions must stay what they are: what members, their threads and the host run on.
COMMON = (builtins, json, os, queue, socket, threading, threading.Thread, time)

# After a call of one of these by a member that has said hello, it is looked at at once.
CALLS = {
    "gc": ("enable", "disable", "set_threshold"),
    "sys": ("setswitchinterval", "setrecursionlimit"),
    "threading": ("settrace", "setprofile"),
    "tracemalloc": ("start", "stop"),
    "socket": ("setdefaulttimeout",),
    "resource": ("setrlimit",),
}
# Of these modules' calls those by libraries are not the members' doing: the compiler of torch lifts the recursion limit.
OF_LIBRARIES = (gc, sys)
CALLS_OF_TORCH = (
    "set_num_threads", "set_default_dtype", "set_float32_matmul_precision", "use_deterministic_algorithms",
)  # fmt: skip


# What torch's compiler switches on while it traces, in whichever member (torch/_functorch/_aot_autograd/graph_capture_wrappers.py).
FOR_A_MOMENT = {"torch.autograd.set_detect_anomaly"}


def _torch_is_loaded():
    torch = sys.modules.get("torch")
    return torch is not None and not getattr(torch.__spec__, "_initializing", False)


class Regime:
    """What is in force in the process, and what each member wants."""

    def __init__(self):
        self.settings = {setting.name: setting for setting in OF_PYTHON}
        self.with_torch = False
        self.at_first = {}
        self.wants = {}  # index of a member: {name: value}, at its hello
        self.agreed = {}  # name: (value, index of the member that wanted it first)
        self.setting_up = set()
        self.quiet = threading.local()  # while values are put back, or a library is loaded
        self.functions = {}  # name: (module or class, name in it)

    def open(self):
        """Once the host has arranged the process, before the first member."""
        for module, names in CALLS.items():
            for name in names:
                self._watch(sys.modules[module], name)
        for holder in COMMON:
            full = f"{holder.__module__}.{holder.__name__}" if isinstance(holder, type) else holder.__name__
            called = [name for name, found in vars(holder).items() if callable(found)]
            self.functions.update({f"{full}.{name}()": (holder, name) for name in called})
        self.at_first = self.read()

    def read(self):
        """What is in force, as this thread sees it. What cannot be read is not there."""
        found = {name: vars(holder).get(short) for name, (holder, short) in self.functions.items()}
        for name, setting in self.settings.items():
            try:
                found[name] = setting.read()
            except Exception:
                pass  # another version's, or two ways of setting it were mixed, which torch refuses to read
        return found

    def put(self, values):
        """Back into force, as far as it can be."""
        found, self.quiet.on = self.read(), True
        try:
            for name, value in values.items():
                if name in found and found[name] != value:
                    self._write(name, value)
        finally:
            self.quiet.on = False

    def _write(self, name, value):
        if name in self.functions:
            setattr(*self.functions[name], value)
        else:
            try:
                self.settings[name].write(value)
            except Exception:
                pass  # seen at the next look

    def begin(self, here):
        """Before a member's set-up, in its thread: as in a process of its own, it finds what the process began with."""
        if not self.setting_up:  # else somebody is late, and what it has set is not taken from it
            self.put(self.at_first)
        self.setting_up.add(here)

    def end(self, here, last):
        """It has said hello, or has left without; nobody is set up after the last."""
        self.setting_up.discard(here)
        if not self.setting_up:
            self._put_agreed() if last else self.put(self.at_first)

    def _put_agreed(self):
        self.put({name: value for name, (value, _) in self.agreed.items()})

    def load(self, loading):
        """Around the first import of a shared module: what it sets by being there is the process's, not the member's."""
        here = collo_hosted.seat()
        if here is None or getattr(self.quiet, "loading", False):
            return loading()
        before, self.quiet.loading = self.read(), True
        try:
            return loading()
        finally:
            self.quiet.loading = False
            self._meet_torch()
            for name, value in self.read().items():
                if name not in before or before[name] != value:
                    self.at_first[name] = value
            here.take_stream()

    def look(self, here):
        """At a member, in its thread. What it has otherwise than the others is put back, and it ends."""
        found = self.read()
        wants = self.wants.setdefault(here.index, found)
        for name, value in found.items():
            agreed, by = self.agreed.setdefault(name, (value, here.index))
            if value == agreed:
                continue
            if wants is found and value == self.at_first.get(name):  # who has changed it finds out at the next look
                self.agreed[name] = value, here.index
                continue
            self._put_agreed()
            raise self._refused(here, name, value)
        for name, value in wants.items():
            if value != self.agreed[name][0]:
                raise self._refused(here, name, value)

    def look_again(self):
        """At the end of an epoch: what somebody switched without a call that is watched, and has not switched back.

        Who that was is not known: whoever finds it, trained under it.
        """
        for name, value in self.read().items():
            agreed, _ = self.agreed.get(name, (value, None))
            if value != agreed and name not in FOR_A_MOMENT:
                self._put_agreed()
                collo = collo_hosted.seat().modules["collo"]
                changed = f"`{name}` became `{_shown(value)}` while members trained, who had agreed on `{_shown(agreed)}`"
                raise collo.SettingError(f"{changed}: {ONCE}; one of them, or a library, switched it; {WAY_OUT}")

    def _adopt(self):
        """What a library has changed by itself: it would in each member's process."""
        for name, value in self.read().items():
            if name in self.agreed and self.agreed[name][0] != value:
                self.at_first[name], self.agreed[name] = value, (value, self.agreed[name][1])
                for wants in self.wants.values():
                    wants[name] = value

    def _refused(self, here, name, value):
        agreed, by = self.agreed[name]
        whose = f"`{_shown(agreed)}` with member {by}" if by != here.index else f"was `{_shown(agreed)}` at its hello"
        contradiction = f"`{name}` is `{_shown(value)}` with this member and {whose}"
        return here.modules["collo"].SettingError(f"{contradiction}: {ONCE}; {WAY_OUT}")

    def _meet_torch(self):
        if self.with_torch or not _torch_is_loaded():
            return
        self.with_torch = True
        self.settings.update((setting.name, setting) for setting in OF_TORCH)
        torch = sys.modules["torch"]
        for name in CALLS_OF_TORCH:
            self._watch(torch, name)
        set_once = torch.set_num_interop_threads

        @functools.wraps(set_once)
        def set_alike(count):
            """torch takes it once for a process, and every script may set it: to another value it raises, as ever."""
            if count != torch.get_num_interop_threads():
                set_once(count)

        torch.set_num_interop_threads = set_alike

    def _watch(self, module, name):
        call = getattr(module, name)

        @functools.wraps(call)
        def watched(*arguments, **named):
            result = call(*arguments, **named)
            here = collo_hosted.seat()
            if not here or here.index not in self.wants or collo_hosted.forked or getattr(self.quiet, "on", False):
                return result
            if module in OF_LIBRARIES and not collo_hosted.is_own_code(here, sys._getframe(1).f_globals):
                self._adopt()
            # Its other threads are looked at with it: that which page-locks batches sets torch's thread count for itself.
            elif threading.get_ident() == here.ident:
                self.look(here)
            return result

        setattr(module, name, watched)


def _shown(value):
    if isinstance(value, bool):
        return str(value).lower()
    return getattr(value, "__qualname__", str(value))  # of a function


def cannot_keep(orders):
    """Why these members cannot be hosted as asked, or None."""
    asked, found = orders["lock"], collo_hosted.has_lock()
    if asked == found:
        return None
    version = sys.version.split()[0]
    if found:
        free = "free-threaded" in sys.version  # a build that has taken its lock back, for an extension or by PYTHON_GIL
        way_out = "start it with PYTHON_GIL=0" if free else "take a free-threaded build (python3.13t), or mode `threads`"
        return f"`threads:no-lock` needs a Python without its lock, this one ({version}) has it: {way_out}"
    way_out = "start it with PYTHON_GIL=1, or take `threads:no-lock`"
    return f"`threads` is with Python's lock, this one ({version}) is without: {way_out}"
