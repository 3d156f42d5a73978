"""Pixels of stand-ins: labels go in, images come out that can be told apart by them, though not at one glance."""

import numpy as np

COARSE = 4  # a pattern has 4 × 4 fields
SHIFT = 6  # pixels
MANY = 50  # of each class, on average: none is left out by chance


def labels(random, classes, counts):
    """The labels of files with so many images: any, or as many of each class where one might be left out otherwise."""
    if min(counts) >= MANY * classes:
        yield from (random.integers(0, classes, count) for count in counts)
    else:
        even = random.permutation(np.arange(sum(counts)) % classes)
        yield from np.split(even, np.cumsum(counts)[:-1])


def patterns(random, classes, channels=3):
    return random.normal(size=(classes, channels, COARSE, COARSE))


def images(random, patterns, labels, side):
    """A coarse pattern per class, shifted, of varying contrast, under noise."""
    shape, fine = (patterns.shape[1], side, side), side // COARSE
    images = np.empty((len(labels), *shape), np.uint8)
    for image, label in zip(images, labels):
        shift = tuple(random.integers(-SHIFT, SHIFT + 1, 2))
        pattern = patterns[label].repeat(fine, axis=1).repeat(fine, axis=2)
        signal = np.roll(pattern, shift, axis=(1, 2)) * random.uniform(0.1, 0.4)
        noise = random.normal(size=shape, scale=1.0)
        image[:] = np.clip(121 + 40 * (signal + noise), 0, 255)
    return images
