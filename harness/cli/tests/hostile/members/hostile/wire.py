"""The protocol by hand, without collo.py: what a member may say, and what it may not."""

import json
import os
import socket
import time

EPOCH_S = 0.1
SPUN_S = 0.03  # who takes no time of the CPU did not train


class Wire:
    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["COLLO_FD"]))
        self.pending = b""
        self.index = 0

    def raw(self, data):
        self.socket.sendall(data)

    def say(self, event, **more):
        self.raw(json.dumps({"event": event, **more}).encode() + b"\n")

    def hear(self):
        """The next command; ends this process where collo is gone."""
        while b"\n" not in self.pending:
            more = self.socket.recv(65536)
            if not more:
                os._exit(0)
            self.pending += more
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)["command"]

    def until(self, command):
        while self.hear() != command:
            pass

    def hello(self, **more):
        self.say("hello", **{"protocol": 1, "pid": os.getpid(), "device": "cpu", "sm_count": None, "threads": 1, "versions": {"python": "3"}, **more})

    def start(self, **hello):
        """Everything until *go*."""
        self.hello(**hello)
        self.until("warm_up")
        self.say("ready")
        self.until("go")

    def epoch(self, index=None, measured=None, start_ns=None, end_ns=None, items=10, loss=None, seconds=EPOCH_S):
        """Train one epoch, and tell of it what is given."""
        index = self.index if index is None else index
        began = time.monotonic_ns()
        while time.monotonic_ns() - began < min(seconds, SPUN_S) * 1e9:
            pass
        time.sleep(max(0, seconds - SPUN_S))
        ended = time.monotonic_ns()
        self.say(
            "epoch", index=index, measured=index > 0 if measured is None else measured, items=items, loss=loss,
            start_ns=began if start_ns is None else start_ns, end_ns=ended if end_ns is None else end_ns,
        )  # fmt: skip
        self.index = index + 1

    def done(self):
        """All that is wanted; then more epochs until collo says stop, so that nobody loses company."""
        self.say("done")
        self.socket.settimeout(0.01)
        while True:
            try:
                if self.hear() == "stop":
                    os._exit(0)
            except TimeoutError:
                self.socket.settimeout(None)
                self.epoch(measured=False)
                self.socket.settimeout(0.01)

    def behave(self):
        self.start()
        self.epoch()
        self.epoch()
        self.done()
