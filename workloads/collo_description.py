"""What is written of a traced training step: a trace and its model go in, a description for any batch size comes out.

approximate        why it may be wrong, in words; empty: it is exact
allocations        [bytes, grows, kind]: `grows` 1 is bytes per item, 0 bytes; `kind` is an index into `kinds`
events             k + 1: allocation k is made, -(k + 1): it is freed
steps              events before the first number are set-up, then come a first and a second step
workspace          input and output of the largest convolution that is wider than 1, has no groups, and whose input's
                   gradient is computed
operations         of one training step by kind: how often, FLOPs per item, bytes read and written
kernels_per_step   operations that compute; what works on many tensors at once counts once
features           layers in the order and number of the forward pass, as Yeung et al. (HotCloud'20) count them
layers             [type, values put out per item, parameters] in the order of the forward pass
horus_activations  values per item that the Horus estimator counts
generated          of a network drawn at random: all that was drawn
fake_tensor        [bytes, bytes per item]: the highest of these lines is what the FakeTensor estimator says

Bytes, counts and FLOPs are whole numbers; a multiply-add is two FLOPs.
"""

import torch

from collo_trace import KINDS, OPERATIONS

SCHEMA = 1
# By the names of layers and of functions that stand for layers, in small letters.
RECURRENT = ("lstm", "gru", "rnn")
ACTIVATIONS = (
    "relu", "gelu", "silu", "swish", "sigmoid", "tanh", "elu", "selu", "celu", "mish", "softplus", "softsign", "glu",
    "shrink", "threshold",
)  # fmt: skip
GATES = 5  # activations in a cell of an LSTM: three sigmoids, two tanh
COUNTED_BY_HORUS = ("conv", "batchnorm", "linear", "adaptiveavgpool", "dropout", "softmax")


def summary(trace, ends, model, optimiser, sequence, approximate, precision, fake_tensor):
    parameters, buffers = list(model.parameters()), list(model.buffers())
    batch = trace.batch
    growing = [trace.grows(index) for index in range(len(trace.sizes))]
    return {
        "schema": SCHEMA,
        "torch": torch.__version__.split("+")[0],
        "traced_batch": batch,
        "precision": precision,
        "optimizer": type(optimiser).__name__,
        "approximate": approximate,
        "parameters": sum(tensor.numel() for tensor in parameters),
        "parameter_bytes": bytes_of(parameters),
        "trainable_parameter_bytes": bytes_of(tensor for tensor in parameters if tensor.requires_grad),
        "buffer_bytes": bytes_of(buffers),
        "largest_layer_parameters": max(
            sum(tensor.numel() for tensor in module.parameters(recurse=False)) for module in model.modules()
        ),
        "kinds": list(KINDS),
        "allocations": [
            [size // batch if grows else size, int(grows), kind]
            for size, grows, kind in zip(trace.sizes, growing, trace.kinds)
        ],
        "events": trace.events[: ends[-1]],
        "steps": ends,
        "workspace": {"item_bytes": trace.workspace // batch, "fixed_bytes": trace.workspace % batch},
        "operations": {kind: operations(trace.operations[kind], batch) for kind in OPERATIONS},
        "kernels_per_step": trace.kernels,
        "forward_flops_per_item": trace.forward_flops // batch,
        "features": {**features(sequence), "model_mb": bytes_of(parameters + buffers) / 1e6},
        "layers": [[name, round(values), parameters] for name, values, parameters in sequence],
        "horus_activations": round(sum(values for name, values, _ in sequence if horus_counts(name))),
        "fake_tensor": fake_tensor,
    }


def bytes_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def operations(of_kind, batch):
    return {
        "count": of_kind.count,
        "flops_per_item": of_kind.flops // batch,
        "bytes_per_item": of_kind.bytes_of_batch // batch,
        "fixed_bytes": of_kind.fixed_bytes,
    }


def features(sequence):
    """The counts of Yeung et al. (HotCloud'20), whose LSTM is two linear layers and its gates are activations."""
    counts = dict.fromkeys(("convolutions", "linear", "activations", "other"), 0)
    for name, _, _ in sequence:
        if name.lower() in RECURRENT:
            counts["linear"] += 2
            counts["activations"] += GATES
        else:
            counts[of_layer(name)] += 1
    return counts


def of_layer(name):
    small = name.lower()
    if "linear" in small or name == "Conv1D":  # transformers' name for a linear layer
        return "linear"
    if "conv" in small:
        return "convolutions"
    return "activations" if is_activation(small) else "other"


def is_activation(small):
    return any(activation in small for activation in ACTIVATIONS) and "norm" not in small


def horus_counts(name):
    """Of layers alone: torchsummary, by which it was evaluated, sees no function that is called without one."""
    small = name.lower()
    return name[0].isupper() and (any(counted in small for counted in COUNTED_BY_HORUS) or is_activation(small))


def upper_envelope(lines):
    """Of lines (fixed, per item) those that are the highest for some batch of one or more, the flattest first."""
    best = {}
    for fixed, item in lines:
        best[item] = max(fixed, best.get(item, fixed))
    hull = []
    for item in sorted(best):
        line = best[item], item
        while hull and overtakes(hull[-1], line) <= (overtakes(hull[-2], hull[-1]) if len(hull) > 1 else 1):
            hull.pop()
        hull.append(line)
    return [list(line) for line in hull]


def overtakes(flat, steep):
    """From which batch size on the steeper line is the higher one."""
    return (flat[0] - steep[0]) / (steep[1] - flat[1])
