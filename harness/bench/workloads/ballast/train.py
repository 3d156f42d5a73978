"""Holds memory and sleeps: something for the sampler to look at."""

import argparse
import time

import collo

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--megabytes", type=int, default=64)
settings.add_argument("--seconds", type=float, default=10.0, help="per epoch")
settings = settings.parse_args()

member = collo.connect()
ballast = bytearray(settings.megabytes * 1_000_000)
ballast[::4096] = b"\1" * len(ballast[::4096])  # a page that was never written does not exist
member.hello(device="cpu")
member.wait_for_warm_up()
member.ready()

for epoch in member.epochs():
    for _ in epoch.batches(range(round(settings.seconds * 10))):
        time.sleep(0.1)
    epoch.finish(items=1)
