"""What a check found: lines of what was looked at, expected and found. Reads no data."""

from typing import NamedTuple


class Line(NamedTuple):
    what: str
    expected: object  # None where nothing is published
    found: object
    ok: object  # True, False, or None where there was nothing to compare with


def compared(what, expected, found):
    return Line(what, expected, found, None if expected is None else expected == found)


def failed(what, expected, found):
    return Line(what, expected, found, False)


class Findings(NamedTuple):
    name: str
    title: str
    folder: object
    format: str
    note: object  # what the stand-in says of itself; None for real data
    lines: list

    @property
    def synthetic(self):
        return self.note is not None

    @property
    def ok(self):
        return all(line.ok is not False for line in self.lines)

    def as_dict(self):
        lines = [line._asdict() for line in self.lines]
        return {
            "schema": 1, "name": self.name, "title": self.title, "folder": str(self.folder), "format": self.format,
            "synthetic": self.synthetic, "note": self.note, "ok": self.ok, "lines": lines,
        }  # fmt: skip

    def __str__(self):
        kind = "a synthetic stand-in" if self.synthetic else "to be compared with what is published"
        rows = [("", "", "expected", "found")]
        for line in self.lines:
            mark = {True: "✓", False: "✗", None: " "}[line.ok]
            rows.append((mark, line.what, shown(line.expected), shown(line.found)))
        widths = [max(map(len, column)) for column in zip(*rows)]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([f"{self.title} in `{self.folder}`, {self.format} format, {kind}", *table, self.verdict()])

    def verdict(self):
        wrong = [line for line in self.lines if line.ok is False]
        if wrong:
            count = f"{len(wrong)} of {len(self.lines)} lines are not as expected"
            anew = f"remove the folder and run `{self.written_by()}`"
            return f"✗ {count}: " + (anew if self.synthetic else f"unpack the {self.title} archive again")
        if self.synthetic:
            return "✓ the stand-in is what its note says: train on it, and compare it with no real data"
        return f"✓ {self.title} is all there: train on it"

    def written_by(self):
        """The command that writes this stand-in again, at the same place."""
        note = self.note or {}
        words = [f"--scale {note.get('scale') or 0.01}"]
        words += [f"--{word} {note[word]}" for word in ("seed", "format") if note.get(word) is not None]
        return f"collo data synthesize {self.name} {' '.join(words)} --to {self.folder}"


def shown(value):
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)
