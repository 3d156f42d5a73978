"""The other end of a process of several members: starts `collo_host.py` as collo does and talks with each member."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid

from harness import WORKLOADS, environment

HOSTED = WORKLOADS / "tests" / "hosted"
STUCK_S = 20


class Hosted:
    """One member's end of its channel."""

    def __init__(self, channel):
        self.channel = channel
        self.lines = channel.makefile("rb")
        self.messages = []  # all that it has said so far; what is no JSON as it came

    def tell(self, command, **fields):
        try:
            self.channel.sendall(json.dumps({"command": command, **fields}).encode() + b"\n")
        except OSError:
            pass  # it has left

    def hear(self):
        """The next message, or None at the end of the channel, or where nothing comes in time."""
        try:
            line = self.lines.readline()
        except ConnectionResetError:  # it left without reading all it was told: said once
            line = self.lines.readline()
        except OSError:
            return None
        if not line:
            return None
        try:
            message = json.loads(line)
        except ValueError:
            message = line
        self.messages.append(message)
        return message

    def hear_until(self, event):
        """The message of this event, or None where the channel ends before."""
        while (message := self.hear()) is not None:
            if isinstance(message, dict) and message["event"] == event:
                return message
        return None

    def hear_all(self):
        while self.hear() is not None:
            pass
        return self.messages

    def said(self, event):
        return [message for message in self.messages if isinstance(message, dict) and message["event"] == event]

    def code(self):
        """What its `left` says, if that is the last that was said and is said once."""
        lefts = self.said("left")
        return lefts[0]["code"] if len(lefts) == 1 and self.messages[-1] == lefts[0] else None


class Host:
    """A process of several members, each (script, *arguments); `envs` has variables of each one's own."""

    def __init__(self, *members, envs=(), lock=True, python=sys.executable, hear_s=STUCK_S, **more):
        pairs = [socket.socketpair() for _ in members]
        orders = []
        for index, ((script, *arguments), (_, theirs)) in enumerate(zip(members, pairs)):
            own = {"COLLO_MEMBER": str(index), "COLLO_MEMBERS": str(len(members)), "COLLO_COPY": "0", "COLLO_THREADS": "1"}
            own.update({name: str(value) for name, value in (envs[index] if envs else {}).items()})
            order = {"index": index, "script": str(script), "arguments": [str(word) for word in arguments]}
            orders.append({**order, "folder": os.path.dirname(script), "fd": theirs.fileno(), "env": own})
        self.stdout, self.stderr = (tempfile.TemporaryFile() for _ in range(2))  # no pipes: who is left behind has them, too
        self.mark = f"HOSTS_TEST={uuid.uuid4()}"
        more["HOSTS_TEST"] = self.mark.partition("=")[2]
        env = environment(COLLO_HOST=json.dumps({"lock": lock, "members": orders}), **more)
        self.process = subprocess.Popen(
            [python, str(WORKLOADS / "collo_host.py")], cwd=orders[0]["folder"], env=env, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=self.stdout, stderr=self.stderr,
            pass_fds=[theirs.fileno() for _, theirs in pairs],
        )  # fmt: skip
        for ours, theirs in pairs:
            theirs.close()
            ours.settimeout(hear_s)
        self.members = [Hosted(ours) for ours, _ in pairs]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.lines.close()
            member.channel.close()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        self.process.wait(STUCK_S)
        self.stdout.close(), self.stderr.close()

    def processes(self):
        """Its process and all that was ever started below it and is still there, wherever it got away to."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as variables:
                    if self.mark.encode() in variables.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass  # it is gone, or another user's
        return found

    def start(self, epochs=2, after_measured="exit"):
        """Through the barrier, as far as members take part: returns their hellos."""
        hellos = [member.hear_until("hello") for member in self.members]
        for member in self.members:
            member.tell("warm_up")
            member.hear_until("ready")
        for member in self.members:
            member.tell("go", epochs=epochs, after_measured=after_measured)
        return hellos

    def hear_all(self):
        """Everything until each channel ends."""
        return [member.hear_all() for member in self.members]

    def end(self):
        """(exit status, stdout, stderr), once it has ended by itself."""
        status = self.process.wait(STUCK_S)
        return status, *self.printed()

    def printed(self):
        """(stdout, stderr) so far."""
        return tuple(os.pread(stream.fileno(), 1 << 24, 0).decode(errors="replace") for stream in (self.stdout, self.stderr))
