"""Small images in files of many, as CIFAR and ImageNet64 are published: files go in, one array of pixels comes out.

Reads, checks and writes what is the same in all of them; a data set's own module knows its files and their formats.
"""

import numpy as np

from collo import DataError, SettingError
from collo_data import drawn
from collo_data.data_set import DataSet, Example, Split
from collo_data.findings import compared, failed


class Images(Split):
    """Images in memory, or mapped from a file. Batches are copies: uint8 [B, colours, H, W] and int64 [B]."""

    def __init__(self, known, place, pixels, labels):
        super().__init__(known, place)
        self.pixels, self.labels = pixels, labels
        self.classes, self.shape, self.mean, self.std = known.classes, known.shape, known.mean, known.std

    def __len__(self):
        return len(self.labels)

    def __getitems__(self, indices):
        indices = np.asarray(indices)
        return self.pixels[indices], self.labels[indices]


class Batches(DataSet):
    """A data set of such files. Subclasses set these, and read and write one file of each format."""

    files = {}  # of each split, without ending
    endings = {}  # of the files of each format
    classes, side, channels = None, None, 3
    first_label = 0  # on disk; it is 0 in memory
    of_each_class = {}  # images of each class in each split, as a check shows them

    # decoded(form, path) -> (pixels, labels); encoded(form, path, pixels, labels); most_images(form, path)

    @property
    def shape(self):
        return self.channels, self.side, self.side

    @property
    def pixels(self):
        return self.channels * self.side * self.side

    def path(self, folder, form, name):
        return folder / f"{name}{self.endings[form]}"

    def load(self, place, split, images=0):
        """The first `images` of the split, 0 for all. Files beyond them are not read."""
        if images < 0:
            raise SettingError(f"`images` is {images}: it is 1 or more, or 0 for all of them")
        form, folder = self.find(place.folder)
        paths = [self.path(folder, form, name) for name in self.files[split]]
        room = images or sum(self.most_images(form, path) for path in paths)
        pixels = np.empty((room, self.pixels), np.uint8)  # takes memory only where it is written to
        labels, count = np.empty(room, np.int64), 0
        for path in paths:
            batch_pixels, batch_labels = self.read(form, path)
            part = slice(count, min(count + len(batch_labels), room))
            count = part.stop
            pixels[part], labels[part] = batch_pixels[: count - part.start], batch_labels[: count - part.start]
            if count == images:
                break
        if images not in (0, count):
            few = f"`{folder}` has {count} images, {images} are asked for"
            raise DataError(f"{few}: ask for fewer, or 0 for all of them")
        return Images(self, place, pixels[:count].reshape(-1, *self.shape), labels[:count])

    def example(self, split, images=0):
        facts = {"classes": self.classes, "shape": self.shape, "mean": self.mean, "std": self.std}
        items = images or self.published[split]
        # Zeros that nobody writes to take no memory.
        facts |= {"pixels": np.zeros((items, *self.shape), np.uint8), "labels": np.zeros(items, np.int64)}
        return Example(self, items, [(self.shape, np.uint8), ((), np.int64)], **facts)

    def read(self, form, path):
        """(pixels, labels from 0) of one file, both looked at."""
        pixels, labels = self.decoded(form, path)
        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (self.pixels,):
            shape = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
            raise self.broken(path, f"has data of {shape}, not uint8 (images, {self.pixels})")
        if labels.shape != (len(pixels),) or labels.dtype.kind not in "iu":
            raise self.broken(path, f"has {len(pixels)} images but labels of {labels.dtype} {labels.shape}")
        if len(labels) == 0:
            raise self.broken(path, "holds no images")
        least, most = self.first_label, self.first_label + self.classes - 1
        if not least <= labels.min() <= labels.max() <= most:
            published = f"{self.title} has {least} to {most}"
            raise self.broken(path, f"has labels from {labels.min()} to {labels.max()}, {published}")
        return pixels, labels.astype(np.int64) - self.first_label

    def read_through(self, place):
        """One file after another, each forgotten before the next."""
        form, folder = self.find(place.folder)
        paths = {split: [self.path(folder, form, name) for name in names] for split, names in self.files.items()}
        return {split: sum(len(self.read(form, path)[1]) for path in paths[split]) for split in paths}["train"]

    def lines(self, form, folder, note):
        expected = self.published if note is None else note.get("counts", {})
        for split, names in self.files.items():
            per_class, damaged = np.zeros(self.classes, int), False
            for index, name in enumerate(names):
                path = self.path(folder, form, name)
                count = self.share(expected[split], split, index) if split in expected else None
                try:
                    _, labels = self.read(form, path)
                except DataError as error:
                    damaged = True
                    yield failed(f"{path.name}, images", count, getattr(error, "reason", str(error)))
                else:
                    yield compared(f"{path.name}, images", count, len(labels))
                    per_class += np.bincount(labels, minlength=self.classes)
            if not damaged:
                yield compared(f"{split}, classes", self.classes, int((per_class > 0).sum()))
                found = " to ".join(f"{count:,}" for count in sorted({per_class.min(), per_class.max()}))
                published = self.of_each_class[split] if note is None else None
                yield compared(f"{split}, images of each class", published, found)

    def share(self, count, split, index):
        """How many of the images of a split lie in one of its files: the last has what is over."""
        files = len(self.files[split])
        return count // files + (count % files if index == files - 1 else 0)

    def fill_files(self, folder, note):
        """The files of a stand-in, in this folder."""
        random = np.random.default_rng(note["seed"])
        patterns = drawn.patterns(random, self.classes, self.channels)
        for split, names in self.files.items():
            shares = [self.share(note["counts"][split], split, index) for index in range(len(names))]
            labels_of = drawn.labels(random, self.classes, shares)
            for name, labels in zip(names, labels_of):
                pixels = drawn.images(random, patterns, labels, self.side).reshape(-1, self.pixels)
                path = self.path(folder, note["format"], name)
                self.encoded(note["format"], path, pixels, labels + self.first_label)

    def bytes_per_item(self, form):
        return self.pixels + 4
