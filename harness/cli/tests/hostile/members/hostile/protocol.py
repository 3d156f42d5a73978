"""Messages that are not the protocol, and numbers that cannot be."""

import os
import sys
import time

HOUR_NS = 3_600_000_000_000


def _measured(wire, **epoch):
    """A run that is right but for its measured epoch."""
    wire.start()
    wire.epoch()
    wire.epoch(**epoch)
    wire.done()


def epoch_of_all_time(wire):
    _measured(wire, start_ns=0, end_ns=2**64 - 1)


def epoch_beyond_64_bits(wire):
    _measured(wire, end_ns=2**64)


def epoch_of_a_million_seconds(wire):
    now = time.monotonic_ns()
    _measured(wire, start_ns=now, end_ns=now + 10**15)


def epoch_at_boot(wire):
    _measured(wire, start_ns=1000, end_ns=2000)


def epoch_in_the_future(wire):
    now = time.monotonic_ns() + 3 * HOUR_NS
    _measured(wire, start_ns=now, end_ns=now + 10**8)


def epoch_by_the_wall_clock(wire):
    now = time.time_ns()
    _measured(wire, start_ns=now - 10**8, end_ns=now)


def epoch_in_milliseconds(wire):
    now = time.monotonic_ns() // 10**6
    _measured(wire, start_ns=now - 100, end_ns=now)


def epoch_that_began_before_go(wire):
    wire.start()
    wire.epoch(start_ns=time.monotonic_ns() - 100 * 10**9)
    wire.epoch()
    wire.done()


def epochs_before_go(wire):
    wire.hello()
    wire.until("warm_up")
    wire.epoch()
    wire.epoch()
    wire.say("ready")
    wire.until("go")
    wire.done()


def epochs_that_overlap(wire):
    wire.start()
    began = time.monotonic_ns()
    wire.epoch()
    wire.epoch(start_ns=began)
    wire.done()


def epoch_index_repeated(wire):
    wire.start()
    wire.epoch()
    for _ in range(3):
        wire.epoch(index=1)
    wire.done()


def epoch_index_skipped(wire):
    _measured(wire, index=7)


def epochs_counted_down(wire):
    wire.start()
    wire.epoch(index=1)
    wire.epoch(index=0)
    wire.done()


def six_measured_instead_of_one(wire):
    wire.start()
    for index in range(7):
        wire.epoch(index=index, measured=index > 0)
    wire.done()


def warm_up_told_as_measured(wire):
    wire.start()
    wire.epoch(measured=True)
    wire.epoch(measured=True)
    wire.done()


def measured_after_done(wire):
    wire.start()
    wire.epoch()
    wire.epoch()
    wire.say("done")
    wire.epoch(measured=True, seconds=0)
    time.sleep(2)


def done_without_epochs(wire):
    wire.start()
    wire.done()


def done_after_the_warm_up(wire):
    wire.start()
    wire.epoch()
    wire.done()


def epoch_without_length(wire):
    now = time.monotonic_ns()
    _measured(wire, start_ns=now, end_ns=now)


def epoch_that_ends_before_it_starts(wire):
    _measured(wire, end_ns=1)


def items_without_end(wire):
    _measured(wire, items=2**64)


def items_below_zero(wire):
    _measured(wire, items=-5)


def loss_is_not_a_number(wire):
    _measured(wire, loss=float("nan"))


def done_before_go(wire):
    wire.hello()
    wire.until("warm_up")
    wire.say("ready")
    wire.say("done")
    time.sleep(1)


def done_first(wire):
    wire.say("done")
    time.sleep(1)


def never_ready(wire):
    wire.hello()
    wire.until("warm_up")
    wire.epoch()
    wire.epoch()
    wire.done()


def never_hello(wire):
    wire.say("ready")
    wire.until("go")
    wire.epoch()
    wire.epoch()
    wire.done()


def hello_twice(wire):
    wire.hello()
    wire.start(device="cuda")
    wire.epoch()
    wire.epoch()
    wire.done()


def ready_twice(wire):
    wire.start()
    wire.say("ready")
    wire.epoch()
    wire.epoch()
    wire.done()


def hello_of_tomorrow(wire):
    wire.start(protocol=99)
    wire.epoch()
    wire.epoch()
    wire.done()


def hello_of_somebody_else(wire):
    wire.start(pid=1)
    wire.epoch()
    wire.epoch()
    wire.done()


def hello_of_wrong_types(wire):
    wire.start(device=7, threads="many", versions=[])


def not_json(wire):
    wire.start()
    wire.raw(b"epoch 1 loss 0.4\n")
    time.sleep(1)


def not_utf8(wire):
    wire.start()
    wire.raw(b'{"event":"error","kind":"other","message":"\xff\xfe"}\n')
    time.sleep(1)


def zero_bytes(wire):
    wire.start()
    wire.raw(b"\0" * 1000 + b"\n")
    time.sleep(1)


def not_an_object(wire):
    wire.start()
    wire.raw(b"[1, 2, 3]\n")
    time.sleep(1)


def nested_without_end(wire):
    wire.start()
    wire.raw(b"[" * 500_000 + b"\n")
    time.sleep(1)


def half_a_line(wire):
    wire.start()
    wire.raw(b'{"event":"epo')
    os._exit(0)


def channel_closed(wire):
    wire.start()
    wire.socket.close()
    time.sleep(2)


def channel_half_closed(wire):
    wire.start()
    wire.epoch()
    wire.socket.shutdown(1)
    time.sleep(2)


def out_of_memory_only_in_words(wire):
    wire.start()
    print("All good: no MemoryError happened", flush=True)
    os._exit(7)


def out_of_memory_long_ago(wire):
    wire.start()
    print("CUDA out of memory, trying again with a smaller batch", flush=True)
    wire.epoch()
    print("\n".join(f"step {i}" for i in range(200)), "Segmentation fault", sep="\n", flush=True)
    os._exit(7)


def fails_after_done(wire):
    wire.start()
    wire.epoch()
    wire.epoch()
    wire.say("done")
    sys.exit(9)
