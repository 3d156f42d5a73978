"""A decoder as small language models of today are built: token ids in, the scores of every next token out.

Normalised by root mean square, rotary positions, several heads of queries to one of keys and values, SwiGLU, one matrix
for tokens read and tokens guessed. In the comments B is the sequences of a batch, T the tokens of one, C its channels.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Sizes(NamedTuple):
    layers: int
    width: int  # channels of a token
    inner: int  # channels within the MLP
    heads: int  # of queries
    kv_heads: int  # of keys and of values
    vocabulary: int
    length: int  # tokens that it is trained on at a time
    rotary_base: float
    qkv_bias: bool


class Attention(nn.Module):
    """Each token gathers from itself and from those before it."""

    def __init__(self, sizes):
        super().__init__()
        self.heads, self.kv_heads, self.head_width = sizes.heads, sizes.kv_heads, sizes.width // sizes.heads
        narrow = self.kv_heads * self.head_width
        self.queries = nn.Linear(sizes.width, sizes.width, bias=sizes.qkv_bias)
        self.keys = nn.Linear(sizes.width, narrow, bias=sizes.qkv_bias)
        self.values = nn.Linear(sizes.width, narrow, bias=sizes.qkv_bias)
        self.out = nn.Linear(sizes.width, sizes.width, bias=False)

    def forward(self, x, turn):
        B, T, C = x.shape
        queries = self.queries(x).view(B, T, self.heads, self.head_width).transpose(1, 2)
        keys, values = (
            of(x).view(B, T, self.kv_heads, self.head_width).transpose(1, 2) for of in (self.keys, self.values)
        )
        queries, keys = turned(queries, turn), turned(keys, turn)
        each = self.heads // self.kv_heads  # heads of queries to one of keys and values
        keys, values = keys.repeat_interleave(each, dim=1), values.repeat_interleave(each, dim=1)
        gathered = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.out(gathered.transpose(1, 2).reshape(B, T, C))


def turned(x, turn):
    """Rotary positions (Su et al., arXiv 2104.09864): pairs of channels are turned, further the later a token is."""
    cos, sin = (part.to(x.dtype) for part in turn)
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class MLP(nn.Module):
    """SwiGLU (Shazeer, arXiv 2002.05202)."""

    def __init__(self, sizes):
        super().__init__()
        self.gate = nn.Linear(sizes.width, sizes.inner, bias=False)
        self.up = nn.Linear(sizes.width, sizes.inner, bias=False)
        self.silu = nn.SiLU()
        self.down = nn.Linear(sizes.inner, sizes.width, bias=False)

    def forward(self, x):
        return self.down(self.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """Attention and an MLP, each added to what came in."""

    def __init__(self, sizes):
        super().__init__()
        self.norm1 = nn.RMSNorm(sizes.width, eps=1e-6)
        self.attention = Attention(sizes)
        self.norm2 = nn.RMSNorm(sizes.width, eps=1e-6)
        self.mlp = MLP(sizes)

    def forward(self, x, turn):
        x = x + self.attention(self.norm1(x), turn)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, sizes, checkpointing=False):
        super().__init__()
        self.checkpointing = checkpointing  # keep only what goes into a block, compute the rest again on the way back
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, eps=1e-6)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        self.apply(draw)
        self.head.weight = self.tokens.weight
        half = sizes.width // sizes.heads // 2
        pace = sizes.rotary_base ** -(torch.arange(half, dtype=torch.float32) / half)
        angle = torch.arange(sizes.length, dtype=torch.float32).outer(pace)  # [T, half of a head's channels]
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, ids):
        x, turn = self.tokens(ids), (self.cos[: ids.shape[1]], self.sin[: ids.shape[1]])
        for block in self.blocks:
            if self.checkpointing and self.training:
                x = checkpoint(block, x, turn, use_reentrant=False, preserve_rng_state=False)  # nothing is random
            else:
                x = block(x, turn)
        return self.head(self.norm(x))  # [B, T, vocabulary]


def draw(module):
    """The first weights."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


# --- LoRA (Hu et al., arXiv 2106.09685): the weights stay, the product of two narrow matrices is learnt beside each ---


class LoRA(nn.Module):
    """A linear layer that stays, and what is learnt beside it. That is kept in fp32 whatever the layer is in."""

    def __init__(self, layer, rank, alpha):
        super().__init__()
        at = {"device": layer.weight.device, "dtype": torch.float32}
        self.layer, self.scale = layer, alpha / rank
        self.down = nn.Linear(layer.in_features, rank, bias=False, **at)
        self.up = nn.Linear(rank, layer.out_features, bias=False, **at)
        nn.init.zeros_(self.up.weight)  # at first nothing is changed

    def forward(self, x):
        learnt = self.up(self.down(x.to(self.down.weight.dtype)))
        kept = self.layer(x)
        return kept + self.scale * learnt.to(kept.dtype)


def add_lora(model, rank):
    """Freeze all there is, and put LoRA beside every linear layer of the blocks."""
    model.requires_grad_(False)
    for block in model.blocks:
        for part in (block.attention, block.mlp):
            for name, layer in list(part.named_children()):
                if isinstance(layer, nn.Linear):
                    setattr(part, name, LoRA(layer, rank, alpha=2 * rank))
