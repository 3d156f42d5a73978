"""Criteo's rows on disk, binary or text: indices go in, integers [B, 40] come out: label, 13 numbers, 26 categories.

Nothing is read when a file is opened, but for the line ends of a text: gigabytes cost nothing until they are used.
"""

import mmap

import numpy as np

COLUMNS = 1 + 13 + 26
CHUNK_BYTES = 64 << 20


class Binary:
    """Rows of 40 little-endian int32."""

    def __init__(self, known, path):
        self.path = path
        with known.opened(path) as file:
            size_bytes, row_bytes = file.seek(0, 2), 4 * COLUMNS
        if size_bytes % row_bytes:
            what = "is truncated or of another format"
            raise known.broken(path, f"{what} ({size_bytes} bytes, no multiple of {row_bytes})")
        if size_bytes == 0:
            raise known.broken(path, "holds no rows")
        self.rows = np.memmap(path, "<i4", "r", shape=(size_bytes // row_bytes, COLUMNS))

    def __len__(self):
        return len(self.rows)

    def read(self, indices):
        return np.asarray(self.rows[indices], np.int64)

    def place(self, index):
        return self.path, f"row {index + 1}"


class Text:
    """Lines of 40 columns between tabs, the categories hexadecimal; an empty one is a missing value and reads as 0."""

    def __init__(self, known, parts):
        """`parts` are (path, number of the first line from 0, where the lines start and the last one ends)."""
        self.known, self.parts = known, [part for part in parts if len(part[2]) > 1]
        self.ends = np.cumsum([len(starts) - 1 for _, _, starts in self.parts])
        self.bytes = []
        for path, _, _ in self.parts:
            with known.opened(path) as file:
                self.bytes.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def __len__(self):
        return int(self.ends[-1]) if len(self.ends) else 0

    def read(self, indices):
        indices = np.asarray(indices)
        parts = np.searchsorted(self.ends, indices, "right")
        rows = np.empty((len(indices), COLUMNS), np.int64)
        for part in np.unique(parts):
            of_part = np.flatnonzero(parts == part)
            lines = indices[of_part] - (self.ends[part - 1] if part else 0)
            starts, data = self.parts[part][2], self.bytes[part]
            for slot, start, end in zip(of_part.tolist(), starts[lines].tolist(), starts[lines + 1].tolist()):
                fields = data[start:end].rstrip(b"\r\n").split(b"\t")
                if len(fields) != COLUMNS:  # one alone would be copied into all
                    raise self.unreadable(int(indices[slot]), fields)
                try:
                    row = [int(field or 0) for field in fields[:14]]
                    rows[slot] = row + [int(field or b"0", 16) for field in fields[14:]]
                except (ValueError, OverflowError) as error:
                    raise self.unreadable(int(indices[slot]), fields) from error
        return rows

    def place(self, index):
        part = int(np.searchsorted(self.ends, index, "right"))
        path, first, _ = self.parts[part]
        return path, f"line {first + index - (int(self.ends[part - 1]) if part else 0) + 1}"

    def unreadable(self, index, fields):
        path, line = self.place(index)
        if len(fields) != COLUMNS:
            return self.known.broken(path, f"has {len(fields)} columns in {line}, not {COLUMNS}")
        for column, field in enumerate(fields, 1):
            kind, base = ("integer", 10) if column <= 14 else ("hexadecimal category", 16)
            try:
                np.int64(int(field or b"0", base))
            except (ValueError, OverflowError):
                shown = field[:40].decode("utf-8", "replace")
                return self.known.broken(path, f"has `{shown}` in column {column} of {line}, which is no {kind}")


def line_starts(known, path, most=None):
    """Where each line of a file starts, and where the last one ends; with `most` of no more lines than that."""
    found, read_bytes, count = [np.zeros(1, np.int64)], 0, 0
    with known.opened(path) as file:
        chunk = bytearray(min(CHUNK_BYTES, file.seek(0, 2)))
        file.seek(0)
        while most is None or count < most:
            size = file.readinto(chunk)
            if not size:
                break
            found.append(np.flatnonzero(np.frombuffer(chunk, np.uint8, size) == ord("\n")) + (read_bytes + 1))
            read_bytes += size
            count += len(found[-1])
        else:
            return np.concatenate(found)[: most + 1]
    starts = np.concatenate(found)
    if starts[-1] != read_bytes:  # the last line has no end
        starts = np.append(starts, read_bytes)
    if len(starts) == 1:
        raise known.broken(path, "holds no rows")
    return starts
