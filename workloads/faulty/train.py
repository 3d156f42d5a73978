"""Sleeps like `sleep`, but does one wrong thing at one point. For the harness' tests: how a member can go wrong."""

import argparse
import errno
import os
import resource
import signal
import sys
import time

import collo

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--epochs", type=int, default=2, help="when run by hand")
settings.add_argument("--seconds", type=float, default=1.0, help="per epoch")
settings.add_argument("--items", type=int, default=100, help="per epoch")
settings.add_argument("--fail-at", default="", help="hello, warm_up, ready, epoch0, epoch1 …, tail; empty for never")
settings.add_argument("--how", default="exit")
settings.add_argument("--who", type=int, default=0, help="the member that fails, -1 for every one")
settings = settings.parse_args()


def exit_with_3():
    sys.exit(3)


def leave_early():
    os._exit(0)  # success, but never done


def die_by_signal():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def say_garbage():
    member.channel.sendall(b"epoch 1 loss 0.4\n")


def say_half_a_line():
    member.channel.sendall(b'{"event":"epo')
    os._exit(0)


def say_a_huge_line():
    for _ in range(100):
        member.channel.sendall(b"x" * 1_000_000)
    member.channel.sendall(b"\n")


def say_latencies():
    member.requests([time.monotonic_ns()], [None], [None])  # as if it served


def raise_an_error():
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (32x64 and 128x10)")


def run_out_of_memory():
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))  # told to the harness, then exit 1


def print_out_of_memory():
    print("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB", file=sys.stderr, flush=True)
    os._exit(1)  # the harness hears nothing


def lack_data():
    raise collo.DataError("`data/cifar-10/cifar-10-batches-py/data_batch_1` is truncated: unpack the archive again")


def hang():
    while True:  # no progress, though it still obeys stop
        time.sleep(600)


def freeze():
    os.kill(os.getpid(), signal.SIGSTOP)  # obeys nothing but SIGCONT and SIGKILL


def fork_and_exit():
    child = os.fork()
    if child == 0:
        time.sleep(600)  # with the channel and the log still open
        os._exit(0)
    print(f"left behind {child}", flush=True)
    os._exit(0)


def leave_a_daemon():
    """Works on, but leaves a process behind that got away from its parent, session and process group."""
    child = os.fork()
    if child == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            time.sleep(600)
        else:
            print(f"left behind {daemon}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)


HOW = {
    "exit": exit_with_3, "leave": leave_early, "signal": die_by_signal,
    "garbage": say_garbage, "half": say_half_a_line, "huge": say_a_huge_line, "latencies": say_latencies,
    "error": raise_an_error, "oom": run_out_of_memory, "oom_text": print_out_of_memory, "data": lack_data,
    "silent": hang, "hang": hang, "freeze": freeze, "fork_and_exit": fork_and_exit, "daemon": leave_a_daemon,
}  # fmt: skip
mine = settings.who in (-1, int(os.environ.get("COLLO_MEMBER", "0")))
if settings.how not in HOW:
    sys.exit(f"error: nothing goes wrong by `{settings.how}`: it is one of {', '.join(HOW)}")


def reach(point):
    if mine and point == settings.fail_at:
        HOW[settings.how]()


if mine and settings.how == "silent" and settings.fail_at:
    hang()  # never opens the channel at all
member = collo.connect()
reach("hello")
member.hello(device="cpu")
member.wait_for_warm_up()
reach("warm_up")
reach("ready")
member.ready()

measured = 0
for epoch in member.epochs(settings.epochs):
    measured += epoch.measured
    for item in epoch.batches(range(settings.items)):
        if item == settings.items // 2:  # in the middle
            reach(f"epoch{epoch.index}")
            if measured and not epoch.measured:
                reach("tail")
        time.sleep(settings.seconds / settings.items)
    epoch.finish(items=settings.items)
