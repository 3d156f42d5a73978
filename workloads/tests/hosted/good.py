"""The shortest member that does nothing wrong. Beside `hostile.py` it shows what becomes of the others."""

import argparse
import time

import collo

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--seconds", type=float, default=0.05, help="per epoch")
settings.add_argument("--items", type=int, default=5, help="per epoch; it can be stopped between two items")
settings = settings.parse_args()

member = collo.connect()
member.hello(device="cpu")
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    for _ in epoch.batches(range(settings.items)):
        time.sleep(settings.seconds / settings.items)
    epoch.finish(items=settings.items)
