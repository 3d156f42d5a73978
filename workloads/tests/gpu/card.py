"""Members on a device, the card or the CPU: the same words for both, so that the tests themselves are tried without a card.

A member is a process of its own: what has used CUDA must not be forked.
"""

import functools
import os
import select
import subprocess
import sys

from harness import WORKLOADS, Started, written

LONGEST_S = 110  # a test is under two minutes
DEVICES = {"cuda": os.environ.get("CUDA_VISIBLE_DEVICES") or "0", "cpu": ""}

# Forms that train in a moment; of a workload that is not named here, its own settings.
SMALL = {
    "vision": {"model": "resnet18", "dataset": "cifar-10", "batch_size": 16},
    "gpt": {"layers": 2, "width": 64, "items": 64, "batch_size": 16},
    "dlrm": {"block_rows": 512, "validation_rows": 128, "batch_size": 128, "table_bytes": "1MB"},
    "language": {
        "model": "bert-base", "layers": 2, "width": 64, "heads": 4, "vocabulary": 500, "length": 32,
        "dataset": "tokens", "items": 64, "batch_size": 16,
    },
    "text": {"vocabulary": 500, "length": 32, "items": 64},
    "generated": {"kind": "mlp", "depth": 3, "width": 64, "inputs": 64, "outputs": 10, "items": 128},
    "mnist": {"workers": 0},
    "tiny": {"images": 64, "batch_size": 16},
    "square": {"launches": 500},
    "stress": {"rounds": 3},
    "serve": {"image_size": 32, "rate": 5.0, "window": "1s"},
}  # fmt: skip
TRAINING = sorted(
    path.parent.name
    for path in WORKLOADS.glob("*/train.py")
    if "collo_torch.training_step(" in path.read_text() and (path.parent / "workload.toml").exists()
)


def environment(device, **more):
    """Its place on this device, and the packages that the tests themselves run with."""
    path = [str(WORKLOADS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"CUDA_VISIBLE_DEVICES": DEVICES[device], "PYTHONPATH": os.pathsep.join(path), "COLLO_MEMBERS": 1, **more}


def command(workload, **settings):
    """(words of its command line, its variables) for its small form with these settings."""
    its = written(workload)
    limit = {"limit_batches": 4} if "limit_batches" in its["settings"] else {}
    values = {**its["settings"], **limit, **SMALL.get(workload, {}), **settings}
    assert values.keys() <= its["settings"].keys(), f"`{workload}` has no such setting"
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    words = [word.format(settings="{settings}", **texts) for word in its["command"][2:]]
    if "{settings}" in words:
        words = [word for name, text in texts.items() for word in (f"--{name.replace('_', '-')}", text)]
    return words, {name: text.format(**texts) for name, text in its.get("variables", {}).items()}


class OnDevice(Started):
    """A member on a device: a workload's script, or a program."""

    def __init__(self, device, workload="sleep", arguments=(), program=None, **more):
        super().__init__(workload, *arguments, program=program, **environment(device, **more))
        self.channel.settimeout(LONGEST_S)

    def train(self, epochs):
        """All that it says, by event."""
        self.tell("warm_up")
        self.tell("go", epochs=epochs, after_measured="exit")
        said = {}
        for message in self.hear_all():
            said.setdefault(message["event"], []).append(message)
        return said


def trained(device, workload, epochs=2, before="", data="", **settings):
    """What the small form of a workload says in its training. `before` is Python that runs ahead of its script."""
    words, variables = command(workload, **settings)
    script = written(workload)["command"][1]
    program = f"""
import sys
sys.argv, sys.path[0] = {[script, *words]!r}, {str(WORKLOADS / workload)!r}
{before}
exec(compile(open({script!r}).read(), {script!r}, "exec"), {{"__name__": "__main__"}})
"""
    with OnDevice(device, workload, program=program, **variables, COLLO_DATA=data) as member:
        said = member.train(epochs)
        status, stdout, stderr = member.end(timeout=30)
    assert status == (1 if "error" in said else 0), (status, said, stdout, stderr)
    return said


def losses(said):
    assert "error" not in said, said["error"]
    return [epoch["loss"] for epoch in said["epoch"]]


def error(said):
    [told] = said["error"]
    return told


class Neighbour:
    """A process that holds all of the card but so many bytes, once it is told to."""

    PROGRAM = """
import sys, torch
torch.zeros(1, device="cuda")
print("there", flush=True)
leave, held = int(sys.stdin.readline()), []
for size in (1 << 30, 1 << 26, 1 << 22, 1 << 21):
    while torch.cuda.mem_get_info()[0] - size >= leave:
        try:
            held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            break
print("full", flush=True)
sys.stdin.readline()
"""

    def __enter__(self):
        words = [sys.executable, "-c", self.PROGRAM]
        env = {**os.environ, **environment("cuda"), "COLLO_MEMBERS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(words, env=env, **pipes)
        self.hear("there")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def fill(self, leave_bytes):
        print(leave_bytes, file=self.process.stdin, flush=True)
        self.hear("full")

    def hear(self, word):
        assert select.select([self.process.stdout], [], [], LONGEST_S)[0], f"it never said `{word}`"
        assert self.process.stdout.readline() == word + "\n"


@functools.cache
def capability():
    """Of the card, asked in a process of its own."""
    program = "import torch; print(*torch.cuda.get_device_capability())"
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": DEVICES["cuda"]}
    said = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    return tuple(map(int, said.stdout.split()))
