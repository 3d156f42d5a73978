"""Writing stand-ins: a folder, its note and a data set that can fill it go in. Knows no format.

A stand-in is written aside and renamed when it is whole, so that any number of processes may do it at once and nobody
ever sees half of one. Its note lies in it and in each folder right below, which so stays marked if it is moved.
"""

import json
import secrets
import shutil

from collo import DataError
from collo_data.place import NOTE, note_of

SEED = 10


def write(folder, note, known):
    """False if it is there already, or another process was faster."""
    if folder.is_dir() and any(folder.iterdir()):
        return False
    aside = folder.parent / f".{folder.name}-{secrets.token_hex(4)}"  # named before it is there: a signal may come between
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        check_space(folder, note, known)
        aside.mkdir()
        note["counts"].update(known.fill(aside, note) or {})
        below = [entry for entry in aside.iterdir() if entry.is_dir()]
        for marked in (aside, *below):
            (marked / NOTE).write_text(json.dumps(note) + "\n")
        try:
            aside.rename(folder)
            return True
        except OSError:
            if folder.is_dir():  # another process was faster
                return False
            raise
    except OSError as error:
        way_out = "make room or set COLLO_DATA to a folder that can be written"
        raise DataError(f"`{folder}` cannot be written ({error.strerror}): {way_out}") from error
    finally:
        if aside.exists():
            shutil.rmtree(aside, ignore_errors=True)


def check_space(folder, note, known):
    needed_bytes = sum(note["counts"].values()) * known.bytes_per_item(note["format"])
    free_bytes = shutil.disk_usage(folder.parent).free
    if needed_bytes > free_bytes:
        raise DataError(
            f"`{folder}` needs about {needed_bytes / 1e6:,.0f} MB, {free_bytes / 1e6:,.0f} MB are free: "
            "make room, take a smaller scale, or set COLLO_DATA to a larger disk"
        )


def is_by(folder, note):
    """Whether the stand-in that lies there was written by these words."""
    found = note_of(folder)
    return found is not None and all(found.get(word) == note[word] for word in ("name", "scale", "seed", "format"))
