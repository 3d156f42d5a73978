"""Sleeps through its epochs. Speaks the protocol, needs nothing but Python."""

import argparse
import time

import collo

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--epochs", type=int, default=2, help="when run by hand")
settings.add_argument("--seconds", type=float, default=1.0, help="per epoch")
settings.add_argument("--items", type=int, default=100, help="per epoch; it can be stopped between two items")
settings.add_argument("--set-up-seconds", type=float, default=0.0)
settings.add_argument("--spin", choices=["true", "false"], default="false", help="burn CPU instead of sleeping")
settings = settings.parse_args()


def pass_time_until(deadline):
    while settings.spin == "true" and time.monotonic() < deadline:
        pass
    time.sleep(max(0.0, deadline - time.monotonic()))


member = collo.connect()
time.sleep(settings.set_up_seconds)
member.hello(device="cpu")
member.wait_for_warm_up()
member.ready()

for epoch in member.epochs(settings.epochs):
    start = time.monotonic()
    for item in epoch.batches(range(settings.items)):
        pass_time_until(start + settings.seconds * (item + 1) / settings.items)
    epoch.finish(items=settings.items)
