"""Made-up pictures of coloured discs on a dark ground, and which class each pixel is of: seeded, called synthetic."""

import numpy as np

DISCS = 4  # of a picture


class Scenes:
    """Pictures as uint8 [3, side, side] and their classes as uint8 [side, side]; class 0 is the ground."""

    name, synthetic = "scenes", True

    def __init__(self, items, side, classes, seed):
        random = np.random.default_rng(seed)
        colours = random.integers(0, 256, (classes, 3), np.uint8)
        colours[0] = 0
        self.masks = np.zeros((items, side, side), np.uint8)
        rows, columns = np.ogrid[:side, :side]
        for mask in self.masks:
            for _ in range(DISCS):
                row, column = random.integers(0, side, 2)
                radius = random.uniform(0.05, 0.25) * side
                mask[(rows - row) ** 2 + (columns - column) ** 2 < radius**2] = random.integers(1, classes)
        noise = random.integers(0, 64, (items, 3, side, side), np.uint8)
        self.pixels = colours[self.masks].transpose(0, 3, 1, 2) // 4 * 3 + noise

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, index):
        return tuple(array[0] for array in self.__getitems__([index]))

    def __getitems__(self, indices):
        return self.pixels[indices], self.masks[indices]

    def describe(self):
        return {"name": self.name, "synthetic": self.synthetic, "items": len(self)}
