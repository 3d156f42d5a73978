"""MNIST in the idx files in which it is published, as they unpack or still packed:

    data/mnist/train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte
    data/mnist/train-images-idx3-ubyte.gz …

They may also lie where torchvision puts them, in `raw/` or `MNIST/raw/`. An idx file is two zero bytes, the kind of its
values, the number of its dimensions, each dimension as a big-endian int32, and the values.

`load(…, images=N)` takes the first N images only. Where neither data nor stand-in lies a small stand-in is written.
"""

import gzip
import hashlib
import math
import zlib

import numpy as np

from collo_data.batches import Batches
from collo_data.findings import compared

UNSIGNED_BYTES = 8  # the kind of values, as idx files number them
DEFLATED = 1032  # bytes at most that one byte of a .gz file unpacks to (zlib's technical notes)
FOLDERS = (".", "raw", "MNIST/raw")


class Mnist(Batches):
    name, title = "mnist", "MNIST"
    formats = ("idx", "gz")
    endings = {"idx": "", "gz": ".gz"}
    splits = ("train", "test")
    published = {"train": 60_000, "test": 10_000}
    least = {"train": 20, "test": 20}
    usual = {"train": 10_000, "test": 1_000}
    files = {"train": ["train-images-idx3-ubyte"], "test": ["t10k-images-idx3-ubyte"]}
    wanted = "train-images-idx3-ubyte, train-labels-idx1-ubyte and their like of t10k, packed (.gz) or not,"
    classes, side, channels = 10, 28, 1
    mean, std = (33.3,), (78.6,)  # of the real training images, of pixels from 0 to 255
    of_each_class = {"train": "5,421 to 6,742", "test": "892 to 1,135"}
    md5 = {  # of the packed files, as torchvision lists them
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    }

    def find(self, folder):
        for below in FOLDERS:
            for form in self.formats:
                if self.path(folder / below, form, self.files["train"][0]).is_file():
                    return form, folder / below
        raise self.unknown(folder, "holds neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz")

    def decoded(self, form, path):
        pixels = self.values(form, path, dimensions=3)
        if pixels.shape[1:] != (self.side, self.side):
            raise self.broken(path, f"has pictures of {' × '.join(map(str, pixels.shape[1:]))}, not 28 × 28")
        return pixels.reshape(-1, self.pixels), self.values(form, labels_beside(path), dimensions=1)

    def values(self, form, path, dimensions):
        """All of an idx file, in the shape that it says."""
        with self.opened(path) as file:
            try:
                content = gzip.decompress(file.read()) if form == "gz" else file.read()
            except (OSError, EOFError, zlib.error) as error:
                raise self.broken(path, f"is truncated or no .gz file ({error})") from error
        shape = self.shape_in(content[: 4 + 4 * dimensions], path, dimensions)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions)
        if values.size != math.prod(shape):
            said = " × ".join(map(str, shape))
            raise self.broken(path, f"is truncated or of another format ({values.size} bytes of {said})")
        return values.reshape(shape)

    def shape_in(self, head, path, dimensions):
        if head[:4] != bytes([0, 0, UNSIGNED_BYTES, dimensions]) or len(head) < 4 + 4 * dimensions:
            raise self.broken(path, f"is no idx file of bytes in {dimensions} dimension{'s' if dimensions > 1 else ''}")
        return tuple(np.frombuffer(head, ">i4", offset=4).tolist())

    def most_images(self, form, path):
        with self.opened(path) as file:
            size_bytes = file.seek(0, 2)
        return size_bytes * (DEFLATED if form == "gz" else 1) // self.pixels

    def lines(self, form, folder, note):
        for name, md5 in self.md5.items() if form == "gz" and note is None else ():
            path, found = folder / name, "is missing"
            if path.is_file():
                found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            yield compared(f"{name}, md5", md5, found)
        yield from super().lines(form, folder, note)

    def fill(self, folder, note):
        self.fill_files(folder, note)

    def encoded(self, form, path, pixels, labels):
        pixels = pixels.reshape(-1, self.side, self.side)
        for path, values in ((path, pixels), (labels_beside(path), labels.astype(np.uint8))):
            head = bytes([0, 0, UNSIGNED_BYTES, values.ndim]) + np.array(values.shape, ">i4").tobytes()
            content = head + values.tobytes()
            path.write_bytes(gzip.compress(content, 1, mtime=0) if form == "gz" else content)


def labels_beside(images):
    return images.with_name(images.name.replace("images-idx3", "labels-idx1"))


MNIST = Mnist()
