"""A trivial script that knows of no harness: two epochs of sleep, one line each."""

import time

for epoch in range(2):
    start = time.monotonic()
    time.sleep(0.5)
    print(f"epoch {epoch} took {time.monotonic() - start:.4f} s", flush=True)
