"""Text for language models: WikiText-2 as it lies on disk, or token sequences made up in memory. numpy only.

Sizes and a seed go in; out comes a data set like those of `collo_data`, whose items are sequences of token ids. Knows
no model: what is to be guessed from what is the training script's.
"""

import json
import sys

import numpy as np

import collo_data
from collo import DataError, SettingError
from collo_data.wikitext import PACKINGS

DATASETS = ("tokens", "wikitext-2")
ITEMS = 2048  # of `tokens`, unless asked otherwise
MOST_TOKENS = 10**8  # in memory: more than that many are a slip
LINE = 57  # tokens of a line of WikiText-2 on average: 2,088,628 in 36,718
FAITHFUL = 0.75  # how often a token is followed by the one that belongs after it


def load(name, items, length, vocabulary, seed, packing="blocks"):
    """The data set that the setting `dataset` names: the first `items` sequences of it, with 0 all there are.

    With `packing` "lines" a batch also says which tokens are a line's: the others fill it up (collo_data/wikitext.py).
    """
    check(name)
    within("items", items, 0, MOST_TOKENS)
    if packing not in PACKINGS:
        raise SettingError(f"`packing` is `{packing}`: it is one of {', '.join(PACKINGS)}")
    if name == "tokens":
        return Tokens(items or ITEMS, length, vocabulary, seed, packing)
    data = collo_data.load(name, length=length, vocabulary=vocabulary, packing=packing)
    if items:
        data.cut(items)
    return data


def check(name):
    if name not in DATASETS:
        raise SettingError(f"`dataset` is `{name}`: it is one of {', '.join(DATASETS)}")


def within(name, value, least, most):
    if not least <= value <= most:
        raise SettingError(f"`{name}` is {value}: it is {least} to {most}")


class Tokens:
    """Sequences to be learnt: few words are frequent, as in Zipf's law, and each mostly has its own successor."""

    name, synthetic = "tokens", True

    def __init__(self, items, length, vocabulary, seed, packing="blocks"):
        if items * length > MOST_TOKENS:
            asked = f"{items} sequences of {length} tokens"
            raise SettingError(f"{asked} are more than the {MOST_TOKENS} tokens that are made up: lower `items`")
        random = np.random.default_rng(seed)
        after = random.permutation(vocabulary)
        words = (vocabulary ** random.random((length, items))).astype(np.int32) - 1  # P(rank) ~ 1 / rank
        faithful = random.random((length, items)) < FAITHFUL
        for before, here, kept in zip(words, words[1:], faithful[1:]):
            here[kept] = after[before[kept]]
        self.ids, self.used = np.ascontiguousarray(words.T), None
        if packing == "lines":
            self.used = np.clip(random.exponential(LINE, items), 1, length).astype(int)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return tuple(array[0] for array in self.__getitems__([index]))

    def __getitems__(self, indices):
        ids = self.ids[indices].astype(np.int64)
        return (ids,) if self.used is None else (ids, np.arange(ids.shape[1]) < self.used[indices][:, None])

    def describe(self):
        return {"name": self.name, "synthetic": self.synthetic, "items": len(self)}


def prepare(name):
    """Look at the text before a campaign, as `collo_data` does; made-up tokens are neither written nor anywhere."""
    check(name)
    nowhere = {"dataset": Tokens.name, "synthetic": True, "written": False, "items": None, "where": None}
    return nowhere if name == "tokens" else collo_data.prepare(name)


if __name__ == "__main__":
    try:
        print(json.dumps(prepare(sys.argv[1])))
    except (DataError, SettingError) as error:
        raise SystemExit(f"error: {error}") from None
