"""ImageNet64, the downsampled ImageNet of Chrabaszcz et al.: 64 × 64 pixels, in batches of 1.6 GB.

    data/imagenet64/train_data_batch_1 … train_data_batch_10, val_data    pickled dicts of data, labels from 1, mean
    data/imagenet64/train_data_batch_1.npz …, val_data.npz                the same as numpy archives

The files may also lie one folder down, as the archives unpack (Imagenet64_train_part1, Imagenet64_val_npz …).
They are decoded once, by `prepare` or whoever is first, into arrays of 15.7 GB beside them that all members map, see
`mapped.py`: the machine holds one copy, whatever the number of members. While a pickled batch is decoded it takes twice
its size. `load(…, images=N)` takes the first N images only; they lie shuffled.
"""

import pickle
import zipfile
import zlib

import numpy as np

from collo import DataError, SettingError
from collo_data import mapped, pickled
from collo_data.batches import Batches, Images


class ImageNet64(Batches):
    name, title = "imagenet64", "ImageNet64"
    formats = ("python", "npz")
    endings = {"python": "", "npz": ".npz"}
    splits = ("train", "val")
    published = {"train": 1_281_167, "val": 50_000}
    least = {"train": 2_000, "val": 2_000}
    files = {"train": [f"train_data_batch_{i}" for i in range(1, 11)], "val": ["val_data"]}
    wanted = "train_data_batch_1 to train_data_batch_10 and val_data, pickled or as .npz,"
    classes, side, first_label = 1000, 64, 1
    of_each_class = {"train": "732 to 1,300", "val": "50"}
    mean, std = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # ImageNet's usual ones, of pictures in full size

    def find(self, folder):
        for form in self.formats:
            if any(self.path(folder, form, name).is_file() for names in self.files.values() for name in names):
                return form, folder
        raise self.unknown(folder, "holds neither train_data_batch_1 nor train_data_batch_1.npz")

    def path(self, folder, form, name):
        path = super().path(folder, form, name)
        below = [] if path.exists() else sorted(folder.glob(f"*/{path.name}"))
        return below[0] if below else path

    def form_and_paths(self, place, split):
        form, folder = self.find(place.folder)
        return form, [self.path(folder, form, name) for name in self.files[split]]

    def load(self, place, split, images=0):
        """The first `images` of the split, 0 for all. Nothing is read before it is asked for."""
        if images < 0:
            raise SettingError(f"`images` is {images}: it is 1 or more, or 0 for all of them")
        pixels, labels = mapped.load(self, place, split)
        if images > len(labels):
            few = f"`{place.folder}` has {len(labels)} images, {images} are asked for"
            raise DataError(f"{few}: ask for fewer, or 0 for all of them")
        return Images(self, place, pixels[: images or None], labels[: images or None])

    def read_through(self, place):
        return {split: mapped.read_through(self, place, split) for split in self.splits}["train"]

    def decoded(self, form, path):
        if form == "python":
            return pickled.read(path, self, "labels")
        return self.member(path, "data"), self.member(path, "labels")

    def member(self, path, name, shape_only=False):
        """An array of an .npz archive, or its shape alone."""
        with self.opened(path) as file:
            try:
                with zipfile.ZipFile(file) as archive, archive.open(f"{name}.npy") as array:
                    if not shape_only:
                        return np.lib.format.read_array(array, allow_pickle=False)
                    version = np.lib.format.read_magic(array)
                    header = {1: "read_array_header_1_0", 2: "read_array_header_2_0"}[version[0]]
                    return getattr(np.lib.format, header)(array)[0]
            except KeyError as error:
                raise self.broken(path, f"has no array `{name}`") from error
            except (zipfile.BadZipFile, EOFError, ValueError, zlib.error) as error:
                raise self.broken(path, f"is truncated or no .npz archive of arrays ({error})") from error

    def most_images(self, form, path):
        if form == "npz":
            return self.member(path, "data", shape_only=True)[0]
        with self.opened(path) as file:
            return file.seek(0, 2) // self.pixels

    def fill(self, folder, note):
        self.mean_image = None
        self.fill_files(folder, note)

    def encoded(self, form, path, pixels, labels):
        # The real ones hold the mean of all training images; here it is that of the first batch.
        if self.mean_image is None:
            self.mean_image = pixels.mean(axis=0)
        if form == "npz":
            mean = {} if path.name.startswith("val") else {"mean": self.mean_image}
            np.savez(path, data=pixels, labels=labels, **mean)
            return
        batch = {"data": pixels, "labels": labels.tolist()}
        if not path.name.startswith("val"):
            batch["mean"] = self.mean_image
        with path.open("wb") as file:
            pickle.dump(batch, file, protocol=3)


IMAGENET64 = ImageNet64()
