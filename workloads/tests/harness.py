"""The other end of the channel: starts a workload as collo does and talks with it."""

import json
import os
import pathlib
import socket
import subprocess
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

WORKLOADS = pathlib.Path(__file__).parents[1]


def environment(**more):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COLLO_")}
    members = {"PYTHONPATH": str(WORKLOADS), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return {**inherited, **members, **{name: str(value) for name, value in more.items()}}


def written(workload):
    """What is in its workload.toml."""
    return tomllib.loads((WORKLOADS / workload / "workload.toml").read_text())


def arguments(workload, **settings):
    """Its command without interpreter and script, with the default settings but for these."""
    settings = {**written(workload)["settings"], **settings}
    texts = {name: str(value).lower() for name, value in settings.items()}
    return [word.format(**texts) for word in written(workload)["command"][2:]]


def by_hand(workload, *arguments, script="train.py", **more):
    """Run to the end without collo: (exit status, stdout, stderr)."""
    command = [sys.executable, script, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=WORKLOADS / workload, env=environment(**more), capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


class Started:
    """A member under a harness. Packets, not a stream: so that each message is seen to be one write."""

    def __init__(self, workload, *arguments, program=None, kind=socket.SOCK_SEQPACKET, **more):
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, kind)
        self.channel.settimeout(30)
        command = [sys.executable, *(["-c", program] if program else ["train.py", *map(str, arguments)])]
        env = environment(COLLO_FD=theirs.fileno(), COLLO_MEMBER=0, COLLO_THREADS=1, **more)
        self.process = subprocess.Popen(
            command, cwd=WORKLOADS / workload, env=env, pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        theirs.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        self.process.kill()
        self.process.communicate()

    def tell(self, command, **fields):
        self.channel.send(json.dumps({"command": command, **fields}).encode() + b"\n")

    def hear(self):
        """The next message, or None at the end of the channel."""
        try:
            packet = self.channel.recv(1 << 20).decode()
        except ConnectionResetError:  # it left without reading all it was told: said once, before what it said last
            packet = self.channel.recv(1 << 20).decode()
        if not packet:
            return None
        assert packet.count("\n") == 1 and packet.endswith("\n"), f"not one line in one write: {packet!r}"
        return json.loads(packet)

    def hear_all(self):
        messages = []
        while (message := self.hear()) is not None:
            messages.append(message)
        return messages

    def start(self, epochs, after_measured, **more):
        """Through the barrier: returns the hello."""
        hello = self.hear()
        assert hello["event"] == "hello", hello
        self.tell("warm_up")
        self.features = self.capacity = None
        message = self.hear()
        if message["event"] == "features":
            self.features, message = message, self.hear()
        if message["event"] == "capacity":
            self.capacity, message = message, self.hear()
        assert message == {"event": "ready"}, message
        self.tell("go", epochs=epochs, after_measured=after_measured, **more)
        return hello

    def end(self, timeout=10):
        """(exit status, stdout, stderr), once it has ended by itself."""
        stdout, stderr = self.process.communicate(timeout=timeout)
        return self.process.returncode, stdout, stderr
