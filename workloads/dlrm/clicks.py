"""Seeded clicks, made in memory: no substitute for a data set, but the shapes of Criteo's and something to learn.

The rows of each table and a seed go in, batches of arrays come out. A few categories are frequent and most are rare
(log-uniform, as in Zipf's law); whether one is clicked depends on its numbers and on a bit of each category and noise.
They are called synthetic wherever they are named. `python clicks.py random` says that there is nothing to prepare.
"""

import json
import sys

import numpy as np

import collo_data
from collo import DataError, SettingError

NUMBERS = 13
BIAS = -1.0  # fewer than half are clicked
CATEGORIES = 26
NAME = "random clicks"
ROW_BYTES = 4 * NUMBERS + 8 * CATEGORIES + 4


class Clicks:
    def __init__(self, items, rows, seed):
        random = np.random.default_rng(seed)
        self.numbers = np.log1p(random.exponential(3.0, (items, NUMBERS))).astype(np.float32)
        self.categories = np.empty((items, len(rows)), np.int64)
        logit = (self.numbers - 1) @ random.normal(0, 0.5, NUMBERS) + BIAS
        for column, count in enumerate(rows):
            category = np.exp(random.random(items) * np.log(count + 1)).astype(np.int64) - 1
            self.categories[:, column] = np.clip(category, 0, count - 1)
            logit += random.normal(0, 0.5) * (2.0 * bit_of(self.categories[:, column]) - 1)
        self.labels = (random.random(items) < 1 / (1 + np.exp(-logit))).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitems__(self, indices):
        return self.numbers[indices], self.categories[indices], self.labels[indices]

    def describe(self):
        return {"name": NAME, "synthetic": True, "items": len(self)}


def bit_of(category):
    """0 or 1; neighbours have nothing in common."""
    mixed = category.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing, golden ratio
    return (mixed >> np.uint64(40) & np.uint64(1)).astype(np.int64)


def prepare(name):
    """Look at Criteo's logs before a campaign; clicks that are made in memory lie nowhere."""
    nowhere = {"dataset": NAME, "synthetic": True, "written": False, "items": None, "where": None}
    return nowhere if name == "random" else collo_data.prepare(name)


if __name__ == "__main__":
    try:
        print(json.dumps(prepare(sys.argv[1])))
    except (DataError, SettingError) as error:
        raise SystemExit(f"error: {error}") from None
