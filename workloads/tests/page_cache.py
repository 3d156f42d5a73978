"""How much memory ImageNet64 takes in a group of members: each maps one array on disk, and reads all of it.

    PYTHONPATH=workloads:workloads/tests python workloads/tests/page_cache.py --images 1281167 --members 7

Writes a stand-in of so many images (1281167 are those of the real set: 15.7 GB of disk and of page cache), prepares it as
collo does before a campaign, starts the members, and prints what the kernel says of the mapping in each: RSS counts what
a member has touched, PSS its share of it, so that the PSS of all members together is what the machine holds.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import tempfile
import time

import collo_data
import numpy as np
from collo_data.imagenet64 import IMAGENET64
from collo_data.place import NOTE

BATCH = 128


def write_stand_in(folder, images):
    """Batches that take no time to draw and little room: each image repeats one line of its own. Labels count up."""
    files = IMAGENET64.files["train"]
    counts = {"train": images, "val": IMAGENET64.classes}
    folder.mkdir(parents=True)
    note = {"name": "imagenet64", "scale": None, "seed": 0, "format": "npz", "counts": counts}
    (folder / NOTE).write_text(json.dumps(note) + "\n")
    shares = [("train", IMAGENET64.share(images, "train", index), name) for index, name in enumerate(files)]
    random = np.random.default_rng(0)
    for split, count, name in [*shares, ("val", counts["val"], "val_data")]:
        lines = random.integers(0, 256, (count, IMAGENET64.side), np.uint8)
        labels = np.arange(count) % IMAGENET64.classes + IMAGENET64.first_label
        pixels = np.tile(lines, (1, IMAGENET64.pixels // IMAGENET64.side))
        np.savez_compressed(folder / f"{name}.npz", data=pixels, labels=labels)


def of_mapping(name):
    """RSS and PSS in bytes of the mapped file of this name in this process."""
    found, inside = {"Rss": 0, "Pss": 0}, False
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        word = line.split(maxsplit=1)[0]
        if "-" in word:
            inside = line.endswith(name)
        elif inside and word[:-1] in found:
            found[word[:-1]] += int(line.split()[1]) * 1024
    return found


def member(ready, told, share):
    """Reads this share of the images in an order of its own, as a training does; tells when all have."""
    data = collo_data.load("imagenet64")
    before = of_mapping("mapped-train/pixels.npy")
    order = np.random.default_rng(os.getpid()).permutation(len(data))[: round(share * len(data))]
    start, checksum = time.monotonic(), 0
    for batch in np.split(order, range(BATCH, len(order), BATCH)):
        pixels, labels = data.__getitems__(batch)
        checksum += int(pixels[:, 0, 0, 0].sum()) + int(labels.sum())
    read_s = time.monotonic() - start
    ready.wait()  # while all of them have it mapped
    after = of_mapping("mapped-train/pixels.npy")
    told.put((before, after, read_s))
    ready.wait()


def measured(members, share=1.0):
    """Of each member: (before reading, after it) as RSS and PSS of the mapping, and the seconds that reading took."""
    fork = multiprocessing.get_context("fork")
    ready, told = fork.Barrier(members), fork.Queue()
    started = [fork.Process(target=member, args=(ready, told, share)) for _ in range(members)]
    for process in started:
        process.start()
    found = [told.get(timeout=3600) for _ in started]
    for process in started:
        process.join()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--members", type=int, default=7)
    parser.add_argument("--share", type=float, default=1.0, help="of the images that each member reads")
    parser.add_argument("--folder", help="where to write it; else a temporary folder, removed afterwards")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as root:
        os.environ["COLLO_DATA"] = root
        for what, work in (
            ("stand-in", lambda: write_stand_in(pathlib.Path(root) / "synthetic" / "imagenet64", arguments.images)),
            ("prepare", lambda: collo_data.prepare("imagenet64")),
            ("prepare again", lambda: collo_data.prepare("imagenet64")),
        ):
            start = time.monotonic()
            work()
            print(f"{what:<14} {time.monotonic() - start:8.2f} s", flush=True)
        found = measured(arguments.members, arguments.share)
    size = arguments.images * IMAGENET64.pixels
    print(f"the array is {size / 1e9:.3f} GB")
    for number, (before, after, read_s) in enumerate(found):
        said = ", ".join(f"{name} {after[name] / 1e9:.3f} GB (before {before[name] / 1e9:.3f})" for name in after)
        print(f"member {number}: {said}; read in {read_s:.1f} s")
    for name in ("Rss", "Pss"):
        total = sum(after[name] for _, after, _ in found)
        print(f"{name} of all: {total / 1e9:.3f} GB, {total / size:.3f} times the array")


if __name__ == "__main__":
    main()
