"""Presses on one part of the machine, for a share of the time; for mixes. By hand: PYTHONPATH=.. python train.py

It trains nothing. An epoch is a number of rounds, each the same amount of work and then the same time of idling. How
long to idle, in order to work `dial` percent of the time when alone, is found in the warm-up, in which members take
turns, and kept: beside others the work takes longer, the idling does not. An item is a round.
"""

import argparse
import time

import torch

import collo
import collo_torch
import duty
from kinds import KINDS, work_of

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=2, help="when run by hand")
parser.add_argument("--kind", default="compute", help=", ".join(KINDS))
parser.add_argument("--dial", type=int, default=100, help="percent of the time that it works when it is alone, 1 to 100")
parser.add_argument("--rounds", type=int, default=200, help="per epoch; each works some ten milliseconds")
parser.add_argument("--size-mb", type=int, default=0, help="memory it touches; 0 for what suits a device")
parser.add_argument("--precision", default="fp32", help="of compute: fp32, tf32, bf16, fp16")
settings = parser.parse_args()

member = collo.connect()
torch.set_num_threads(collo.threads())
device = collo_torch.given_device()
gpu = collo_torch.gpu(device)

if not 1 <= settings.dial <= 100:
    raise collo.SettingError(f"`dial` is {settings.dial}: it is 1 to 100, percent of the time")
collo_torch.at_least("rounds", settings.rounds, 1)
work = work_of(settings.kind, settings.size_mb, settings.precision, device)


def work_a_round():
    work.queue_a_round()
    collo.synchronise()


member.hello(
    **collo_torch.as_seen(device),
    threads=torch.get_num_threads(),
    kind=settings.kind,
    dial=settings.dial,
    size_mb=work.size_mb,
    precision=settings.precision if settings.kind == "compute" else None,
    per_round={"amount": work.amount, "unit": work.unit},
    allocator=collo_torch.allocator() if gpu else None,
)
member.wait_for_warm_up()
alone_s = duty.alone_s(work_a_round, settings.dial)
idle = duty.Idle(duty.idle_s(alone_s, settings.dial))
collo_torch.peaks.end_warm_up(device)
print(f"a round works {alone_s * 1e3:.3f} ms alone and idles {idle.each_s * 1e3:.3f} ms", flush=True)
member.ready()

for epoch in member.epochs(settings.epochs):
    worked_s = 0.0
    for _ in epoch.batches(range(settings.rounds)):
        start = time.perf_counter()
        work_a_round()
        worked_s += time.perf_counter() - start
        idle.rest()
    epoch.finish(items=settings.rounds)
    collo_torch.tell_memory(member, device)
    if not member.channel:
        rate, share = settings.rounds * work.amount / worked_s, worked_s * 1e9 / (epoch.end_ns - epoch.start_ns)
        print(f"{rate:.3e} {work.unit}/s while it worked, {share:.1%} of the time", flush=True)
