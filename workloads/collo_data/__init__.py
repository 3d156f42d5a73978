"""The data sets of the study as they lie on disk: a name and a split go in, batches of arrays come out. Knows no torch.

    data = collo_data.load("cifar-10", "train", images=512)
    images, labels = data.__getitems__([3, 1, 4])      # what a data loader asks for: one batch, as arrays

Real data lies in `$COLLO_DATA/NAME`, stand-ins in `$COLLO_DATA/synthetic/NAME`; without COLLO_DATA that is `data/`
beside `workloads/`. Whatever carries a file `SYNTHETIC` is a stand-in, wherever it lies. `python -m collo_data --help`
checks, writes and lists them. Each data set's module says how it lies on disk and which options `load` takes.
"""

import difflib
import importlib
import pathlib

from collo import DataError, SettingError, describing
from collo_data import stand_in
from collo_data.findings import Findings, compared
from collo_data.place import NOTE, Place, find, folder_of_stand_in, note_of, shown

SETS = {
    "cifar-10": "cifar.CIFAR_10",
    "cifar-100": "cifar.CIFAR_100",
    "mnist": "mnist.MNIST",
    "imagenet64": "imagenet64.IMAGENET64",
    "imagenet": "imagenet.IMAGENET",
    "criteo": "criteo.CRITEO",
    "wikitext-2": "wikitext.WIKITEXT_2",
}


def known_as(name):
    """What is known of the data set of this name. Imported when asked for: only ImageNet needs PIL."""
    if name not in SETS:
        nearest = difflib.get_close_matches(str(name).lower(), SETS, 1, cutoff=0.5)
        hint = f"did you mean `{nearest[0]}`? " if nearest else ""
        raise SettingError(f"there is no data set `{name}`: {hint}there are {', '.join(SETS)}")
    module, member = SETS[name].split(".")
    return getattr(importlib.import_module(f"collo_data.{module}"), member)


def load(name, split="train", **options):
    """One split, ready for a data loader. The options are those of the data set."""
    known = known_as(name)
    split = known.named(split)
    if describing():
        return known.example(split, **options)
    return known.load(locate(name), split, **options)


def locate(name):
    """Where the data set lies, real data first. The CIFARs and MNIST are written as stand-ins if they lie nowhere."""
    known = known_as(name)
    place = find(name)
    if place:
        return place
    if not known.usual:
        raise known.missing()
    folder = folder_of_stand_in(name)
    note = known.note(None, stand_in.SEED, None)
    return Place(folder, True, stand_in.write(folder, note, known))


def check(name, folder=None):
    """Look at all there is of a data set and compare it with what is published, or with the note of a stand-in."""
    known = known_as(name)
    if folder is None:
        place = find(name)
        if not place:
            raise known.missing()
        folder = place.folder
    folder = pathlib.Path(folder).absolute()
    if not folder.is_dir():
        raise known.missing(folder)
    note = note_of(folder)
    form, base = known.find(folder)
    lines = list(known.lines(form, base, note))
    if note is not None:
        lines.insert(0, compared(f"{NOTE}, name", name, note.get("name", "cannot be read")))
    return Findings(name, known.title, folder, form, note, lines)


def synthesize(name, scale=None, folder=None, seed=stand_in.SEED, format=None):
    """Write a seeded, learnable stand-in of `scale` times the real size; what the same words wrote before is kept."""
    known = known_as(name)
    note = known.note(scale, seed, format)
    folder = pathlib.Path(folder).absolute() if folder else folder_of_stand_in(name)
    written = stand_in.write(folder, note, known)
    if not written and not stand_in.is_by(folder, note):
        raise DataError(f"`{folder}` holds something else already: remove it first, or name another folder")
    return Place(folder, True, written)


def prepare(name):
    """Read what there is once, so that damage shows before a campaign and not inside it."""
    known, place = known_as(name), locate(name)
    items = known.read_through(place)
    where = shown(place.folder if place.synthetic else known.find(place.folder)[1])
    return {
        "dataset": known.title, "synthetic": place.synthetic, "written": place.written, "items": items, "where": where
    }  # fmt: skip
