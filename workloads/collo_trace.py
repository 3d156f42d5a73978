"""What a training step allocates and computes, in order, seen on fake tensors: no GPU, no memory, no arithmetic.

Whatever torch does inside a `Trace` goes in; out come allocations, the events of making and freeing them, and counts by
kind of operation. Knows no script and no file. Storages are counted once, whatever views there are of them.
"""

import math
import weakref
from collections import defaultdict

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import (
    TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode_stack,
)  # fmt: skip
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from collo_features import flop_registry

aten = torch.ops.aten
KINDS = ("weights", "buffers", "gradients", "optimizer", "input", "saved", "temporary")
WEIGHTS, BUFFERS, GRADIENTS, OPTIMIZER, INPUT, SAVED, TEMPORARY = range(len(KINDS))
OPERATIONS = ("convolution", "matmul", "normalisation", "activation", "other")
OF_ANY_BATCH = (WEIGHTS, BUFFERS, GRADIENTS, OPTIMIZER)
# Neither a kernel nor memory of the device: a host's number made a tensor, which a GPU keeps on the host, too.
ON_THE_HOST = (aten.lift_fresh.default, aten.lift_fresh_copy.default)
DRAWN = (aten.normal_.default, aten.uniform_.default, aten.random_.default, aten.bernoulli_.float)
# `item()` and `equal()` need the numbers, of which there are none.
ANSWERS = {aten._local_scalar_dense.default, aten.equal.default}
# In the set-up a few numbers are computed that decide about the model: rates and widths of its layers. They are there.
NUMBERED = {"arange", "linspace", "logspace", "full", "zeros", "ones", "eye", "scalar_tensor"}
MOST_NUMBERS = 1 << 14
OF_THE_HOST = {"prim", "profiler"}  # where a tensor is, and marks for a profiler: nothing is computed
NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "_to_dense", "resize_"}


class Operations:
    """How often one kind of operation ran in a step, its FLOPs, and the bytes it read and wrote."""

    def __init__(self):
        self.count = self.flops = self.bytes_of_batch = self.fixed_bytes = 0


class Trace(TorchDispatchMode):
    def __init__(self, batch):
        super().__init__()
        self.batch = batch
        self.sizes, self.item_sizes, self.kinds = [], [], []  # of each allocation: bytes, bytes of a value, kind
        self.events = []  # k + 1: allocation k is made, -(k + 1): it is freed
        self.alive, self.references = {}, {}
        self.parameter_sizes = set()  # how many values: what has as many does not grow with the batch
        self.numbers = WeakIdKeyDictionary()  # of small tensors, until `setting_up` ends: with numbers
        self.numbered = set()  # their storages
        self.setting_up = True
        self.reads = 0  # of a number by the host, not counting the optimiser's own
        self.counting = self.in_optimiser = False
        self.backward_from = None  # the first event of this step that is not of its forward pass
        self.operations = defaultdict(Operations)
        self.forward_flops = self.kernels = 0
        # Input and output of the largest convolution without groups and wider than 1, for the whole batch: cuDNN's
        # workspace grows with them. The first layer's is used when little else is there, and is left out.
        self.workspace = 0

    # --- what torch does ---

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        known = self._with_numbers(function, args, kwargs or {}) if self.setting_up else None
        if function in ANSWERS:
            if known is not None:
                return known
            self.reads += not self.in_optimiser
            return True if function is aten.equal.default else number(args[0].dtype)
        if function in DRAWN:
            return args[0]
        if self.backward_from is None and torch._C._current_graph_task_id() != -1:
            self.backward_from = len(self.events)
            self._keep_what_is_saved()
        try:
            out = function(*args, **(kwargs or {}))
        except Exception:
            if not isinstance(known, (torch.Tensor, tuple, list)):
                raise
            out = tree_map_only(torch.Tensor, lambda tensor: function_mode().from_tensor(tensor.clone()), known)
        outputs = tensors_in(out)
        for tensor, numbers in zip(outputs, tensors_in(known)):
            self.numbers[tensor] = numbers
            self.numbered.add(tensor_key(tensor))
        if function in ON_THE_HOST:
            return out
        for tensor in outputs:
            self.see(tensor)
        if self.counting:
            self._count(function, args, kwargs or {}, out, outputs)
        return out

    def _with_numbers(self, function, args, kwargs):
        """What the function gives where all that it is given has numbers and is small; else None."""
        given = (*tensors_in(args), *tensors_in(list(kwargs.values())))
        if not given and (function._overloadpacket.__name__ not in NUMBERED or most_values(args) > MOST_NUMBERS):
            return None
        unknown = any(isinstance(tensor, FakeTensor) and tensor not in self.numbers for tensor in given)
        drawn = torch.Tag.nondeterministic_seeded in function.tags
        if unknown or drawn or any(tensor.numel() > MOST_NUMBERS for tensor in given):
            if function._schema.is_mutable:
                self._forget_numbers(written_to(function, args, kwargs))
            return None
        args, kwargs = tree_map_only(FakeTensor, lambda tensor: self.numbers[tensor], (args, kwargs))
        with _disable_current_modes():
            return function(*args, **kwargs)

    def _forget_numbers(self, given):
        """Of these tensors, and of all that are views of the same storage."""
        keys = {tensor_key(tensor) for tensor in given} & self.numbered
        for tensor in list(self.numbers) if keys else ():
            if tensor_key(tensor) in keys:
                del self.numbers[tensor]
        self.numbered -= keys

    def see(self, tensor, kind=None):
        """Give its storage a place among the allocations, or the one that it has another kind."""
        if tensor.layout is not torch.strided:
            if tensor.layout is torch.sparse_coo:
                for part in (tensor._indices(), tensor._values()):
                    self.see(part, kind)
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        index = self.alive.get(key)
        if index is None:
            size = storage.nbytes()
            if not size or tensor.device.type == "meta":
                return
            index = len(self.sizes)
            self.sizes.append(size)
            self.item_sizes.append(tensor.dtype.itemsize)
            self.kinds.append(TEMPORARY)
            self.events.append(index + 1)
            self.alive[key] = index
            self.references[index] = weakref.ref(storage, lambda _: self._free(key, index))
        if kind is not None:
            self.kinds[index] = kind

    def _free(self, key, index):
        self.events.append(-(index + 1))
        self.alive.pop(key, None)
        self.references.pop(index, None)

    def _keep_what_is_saved(self):
        """What the forward pass has made and what is there when the backward pass begins was kept for it."""
        for index in self.alive.values():
            if self.kinds[index] == TEMPORARY:
                self.kinds[index] = SAVED

    # --- what it is ---

    def learn(self, model):
        """Which storages are the model's, and which will be its gradients: by hooks, which are returned."""
        hooks = []
        for buffer in model.buffers():
            self.see(buffer, BUFFERS)
        for parameter in model.parameters():
            self.see(parameter, WEIGHTS)
            self.parameter_sizes.add(parameter.numel())
            if parameter.requires_grad:
                hooks.append(
                    parameter.register_post_accumulate_grad_hook(lambda given: self.see(given.grad, GRADIENTS))
                )
        return hooks

    def learn_state_of(self, optimiser):
        for state in optimiser.state.values():
            for tensor in tensors_in(list(state.values())):
                if self.alive.get(tensor_key(tensor)) is not None:
                    self.see(tensor, OPTIMIZER)

    def forget_what_is_gone(self):
        """Of what was before the steps only what is still there counts: weights may have been drawn on the host."""
        there = sorted(self.alive.values())
        renamed = {index: new for new, index in enumerate(there)}
        self.sizes, self.item_sizes, self.kinds = (
            [column[index] for index in there] for column in (self.sizes, self.item_sizes, self.kinds)
        )
        keys = {index: key for key, index in self.alive.items()}
        storages = {index: self.references[index]() for index in there}
        self.alive = {keys[index]: renamed[index] for index in there}
        self.references = {
            renamed[index]: weakref.ref(
                storages[index], lambda _, key=keys[index], new=renamed[index]: self._free(key, new)
            )
            for index in there
        }
        self.events = [index + 1 for index in range(len(there))]

    def begin_step(self, counting):
        self.backward_from, self.counting = None, counting

    def grows(self, index):
        size, values = self.sizes[index], self.sizes[index] // self.item_sizes[index]
        return self.kinds[index] not in OF_ANY_BATCH and size % self.batch == 0 and values not in self.parameter_sizes

    # --- what it computes ---

    def _count(self, function, args, kwargs, out, outputs):
        packet = function._overloadpacket
        name = packet.__name__
        if function.is_view or name in NO_KERNEL or function.namespace in OF_THE_HOST:
            return
        self.kernels += 1
        operations = self.operations[kind_of(name)]
        operations.count += 1
        for tensor in (*tensors_in(args), *tensors_in(list(kwargs.values())), *outputs):
            if tensor.layout is torch.strided:
                size = tensor.numel() * tensor.element_size()
                if size % self.batch or tensor.numel() in self.parameter_sizes:
                    operations.fixed_bytes += size
                else:
                    operations.bytes_of_batch += size
        flops = recurrent_flops(name, args)
        if packet in flop_registry:
            flops = flop_registry[packet](*args, **kwargs, out_val=out)
        operations.flops += flops
        if self.backward_from is None:
            self.forward_flops += flops
        if name == "convolution_backward" and args[10][0]:  # the gradient of its input is wanted
            gradient, given, weight, groups = args[0], args[1], args[2], args[9]
            if groups == 1 and max(weight.shape[2:], default=1) > 1:
                both = sum(tensor.numel() * tensor.element_size() for tensor in (gradient, given))
                self.workspace = max(self.workspace, both)


class LiveTensors(TorchDispatchMode):
    """The FakeTensor estimator of the literature: a storage counts from the first of its tensors that an operation puts
    out to the end of the last. Weights are put in, not out: of them only those count that a view is taken of.
    """

    def __init__(self, batch):
        super().__init__()
        self.batch, self.parameter_sizes = batch, set()
        self.tensors = defaultdict(int)  # alive, of each storage
        self.known = WeakIdKeyDictionary()
        self.fixed = self.item = 0  # bytes alive
        self.lines = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tensors_in(out):
            if tensor not in self.known and tensor.layout is torch.strided:
                self.known[tensor] = True
                storage = tensor.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                grows = size % self.batch == 0 and size // tensor.element_size() not in self.parameter_sizes
                if not self.tensors[key]:
                    self._change(size, grows)
                self.tensors[key] += 1
                weakref.finalize(tensor, self._drop, key, size, grows)
        return out

    def _drop(self, key, size, grows):
        self.tensors[key] -= 1
        if not self.tensors[key]:
            self._change(-size, grows)

    def _change(self, size, grows):
        if grows:
            self.item += size // self.batch
        else:
            self.fixed += size
        self.lines.add((self.fixed, self.item))


def recurrent_flops(name, args):
    """Of a layer from one end, which the CPU computes in one operation: its gates, of every word and of the state before it.

    `args` begin with the words [T, B, C], the weights for words [gates · H, C] and those for the state [gates · H, H]. The way back
    computes the gradients of both.
    """
    if not name.startswith("mkldnn_rnn_layer"):
        return 0
    words, for_words, for_state = args[:3]
    forward = 2 * words.shape[0] * words.shape[1] * (for_words.numel() + for_state.numel())
    return 2 * forward if name.endswith("backward") else forward


def function_mode():
    """The mode that makes tensors without numbers, below this one."""
    return next(mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode))


def most_values(args):
    """At most so many values are made of these: of sizes, or of numbers."""
    sizes = [math.prod(arg) for arg in args if isinstance(arg, (list, tuple))]
    return max((*sizes, *(abs(arg) for arg in args if isinstance(arg, (int, float)))), default=0)


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in tensors_in(part)]
    return ()


def written_to(function, args, kwargs):
    """The tensors among its arguments that the function changes."""
    given = zip((argument for argument in function._schema.arguments if not argument.kwarg_only), args)
    named = ((argument, kwargs.get(argument.name)) for argument in function._schema.arguments)
    changed = [value for argument, value in (*given, *named) if argument.alias_info and argument.alias_info.is_write]
    return tensors_in(changed)


def tensor_key(tensor):
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else None


def number(dtype):
    """1, of the type that `item()` gives."""
    return True if dtype is torch.bool else 1.0 if dtype.is_floating_point else 1


MATMULS = {"mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "matmul"}
ACTIVATIONS = (
    "relu", "gelu", "silu", "sigmoid", "tanh", "hardtanh", "hardswish", "hardsigmoid", "elu", "mish", "softplus",
    "threshold_backward", "leaky_relu", "prelu", "glu", "softmax",
)  # fmt: skip


def kind_of(name):
    """Of an operation, by torch's name for it."""
    if "convolution" in name:
        return "convolution"
    if name in MATMULS or "attention" in name or "rnn_layer" in name:
        return "matmul"
    if "norm" in name and "foreach" not in name:
        return "normalisation"
    if any(activation in name for activation in ACTIVATIONS):
        return "activation"
    return "other"
