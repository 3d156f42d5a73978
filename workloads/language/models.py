"""The language models of the study, built by transformers from their sizes with random weights: nothing is fetched.

A name and sizes go in. Out comes a module from token ids, and of lines which of them are the line's, to the mean loss
of what that family learns by. Models and tasks are those of the public scripts behind thesis table 6.2 (itu-rad/CARMA,
`workloads/BERT_base_on_wiki.py`, `xlnet_base_cased.py`, `gpt2_xl_on_wiki.py` and their like). The last id of a
vocabulary stands in no text: it is BERT's mask. Knows no data set and no device.
"""

import difflib
from typing import NamedTuple

import torch
from torch import nn
from transformers import (
    AttentionInterface, BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, XLNetConfig,
    XLNetForSequenceClassification,
)  # fmt: skip
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from collo import SettingError
from collo_tokens import within

# Under its own name, `sdpa` is told of GPT-2's mask: each step looks whether sequences are packed, which waits for the
# GPU; torch.compile and CUDA graphs write the mask out, which rules the fast kernels out. Ours are never packed. A mask
# of four dimensions, which lines need, is passed on as it is (masking_utils.py, `_preprocess_mask_arguments`).
AttentionInterface.register("sdpa_without_mask", sdpa_attention_forward)

GUESSED_BY_BERT = 0.15  # of the tokens
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
        n_layer=sizes.layers, d_model=sizes.width, n_head=sizes.heads, d_inner=4 * sizes.width, num_labels=2,
        vocab_size=sizes.vocabulary, pad_token_id=None, bos_token_id=None, eos_token_id=None, use_mems_eval=False,
    )  # fmt: skip
    return Classified(XLNetForSequenceClassification(config))


ARCHITECTURES = {
    "bert-base": (bert, Sizes(layers=12, width=768, heads=12, vocabulary=28996, positions=512)),
    "bert-large": (bert, Sizes(layers=24, width=1024, heads=16, vocabulary=28996, positions=512)),
    "xlnet-base": (xlnet, Sizes(layers=12, width=768, heads=12, vocabulary=32000, positions=None)),
    "xlnet-large": (xlnet, Sizes(layers=24, width=1024, heads=16, vocabulary=32000, positions=None)),
    "gpt2-large": (gpt2, Sizes(layers=36, width=1280, heads=20, vocabulary=50257, positions=1024)),
    "gpt2-xl": (gpt2, Sizes(layers=48, width=1600, heads=25, vocabulary=50257, positions=1024)),
}


class Learner(nn.Module):
    """A model and what it learns by: from texts to the mean loss."""

    keeps_outputs = False  # until the next step has its own: the logits, and GPT-2's keys and values
    gathers = False  # one of several GPUs: all that the model puts out goes to the first, as DataParallel has it

    def __init__(self, model):
        super().__init__()
        self.model, self.outputs = model, None

    def keep_outputs(self):
        self.keeps_outputs = True

    def loss_of(self, *args, **kwargs):
        outputs = self.model(*args, **kwargs)
        if self.gathers:
            layers = enumerate(getattr(outputs.get("past_key_values"), "layers", ()))
            kept = {f"{what} {number}": getattr(layer, what) for number, layer in layers for what in ("keys", "values")}
            # A scalar cannot be gathered without a warning.
            return {"loss": outputs.loss[None], "logits": outputs.logits, **kept}
        if self.keeps_outputs:
            self.outputs = outputs
        return outputs.loss


class Masked(Learner):
    """BERT's: guess tokens that were hidden, from both sides."""

    def __init__(self, model):
        super().__init__(model)
        self.mask = model.config.vocab_size - 1

    def forward(self, text, seen=None):
        if seen is None:  # as many in each sequence, so that each step is the same work
            chosen = torch.zeros_like(text, dtype=torch.bool)
            where = torch.rand(text.shape, device=text.device).topk(share(text, GUESSED_BY_BERT)).indices
            chosen = chosen.scatter(1, where, True)
        else:  # as transformers' collator chooses, but the first of each line, or there might be no loss
            chosen = (torch.rand(text.shape, device=text.device) < GUESSED_BY_BERT) & seen
            chosen[:, 0] = True
        # Of ten, eight are hidden, one is replaced and one left as it is.
        fate, other = torch.rand(text.shape, device=text.device), torch.randint_like(text, self.mask)
        shown = torch.where(chosen & (fate < 0.9), other, text).masked_fill(chosen & (fate < 0.8), self.mask)
        labels = text.masked_fill(~chosen, NOT_GUESSED)
        attended = None if seen is None else seen[:, None, None, :]
        return self.loss_of(shown, attention_mask=attended, labels=labels)


class Causal(Learner):
    """GPT's: guess each token from those before it."""

    def keep_outputs(self):
        """The keys and values of all layers as well, which the model returns in the public scripts: `use_cache=True`."""
        super().keep_outputs()
        self.model.config.use_cache = True

    def forward(self, text, seen=None):
        if seen is None:
            return self.loss_of(text, labels=text)
        length = text.shape[1]
        before = torch.ones(length, length, dtype=torch.bool, device=text.device).tril()
        # What fills a line up is guessed, too: the public scripts take the ids themselves for labels.
        return self.loss_of(text, attention_mask=before & seen[:, None, None, :], labels=text)


class Classified(Learner):
    """XLNet's: say which of two kinds a text is. The public scripts call every text of WikiText the second kind."""

    def forward(self, text, seen=None):
        labels = torch.ones(len(text), dtype=torch.int64, device=text.device)
        attended = None if seen is None else seen.float()
        return self.loss_of(text, attention_mask=attended, labels=labels)


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
