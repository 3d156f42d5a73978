"""A foreign script that prints epochs, wrongly: `print.py NAME`."""

import os
import sys
import time


def say(number, seconds, passes=0.1):
    time.sleep(passes)
    print(f"epoch {number} took {seconds} s", flush=True)


def calm():
    for number in (1, 2, 3):
        say(number, 0.1)


def seconds_huge():
    say(1, 0.1)
    say(2, 99999)


def seconds_in_milliseconds():
    say(1, 100)
    say(2, 100)


def all_at_once():
    time.sleep(0.3)
    for number in (1, 2, 3):
        say(number, "5.0", passes=0)


def counts_backwards():
    for number in (3, 2, 1):
        say(number, 0.1)


def seconds_not_a_number():
    for number in (1, 2):
        say(number, "nan")


def seconds_below_zero():
    for number in (1, 2):
        say(number, "-1")


def seconds_without_end():
    for number in (1, 2):
        say(number, "1e400")


def without_a_line():
    for _ in range(30):
        os.write(1, b"x" * 1_000_000)
    time.sleep(600)


def anything():
    os.write(1, os.urandom(300_000))
    say(1, 0.1)
    say(2, 0.1)


def two_streams():
    """Half a line on one, half on the other: no line of either."""
    for number in (1, 2):
        time.sleep(0.1)
        os.write(1, f"epoch {number} to".encode())
        os.write(2, b"ok 0.1 s\n")
    sys.exit(0)


def ends_at_once():
    pass


def fails_after_all():
    calm()
    sys.exit(9)


def closes_its_output():
    say(1, 0.1)
    os.close(1)
    os.close(2)
    time.sleep(600)


def reads_what_nobody_writes():
    sys.exit(len(sys.stdin.read()))


globals()["calm" if os.environ.get("HOSTILE_CALM") else sys.argv[1]]()
