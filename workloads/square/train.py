"""Squares numbers, blocks × threads at a time: what do GPU utilisation, GRACT, SMACT and SMOCC each see of it?

The microbenchmark of the profiling study; it trains nothing. An epoch is some launches, an item is a number squared.
By hand: PYTHONPATH=.. python train.py
"""

import argparse

import torch

import collo
import collo_memory
import collo_torch
import kernel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=2, help="when run by hand")
parser.add_argument("--blocks", type=int, default=1024, help="thread blocks of a launch")
parser.add_argument("--threads", type=int, default=256, help="threads of a block")
parser.add_argument("--launches", type=int, default=20000, help="per epoch")
parser.add_argument("--kernel", default="auto", help="cuda: exactly blocks × threads; torch: torch.square; or auto")
parser.add_argument("--shared-items", type=collo_torch.flag, default=True, help="cuda: all blocks square the same")
settings = parser.parse_args()
warm_up_launches = 100
bundle = 256  # launches
item_bytes = 4 + 4  # read, written

member = collo.connect()
torch.set_num_threads(collo.threads())
device = collo_torch.given_device()
gpu = collo_torch.gpu(device)

for name, value, most in (
    ("blocks", settings.blocks, 2**31 - 1),
    ("threads", settings.threads, 1024),
    ("launches", settings.launches, 10**12),
):
    if not 1 <= value <= most:
        raise collo.SettingError(f"`{name}` is {value}: it is 1 to {most}")
collo_torch.one_of("kernel", settings.kernel, ("auto", "cuda", "torch"))
if settings.kernel == "cuda" and not gpu:
    raise collo.SettingError("`kernel` cannot be `cuda` on a CPU: leave it at auto")

code, reason = None, None
if settings.kernel != "torch" and gpu:
    try:
        code = kernel.compiled(gpu.major, gpu.minor, torch.version.cuda, settings.shared_items)
    except (OSError, RuntimeError) as error:
        reason = str(error)
        if settings.kernel == "cuda":
            raise collo.SettingError(f"`kernel` cannot be `cuda` ({reason}): leave it at auto to use torch's") from None

used = "cuda" if code else "torch"
items_per_launch = settings.blocks * settings.threads
there = settings.threads if code and settings.shared_items else items_per_launch
collo_memory.check_fits(there * item_bytes, device, "the items and their squares take", "lower `blocks` or `threads`")
items = torch.arange(there, dtype=torch.float32, device=device)
squares = torch.empty_like(items)

if code:
    stream = torch.cuda.current_stream().cuda_stream
    square = kernel.loaded(code, settings.blocks, settings.threads, items.data_ptr(), squares.data_ptr(), stream)
else:

    def square():
        torch.square(items, out=squares)


ends = [torch.cuda.Event(), torch.cuda.Event()] if gpu else []


def stay_near():
    """Let the launching be at most two bundles ahead of the GPU, so that the end of an epoch and a stop are near."""
    if gpu:
        ends.reverse()
        ends[0].synchronize()  # of the bundle before the last; at first there is none to wait for
        ends[0].record()


member.hello(
    **collo_torch.as_seen(device),
    threads=torch.get_num_threads(),
    kernel=used,
    allocator=collo_torch.allocator() if gpu else None,
)
if not member.channel:
    print(f"kernel {used}" + (f": {reason}" if reason else ""), flush=True)
member.wait_for_warm_up()
for _ in range(warm_up_launches):
    square()
some = items[-1024:]
if not torch.equal(squares[-1024:], some * some):  # also waits for the GPU
    raise RuntimeError(f"the kernel {used} does not square")
collo_torch.peaks.end_warm_up(device)
member.ready()

for epoch in member.epochs(settings.epochs):
    for launch in epoch.batches(range(settings.launches)):
        square()
        if launch % bundle == 0:
            stay_near()
    collo.synchronise()
    epoch.finish(items=settings.launches * items_per_launch)
    collo_torch.tell_memory(member, device)
    if not member.channel:
        print(f"{(epoch.end_ns - epoch.start_ns) / 1e3 / settings.launches:.3f} µs per launch", flush=True)
