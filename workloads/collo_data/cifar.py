"""CIFAR-10 and CIFAR-100, each in either of the two versions that are published for training:

    data/cifar-10/cifar-10-batches-py/data_batch_1 …       pickled dicts, the "python version"
    data/cifar-10/cifar-10-batches-bin/data_batch_1.bin …  records of 1 + 3072 bytes, the "binary version"
    data/cifar-100/cifar-100-python/train, test            pickled dicts with fine_labels
    data/cifar-100/cifar-100-binary/train.bin, test.bin    records of coarse label, fine label and 3072 pixels

`load(…, images=N)` takes the first N images only. Where neither data nor stand-in lies a small stand-in is written.
"""

import hashlib
import pickle

import numpy as np

from collo_data import pickled
from collo_data.batches import Batches
from collo_data.findings import compared


class Cifar(Batches):
    formats = ("python", "binary")
    endings = {"python": "", "binary": ".bin"}
    splits = ("train", "test")
    published = {"train": 50_000, "test": 10_000}
    usual = {"train": 10_000, "test": 1_000}
    side = 32

    # also: the format's folders, the key of the labels, their bytes in a record, the file of class names and its key
    folders, labels_key, label_bytes, names_file, names_key = {}, None, None, None, None
    md5 = {}  # of the python version, as torchvision lists them

    @property
    def wanted(self):
        return " or ".join(self.folders.values())

    @property
    def least(self):
        return {split: 2 * self.classes * len(names) for split, names in self.files.items()}

    def find(self, folder):
        for form, name in self.folders.items():
            if (folder / name).is_dir():
                return form, folder / name
        for form in self.formats:  # unpacked without its folder
            if self.path(folder, form, self.files["train"][0]).is_file():
                return form, folder
        raise self.unknown(folder, "holds neither " + " nor ".join(self.folders.values()))

    def decoded(self, form, path):
        if form == "python":
            return pickled.read(path, self, self.labels_key)
        with self.opened(path) as file:
            records, record_bytes = np.frombuffer(file.read(), np.uint8), self.label_bytes + self.pixels
        if len(records) % record_bytes:
            what = "is truncated or of another format"
            raise self.broken(path, f"{what} ({len(records)} bytes, no multiple of {record_bytes})")
        records = records.reshape(-1, record_bytes)
        return records[:, self.label_bytes :], records[:, self.label_bytes - 1]  # the fine label is the last one

    def most_images(self, form, path):
        with self.opened(path) as file:
            return file.seek(0, 2) // self.pixels

    def lines(self, form, folder, note):
        for name, md5 in self.md5.items() if form == "python" and note is None else ():
            path = folder / name
            found = "is missing"
            if path.is_file():
                found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            yield compared(f"{name}, md5", md5, found)
        yield from super().lines(form, folder, note)

    def fill(self, folder, note):
        form, folder = note["format"], folder / self.folders[note["format"]]
        folder.mkdir()
        self.fill_files(folder, note)
        if form == "binary":
            (folder / f"{self.names_file}.txt").write_text("\n".join(self.names) + "\n")
            return
        meta = {self.names_key.encode(): [name.encode() for name in self.names], b"num_vis": self.pixels}
        meta[b"num_cases_per_batch"] = self.share(note["counts"]["train"], "train", 0)
        (folder / self.names_file).write_bytes(pickle.dumps(meta, protocol=2))

    def encoded(self, form, path, pixels, labels):
        coarse = labels // 5  # twenty of a hundred
        if form == "binary":
            both = np.stack([coarse, labels], axis=1)[:, -self.label_bytes :]
            path.write_bytes(np.concatenate([both.astype(np.uint8), pixels], axis=1).tobytes())
            return
        names = [f"synthetic_{path.name}_{i}.png".encode() for i in range(len(labels))]
        batch = {b"batch_label": path.name.encode(), self.labels_key.encode(): labels.tolist(), b"filenames": names}
        if self.label_bytes == 2:
            batch[b"coarse_labels"] = coarse.tolist()
        batch[b"data"] = pixels
        path.write_bytes(pickle.dumps(batch, protocol=2))


class Cifar10(Cifar):
    name, title, classes = "cifar-10", "CIFAR-10", 10
    mean, std = (125.3, 123.0, 113.9), (63.0, 62.1, 66.7)  # of the real training images, of pixels from 0 to 255
    folders = {"python": "cifar-10-batches-py", "binary": "cifar-10-batches-bin"}
    files = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
    labels_key, label_bytes, names_file, names_key = "labels", 1, "batches.meta", "label_names"
    names = "airplane automobile bird cat deer dog frog horse ship truck".split()
    of_each_class = {"train": "5,000", "test": "1,000"}
    md5 = {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
        "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    }


class Cifar100(Cifar):
    name, title, classes = "cifar-100", "CIFAR-100", 100
    mean, std = (129.3, 124.1, 112.4), (68.2, 65.4, 70.4)
    folders = {"python": "cifar-100-python", "binary": "cifar-100-binary"}
    files = {"train": ["train"], "test": ["test"]}
    labels_key, label_bytes, names_file, names_key = "fine_labels", 2, "meta", "fine_label_names"
    names = [f"class_{i:02}" for i in range(100)]
    of_each_class = {"train": "500", "test": "100"}
    md5 = {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    }


CIFAR_10, CIFAR_100 = Cifar10(), Cifar100()
