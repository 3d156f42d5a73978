"""What the ensembles see of a training: rows go in, features, sequences of layers, and the bins of their memory come out.

A row has `kind` (or none: the layers tell), `family`, `batch_size`, `parameters`, `layers` ([type, values put out per
item, parameters] in the order of the forward pass, as descriptions have them) and `memory_mib`. Features and codes are
those of `Ensemble/dataloaders` in itu-rad/GPUMemNet. Otherwise than there, the values that a Transformer's linear layers
put out count for every token: without the length two trainings of different memory would be one.
"""

import math
from collections import Counter

import torch

KINDS = ("mlp", "cnn", "transformer")
MOST_BINS = 512
# In the order of the public code, whose place in a half circle is a feature; what a layer may be called, too.
ACTIVATIONS = ("elu", "gelu", "identity", "leakyrelu", "mish", "prelu", "relu", "selu", "silu", "softplus", "tanh")
USUAL_BIN_MIB = {"mlp": 1000, "cnn": 8000, "transformer": 8000}  # "GB" in the text is 1000 MiB in the code


def kind_of(layers):
    sorts = {sort_of(name) for name, _, _ in layers}
    return "transformer" if "attention" in sorts else "cnn" if "convolution" in sorts else "mlp"


def sort_of(name):
    """linear, convolution, attention, embedding, layer or batch (normalisation), dropout, or other."""
    small = name.lower()
    if "attention" in small:
        return "attention"
    if "linear" in small or name == "Conv1D":  # transformers' name for a linear layer
        return "linear"
    for part, sort in (
        ("conv", "convolution"), ("embedding", "embedding"), ("layernorm", "layer"), ("layer_norm", "layer"),
        ("batchnorm", "batch"), ("batch_norm", "batch"), ("dropout", "dropout"),
    ):  # fmt: skip
        if part in small:
            return sort
    return "other"


# Of each sort of layer in a sequence; what has no code there is left out of it.
CODES = {
    "mlp": {"linear": (0, 1), None: (1, 0)},
    "cnn": {"convolution": (0, 1), "linear": (1, 1), "dropout": (0, 0), "batch": (0, 0), None: (1, 0)},
    # The public code has the attention's projection among the linear layers.
    "transformer": {
        "layer": (1, 0, 0, 0), "embedding": (0, 1, 0, 0), "linear": (0, 0, 1, 0), "attention": (0, 0, 1, 0),
        "dropout": (0, 0, 0, 1),
    },
}  # fmt: skip


class Table:
    """Rows of one kind as tensors."""

    def __init__(self, kind, rows, bin_mib):
        self.kind, self.bin_mib = kind, bin_mib
        self.families = [row["family"] for row in rows]
        self.bins = torch.tensor([min(int(row["memory_mib"] // bin_mib), MOST_BINS - 1) for row in rows])
        seen = [Seen(kind, row) for row in rows]
        self.features = torch.tensor([one.features for one in seen], dtype=torch.float32)
        self.more = torch.tensor([one.more for one in seen], dtype=torch.float32)
        longest = max(len(one.sequence) for one in seen)
        width = len(seen[0].sequence[0])
        self.lengths = torch.tensor([len(one.sequence) for one in seen])
        self.sequences = torch.zeros(len(rows), longest, width)
        for place, one in enumerate(seen):
            self.sequences[place, : len(one.sequence)] = torch.tensor(one.sequence, dtype=torch.float32)

    def __len__(self):
        return len(self.bins)

    @property
    def classes(self):
        return int(self.bins.max()) + 1


class Seen:
    """One row: the features of the MLP ensemble, and for the Transformer ensemble the sequence with `more` features."""

    def __init__(self, kind, row):
        layers = [layer for layer in row["layers"] if layer[1] or layer[2]]  # a loss puts nothing out
        sorts = Counter(sort_of(name) for name, _, _ in layers)
        batch, parameters = row["batch_size"], row["parameters"]
        activations = sum(values for _, values, _ in layers)
        depth = sorts["linear"] if kind == "mlp" else len(layers)
        circle = on_a_half_circle(kind, layers)
        if kind == "mlp":
            self.features = [depth, batch, parameters, activations, sorts["batch"], sorts["dropout"], *circle]
            self.more = [batch, parameters, activations, activations * batch]
        elif kind == "cnn":
            counts = [sorts["convolution"], sorts["batch"], sorts["dropout"], *circle]
            self.features = [depth, activations, activations * batch, parameters, batch, *counts]
            self.more = [batch, parameters, activations, activations * batch, *counts]
        else:
            counts = [sorts["attention"], sorts["linear"], sorts["layer"], sorts["dropout"]]
            self.features = [depth, activations, activations * batch, parameters, batch, *counts]
            self.more = self.features
        codes = CODES[kind]
        coded = ((codes.get(sort_of(name), codes.get(None)), values, own) for name, values, own in layers)
        self.sequence = [[*code, values, own] for code, values, own in coded if code is not None]
        self.sequence = self.sequence or [[0] * (len(next(iter(codes.values()))) + 2)]


def on_a_half_circle(kind, layers):
    """The first activation function as (sin, cos) of its place; an MLP without one has the identity."""
    known = ACTIVATIONS if kind == "mlp" else tuple(name for name in ACTIVATIONS if name != "identity")
    names = (name.lower().replace("_", "") for name, _, _ in layers)
    usual = "identity" if kind == "mlp" else "relu"
    place = known.index(next((name for name in names if name in known), usual))
    return math.sin(place * math.pi / len(known)), math.cos(place * math.pi / len(known))


def tables(rows, bin_mib=None):
    """A table for each kind there is."""
    by_kind = {}
    for row in rows:
        by_kind.setdefault(row.get("kind") or kind_of(row["layers"]), []).append(row)
    return [Table(kind, by_kind[kind], bin_mib or USUAL_BIN_MIB[kind]) for kind in KINDS if kind in by_kind]
