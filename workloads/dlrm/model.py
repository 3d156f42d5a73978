"""DLRM (Naumov et al., arXiv 1906.00091): numbers and categories go in, the logit of a click comes out.

Thirteen numbers become one vector in the bottom MLP, each category becomes one from its table, and the top MLP sees the
numbers' vector and the dot products of all pairs of vectors. Knows neither data nor device.
"""

import re

import torch
from torch import nn

from collo import SettingError

NUMBERS = 13
WIDEST = 65536


class DLRM(nn.Module):
    def __init__(self, rows, width, bottom, top, sparse=True, device="cpu"):
        super().__init__()
        vectors = 1 + len(rows)
        self.bottom = mlp(NUMBERS, bottom, device)
        self.tables = nn.ModuleList(table(count, width, sparse, device) for count in rows)
        self.top = mlp(width + vectors * (vectors - 1) // 2, top, device)[:-1]  # a logit is not rectified
        row, column = torch.tril_indices(vectors, vectors, offset=-1, device=device)
        self.register_buffer("pairs", row * vectors + column, persistent=False)

    def forward(self, numbers, categories):
        """[batch, 13] and [batch, tables] to [batch]."""
        one_each = torch.arange(len(categories), device=categories.device)  # bags of one category
        columns = categories.t().contiguous()
        vectors = [self.bottom(numbers)]
        vectors += [table(column, one_each) for table, column in zip(self.tables, columns)]
        return self.top(interaction(vectors, self.pairs)).squeeze(1)


def interaction(vectors, pairs):
    """The first vector, then the dot product of each with all before it; `pairs` are their places in the matrix."""
    stacked = torch.stack(vectors, dim=1)
    products = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)
    return torch.cat([vectors[0], products[:, pairs]], dim=1)


def mlp(inputs, widths, device):
    layers = []
    for outputs in widths:
        layers += [nn.Linear(inputs, outputs, device=device), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers)


def table(rows, width, sparse, device):
    # Made on its device, and filled once: it may be too large to be there twice, or to be in the host's memory at all.
    bag = nn.utils.skip_init(nn.EmbeddingBag, rows, width, mode="sum", sparse=sparse, device=device)
    nn.init.uniform_(bag.weight, -(rows**-0.5), rows**-0.5)
    return bag


def bottom_widths(text, width):
    found = widths("bottom", text)
    if found[0] == NUMBERS:
        raise SettingError(f"`bottom` is `{text}`: it begins behind the {NUMBERS} inputs, leave them out")
    if found[-1] != width:
        raise SettingError(f"`bottom` is `{text}`, `embedding_width` is {width}: it ends as wide as the embeddings are")
    return found


def top_widths(text):
    found = widths("top", text)
    if found[-1] != 1:
        raise SettingError(f"`top` is `{text}`: its last layer is 1 wide, the logit of a click")
    return found


def widths(name, text):
    parts = text.split("-")
    if not all(re.fullmatch(r"\d{1,6}", part, re.ASCII) and 1 <= int(part) <= WIDEST for part in parts):
        raise SettingError(f"`{name}` is `{text}`: it is widths of layers, 1 to {WIDEST}, such as 512-256-64")
    return [int(part) for part in parts]
