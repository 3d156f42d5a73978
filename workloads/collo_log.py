"""One log that several members of a process share: whole lines, each with its member's name before it.

Standard library only.
"""

import io
import os
import threading

LINE_BYTES = 1 << 20  # of output without an end: longer ones are cut


class Lines(io.RawIOBase):
    """Whole lines, each with the member's name before it, into the log that all share."""

    def __init__(self, output, number, prefix):
        self.output, self.number, self.prefix = output, number, prefix.encode()
        self.begun, self.lock = b"", threading.Lock()

    def writable(self):
        return True

    def fileno(self):
        return self.number

    def write(self, data):
        with self.lock:
            *whole, self.begun = (self.begun + bytes(data)).split(b"\n")
            if len(self.begun) > LINE_BYTES:
                whole, self.begun = [*whole, self.begun], b""
            if whole:
                self._put(b"".join(self.prefix + line + b"\n" for line in whole))
        return len(data)

    def end_line(self):
        with self.lock:
            if self.begun:
                line, self.begun = self.begun, b""
                try:
                    self._put(self.prefix + line + b"\n")
                except OSError:
                    pass

    def _put(self, data):
        while data:
            data = data[os.write(self.output, data) :]


def text(lines):
    return io.TextIOWrapper(lines, encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=True)
