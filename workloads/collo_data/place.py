"""Where data lies: a data set's name goes in, its folder comes out, and whether it is a stand-in. Knows no format."""

import itertools
import json
import os
import pathlib
from typing import NamedTuple

from collo import DataError

PROJECT = pathlib.Path(__file__).absolute().parents[2]
NOTE = "SYNTHETIC"  # the file that makes a folder a stand-in: JSON of name, scale, seed, format and counts


class Place(NamedTuple):
    folder: pathlib.Path
    synthetic: bool
    written: bool = False  # just now


def data_folder():
    return pathlib.Path(os.environ.get("COLLO_DATA") or PROJECT / "data").absolute()


def folder_of_stand_in(name):
    return data_folder() / "synthetic" / name


def find(name):
    """The real data or else its stand-in; None without either. A folder that is there but empty counts as real data."""
    for folder in (data_folder() / name, folder_of_stand_in(name)):
        try:
            if os.path.lexists(folder) and not folder.is_dir():
                what = "is a link that leads nowhere" if folder.is_symlink() else "is no folder"
                raise DataError(f"`{folder}` {what}: put the data there, or remove it to train on a stand-in")
            if folder.is_dir():
                return Place(folder, is_stand_in(folder))
        except OSError as error:
            raise DataError(f"`{folder}` cannot be read ({error.strerror}): give this user the right to") from error
    return None


def is_stand_in(folder):
    """Whether it is one, or has a part of one in it, moved or linked there: then it is no real data."""
    if folder.parent == data_folder() / "synthetic" or (folder / NOTE).exists():
        return True
    entries = itertools.islice(folder.iterdir(), 100)
    return any((place / NOTE).exists() for entry in entries for place in (entry, entry.resolve().parent))


def note_of(folder):
    """What the note of a stand-in says: {} if that cannot be read, None for real data."""
    if not is_stand_in(folder):
        return None
    for note in (folder / NOTE, *sorted(folder.glob(f"*/{NOTE}"))):
        try:
            said = json.loads(note.read_text())
            if all(isinstance(count, int) for count in said["counts"].values()):
                return said
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # not written by us, or by us long ago
    return {}


def root_of_stand_in(path):
    """The outermost folder around this file that is a stand-in, or None."""
    stand_ins = data_folder() / "synthetic"
    near = itertools.islice(path.parents, 4)
    around = [folder for folder in near if folder.parent == stand_ins or (folder / NOTE).exists()]
    return around[-1] if around else None


def shown(path):
    """As a person in the project's folder would type it."""
    return str(path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path)
