"""A GPT, as GPT-2 is built: token ids in, the scores of every next token out.

In the comments B is the sequences of a batch, T the tokens of one, C the channels of a token. There is no dropout.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Each token gathers from itself and from those before it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        split = self.queries_keys_values(x).view(B, T, 3, self.heads, C // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)  # each [B, heads, T, C / heads]
        gathered = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.out(gathered.transpose(1, 2).reshape(B, T, C))


class MLP(nn.Module):
    """Each token thinks for itself."""

    def __init__(self, width):
        super().__init__()
        self.wide = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU(approximate="tanh")  # GPT-2's
        self.out = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.out(self.gelu(self.wide(x)))


class Block(nn.Module):
    """Attention and an MLP, each added to what came in."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = MLP(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, layers, heads, width, length, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(draw)
        self.head.weight = self.tokens.weight  # tied: what a token is when read is what it is when guessed
        for block in self.blocks:  # so many branches are summed that each must be small at first
            for last in (block.attention.out, block.mlp.out):
                nn.init.normal_(last.weight, std=0.02 / (2 * layers) ** 0.5)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(places)  # [B, T, C]
        return self.head(self.norm(self.blocks(x)))  # [B, T, vocabulary]


def draw(module):
    """The first weights."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
