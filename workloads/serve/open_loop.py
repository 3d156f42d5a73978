"""Requests that come at random times whether or not they are answered, and how long each waits. Knows no torch.

The loop is open: a request is due by a schedule that was drawn before, and its latency counts from there. Were the next
one sent when the last is answered, or were latency counted from the sending, a server that stalls would be asked less
just then, and the requests that its users would have sent meanwhile would be missing: "coordinated omission", as Gil
Tene calls it ("How NOT to Measure Latency", 2013; https://github.com/giltene/wrk2 counts as it is done here).
"""

import math
import re
import time
from collections import deque
from random import Random

from collo import SettingError

UNITS_NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}  # as in experiments
LONGEST_NAP_S = 0.05  # so that a stop is noticed
LONGEST_WINDOW_NS = 3600 * 10**9
MOST_PER_S = 10_000.0  # more than Python can hand out
LARGEST_BATCH = 64
FULL = 0.95  # of the capacity: nearer to it the queue is as long as the run, and says nothing of the device
HOPELESS = 10.0  # times the capacity: no busy machine makes that of a rate that can be served, it is a mistake
FEWEST_BATCHES = 5
LEAST_S = 0.5


def duration_ns(name, text):
    """Of `50ms` 50 000 000; with a SettingError for what has no unit or is none."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|m|h)", text)
    length_ns = round(float(match[1]) * UNITS_NS[match[2]]) if match else 0
    if length_ns <= 0:
        remark = ", or empty for none" if name == "slo" else ""
        raise SettingError(f"`{name}` is `{text}`: it is a time above 0 with its unit, as in `50ms` or `2s`{remark}")
    return length_ns


def check(rate, batch_size, slo, window):
    """(SLO in ns or None, window in ns) of settings that can be had."""
    if not 0 < rate <= MOST_PER_S:
        raise SettingError(f"`rate` is {rate:g}: it is above 0 and up to {MOST_PER_S:g} requests per second")
    if not 1 <= batch_size <= LARGEST_BATCH:
        raise SettingError(f"`batch_size` is {batch_size}: it is 1 to {LARGEST_BATCH} requests answered together")
    window_ns = duration_ns("window", window)
    if window_ns > LONGEST_WINDOW_NS:
        raise SettingError(f"`window` is `{window}`: an epoch of serving is an hour at most")
    return duration_ns("slo", slo) if slo else None, window_ns


def per_s(answer, count, clock=time.perf_counter):
    """Requests per second that are answered `count` at a time and never wait."""
    batches, start_s = 0, clock()
    while batches < FEWEST_BATCHES or clock() - start_s < LEAST_S:
        answer(count)
        batches += 1
    return batches * count / (clock() - start_s)


def rounded_down(number):
    """Two digits of it, or all before the point: never more than it is."""
    step = 10.0 ** (min(math.floor(math.log10(number)), 1) - 1)
    return math.floor(number / step * (1 + 1e-12)) * step


def check_capacity(rate, capacity_per_s, batch_size):
    """What to say of a rate near or above the capacity; None of one that can be served.

    Below its rate a server has a queue that grows as long as it runs. That is a result, which the report tells from the
    rate and the capacity. Were it an error, the runs that were slow would be missing, and the others too good.
    """
    if rate <= FULL * capacity_per_s:
        return None
    alone = f"{capacity_per_s:.0f}" if capacity_per_s >= 10 else f"{capacity_per_s:.2g}"
    told = (
        f"`rate` is {rate:g} a second, this device answers {alone} a second alone, {batch_size} at a time: "
        f"lower `rate` to {rounded_down(FULL * capacity_per_s):g}, or raise `batch_size`"
    )
    if rate > HOPELESS * capacity_per_s:
        raise SettingError(told)
    return told


class Arrivals:
    """Times of a Poisson process, nanoseconds after its beginning: gaps are exponential and know nothing of each other.

    Copies in a group draw from seeds of their own: asked at the same moments they would collide by design. So does each
    repetition, whose spread is then that of other requests too; the first copy is asked as it is alone in that repetition.
    """

    def __init__(self, rate, seed, repetition="", copy=""):
        self.rate, self.random, self.at_s = rate, Random(f"{seed}/{repetition}/{copy}"), 0.0

    def __iter__(self):
        while True:
            self.at_s += self.random.expovariate(self.rate)
            yield round(self.at_s * 1e9)


class OpenLoop:
    """What has come and waits, and what became of it. `answer(count)` answers so many together; false if it gave up.

    `told(arrivals, starts, ends)` hears of requests about once a second, in nanoseconds of the clock. Between requests
    it sleeps: on Linux a sleep ends some 0.1 ms late (a timer's slack is 50 µs, prctl(2), and then the scheduler's
    turn), which is part of the latency, as it would be in a server that is woken by a socket.
    """

    def __init__(self, arrivals, batch_size, answer, told, stopped, clock=time.monotonic_ns, sleep=time.sleep):
        self.arrivals, self.batch_size = iter(arrivals), batch_size
        self.answer, self.told, self.stopped = answer, told, stopped
        self.clock, self.sleep = clock, sleep
        self.waiting, self.over = deque(), []  # arrivals; (arrival, start, end) that nobody was told of yet
        self.caught_up_ns = []  # latencies of what is answered between two spans, counted in the next

    def open(self):
        """From now on it is asked."""
        self.begun_ns = self.told_ns = self.clock()
        self._draw()

    def serve_until(self, until_ns):
        """Serve until then, and finish the batch that is begun; the latencies of what was answered, in nanoseconds."""
        latencies_ns, self.caught_up_ns = self.caught_up_ns, []
        while not self.stopped():
            now_ns = self.clock()
            self._arrive(now_ns)
            if now_ns - self.told_ns >= 10**9:
                self.tell()
            if now_ns >= until_ns:
                break
            if self.waiting:
                latencies_ns += self._answer_some()
            else:
                nap_s = (min(self.next_ns, until_ns) - now_ns) / 1e9
                self.sleep(min(nap_s, LONGEST_NAP_S))
        self.tell()
        return latencies_ns

    def catch_up(self, most_ns):
        """Keep serving until all requests that have arrived by now are answered, but not longer than `most_ns` nanoseconds: they
        arrived in a measured epoch.

        Requests that arrive meanwhile join the queue. Those that are still waiting after that time are reported now, as never
        answered, because a member that is stopped in a long batch can report nothing.
        """
        due_ns = now_ns = self.clock()
        self._arrive(now_ns)
        while self.waiting and self.waiting[0] <= due_ns and now_ns < due_ns + most_ns and not self.stopped():
            self.caught_up_ns += self._answer_some()
            now_ns = self.clock()
            self._arrive(now_ns)
            if now_ns - self.told_ns >= 10**9:
                self.tell()
        while self.waiting and self.waiting[0] <= due_ns:
            self.over.append((self.waiting.popleft(), None, None))
        self.tell()

    def tell(self):
        """Tell what is over."""
        self.told_ns = self.clock()
        if self.over:
            arrivals, starts, ends = map(list, zip(*self.over))
            self.over = []
            self.told(arrivals, starts, ends)

    def close(self):
        """Tell also what came and still waits: it has neither start nor end."""
        self._arrive(self.clock())
        self.over += [(arrival_ns, None, None) for arrival_ns in self.waiting]
        self.waiting.clear()
        self.tell()

    def _draw(self):
        self.next_ns = self.begun_ns + next(self.arrivals)

    def _arrive(self, now_ns):
        while self.next_ns <= now_ns:
            self.waiting.append(self.next_ns)
            self._draw()

    def _answer_some(self):
        batch = [self.waiting.popleft() for _ in range(min(self.batch_size, len(self.waiting)))]
        start_ns = self.clock()
        end_ns = None
        try:
            if self.answer(len(batch)) is not False:
                end_ns = self.clock()
        finally:  # also where it failed: they had come, and were never answered
            self.over += [(arrival_ns, start_ns, end_ns) for arrival_ns in batch]
        return [] if end_ns is None else [end_ns - arrival_ns for arrival_ns in batch]
