"""Members that are forks of the testing process: a library that takes seconds to import is imported once for all."""

import io
import os
import signal
import socket
import sys
import tempfile

import torch
from harness import Started

STUCK_S = 120  # then the kernel ends it, and the test fails


class Forked(Started):
    """A program's text, run under a harness or, without a `channel`, by hand. `output` takes both its streams."""

    def __init__(self, program, channel=True, output=None):
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(STUCK_S)
        self.stdout, self.stderr = (output or tempfile.TemporaryFile("w+") for _ in range(2))
        self.folder = tempfile.TemporaryDirectory()
        self.pid = os.fork()
        if self.pid == 0:
            self.channel.close()
            self._run(program, {"COLLO_FD": str(theirs.fileno()), "COLLO_THREADS": "1"} if channel else {})
        theirs.close()

    def __exit__(self, *_):
        self.channel.close()
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.folder.cleanup()

    def hear_epochs(self, count):
        epochs = [self.hear() for _ in range(count)]
        assert [(epoch["event"], epoch["index"]) for epoch in epochs] == [("epoch", index) for index in range(count)]
        return epochs

    def ended(self):
        """Its exit status, once it has ended by itself."""
        pid, self.pid = self.pid, None
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def end(self):
        """(exit status, stdout, stderr), once it has ended by itself."""
        status = self.ended()
        return status, *(self._printed(file) for file in (self.stdout, self.stderr))

    def _printed(self, file):
        file.seek(0)
        return file.read()

    def _run(self, program, variables):
        """In the fork, which never returns: what the interpreter does with a script."""
        status = 1
        try:
            signal.alarm(STUCK_S)
            for number, file in ((1, self.stdout), (2, self.stderr)):
                os.dup2(file.fileno(), number)
            raw = (os.fdopen(number, "wb", 0, closefd=False) for number in (1, 2))  # as PYTHONUNBUFFERED makes them
            sys.stdout, sys.stderr = (io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in raw)
            os.environ.update(variables)
            os.chdir(self.folder.name)
            torch.set_num_threads(1)  # the threads of OpenMP do not survive a fork
            exec(compile(program, "train.py", "exec"), {"__name__": "__main__"})
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)


def by_hand(program):
    """Run to the end without collo: (exit status, stdout, stderr)."""
    with Forked(program, channel=False) as member:
        return member.end()


def times(stdout, word):
    """The nanoseconds in the lines `WORD at NANOSECONDS`."""
    return [int(line.split(" at ")[1]) for line in stdout.splitlines() if line.startswith(f"{word} at ")]
