"""Four kinds of work, each of which presses on one part of the machine. Settings go in, a round of work comes out.

compute   multiplies two square matrices: arithmetic units
memory    a = b + 3 c over vectors that no cache holds: memory bandwidth
pcie      copies a page-locked buffer to the GPU and back: the link between host and GPU
launch    adds 1 to one number, again and again: what it costs to start a kernel
"""

import math
from typing import Callable, NamedTuple

import torch

from collo import SettingError
from collo_memory import check_fits
from collo_torch import at_least, one_of, shown

# Where the setting is 0: MB that the work touches; and operations per round, for rounds of some ten milliseconds.
SIZE_MB = {
    "cpu": {"compute": 4, "memory": 256},
    "cuda": {"compute": 800, "memory": 1024, "pcie": 256},
}
OPERATIONS = {
    "cpu": {"compute": 1, "memory": 1, "launch": 5_000},
    "cuda": {"compute": 1, "memory": 16, "pcie": 1, "launch": 2_000},
}
TYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
TILE = 64  # sides are multiples of it, or tensor cores would be used in part


class Work(NamedTuple):
    queue_a_round: Callable[[], None]  # does it, on a CPU
    amount: int  # per round
    unit: str  # "FLOP", "B" or "launches"
    size_mb: int | None  # None where size means nothing


def work_of(kind, size_mb, precision, device):
    check(kind, size_mb, precision, device)
    size_mb = size_mb or SIZE_MB[device.type].get(kind)
    operations = OPERATIONS[device.type][kind]
    if size_mb:
        check_fits(size_mb * 1e6, device, "the buffers take", "lower `size_mb`")
    operation, amount, unit = KINDS[kind](size_mb, precision, device)

    def queue_a_round():
        for _ in range(operations):
            operation()

    return Work(queue_a_round, amount * operations, unit, size_mb)


def check(kind, size_mb, precision, device):
    one_of("kind", kind, KINDS)
    one_of("precision", precision, TYPES)
    at_least("size_mb", size_mb, 0, "0 for a size that suits the device")
    if kind == "pcie" and device.type == "cpu":
        raise SettingError("`kind` cannot be `pcie` on a CPU: it presses on the link to a GPU, and needs one with CUDA")
    if kind == "launch" and size_mb:
        raise SettingError(f"`size_mb` is {size_mb}, and `launch` works on one number: set it to 0")
    if kind != "compute" and precision != "fp32":
        raise SettingError(f"`precision` is `{precision}`: only `compute` has one, leave it at fp32 for `{kind}`")
    if precision == "tf32" and device.type == "cpu":
        raise SettingError(f"`precision` cannot be {shown(precision)} on a CPU: it is a property of NVIDIA GPUs")


def compute(size_mb, precision, device):
    dtype = TYPES[precision]
    side = math.isqrt(int(size_mb * 1e6) // (3 * dtype.itemsize)) // TILE * TILE
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.manual_seed(1)  # what it multiplies shows in the power that it draws
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    product = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=product), 2 * side**3, "FLOP"


def memory(size_mb, precision, device):
    count = int(size_mb * 1e6) // (3 * 4)
    total, one, other = (torch.full((count,), value, device=device) for value in (0.0, 1.0, 2.0))
    return lambda: torch.add(one, other, alpha=3.0, out=total), 3 * 4 * count, "B"  # two reads, one write


def pcie(size_mb, precision, device):
    here = torch.zeros(int(size_mb * 1e6), dtype=torch.uint8).pin_memory()
    there = torch.zeros_like(here, device=device)

    def there_and_back():
        there.copy_(here, non_blocking=True)
        here.copy_(there, non_blocking=True)

    return there_and_back, 2 * here.numel(), "B"


def launch(size_mb, precision, device):
    number = torch.zeros(1, device=device)
    return lambda: number.add_(1.0), 1, "launches"


KINDS = {"compute": compute, "memory": memory, "pcie": pcie, "launch": launch}
