"""Working a share of the time: how long a round takes alone, and idling a fixed time after each. Knows no torch."""

import statistics
import time

FIRST_ROUNDS = 3  # not counted: caches, clocks, tuning
FEWEST_ROUNDS = 9
LEAST_S = 0.25
LONGEST_PAUSE_S = 0.05  # in the calibration; who idles longer finds nothing colder


def alone_s(work, dial, clock=time.perf_counter, sleep=time.sleep):
    """How long a round takes at this dial. To be asked while nobody else works: members warm up one at a time.

    After a pause caches are cold and clocks are low, so that a round takes longer than amid others: it is measured
    between pauses.
    """
    for _ in range(FIRST_ROUNDS):
        work()
    typical_s = measured_s(work, 0.0, clock, sleep)
    if dial == 100:
        return typical_s
    return measured_s(work, min(idle_s(typical_s, dial), LONGEST_PAUSE_S), clock, sleep)


def measured_s(work, pause_s, clock, sleep):
    times_s = []
    while len(times_s) < FEWEST_ROUNDS or sum(times_s) < LEAST_S:
        sleep(pause_s)
        start = clock()
        work()
        times_s.append(clock() - start)
    return statistics.median(times_s)  # one stall must not set the idling of a whole run


def idle_s(work_s, dial):
    """How long to idle after each round in order to work `dial` percent of the time."""
    return work_s * (100 - dial) / dial


class Idle:
    """Idles the same time after each round. What a sleep lasts too long, the next one is shorter."""

    def __init__(self, each_s, clock=time.perf_counter, sleep=time.sleep):
        self.each_s, self.clock, self.sleep = each_s, clock, sleep
        self.owed_s = 0.0

    def rest(self):
        self.owed_s += self.each_s
        if self.owed_s <= 0:
            return
        start = self.clock()
        self.sleep(self.owed_s)
        self.owed_s -= self.clock() - start
        self.owed_s = max(self.owed_s, -self.each_s)  # a long delay is not made up for by a burst of work
