"""DiT, a diffusion model of Transformer blocks (Peebles and Xie, arXiv 2212.09748): noisy latents in, the noise out.

In the comments B is the latents of a batch, T their patches, C the channels of a patch.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

CHANNELS = 4  # of a latent, as the usual autoencoders put them out
PATCH = 2  # values a side
STEPS = 1000  # of noise
PACES = 256  # waves that tell one step from another


class Attention(nn.Module):
    """Every patch gathers from all."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        split = self.queries_keys_values(x).view(B, T, 3, self.heads, C // self.heads)
        gathered = F.scaled_dot_product_attention(*split.permute(2, 0, 3, 1, 4))
        return self.out(gathered.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """Attention and an MLP; how each is scaled, shifted and weighed depends on the step and the class."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=1e-6, elementwise_affine=False) for _ in range(2))
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )  # fmt: skip
        self.told = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x, about):
        scale1, shift1, weight1, scale2, shift2, weight2 = self.told(about)[:, None].chunk(6, dim=2)
        x = x + weight1 * self.attention(self.norm1(x) * (1 + scale1) + shift1)
        return x + weight2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class DiT(nn.Module):
    """Puts out twice the channels: the noise, and how sure it is of it, which is not trained here."""

    def __init__(self, layers, width, heads, side, classes):
        super().__init__()
        self.side = side // PATCH  # patches
        self.patches = nn.Conv2d(CHANNELS, width, PATCH, PATCH)
        self.register_buffer("places", waves(torch.arange(self.side**2), width), persistent=False)
        self.step = nn.Sequential(nn.Linear(PACES, width), nn.SiLU(), nn.Linear(width, width))
        self.classes = nn.Embedding(classes + 1, width)  # the last stands for none
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.told = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        self.out = nn.Linear(width, 2 * CHANNELS * PATCH**2)
        last_ones = [*(block.told[1] for block in self.blocks), self.told[1], self.out]
        for last in last_ones:  # so that at first a block does nothing
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, latents, steps, classes):
        x = self.patches(latents).flatten(2).transpose(1, 2) + self.places  # [B, T, C]
        about = self.step(waves(steps, PACES).to(x.dtype)) + self.classes(classes)
        for block in self.blocks:
            x = block(x, about)
        scale, shift = self.told(about)[:, None].chunk(2, dim=2)
        x = self.out(self.norm(x) * (1 + scale) + shift).view(-1, self.side, self.side, PATCH, PATCH, 2 * CHANNELS)
        return x.permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)  # as large as the latents again


def waves(numbers, count):
    """Each number as sines and cosines of `count / 2` paces."""
    paces = torch.exp(-math.log(10_000) * torch.arange(count // 2, device=numbers.device) / (count // 2))
    angles = numbers[:, None].float() * paces
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def left_of(steps):
    """How much of a latent's variance is still its own after so many steps of noise (cosine, arXiv 2102.09672)."""
    return torch.cos((steps / STEPS + 0.008) / 1.008 * math.pi / 2).square().view(-1, 1, 1, 1)
