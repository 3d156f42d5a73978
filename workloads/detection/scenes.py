"""Made-up pictures of different sizes with coloured ellipses in them, the box and class of each: seeded, synthetic."""

import numpy as np

MOST = 8  # ellipses in a picture


class Scenes:
    """Pictures in the corner of uint8 [3, side, side], their heights and widths, and the ellipses: count, boxes, classes."""

    name, synthetic = "scenes", True

    def __init__(self, items, side, classes, seed):
        random = np.random.default_rng(seed)
        colours = random.integers(64, 256, (classes, 3), np.uint8)
        self.sizes = random.integers(side * 6 // 10, side + 1, (items, 2))
        self.counts = random.integers(1, MOST + 1, items)
        self.labels = random.integers(1, classes, (items, MOST))  # 0 is the ground
        low, high = np.sort(random.random((2, items, MOST, 2)) * 0.7, axis=0)
        high = low + np.maximum(high - low, 0.15)  # none is too small to be seen
        sizes = self.sizes[:, None, ::-1]  # width and height
        self.boxes = np.concatenate([low * sizes, high * sizes], axis=2).astype(np.float32)
        self.pixels = random.integers(0, 64, (items, 3, side, side), np.uint8)
        for picture, count, boxes, labels in zip(self.pixels, self.counts, self.boxes, self.labels):
            for box, label in zip(boxes[:count], labels[:count]):
                picture[:, inside(box, side)] = colours[label][:, None]

    def __len__(self):
        return len(self.counts)

    def __getitem__(self, index):
        return tuple(array[0] for array in self.__getitems__([index]))

    def __getitems__(self, indices):
        return tuple(array[indices] for array in (self.pixels, self.sizes, self.counts, self.boxes, self.labels))

    def describe(self):
        return {"name": self.name, "synthetic": self.synthetic, "items": len(self)}


def inside(box, side):
    """The pixels of the ellipse that fills a box."""
    left, top, right, bottom = box
    row, column = np.ogrid[:side, :side]
    away = ((column + 0.5 - (left + right) / 2) / (right - left)) ** 2
    return away + ((row + 0.5 - (top + bottom) / 2) / (bottom - top)) ** 2 <= 0.25
