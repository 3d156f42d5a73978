"""The features of a computation graph that predictors of utilisation and memory are trained on, told once.

A model and the inputs of one item go in. Everything is counted on torch's meta device, which has shapes but no memory:
neither the GPU nor the clock notices. What cannot be counted there is None.
"""

import copy
import itertools
import logging
from collections import Counter

import torch

# It warns that it cannot count kernels of Triton where there is no Triton, and so no such kernel.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402


def tell_features(member, model, example, settings):
    """Send the features of `model` for `example`, a tuple of its inputs with one item each."""
    member.features(batch_size=settings.batch_size, **features(model, example))


def features(model, example):
    """Counts per model, and per item of one forward pass.

    `flops_per_item` counts a multiply-add as two, forward only; training takes about three times as many.
    `activations_per_item` is the number of values that the layers put out; a stand-in for no layer puts out none.
    """
    tensors = list(itertools.chain(model.parameters(), model.buffers()))
    flops, activations = forward_pass(model, example)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "model_mb": sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e6,
        "flops_per_item": flops,
        "activations_per_item": activations,
        "layers": dict(sorted(Counter(type(layer).__name__ for layer in layers_of(model)).items())),
    }


def layers_of(model):
    """The modules that compute: those without others in them. `Identity` marks a place where none is."""
    leaves = (module for module in model.modules() if not any(module.children()))
    return [leaf for leaf in leaves if not isinstance(leaf, torch.nn.Identity)]


def forward_pass(model, example):
    """(flops, activations) of one forward pass on the meta device, or (None, None) if an operation has no meta form."""
    twin = on_meta(model).eval().requires_grad_(False)  # batch normalisation of one item has no variance to learn from
    counts = []

    def count(module, inputs, output):
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        counts.append(sum(tensor.numel() for tensor in outputs if isinstance(tensor, torch.Tensor)))

    for layer in layers_of(twin):
        layer.register_forward_hook(count)
    flops = FlopCounterMode(display=False)
    try:
        with flops, torch.no_grad():
            twin(*(tensor.to("meta") for tensor in example))
    except (NotImplementedError, RuntimeError):
        return None, None
    return flops.get_total_flops(), sum(counts)


def on_meta(model):
    """A copy of the model without its numbers. The copy is made around them: a large model must not be there twice."""
    memo = {id(tensor): torch.empty_like(tensor, device="meta") for tensor in model.buffers()}
    for parameter in model.parameters():
        memo[id(parameter)] = torch.nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
    return copy.deepcopy(model, memo)
