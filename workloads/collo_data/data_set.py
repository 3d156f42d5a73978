"""What every data set has: its names and published facts, one split of it once loaded, and how its errors read.

A data set's module subclasses `DataSet` to read, check and write its formats, and `Split` to hand out batches.
"""

import math

import numpy as np

from collo import DataError, SettingError
from collo_data.place import data_folder, folder_of_stand_in, is_stand_in, root_of_stand_in

ALSO_CALLED = ("val", "valid", "validation")  # one split, which every data set calls otherwise


class Split:
    """One split of a data set. Subclasses have `__len__` and `__getitems__(indices)`, a tuple of arrays of a batch."""

    def __init__(self, known, place):
        self.name, self.synthetic = known.title, place.synthetic

    def __getitem__(self, index):
        return tuple(array[0] for array in self.__getitems__([index]))

    def describe(self):
        return {"name": self.name, "synthetic": self.synthetic, "items": len(self)}


class Example(Split):
    """A split that is nowhere: as many items as are published, all zeros, of the shapes and types of the real ones.

    `arrays` has the (shape, type) of an item's; `facts` what else a script asks a split of this data set.
    """

    def __init__(self, known, items, arrays, **facts):
        self.name, self.synthetic = known.title, True
        self.items, self.arrays = items, arrays
        vars(self).update(facts)

    def __len__(self):
        return self.items

    def __getitems__(self, indices):
        return tuple(np.zeros((len(indices), *shape), kind) for shape, kind in self.arrays)

    def cut(self, items):
        """Keep the first so many."""
        self.items = min(items, self.items)


class DataSet:
    """A published data set. Subclasses set these, and have the methods that are named below."""

    name = title = None
    formats = ()  # in which a stand-in can be written, the usual one first
    splits = ()
    published = {}  # items of each split, or of each file where splits are cut out of it
    least = {}  # items of each split in the smallest stand-in
    usual = None  # items of each split in the stand-in that is written by itself; None: that is never done
    wanted = ""  # the files that belong in its folder, in words
    example_scale = 0.01  # of a stand-in that is written in a moment

    # find(folder) -> (format, the folder of the files); load(place, split, **options) -> Split
    # example(split, **options) -> Example: of the same options, without data
    # lines(format, folder, note): what `check` finds; read_through(place) -> items of the training split
    # fill(folder, note): writes a stand-in; bytes_per_item(format)

    def named(self, split):
        """The split by this data set's own name for it."""
        for own in self.splits:
            if split == own or {split, own} <= set(ALSO_CALLED):
                return own
        raise SettingError(f"`{self.name}` has no split `{split}`: it has {', '.join(self.splits)}")

    def counts(self, scale):
        """Items of each split of a stand-in at this scale; without one, of the stand-in that is written by itself."""
        if scale is None and self.usual:
            return dict(self.usual)
        scale = self.checked(scale)
        return {split: max(self.least[split], round(scale * self.published[split])) for split in self.splits}

    def checked(self, scale):
        if scale is None or not (math.isfinite(scale) and 0 < scale <= 1):
            said = "is missing" if scale is None else f"is {scale}"
            raise SettingError(f"`scale` {said}: it is greater than 0 and at most 1, the size of the real {self.title}")
        return scale

    def note(self, scale, seed, form):
        """What a stand-in says of itself."""
        form = form or self.formats[0]
        if form not in self.formats:
            raise SettingError(f"`{self.name}` is not written as `{form}`: its formats are {', '.join(self.formats)}")
        if seed < 0:
            raise SettingError(f"`seed` is {seed}: it is 0 or more")
        return {"name": self.name, "scale": scale, "seed": seed, "format": form, "counts": self.counts(scale)}

    # --- errors: the file, the reason, the way out ---

    @property
    def command(self):
        return f"`collo data synthesize {self.name} --scale {self.example_scale}`"

    def missing(self, folder=None):
        where = folder or data_folder() / self.name
        return DataError(f"`{where}` is missing: put {self.wanted} there, or write a stand-in with {self.command}")

    def unknown(self, folder, reason):
        """A folder in which nothing of this data set is found."""
        if folder == data_folder() / self.name:
            instead = "to train on a synthetic stand-in" if self.usual else f"and run {self.command}"
            return DataError(f"`{folder}` {reason}: {self.unpack} there, or remove the folder {instead}")
        if is_stand_in(folder):
            return DataError(f"`{folder}` {reason}: {self.anew(folder)}")
        return DataError(f"`{folder}` {reason}: {self.unpack} there")

    def broken(self, path, reason):
        """A file that is not as it has to be."""
        stand_in = root_of_stand_in(path)
        error = DataError(f"`{path}` {reason}: {self.anew(stand_in) if stand_in else self.unpack + ' again'}")
        error.reason = reason  # not an argument: what a data-loader worker raises is made anew from its text alone
        return error

    @property
    def unpack(self):
        return f"unpack the {self.title} archive"

    def anew(self, stand_in):
        by_itself = self.usual and stand_in == folder_of_stand_in(self.name)
        return f"remove `{stand_in}`" + (", it is written anew" if by_itself else f" and run {self.command}")

    def opened(self, path):
        try:
            return path.open("rb")
        except FileNotFoundError as error:
            raise self.broken(path, "is missing") from error
        except IsADirectoryError as error:
            raise self.broken(path, "is a folder, not a file") from error
        except OSError as error:
            way_out = "give this user the right to read it"
            raise DataError(f"`{path}` cannot be read ({error.strerror}): {way_out}") from error
