"""torch without its compiler, for a process that describes a step and leaves: to import `torch._dynamo` takes as long as
to trace a step.

Fake tensors, optimisers and libraries import it for a name or two. These are here, each as it is where nothing is
compiled. Whoever asks for another name gets it from the real module, which is loaded then.
"""

import gc
import importlib
import importlib.abc
import importlib.machinery
import sys
import types

import torch

DYNAMO = "torch._dynamo"


class Named:
    def __init__(self, name):
        self.name = name


class Never:
    """What nothing is an instance of."""


def unchanged(function=None, *_, **__):
    return unchanged if function is None else function  # `@disable` and `@disable(recursive=False)`


NAMES = {
    # torch/_compile.py, optim/optimizer.py: what is not to be compiled is what it was.
    DYNAMO: dict.fromkeys(("disable", "graph_break", "assume_constant_result", "allow_in_graph"), unchanged),
    f"{DYNAMO}.utils": {"is_compile_supported": lambda _device: False},  # torchvision/ops/roi_align.py
    # torch/_subclasses/meta_utils.py, fake_tensor.py: where a tensor came from, to name its unknown sizes after it.
    f"{DYNAMO}.source": {
        "ConstantSource": Named,
        **dict.fromkeys(("RandomValueSource", "CallMethodItemSource", "FloatTensorSource"), Never),
    },
}
# The real ones are light: a page of switches, and what transformers' masks want.
LIGHT = (f"{DYNAMO}.config", f"{DYNAMO}._trace_wrapped_higher_order_op")


class Stand(types.ModuleType):
    """In the place of a module until somebody asks for what it does not have."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        load()
        return getattr(sys.modules[self.__name__], name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Of the modules in NAMES it finds stands, of the compiler's others the real ones."""

    def find_spec(self, name, path=None, target=None):
        if name in NAMES:
            return importlib.machinery.ModuleSpec(name, self, is_package=name == DYNAMO)
        if name.startswith(f"{DYNAMO}.") and name not in LIGHT:
            load()
            importlib.import_module(name)
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def create_module(self, spec):
        if self in sys.meta_path:
            return Stand(spec.name)
        self.own_spec = sys.modules[spec.name].__spec__
        return sys.modules[spec.name]

    def exec_module(self, module):
        if not isinstance(module, Stand):
            module.__spec__ = self.own_spec
            return
        vars(module).update(NAMES[module.__name__])
        if module.__name__ == DYNAMO:
            module.__path__ = [f"{torch.__path__[0]}/_dynamo"]


finder = Finder()


def begin():
    """From here on. Nothing is put in the place of a compiler that is loaded already."""
    gc.disable()  # it looks through a hundred thousand new functions again and again, in vain
    if finder not in sys.meta_path and DYNAMO not in sys.modules:
        sys.meta_path.insert(0, finder)


def load():
    """The real one after all."""
    if finder not in sys.meta_path:
        return
    sys.meta_path.remove(finder)
    for name in NAMES:
        sys.modules.pop(name, None)
    real = importlib.import_module(DYNAMO)
    for name in LIGHT:
        if name in sys.modules:
            setattr(real, name.rpartition(".")[2], sys.modules[name])
