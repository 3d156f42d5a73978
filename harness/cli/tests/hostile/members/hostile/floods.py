"""More than anybody can take in."""

import json
import time


def _forever(wire, line):
    many = line * 2000
    while True:
        wire.raw(many)


def flood_of_unknown_events(wire):
    wire.start()
    _forever(wire, b'{"event":"x"}\n')


def flood_before_hello(wire):
    _forever(wire, b'{"event":"x"}\n')


def flood_of_memory(wire):
    wire.start()
    _forever(wire, b'{"event":"memory","allocated_bytes":1,"reserved_bytes":2}\n')


def flood_of_blank_lines(wire):
    wire.start()
    _forever(wire, b"\n")


def flood_of_errors(wire):
    wire.start()
    _forever(wire, json.dumps({"event": "error", "kind": "other", "message": "x" * 10_000}).encode() + b"\n")


def flood_of_epochs(wire):
    wire.start()
    for index in range(200_000):
        now = time.monotonic_ns()
        wire.say("epoch", index=index, measured=index > 0, items=1, start_ns=now, end_ns=now + 1, loss=None)


def line_without_end(wire):
    wire.start()
    for _ in range(200):
        wire.raw(b"x" * 1_000_000)


def drop_by_drop(wire):
    wire.start()
    while True:
        wire.raw(b" ")
        time.sleep(0.02)


def log_of_200_mb(wire):
    wire.start()
    wire.epoch()
    line = "x" * 999 + "\n"
    for _ in range(200):
        print(line * 1000, end="", flush=True)
    wire.epoch()
    wire.done()


def log_without_a_line(wire):
    wire.start()
    wire.epoch()
    for _ in range(50):
        print("x" * 1_000_000, end="", flush=True)
    raise SystemExit(5)


def log_of_anything(wire):
    wire.start()
    wire.epoch()
    with open("/dev/urandom", "rb") as noise, open(1, "wb", closefd=False) as log:
        log.write(noise.read(1_000_000))
    raise SystemExit(5)


def name_of_900_kb(wire):
    wire.start(model={"name": "x" * 900_000, "parameters": 1})
    wire.epoch()
    wire.epoch()
    wire.done()
