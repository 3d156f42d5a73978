"""The two ensembles of GPUMemNet, their members side by side in one computation. Features go in, logits of bins come out.

Sizes are those of `Ensemble/train.py`, `models/` and `transformers_architectures.yaml` in itu-rad/GPUMemNet. Two things
are otherwise. Its encoder gets items before layers where torch's expects layers first (`batch_first` is false), so that
its attention is among the items of a batch; here it is among the layers of an item. And what fills up a sequence to the
longest takes part there; here it does not, which also makes short ones cheap.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

MEMBERS = (1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6)  # hidden layers of each MLP
MEMBERS_FOR_CNN = (1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 6, 7, 8, 4, 5, 6)
WIDEST, NARROWEST = 8, 4
ENCODERS = ((6, 3), (4, 2))  # width, layers
INNER = 4  # of an encoder layer, between its two linear ones
LONG = 64  # layers: from here on
TOGETHER = 32  # sequences of about the same length are encoded together, filled up to the longest of them


def widths(depth):
    return [max(NARROWEST, WIDEST >> layer) for layer in range(depth)]


class Side(nn.Module):
    """The linear layers of several members, each seeing its own part of the input: a matrix of blocks."""

    def __init__(self, blocks):
        """`blocks`: (inputs from, to, outputs) of each member."""
        super().__init__()
        inputs, outputs = max(end for _, end, _ in blocks), sum(width for _, _, width in blocks)
        weight, mask, row = torch.zeros(outputs, inputs), torch.zeros(outputs, inputs), 0
        for begin, end, width in blocks:
            nn.init.xavier_uniform_(weight[row : row + width, begin:end])
            mask[row : row + width, begin:end] = 1
            row += width
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(torch.zeros(outputs))
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)

    def own_parameters(self):
        return int(self.mask.sum()) + len(self.bias)


class MlpEnsemble(nn.Module):
    """MLPs of different depths, each layer with batch normalisation and ReLU; their logits are averaged."""

    def __init__(self, inputs, classes, members=MEMBERS):
        super().__init__()
        self.members, self.classes = sorted(members, reverse=True), classes  # the deepest first: those that go on
        self.layers, self.norms, self.heads = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for layer in range(self.members[0]):
            going_on = [depth for depth in self.members if depth > layer]
            width = widths(layer + 1)[-1]
            before = widths(layer)[-1] if layer else inputs
            # All of the first layer see the same features.
            places = [(place * before if layer else 0) for place in range(len(going_on))]
            self.layers.append(Side([(begin, begin + before, width) for begin in places]))
            self.norms.append(nn.BatchNorm1d(len(going_on) * width))
            ending = [place for place, depth in enumerate(going_on) if depth == layer + 1]
            heads = [(place * width, (place + 1) * width, classes) for place in ending]
            self.heads.append(Side(heads) if heads else nn.Identity())

    def forward(self, x):
        logits = []
        for layer, (linear, norm, head) in enumerate(zip(self.layers, self.norms, self.heads)):
            x = F.relu(norm(linear(x)))
            if isinstance(head, Side):
                logits.append(head(x[:, : head.weight.shape[1]]))
            if layer + 1 < len(self.layers):
                x = x[:, : self.layers[layer + 1].weight.shape[1]]
        return torch.cat(logits, 1).unflatten(1, (len(self.members), self.classes)).mean(1)


class Encoder(nn.Module):
    """Over the layers of a network in their order, and summed up; the features of the whole go with it to the MLPs."""

    def __init__(self, codes, longest, width, layers, more, classes):
        super().__init__()
        # Each place in the sequence is normalised by itself.
        self.embedding = nn.Sequential(
            nn.Linear(codes, width), nn.BatchNorm1d(longest), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(longest), nn.ReLU(),
        )  # fmt: skip
        self.register_buffer("places", places(longest, width), persistent=False)
        layer = nn.TransformerEncoderLayer(width, 1, INNER, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = MlpEnsemble(width + more, classes)
        self.together = TOGETHER if longest > LONG else None

    def forward(self, sequence, more, lengths):
        x = self.embedding(sequence) + self.places
        order = lengths.argsort(stable=True)
        summed = []
        for items in order.split(self.together or len(order)):
            longest = int(lengths[items[-1]])
            beyond = torch.arange(longest) >= lengths[items].unsqueeze(1)
            encoded = self.layers(x[items, :longest], src_key_padding_mask=beyond)
            summed.append(encoded.masked_fill(beyond.unsqueeze(2), 0).sum(1))
        return self.head(torch.cat((torch.cat(summed)[order.argsort()], more), 1))


def places(longest, width):
    """Sines and cosines of each place."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(longest).unsqueeze(1) * rates
    return torch.stack((angles.sin(), angles.cos()), 2).flatten(1)


class TransformerEnsemble(nn.Module):
    def __init__(self, codes, longest, more, classes):
        super().__init__()
        self.members = nn.ModuleList(
            Encoder(codes, longest, width, layers, more, classes) for width, layers in ENCODERS
        )

    def forward(self, sequence, more, lengths):
        return torch.stack([member(sequence, more, lengths) for member in self.members]).mean(0)


def parameters_of(model):
    """As the original counts them: a member's own, without the rest of the matrix it lies in."""
    sides = [module for module in model.modules() if isinstance(module, Side)]
    of_sides = {id(parameter) for side in sides for parameter in side.parameters()}
    others = sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in of_sides)
    return others + sum(side.own_parameters() for side in sides)
