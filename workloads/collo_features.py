"""The features of a computation graph that predictors of utilisation and memory are trained on, told once.

A model and the inputs of one item go in. Everything is counted on torch's meta device, which has shapes but no memory:
neither the GPU nor the clock notices. What cannot be counted there is None.
"""

import copy
import itertools
import logging
from collections import Counter

import torch
from torch.nn import functional as F

import collo

# It warns that it cannot count kernels of Triton where there is no Triton, and so no such kernel.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode, flop_registry  # noqa: E402, F401  (collo_trace's)

MOST_LAYERS = 10_000  # in a sequence: a message of the protocol has at most 1 MiB


def tell_features(member, model, example, settings):
    """Send the features of `model` for `example`, a tuple of its inputs with one item each."""
    if collo.describing():
        import collo_describe

        return collo_describe.learn(example=example)
    member.features(batch_size=settings.batch_size, **features(model, example))


def features(model, example):
    """Counts per model, and per item of one forward pass.

    `flops_per_item` counts a multiply-add as two, forward only; training takes about three times as many.
    `activations_per_item` is the number of values that the layers put out; a stand-in for no layer puts out none.
    `sequence` has what computes in the order of the forward pass, each as [type, values put out, parameters]: the
    layers, and between them the functions of `torch.nn.functional` that are called without a layer, by their own small
    names (`relu` beside `ReLU`). Sums, products and joins that are written with operators are not seen. A parameter
    that two layers share counts for each.
    """
    tensors = list(itertools.chain(model.parameters(), model.buffers()))
    flops, activations, sequence = forward_pass(model, example)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "model_mb": sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e6,
        "flops_per_item": flops,
        "activations_per_item": activations,
        "layers": dict(sorted(Counter(type(layer).__name__ for layer in layers_of(model)).items())),
        "sequence": sequence,
    }


def layers_of(model):
    """The modules that compute: those without others in them. `Identity` marks a place where none is."""
    leaves = (module for module in model.modules() if not any(module.children()))
    return [leaf for leaf in leaves if not isinstance(leaf, torch.nn.Identity)]


def forward_pass(model, example):
    """(flops, activations, sequence) of one forward pass on the meta device; None if an operation has no meta form."""
    twin = on_meta(model).eval().requires_grad_(False)  # batch normalisation of one item has no variance to learn from
    seen = Seen()
    for layer in layers_of(twin):
        layer.register_forward_pre_hook(seen.enter)
        layer.register_forward_hook(seen.leave)
    flops = FlopCounterMode(display=False)
    try:
        with flops, torch.no_grad(), seen:
            twin(*(tensor.to("meta") for tensor in example))
    except (NotImplementedError, RuntimeError):
        return None, None, None
    sequence = seen.sequence if len(seen.sequence) <= MOST_LAYERS else None
    return flops.get_total_flops(), seen.activations, sequence


class Seen(TorchFunctionMode):
    """What computes in a forward pass: layers by their hooks, and the functions that are called outside any of them."""

    def __init__(self):
        super().__init__()
        self.sequence, self.activations, self.layer = [], 0, None

    def enter(self, layer, inputs):
        if self.layer is None:  # the outermost: a few layers call others that are not their children
            self.layer = layer

    def leave(self, layer, inputs, output):
        self.activations += values(output)
        if layer is self.layer:
            own = sum(parameter.numel() for parameter in layer.parameters(recurse=False))
            self.sequence.append([type(layer).__name__, values(output), own])
            self.layer = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))  # what it calls in turn is not seen
        name = getattr(function, "__name__", "").removesuffix("_")  # `relu_` is `relu` in place
        if self.layer is None and name in FUNCTIONS and values(output):
            given = itertools.chain(args, (kwargs or {}).values())
            own = sum(value.numel() for value in given if isinstance(value, torch.nn.Parameter))
            self.sequence.append([name, values(output), own])
        return output


# By name: the same function is called as torch.nn.functional's, as torch's or as a tensor's. What only lays out is none.
LAYING_OUT = {"pad", "unfold", "fold", "one_hot", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"}
FUNCTIONS = {name for name in dir(F) if name[0].islower() and callable(getattr(F, name))} - LAYING_OUT


def values(output):
    """How many numbers a layer puts out."""
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    return sum(tensor.numel() for tensor in outputs if isinstance(tensor, torch.Tensor))


def on_meta(model):
    """A copy of the model without its numbers. The copy is made around them: a large model must not be there twice."""
    memo = {id(tensor): torch.empty_like(tensor, device="meta") for tensor in model.buffers()}
    for parameter in model.parameters():
        memo[id(parameter)] = torch.nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
    return copy.deepcopy(model, memo)
