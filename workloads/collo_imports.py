"""Modules of a member's own: what lies in its folder or beside `collo.py` is loaded once for each member.

Two workloads have a `model.py` each, and `collo` keeps a member's state. Everything else is loaded once for the process.
In: the folders. Out: an `__import__` whose answers depend on the thread. A module of one's own keeps its name; in
`sys.modules` stands, under that name, one that is to every thread the module of its member: so pickles, dataclasses and
worker processes find there what they look for. An import within a function takes some 0.4 µs longer than by itself.
"""

import builtins
import importlib
import importlib.util
import os
import sys
import types
from importlib.machinery import PathFinder

import collo_hosted

OF_THE_HOST = {"collo_host", "collo_hosted", "collo_imports", "collo_log", "collo_own", "collo_regime"}

_own_names = {"__main__"}  # first parts of names
_import = builtins.__import__
_import_module = importlib.import_module
_modules = sys.modules
_known = set()  # modules of the process that were imported before: what is asked for over and over, also within a step
_around = None  # called with what loads a shared module for the first time


class Shared(types.ModuleType):
    """In `sys.modules`: to each thread the module of its member, which it never loads; `common` where there is no member."""

    def __init__(self, name, common=None):
        super().__init__(name)
        object.__getattribute__(self, "__dict__")["common"] = common or types.ModuleType(name)

    def __getattribute__(self, attribute):
        return getattr(_meant(self), attribute)

    def __setattr__(self, attribute, value):
        setattr(_meant(self), attribute, value)

    def __delattr__(self, attribute):
        delattr(_meant(self), attribute)

    def __dir__(self):
        return dir(_meant(self))


def _meant(shared):
    own, here = object.__getattribute__(shared, "__dict__"), collo_hosted.seat()
    return (here and here.modules.get(own["__name__"])) or own["common"]


def names_in(folder):
    """What can be imported from a folder, by the first part of its name."""
    names = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name, dot, kind = entry.name.partition(".")
                package = not dot and os.path.exists(os.path.join(entry, "__init__.py"))
                if kind == "py" or entry.name.endswith(".so") or package:
                    names.add(name)
    except OSError:
        pass  # then there is nothing to import
    return {name for name in names if name.isidentifier()}


def install(folders, around):
    """`around(load)` loads a module that is the process's for the first time. What is loaded now stays the process's."""
    global _around
    _around = around
    for folder in folders:
        _own_names.update(names_in(folder) - OF_THE_HOST - _modules.keys())
    _modules["__main__"] = Shared("__main__", _modules["__main__"])
    builtins.__import__, importlib.import_module = _import_for_thread, _import_module_for_thread


def load(here, name):
    """A module of the member's own, found on its path."""
    module = here.modules.get(name)
    if module is not None:
        return module
    with here.lock:
        parent, _, last = name.rpartition(".")
        path = here.path
        if parent:
            path = getattr(load(here, parent), "__path__", None)
            if path is None:
                raise ModuleNotFoundError(f"No module named {name!r}; {parent!r} is not a package", name=name)
        if name in here.modules:  # its package has imported it, or another thread
            return here.modules[name]
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        here.modules[name] = module = importlib.util.module_from_spec(spec)
        _modules.setdefault(name, Shared(name))
        try:
            if spec.loader is not None:  # a folder without `__init__.py` has none
                spec.loader.exec_module(module)
        except BaseException:
            here.modules.pop(name, None)
            raise
        if parent:
            setattr(here.modules[parent], last, here.modules[name])
        return here.modules[name]


def _import_for_thread(name, globals=None, locals=None, fromlist=(), level=0):
    if not level and name in _known:
        return _import(name, globals, locals, fromlist)
    if level:
        package = (globals or {}).get("__package__") or (globals or {}).get("__name__") or ""
        if package.partition(".")[0] not in _own_names or not collo_hosted.seat():
            return _import(name, globals, locals, fromlist, level)
        return _own_import(importlib.util.resolve_name("." * level + name, package), fromlist)
    if name.partition(".")[0] not in _own_names or not collo_hosted.seat():
        if name in _modules:
            if name.partition(".")[0] not in _own_names:
                _known.add(name)
            return _import(name, globals, locals, fromlist)
        return _around(lambda: _import(name, globals, locals, fromlist))
    module = _own_import(name, fromlist)
    return module if fromlist else collo_hosted.seat().modules[name.partition(".")[0]]


def _own_import(name, fromlist):
    here = collo_hosted.seat()
    module = load(here, name)
    if fromlist and hasattr(module, "__path__"):
        wanted = getattr(module, "__all__", ()) if "*" in fromlist else fromlist
        for part in wanted:
            if not hasattr(module, part):
                try:
                    load(here, f"{name}.{part}")
                except ModuleNotFoundError as error:
                    if error.name != f"{name}.{part}":
                        raise
    return module


def _import_module_for_thread(name, package=None):
    here = collo_hosted.seat()
    if here:
        absolute = importlib.util.resolve_name(name, package) if name.startswith(".") else name
        if absolute.partition(".")[0] in _own_names:
            return load(here, absolute)
    if name in _modules:
        return _import_module(name, package)
    return _around(lambda: _import_module(name, package))
