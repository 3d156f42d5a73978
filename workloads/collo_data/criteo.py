"""Criteo's click logs: label, 13 counts, 26 categories a row; as text, or as DLRM and MLPerf preprocess it.

    data/criteo/train.txt                 the Kaggle challenge: columns between tabs, hexadecimal categories, gaps
    data/criteo/day_0 … day_23            the Terabyte set, in the same format
    data/criteo/train_data.bin, val_data.bin, test_data.bin, day_fea_count.npz
                                          rows of 40 int32, and table sizes; also terabyte_processed_train.bin …

The splits are DLRM's: the last seventh of `train.txt`, or the last day, is for testing (first half) and validation.
`load(…, rows=N, block=K)` takes the K-th N rows of the split: an epoch can be one training block and the validation.
A category is an index modulo its table's size: `table_sizes` of 26 tables or those of the data, cut to `max_table`.
Text is parsed when a batch asks for it, but to find its lines each load reads the file once: of the 24 days no further
than to the end of the block.
"""

import math
import zipfile

import numpy as np

from collo import DataError, SettingError
from collo_data.data_set import DataSet, Example, Split
from collo_data.findings import compared, failed
from collo_data.place import Place
from collo_data.rows import COLUMNS, Binary, Text, line_starts

# Categories of the Kaggle challenge (facebookresearch/dlrm), and of the Terabyte set modulo 40 million (MLPerf)
KAGGLE = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194,
    27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
)  # fmt: skip
TERABYTE = (
    39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10,
    2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36,
)  # fmt: skip
KAGGLE_ROWS = 45_840_617
DAY_ROWS = (  # of the Terabyte set: MLPerf's conversion script for DLRM
    195841983, 199563535, 196792019, 181115208, 152115810, 172548507, 204846845, 200801003,
    193772492, 198424372, 185778055, 153588700, 169003364, 194216520, 194081279, 187154596,
    177984934, 163382602, 142061091, 156534237, 193627464, 192215183, 189747893, 178274637,
)  # fmt: skip
LAST_DAY = len(DAY_ROWS) - 1
SAMPLED = 10_000  # rows of each file that a check looks at, from all over it
DRAWN = 1 << 16  # rows of a stand-in that are drawn at once
MISSING = -2


class Clicks(Split):
    """Rows of a split: float32 [B, 13] of log(1 + count), int64 [B, 26] and float32 [B]."""

    def __init__(self, known, place, rows, first, count, table_sizes, counts):
        super().__init__(known, place)
        self.known, self.rows, self.first, self.count = known, rows, first, count
        self.table_sizes, self.counts = table_sizes, counts

    def __len__(self):
        return self.count

    def __getitems__(self, indices):
        indices = np.asarray(indices, np.int64)
        if len(indices) and not -self.count <= indices.min() <= indices.max() < self.count:
            raise IndexError(f"there are {self.count} rows")
        indices = indices % self.count + self.first
        rows = self.rows.read(indices)
        labels, numbers, categories = rows[:, 0], rows[:, 1:14], rows[:, 14:]
        self.must(indices, (labels == 0) | (labels == 1), "a label that is neither 0 nor 1")
        self.must(indices, (categories >= 0).all(axis=1), "a category below 0")
        if self.counts is not None:
            self.must(indices, (categories < self.counts).all(axis=1), "a category beyond day_fea_count.npz")
        dense = np.log1p(np.maximum(numbers, 0).astype(np.float32))
        return dense, categories % np.asarray(self.table_sizes), labels.astype(np.float32)

    def must(self, indices, sound, otherwise):
        if not sound.all():
            path, row = self.rows.place(int(indices[np.argmin(sound)]))
            raise self.known.broken(path, f"has {otherwise} in {row}")


class Criteo(DataSet):
    name, title = "criteo", "Criteo"
    formats = ("binary", "tsv")
    splits = ("train", "val", "test")
    published = {
        "train.txt": KAGGLE_ROWS,
        "day_0 to day_23": sum(DAY_ROWS),
        "train_data.bin": sum(DAY_ROWS[:-1]),
        "test_data.bin": math.ceil(DAY_ROWS[-1] / 2),
        "val_data.bin": DAY_ROWS[-1] // 2,
    }
    least_rows = 7_000
    wanted = "train_data.bin, val_data.bin, test_data.bin and day_fea_count.npz, or train.txt, or day_0 to day_23"
    example_scale = 0.001

    def find(self, folder):
        if any(self.binary_path(folder, split).is_file() for split in self.splits):
            return "binary", folder
        if (folder / "train.txt").is_file() or self.days(folder):
            return "tsv", folder
        raise self.unknown(folder, "holds neither train_data.bin nor train.txt nor day_0")

    def binary_path(self, folder, split):
        other = folder / f"terabyte_processed_{split}.bin"
        return other if other.is_file() else folder / f"{split}_data.bin"

    def days(self, folder):
        """The files of the Terabyte set that are there, by day."""
        return {day: folder / f"day_{day}" for day in range(LAST_DAY + 1) if (folder / f"day_{day}").is_file()}

    def load(self, place, split, rows=0, block=0, table_sizes=None, max_table=0):
        if rows < 0 or block < 0 or (block and not rows):
            raise SettingError(
                f"`rows` is {rows} and `block` {block}: they count from 0, and 0 rows are one block of all"
            )
        form, folder = self.find(place.folder)
        until = (block + 1) * rows
        read = self.binary(folder, split) if form == "binary" else self.text(folder, split, until or None)
        if len(read) == 0 or until > len(read):
            raise DataError(f"`{folder}` has {len(read)} rows to {split}, {until or 1} are asked for: ask for fewer")
        counts = self.counts_file(folder) if form == "binary" else None
        own = (KAGGLE if (folder / "train.txt").is_file() else TERABYTE) if counts is None else counts
        sizes = self.sizes(own if table_sizes is None else tuple(table_sizes), max_table)
        return Clicks(self, place, read, block * rows, rows or len(read), sizes, counts)

    def example(self, split, rows=0, block=0, table_sizes=None, max_table=0):
        sizes = self.sizes(KAGGLE if table_sizes is None else tuple(table_sizes), max_table)
        arrays = [((13,), np.float32), ((26,), np.int64), ((), np.float32)]
        return Example(self, rows or KAGGLE_ROWS, arrays, table_sizes=sizes)

    def sizes(self, sizes, max_table):
        if len(sizes) != 26 or min(sizes) < 1:
            found = f"has {len(sizes)} sizes from {min(sizes, default=None)}"
            raise SettingError(f"`table_sizes` {found}: it is 26 of 1 or more")
        if max_table < 0:
            raise SettingError(f"`max_table` is {max_table}: it is 1 or more rows, or 0 for no limit")
        return tuple(int(min(size, max_table or size)) for size in sizes)

    # --- the two formats ---

    def counts_file(self, folder):
        path = folder / "day_fea_count.npz"
        with self.opened(path) as file:
            try:
                counts = np.load(file, allow_pickle=False)["counts"]
            except (zipfile.BadZipFile, EOFError, KeyError, ValueError, IndexError) as error:
                raise self.broken(path, f"is truncated or no .npz archive with `counts` ({error})") from error
        if counts.shape != (26,) or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise self.broken(path, f"has counts of {counts.dtype} {counts.shape}, not 26 integers of 1 or more")
        return counts.astype(np.int64)

    def binary(self, folder, split):
        path = self.binary_path(folder, split)
        if split == "val" and not path.exists():  # some keep the last day in one piece
            path = self.binary_path(folder, "test")
        return Binary(self, path)

    def text(self, folder, split, most=None):
        """The lines of a split; of the days no more than are needed for the first `most` of them."""
        if (folder / "train.txt").is_file():
            path = folder / "train.txt"
            starts = line_starts(self, path)
            first, last = self.bounds(len(starts) - 1)[split]
            return Text(self, [(path, first, starts[first : last + 1])])
        if split != "train":
            starts = line_starts(self, folder / f"day_{LAST_DAY}")
            count = len(starts) - 1
            first, last = (0, -(-count // 2)) if split == "test" else (-(-count // 2), count)
            return Text(self, [(folder / f"day_{LAST_DAY}", first, starts[first : last + 1])])
        parts, count = [], 0
        for day, path in self.days(folder).items():
            if day < LAST_DAY and (most is None or count < most):
                parts.append((path, 0, line_starts(self, path, None if most is None else most - count)))
                count += len(parts[-1][2]) - 1
        return Text(self, parts)

    def bounds(self, rows):
        """(first, last) rows of each split of `train.txt`, as if it were the seven days that it is."""
        last_day = rows // 7
        tested = rows - last_day + math.ceil(last_day / 2)
        return {"train": (0, rows - last_day), "test": (rows - last_day, tested), "val": (tested, rows)}

    def read_through(self, place):
        """The sizes of all files, and a sample of their rows."""
        form, folder = self.find(place.folder)
        if form == "tsv" and not (folder / "train.txt").is_file():
            for path in self.days(folder).values():
                self.look_at(place, Text(self, [(path, 0, line_starts(self, path, SAMPLED))]))
            return None  # counting a terabyte of lines takes hours
        counts, read = (self.counts_file(folder), self.binary) if form == "binary" else (None, self.text)
        rows = {split: read(folder, split) for split in self.splits}
        for split in self.splits:
            self.look_at(place, rows[split], counts)
        return len(rows["train"])

    def look_at(self, place, rows, counts=None):
        """Read a sample from all over it; returns how many rows of it were clicks."""
        sample = np.unique(np.linspace(0, len(rows) - 1, SAMPLED, dtype=np.int64))
        clicks = Clicks(self, place, rows, 0, len(rows), KAGGLE, counts)
        return np.concatenate([clicks.__getitems__(part)[2] for part in np.array_split(sample, 10)]).mean()

    # --- what `check` finds ---

    def lines(self, form, folder, note):
        place, counts = Place(folder, note is not None), None
        if form == "binary":
            try:
                counts = self.counts_file(folder)
            except DataError as error:
                yield failed("day_fea_count.npz, table sizes", 26, getattr(error, "reason", str(error)))
            else:
                yield compared("day_fea_count.npz, table sizes", 26, len(counts))
        for path, expected in self.expected(form, folder, note).items():
            try:
                rows = Binary(self, path) if form == "binary" else Text(self, [(path, 0, line_starts(self, path))])
                yield compared(f"{path.name}, rows", expected, len(rows))
                if form == "tsv":  # a cut in the last field leaves as many rows
                    yield compared(f"{path.name}, the last row ends", True, ends_its_last_line(path))
                clicked = self.look_at(place, rows, counts)
                yield compared(f"{path.name}, clicks in a sample", None, f"{clicked:.1%}")
            except DataError as error:
                yield failed(f"{path.name}, rows", expected, getattr(error, "reason", str(error)))

    def expected(self, form, folder, note):
        """Rows by file."""
        if form == "binary":
            paths = {split: self.binary_path(folder, split) for split in self.splits}
            if note is not None:
                return {path: note.get("counts", {}).get(split) for split, path in paths.items()}
            return {path: self.published[f"{split}_data.bin"] for split, path in paths.items()}
        if (folder / "train.txt").is_file():
            rows = KAGGLE_ROWS if note is None else sum(note.get("counts", {}).values()) or None
            return {folder / "train.txt": rows}
        return {folder / f"day_{day}": rows for day, rows in enumerate(DAY_ROWS)}

    # --- the stand-in ---

    def counts(self, scale):
        """Scale 1 is the Kaggle challenge, in either format."""
        rows = max(self.least_rows, round(self.checked(scale) * KAGGLE_ROWS))
        return {split: last - first for split, (first, last) in self.bounds(rows).items()}

    def bytes_per_item(self, form):
        return 4 * COLUMNS if form == "binary" else 280

    def fill(self, folder, note):
        bounds = self.bounds(sum(note["counts"].values()))
        if note["format"] == "tsv":
            with (folder / "train.txt").open("wb") as file:
                for _, labels, numbers, categories in drawn_rows(note["seed"], bounds["val"][1]):
                    file.writelines(map(as_line, labels.tolist(), numbers.tolist(), categories.tolist()))
            return
        files = {split: (folder / f"{split}_data.bin").open("wb") for split in bounds}
        for start, labels, numbers, categories in drawn_rows(note["seed"], bounds["val"][1]):
            rows = np.concatenate([labels[:, None], np.maximum(numbers, 0), np.maximum(categories, 0)], axis=1)
            for split, (first, last) in bounds.items():
                files[split].write(rows[max(first - start, 0) : max(last - start, 0)].astype("<i4").tobytes())
        for file in files.values():
            file.close()
        np.savez(folder / "day_fea_count.npz", counts=np.array(KAGGLE, np.int32))


def drawn_rows(seed, count):
    """(number of the first, labels, numbers, categories) of so many rows, part by part.

    Few categories are frequent and most are rare, as in the real logs. Numbers and categories decide what is clicked.
    """
    weights = np.random.default_rng(seed).normal(size=(13 + 26 * 64))
    of_numbers, of_categories = weights[:13], weights[13:].reshape(26, 64)
    for part, start in enumerate(range(0, count, DRAWN)):
        random = np.random.default_rng((seed, part))
        numbers = np.floor(np.exp(random.normal(1.0, 1.5, (DRAWN, 13)))).astype(np.int64) - 1
        categories = np.floor(np.array(KAGGLE) ** random.random((DRAWN, 26))).astype(np.int64) - 1
        numbers[random.random(numbers.shape) < 0.15] = MISSING
        categories[random.random(categories.shape) < 0.05] = MISSING
        known = np.maximum(categories, 0) % 64
        logit = (np.log1p(np.maximum(numbers, 0)) - 1) @ of_numbers * 0.4
        logit += 0.4 * of_categories[np.arange(26), known].sum(axis=1) - 1.5
        labels = (random.random(DRAWN) < 1 / (1 + np.exp(-logit))).astype(np.int64)
        rows = slice(0, min(DRAWN, count - start))
        yield start, labels[rows], numbers[rows], categories[rows]


def ends_its_last_line(path):
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def as_line(label, numbers, categories):
    numbers = ["" if number == MISSING else str(number) for number in numbers]
    categories = ["" if category == MISSING else f"{category:08x}" for category in categories]
    return ("\t".join([str(label), *numbers, *categories]) + "\n").encode()


CRITEO = Criteo()
