"""Made-up latents: a smooth pattern for each class, under some noise. Seeded, called synthetic."""

import numpy as np

COARSE = 4  # a pattern has 4 × 4 fields


class Latents:
    """float32 [4, side, side] of about unit variance, and the class of each."""

    name, synthetic = "latents", True

    def __init__(self, items, channels, side, classes, seed):
        random = np.random.default_rng(seed)
        patterns = random.normal(size=(classes, channels, COARSE, COARSE)).astype(np.float32)
        self.labels = random.integers(0, classes, items)
        noise = random.normal(size=(items, channels, side, side)).astype(np.float32)
        fine = patterns.repeat(side // COARSE, axis=2).repeat(side // COARSE, axis=3)
        self.latents = 0.9 * fine[self.labels] + 0.4 * noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return tuple(array[0] for array in self.__getitems__([index]))

    def __getitems__(self, indices):
        return self.latents[indices], self.labels[indices]

    def describe(self):
        return {"name": self.name, "synthetic": self.synthetic, "items": len(self)}
