"""Answers requests that come at random times, instead of training. By hand: PYTHONPATH=.. python serve.py

An epoch is a span of serving. A request comes by a schedule, waits while others are answered, and is answered together
with those that wait with it, up to `batch_size`. Latency is from the schedule to the answer in host memory.
"""

import argparse
import os

import torch

import collo
import collo_torch
from collo_features import tell_features
from nets import served
from open_loop import Arrivals, OpenLoop, check, check_capacity, per_s

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=2, help="when run by hand")
parser.add_argument("--kind", default="vision", help="vision, decode")
parser.add_argument("--model", default="tiny", help="of vision any classifier of timm, of decode a GPT-2 by its name")
parser.add_argument("--image-size", type=int, default=224, help="of vision: pixels a side")
parser.add_argument("--prompt", type=int, default=32, help="of decode: tokens that a request brings")
parser.add_argument("--tokens", type=int, default=16, help="of decode: tokens that its answer has")
parser.add_argument("--rate", type=float, default=20.0, help="requests per second, on average")
parser.add_argument("--batch-size", type=int, default=4, help="requests that are answered together, at most")
parser.add_argument("--slo", default="50ms", help="the latency that a request must not exceed; empty for none")
parser.add_argument("--window", default="20s", help="an epoch: so long it serves")
parser.add_argument("--precision", default="fp32", help="of the weights: fp32, tf32 (GPU), torch, bf16, fp16")
parser.add_argument("--seed", type=int, default=1)
settings = parser.parse_args()

member = collo.connect()
slo_ns, window_ns = check(settings.rate, settings.batch_size, settings.slo, settings.window)
collo_torch.one_of("kind", settings.kind, ("vision", "decode"))
collo_torch.one_of("precision", settings.precision, collo_torch.PRECISIONS)
device = collo_torch.given_device()
if device.type == "cpu" and settings.precision == "tf32":
    raise collo.SettingError("`precision` cannot be `tf32` on a CPU: it is a property of NVIDIA GPUs")
torch.set_num_threads(collo.threads())
torch.set_num_interop_threads(1)
torch.manual_seed(settings.seed)
collo_torch.allow_tf32(settings.precision)
torch.backends.cudnn.benchmark = True  # tuned in the warm-up, for every number of requests that may come together
net = served(settings, device, collo_torch.PRECISIONS[settings.precision] or torch.float32, lambda: member.stopped)

member.hello(
    **collo_torch.as_seen(device),
    threads=torch.get_num_threads(),
    model=(settings.model, sum(parameter.numel() for parameter in net.model.parameters())),
    serving={
        "rate_per_s": settings.rate,
        "batch_size": settings.batch_size,
        "slo_s": None if slo_ns is None else slo_ns / 1e9,
    },
    kind=settings.kind,
    precision=settings.precision,
    allocator=collo_torch.allocator() if device.type == "cuda" else None,
    **net.says,
)
tell_features(member, net.model, net.example, settings)

member.wait_for_warm_up()
for count in range(settings.batch_size, 0, -1):  # the largest first: what it takes is kept for the others
    for _ in range(2):
        net.answer(count)
one_by_one_per_s = per_s(net.answer, 1)
capacity_per_s = per_s(net.answer, settings.batch_size) if settings.batch_size > 1 else one_by_one_per_s
member.capacity(capacity_per_s, one_by_one_per_s)
print(f"alone it answers {capacity_per_s:.1f} a second, one by one {one_by_one_per_s:.1f}", flush=True)
if told := check_capacity(settings.rate, capacity_per_s, settings.batch_size):
    print(f"warning: {told}", flush=True)
collo_torch.peaks.end_warm_up(device)
member.ready()

own = (os.environ.get(name, "") for name in ("COLLO_REPETITION", "COLLO_COPY"))
arrivals = Arrivals(settings.rate, settings.seed, *own)
most_ns = window_ns if settings.rate <= capacity_per_s else 0  # a server below its rate has a queue that only grows
loop = OpenLoop(arrivals, settings.batch_size, net.answer, member.requests, lambda: member.stopped)
loop.open()
try:
    for epoch in member.epochs(settings.epochs, before_done=lambda: loop.catch_up(most_ns)):
        latencies_ns = sorted(loop.serve_until(epoch.start_ns + window_ns))
        epoch.finish(items=len(latencies_ns) or None)  # no request may arrive in a short window
        collo_torch.tell_memory(member, device)
        if latencies_ns and not member.channel:
            middle, slow = (latencies_ns[int(share * (len(latencies_ns) - 1))] / 1e6 for share in (0.5, 0.99))
            print(f"{len(latencies_ns)} answered, half of them within {middle:.2f} ms, 99 % within {slow:.2f} ms")
finally:  # what came and was not answered belongs to the truth
    loop.close()
