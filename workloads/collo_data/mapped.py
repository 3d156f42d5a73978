"""A split of images as arrays on disk, mapped by any number of members: what they read lies in memory once for all.

    data/imagenet64/mapped-train/pixels.npy    uint8 [N, 3, 64, 64], as large as the files that they were decoded from
    data/imagenet64/mapped-train/labels.npy    int64 [N], from 0
    data/imagenet64/mapped-train/files.json    those files, and their bytes

The folder is written aside and renamed when it is whole, so that several processes may want it at once; one of them
writes, where the file system has locks. A mapped file costs nothing until it is used, and then only what is used: a
batch is copied out of it, and the kernel keeps the pages as long as there is room.
"""

import contextlib
import fcntl
import json
import math
import os
import secrets
import shutil

import numpy as np

from collo import DataError
from collo_data.place import NOTE

CHUNK_BYTES = 64 << 20


def load(known, place, split):
    """(pixels, labels) of a split, mapped; written before, if they are not there or were made of other files."""
    folder, (form, files) = place.folder / f"mapped-{split}", known.form_and_paths(place, split)
    sizes = {path.name: size_bytes(known, path) for path in files}
    arrays = opened(known, folder, sizes)
    if arrays is None:
        with lock(place.folder) as alone:
            arrays = opened(known, folder, sizes)  # another process may have been faster
            if arrays is None:
                if alone:
                    remove(place.folder.glob(f".{folder.name}-*"))  # of a process that was killed
                write(known, place, folder, form, files, sizes)
                arrays = opened(known, folder, sizes)
    if arrays is None:
        raise DataError(f"`{folder}` was written and cannot be read: remove it, and look at the disk")
    return arrays


def read_through(known, place, split):
    """How many images there are, once all of them are where the next reader finds them fast: in the page cache."""
    pixels, labels = load(known, place, split)
    with open(place.folder / f"mapped-{split}" / "pixels.npy", "rb", buffering=0) as file:
        chunk = bytearray(min(CHUNK_BYTES, pixels.nbytes))
        while file.readinto(chunk):
            pass
    return len(labels)


def opened(known, folder, sizes):
    """The arrays, or None where they are missing, damaged, or of other files than these."""
    try:
        if json.loads((folder / "files.json").read_text()) != sizes:
            return None
        # numpy refuses a file that is shorter than its header says.
        pixels, labels = (np.load(folder / name, mmap_mode="r") for name in ("pixels.npy", "labels.npy"))
    except FileNotFoundError:
        return None
    except (ValueError, EOFError):
        return None
    except OSError as error:
        raise DataError(f"`{folder}` cannot be read ({error.strerror}): give this user the right to") from error
    as_written = pixels.dtype == np.uint8 and labels.dtype == np.int64 and pixels.shape == (len(labels), *known.shape)
    return (pixels.view(np.ndarray), labels.view(np.ndarray)) if as_written else None


def write(known, place, folder, form, files, sizes):
    aside, old = (folder.parent / f".{folder.name}-{secrets.token_hex(4)}" for _ in range(2))
    try:
        check_space(known, folder, form, files)
        aside.mkdir()
        labels = []
        with open(aside / "pixels.npy", "wb") as file:
            write_header(file, (0, *known.shape))
            for path in files:
                batch_pixels, batch_labels = known.read(form, path)
                batch_pixels.tofile(file)
                labels.append(batch_labels)
                del batch_pixels  # or two of them would lie in memory while the next one is read
            count = sum(map(len, labels))
            file.seek(0)
            write_header(file, (count, *known.shape))  # numpy leaves room for a larger number
            flush(file)
        with open(aside / "labels.npy", "wb") as file:
            np.save(file, np.concatenate(labels))
            flush(file)
        (aside / "files.json").write_text(json.dumps(sizes) + "\n")
        if (place.folder / NOTE).exists():  # so it stays marked if it is moved
            shutil.copy(place.folder / NOTE, aside / NOTE)
        with contextlib.suppress(FileNotFoundError):
            folder.rename(old)  # who has it mapped keeps it
        try:
            aside.rename(folder)
        except OSError:
            if opened(known, folder, sizes) is None:  # else another process was faster
                raise
    except OSError as error:
        way_out = "give this user the right to, or put links to the files into a folder that can be written"
        raise DataError(f"`{folder}` cannot be written ({error.strerror}): {way_out}") from error
    finally:
        remove((aside, old))


def write_header(file, shape):
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.uint8)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def flush(file):
    """To the disk: after a crash a folder with this name is to hold what it says."""
    file.flush()
    os.fsync(file.fileno())


def check_space(known, folder, form, files):
    needed_bytes = sum(known.most_images(form, path) for path in files) * math.prod(known.shape)
    free_bytes = shutil.disk_usage(folder.parent).free
    if needed_bytes > free_bytes:
        raise DataError(
            f"`{folder}`, the decoded images that members share, needs about {needed_bytes / 1e6:,.0f} MB, "
            f"{free_bytes / 1e6:,.0f} MB are free: make room, or put the data set on a larger disk"
        )


@contextlib.contextmanager
def lock(folder):
    """One process at a time, where the file system has locks for folders: then True. Else several write, one is faster."""
    descriptor, alone = os.open(folder, os.O_RDONLY), False
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            alone = True
        yield alone
    finally:
        os.close(descriptor)


def remove(folders):
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def size_bytes(known, path):
    with known.opened(path) as file:
        return file.seek(0, 2)
