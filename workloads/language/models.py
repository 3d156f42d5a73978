"""The language models of the study, built by transformers from their sizes with random weights: nothing is fetched.

A name and sizes go in; out comes a module from token ids to the mean loss of guessing what that family learns by.
The last id of a vocabulary stands in no text: it is BERT's mask. Knows no data set and no device.
"""

import difflib
from typing import NamedTuple

import torch
from torch import nn
from transformers import (
    AttentionInterface, BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, XLNetConfig, XLNetLMHeadModel,
)  # fmt: skip
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from collo import SettingError
from collo_tokens import within

# Under its own name, `sdpa` is told of GPT-2's mask: each step looks whether sequences are packed, which waits for the
# GPU; torch.compile and CUDA graphs write the mask out, which rules the fast kernels out. Ours are never packed.
AttentionInterface.register("sdpa_without_mask", sdpa_attention_forward)

GUESSED_BY_BERT = 0.15  # of the tokens
GUESSED_BY_XLNET = 1 / 6
NOT_GUESSED = -100  # as a label: transformers leaves these out of the loss


MOST = {"layers": 1000, "width": 100_000, "heads": 1000, "vocabulary": 1_000_000}


class Sizes(NamedTuple):
    layers: int
    width: int
    heads: int
    vocabulary: int
    positions: int | None  # None: as many as there is memory for


def bert(sizes):
    config = BertConfig(
        num_hidden_layers=sizes.layers, hidden_size=sizes.width, num_attention_heads=sizes.heads,
        intermediate_size=4 * sizes.width, vocab_size=sizes.vocabulary, max_position_embeddings=sizes.positions,
        pad_token_id=None, attn_implementation="sdpa_without_mask",
    )  # fmt: skip
    return Masked(BertForMaskedLM(config))


def gpt2(sizes):
    config = GPT2Config(
        n_layer=sizes.layers, n_embd=sizes.width, n_head=sizes.heads, vocab_size=sizes.vocabulary,
        n_positions=sizes.positions, bos_token_id=None, eos_token_id=None, use_cache=False,
        attn_implementation="sdpa_without_mask",
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # transformers takes it without being told, but warns
    return Causal(model)


def xlnet(sizes):
    config = XLNetConfig(
        n_layer=sizes.layers, d_model=sizes.width, n_head=sizes.heads, d_inner=4 * sizes.width,
        vocab_size=sizes.vocabulary, pad_token_id=None, bos_token_id=None, eos_token_id=None, use_mems_eval=False,
    )  # fmt: skip
    return Permuted(XLNetLMHeadModel(config))


ARCHITECTURES = {
    "bert-base": (bert, Sizes(layers=12, width=768, heads=12, vocabulary=30522, positions=512)),
    "bert-large": (bert, Sizes(layers=24, width=1024, heads=16, vocabulary=30522, positions=512)),
    "xlnet-base": (xlnet, Sizes(layers=12, width=768, heads=12, vocabulary=32000, positions=None)),
    "xlnet-large": (xlnet, Sizes(layers=24, width=1024, heads=16, vocabulary=32000, positions=None)),
    "gpt2-large": (gpt2, Sizes(layers=36, width=1280, heads=20, vocabulary=50257, positions=1024)),
}


class Masked(nn.Module):
    """BERT's: guess tokens that were hidden, from both sides."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.mask = model.config.vocab_size - 1

    def forward(self, text):
        # As many in each sequence, so that each step is the same work. Of ten, one is replaced and one left as it is.
        chosen = torch.rand(text.shape, device=text.device).topk(share(text, GUESSED_BY_BERT)).indices
        right = text.gather(1, chosen)
        fate, other = torch.rand(right.shape, device=text.device), torch.randint_like(right, self.mask)
        shown = torch.where(fate < 0.9, other, right).masked_fill(fate < 0.8, self.mask)
        labels = torch.full_like(text, NOT_GUESSED).scatter(1, chosen, right)
        return self.model(text.scatter(1, chosen, shown), labels=labels).loss


class Causal(nn.Module):
    """GPT's: guess each token from those before it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, text):
        return self.model(text, labels=text).loss


class Permuted(nn.Module):
    """XLNet's: in a random order of the tokens, guess the last sixth of them, each from those before it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, text):
        rank, chosen = torch.rand(text.shape, device=text.device).topk(share(text, GUESSED_BY_XLNET))
        when = torch.zeros(text.shape, device=text.device).scatter(1, chosen, rank + 1)  # 0: known from the start
        hidden = (when[:, None, :] > 0) & (when[:, None, :] >= when[:, :, None])  # [B, who looks, at whom]
        places = torch.zeros(*chosen.shape, text.shape[1], device=text.device).scatter(2, chosen[:, :, None], 1)
        right = text.gather(1, chosen)
        return self.model(text, perm_mask=hidden.float(), target_mapping=places, labels=right).loss


def share(text, part):
    """How many tokens of each sequence that is: at least one, or there were no loss."""
    return max(1, round(part * text.shape[1]))


def find(name, length, **asked):
    """(what it is called, what builds it, its sizes); of the sizes asked for, 0 is the architecture's own."""
    if name not in ARCHITECTURES:
        nearest = difflib.get_close_matches(name, ARCHITECTURES, n=1, cutoff=0)[0]
        known = ", ".join(ARCHITECTURES)
        raise SettingError(f"`model` is `{name}`, nearest to it is `{nearest}`: it is one of {known}")
    within("length", length, 2, 100_000)
    for size, value in asked.items():
        if value:
            within(size, value, 4 if size == "vocabulary" else 1, MOST[size])
    build, own = ARCHITECTURES[name]
    changed = {size: value for size, value in asked.items() if value and value != getattr(own, size)}
    sizes = own._replace(**changed)
    if sizes.width % (2 * sizes.heads):
        uneven = f"`heads` is {sizes.heads} and `width` {sizes.width}"
        raise SettingError(f"{uneven}: each head has an even number of channels")
    if sizes.positions and length > sizes.positions:
        raise SettingError(f"`length` is {length}: {name} has {sizes.positions} positions, take fewer")
    return name + "".join(f", {size} {value}" for size, value in changed.items()), build, sizes
