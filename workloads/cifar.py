"""CIFAR-10 as it lies on disk: a data folder goes in, arrays of uint8 pixels and labels come out. Knows no torch.

    data/cifar-10/cifar-10-batches-py/data_batch_1 …     pickled dicts, the "python version"
    data/cifar-10/cifar-10-batches-bin/data_batch_1.bin …  records of 1 + 3072 bytes, the "binary version"

Without `data/cifar-10`, a learnable stand-in in the python format is written to `data/synthetic/cifar-10` and used.
`python cifar.py` checks the data, or writes the stand-in, and prints what there is as one line of JSON.
"""

import json
import os
import pathlib
import pickle
import shutil
import tempfile
from typing import NamedTuple

import numpy as np

from collo import DataError

PIXELS = 3 * 32 * 32
MEAN = (125.3, 123.0, 113.9)  # of the real training images, per channel, for (pixels - MEAN) / STD
STD = (63.0, 62.1, 66.7)
TRAIN = [f"data_batch_{i}" for i in range(1, 6)]
TEST = ["test_batch"]
STAND_IN_SEED, STAND_IN_PER_BATCH = 10, {**dict.fromkeys(TRAIN, 2000), "test_batch": 1000}
CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()


class Cifar(NamedTuple):
    pixels: np.ndarray  # uint8, images × 3 × 32 × 32
    labels: np.ndarray  # int64
    synthetic: bool

    def describe(self):
        return {"name": "CIFAR-10", "synthetic": self.synthetic, "items": len(self.labels)}


def load(images=0, batches=TRAIN):
    """The first `images` of these batches, 0 for all. Files beyond them are not read."""
    if images < 0:
        raise DataError(f"{images} images are asked for: ask for 1 or more, or 0 for all of them")
    folder, synthetic, _ = locate()
    pixels, labels, count = [], [], 0
    for batch in batches:
        if folder.name.endswith("-bin"):
            batch_pixels, batch_labels = read_binary(folder / f"{batch}.bin")
        else:
            batch_pixels, batch_labels = read_python(folder / batch)
        wanted = images - count if images else len(batch_labels)
        pixels.append(batch_pixels[:wanted])
        labels.append(batch_labels[:wanted])
        count += len(labels[-1])
        if count == images:
            break
    if images not in (0, count):
        raise DataError(f"`{folder}` has {count} images, {images} are asked for: ask for fewer, or 0 for all of them")
    pixels, labels = np.concatenate(pixels), np.concatenate(labels)  # copies: the rest of a batch can go
    return Cifar(pixels.reshape(-1, 3, 32, 32), labels, synthetic)


def locate():
    """(folder of the batches, is it the stand-in, was it written just now). Real data comes first."""
    data = pathlib.Path(os.environ.get("COLLO_DATA") or pathlib.Path(__file__).parents[1] / "data").absolute()
    real = data / "cifar-10"
    for folder in (real / "cifar-10-batches-py", real / "cifar-10-batches-bin"):
        if folder.is_dir():
            return folder, False, False
    if real.exists():
        raise DataError(
            f"`{real}` holds neither cifar-10-batches-py nor cifar-10-batches-bin: unpack the CIFAR-10 archive there, "
            "or remove the folder to train on a synthetic stand-in"
        )
    stand_in = data / "synthetic" / "cifar-10"
    written = not stand_in.exists() and write_stand_in(stand_in)
    return stand_in / "cifar-10-batches-py", True, written


# --- the two formats ---


class OnlyArrays(pickle.Unpickler):
    """A pickle can name any function to call; a CIFAR-10 batch needs these."""

    def find_class(self, module, name):
        multiarray = (getattr(np, "_core", None) or np.core).multiarray
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return multiarray._reconstruct
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):  # how Python 3 pickles bytes for Python 2
            return lambda text, encoding: text.encode(encoding)
        raise pickle.UnpicklingError(f"it wants to run `{module}.{name}`")


def read_python(path):
    with opened(path) as file:
        try:
            batch = OnlyArrays(file, encoding="bytes").load()
        except (EOFError, pickle.UnpicklingError) as error:
            if "truncated" in str(error) or isinstance(error, EOFError):
                raise broken(path, "is truncated") from error
            raise broken(path, f"is not a CIFAR-10 python batch ({error})") from error
        except MemoryError:
            raise
        except Exception as error:  # a damaged pickle can fail in any way
            raise broken(path, f"is not a CIFAR-10 python batch ({type(error).__name__}: {error})") from error
    if not isinstance(batch, dict) or not {b"data", b"labels"} <= batch.keys():
        raise broken(path, "is not a CIFAR-10 python batch (a dict with b'data' and b'labels')")
    pixels, labels = batch[b"data"], np.asarray(batch[b"labels"])
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (PIXELS,):
        shape = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise broken(path, f"has data of {shape}, not uint8 (images, {PIXELS})")
    if labels.shape != (len(pixels),) or labels.dtype.kind not in "iu":
        raise broken(path, f"has {len(pixels)} images but labels of {labels.dtype} {labels.shape}")
    return checked(path, pixels, labels)


def read_binary(path):
    with opened(path) as file:
        records = np.frombuffer(file.read(), np.uint8)
    if len(records) % (1 + PIXELS):
        raise broken(path, f"is truncated or of another format ({len(records)} bytes, no multiple of {1 + PIXELS})")
    records = records.reshape(-1, 1 + PIXELS)
    return checked(path, records[:, 1:], records[:, 0])


def checked(path, pixels, labels):
    if len(labels) == 0:
        raise broken(path, "holds no images")
    if not 0 <= labels.min() <= labels.max() <= 9:
        raise broken(path, f"has labels from {labels.min()} to {labels.max()}, CIFAR-10 has 0 to 9")
    return pixels, labels.astype(np.int64)


def opened(path):
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise broken(path, "is missing") from error
    except OSError as error:
        raise DataError(f"`{path}` cannot be read ({error.strerror}): give this user the right to read it") from error


def broken(path, reason):
    if (path.parents[1] / "SYNTHETIC").exists():
        return DataError(f"`{path}` {reason}: remove `{path.parents[1]}`, it is written anew")
    return DataError(f"`{path}` {reason}: unpack the CIFAR-10 archive again")


# --- the stand-in ---


def write_stand_in(folder):
    """Written aside and renamed, so that any number of processes may do it at once. False if another was first."""
    aside = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = pathlib.Path(tempfile.mkdtemp(prefix=".cifar-10-", dir=folder.parent))
        aside.chmod(0o755)
        batches = aside / "cifar-10-batches-py"
        batches.mkdir()
        (aside / "SYNTHETIC").write_text("Not CIFAR-10: seeded patterns in its format, written by cifar.py\n")
        random = np.random.default_rng(STAND_IN_SEED)
        patterns = random.normal(size=(10, 3, 4, 4)).repeat(8, axis=2).repeat(8, axis=3)
        for name, count in STAND_IN_PER_BATCH.items():
            labels = random.integers(0, 10, count)
            names = [f"synthetic_{name}_{i}.png".encode() for i in range(count)]
            batch = {b"batch_label": name.encode(), b"labels": labels.tolist(), b"filenames": names}
            batch[b"data"] = stand_in_pixels(random, patterns, labels).reshape(count, PIXELS)
            (batches / name).write_bytes(pickle.dumps(batch, protocol=2))
        meta = {b"label_names": [name.encode() for name in CLASSES], b"num_vis": PIXELS, b"num_cases_per_batch": 2000}
        (batches / "batches.meta").write_bytes(pickle.dumps(meta, protocol=2))
        try:
            aside.rename(folder)
            return True
        except OSError:
            if folder.is_dir():  # another process was faster, with the very same bytes
                return False
            raise
    except OSError as error:
        way_out = "make room or set COLLO_DATA to a folder that can be written"
        raise DataError(f"`{folder}` cannot be written ({error.strerror}): {way_out}") from error
    finally:
        if aside and aside.exists():
            shutil.rmtree(aside, ignore_errors=True)


def stand_in_pixels(random, patterns, labels):
    """A coarse pattern per class, shifted, of varying contrast, under noise: learnable, but not at one glance."""
    images = np.empty((len(labels), 3, 32, 32), np.uint8)
    for image, label in zip(images, labels):
        shift = tuple(random.integers(-6, 7, 2))
        signal = np.roll(patterns[label], shift, axis=(1, 2)) * random.uniform(0.1, 0.4)
        noise = random.normal(size=(3, 32, 32), scale=1.0)
        image[:] = np.clip(121 + 40 * (signal + noise), 0, 255)
    return images


def prepare():
    """Read all there is once, so that damage shows before a campaign and not inside it."""
    folder, synthetic, written = locate()
    items = len(load().labels)
    load(batches=TEST)
    where = folder.parent if synthetic else folder
    project = pathlib.Path(__file__).absolute().parents[1]
    where = where.relative_to(project) if where.is_relative_to(project) else where
    return {"dataset": "CIFAR-10", "synthetic": synthetic, "written": written, "items": items, "where": str(where)}


if __name__ == "__main__":
    try:
        print(json.dumps(prepare()))
    except DataError as error:
        raise SystemExit(f"error: {error}") from None
