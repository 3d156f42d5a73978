"""Fits a polynomial to a noisy sine by gradient descent, in plain Python. It has never heard of collo."""

import argparse
import math
import random
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--rows", type=int, default=100_000)
args = parser.parse_args()

random.seed(1)
xs = [random.uniform(-1, 1) for _ in range(args.rows)]
ys = [math.sin(3 * x) + random.gauss(0, 0.1) for x in xs]
weights = [0.0] * 8

for number in range(1, args.epochs + 1):
    start = time.perf_counter()
    loss = 0.0
    for x, y in zip(xs, ys):
        powers = [x**n for n in range(len(weights))]
        error = sum(w * p for w, p in zip(weights, powers)) - y
        weights = [w - 0.001 * error * p for w, p in zip(weights, powers)]
        loss += error * error
    seconds = time.perf_counter() - start
    print(f"epoch {number} done in {seconds:.4f} s, loss {loss / args.rows:.4f}")
