"""A network from its sizes, as `draw.py` puts them out, and the random items that it is trained on."""

import numpy as np
import torch
from torch import nn

from draw import widths

ACTIVATIONS = {
    "relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "prelu": nn.PReLU, "elu": nn.ELU, "selu": nn.SELU, "tanh": nn.Tanh,
    "softplus": nn.Softplus, "swish": nn.SiLU, "mish": nn.Mish, "gelu": nn.GELU, "identity": nn.Identity,
}  # fmt: skip
LEAST_SIDE = 7  # pixels: a smaller picture is not halved any more


def build(net):
    return {"mlp": mlp, "cnn": cnn, "transformer": Transformer}[net["kind"]](net)


def after(net, width, normalisation):
    """What stands behind each layer that weighs."""
    return [
        *([normalisation(width)] if net["normalisation"] == "batch" else []),
        ACTIVATIONS[net["activation"]](),
        *([nn.Dropout(net["dropout"])] if net["dropout"] else []),
    ]


def mlp(net):
    layers, inputs = [], net["inputs"]
    for width in widths(net):
        layers += [nn.Linear(inputs, width), *after(net, width, nn.BatchNorm1d)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, net["outputs"]))


def cnn(net):
    layers, inputs, side = [], net["channels"], net["inputs"]
    for index, width in enumerate(widths(net)):
        layers += [nn.Conv2d(inputs, width, 3, padding=1), *after(net, width, nn.BatchNorm2d)]
        inputs = width
        if net["pooled_every"] and index and index % net["pooled_every"] == 0 and side > LEAST_SIDE:
            layers.append(nn.MaxPool2d(2))
            side //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, net["outputs"]))


class Transformer(nn.Module):
    """Encoder layers; the mean of what they put out is judged."""

    def __init__(self, net):
        super().__init__()
        self.tokens = nn.Embedding(net["inputs"], net["width"])
        self.places = nn.Parameter(torch.zeros(net["length"], net["width"]))
        layer = nn.TransformerEncoderLayer(net["width"], net["heads"], net["inner"], net["dropout"], batch_first=True)
        self.layers = nn.TransformerEncoder(layer, net["depth"], enable_nested_tensor=False)
        self.head = nn.Linear(net["width"], net["outputs"])

    def forward(self, ids):
        return self.head(self.layers(self.tokens(ids) + self.places).mean(1))


def shape(net):
    """Of one item."""
    of_kind = {"mlp": ("inputs",), "cnn": ("channels", "inputs", "inputs"), "transformer": ("length",)}[net["kind"]]
    return tuple(net[size] for size in of_kind)


def shown(net, items):
    """Items as the network takes them: token ids, or values from -1 to 1."""
    return items.long() if net["kind"] == "transformer" else items.float() / 127.5 - 1


def least_bytes(sequence, batch_size, value_bytes):
    """What training cannot do without: the weights, their gradients, Adam's two moments; and for the way back what each
    layer that weighs puts out, or what its activation makes of it, of a whole batch. The last layer's is not kept.
    """
    weighing = [values for kind, values, parameters in sequence if parameters and "Norm" not in kind][:-1]
    weights = sum(parameters for _, _, parameters in sequence)
    return 16 * weights + value_bytes * batch_size * sum(weighing)


class Random:
    """Random items and random labels, made in memory; so few are soon known by heart."""

    name, synthetic = "random", True

    def __init__(self, net, items, seed):
        random = np.random.default_rng(seed)
        most, kind = (net["inputs"], np.int32) if net["kind"] == "transformer" else (256, np.uint8)
        self.items = random.integers(0, most, (items, *shape(net)), kind)
        self.labels = random.integers(0, max(2, net["outputs"]), items)  # one output says yes or no

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return tuple(array[0] for array in self.__getitems__([index]))

    def __getitems__(self, indices):
        return self.items[indices], self.labels[indices]

    def describe(self):
        return {"name": self.name, "synthetic": self.synthetic, "items": len(self)}
