"""The numbers of one run of a trace, from its tasks, attempts, decisions and samples."""

import json
import math

import numpy as np

import intervals as st
import one_run as one

COUNTS = ("tasks_done", "out_of_memory", "out_of_memory_newcomers", "out_of_memory_residents", "recoveries", "queue_length")


def nearest_rank(values, p):
    return sorted(values)[max(1, math.ceil(p * len(values))) - 1]


class Played:
    """What became of the tasks of one run."""

    def __init__(self, run, median_alone):
        self.run, self.record = run, run.record["trace"]
        self.began = self.record["began_ns"]
        self.tasks = {t["task"]: t for t in run.tables["tasks"]}
        self.attempts = sorted(run.tables["attempts"], key=lambda a: a["launched_ns"])
        for attempt in self.attempts:
            attempt["kind"] = json.loads(attempt["outcome"])["kind"]
        self.of = {t: [a for a in self.attempts if a["task"] == t] for t in self.tasks}
        self.done = [t for t, task in self.tasks.items() if task["end"] == "done"]
        self.start = self.began + min(t["arrives_ns"] for t in self.tasks.values())
        self.end = max(a["ended_ns"] for a in self.attempts)
        self.median_alone = median_alone

    def numbers(self):
        total = (self.end - self.start) * one.NS
        execution = {t: sum(a["ended_ns"] - a["launched_ns"] for a in self.of[t]) * one.NS for t in self.done}
        completion = {t: (self.of[t][-1]["ended_ns"] - self.due(t)) * one.NS for t in self.done}
        waits = [completion[t] - execution[t] for t in self.done]
        stretches = [s for t in self.done if (s := self.stretch(t)) is not None]
        found = {
            "total_s": total,
            "wait_mean_s": np.mean(waits),
            "wait_median_s": nearest_rank(waits, 0.5),
            "wait_p95_s": nearest_rank(waits, 0.95),
            "execution_mean_s": np.mean(list(execution.values())),
            "completion_mean_s": np.mean(list(completion.values())),
            "completion_p95_s": nearest_rank(list(completion.values()), 0.95),
            "stretch": np.mean(stretches) if stretches else None,
            "stretch_p95": nearest_rank(stretches, 0.95) if stretches else None,
            "blocked_s": sum(t["blocked_ns"] for t in self.tasks.values()) * one.NS,
            "lost_s": sum(a["ended_ns"] - a["launched_ns"] for a in self.attempts if a["kind"] != "completed") * one.NS,
            "queue_length": self.waited() / total,
            "decisions_per_s": len({(d["at_ns"], d["task"]) for d in self.run.tables["decisions"]}) / total,
            "arrival_lateness_max_s": max(t["arrived_ns"] - self.due(n) for n, t in self.tasks.items() if t["arrived_ns"]) * one.NS,
            "reading_age_p95_s": self.reading_age(),
        }
        return {k: None if v is None else float(v) for k, v in (found | self.memory() | self.site()).items()}

    def due(self, task):
        return self.began + self.tasks[task]["arrives_ns"]

    def stretch(self, task):
        alone = self.median_alone.get(self.tasks[task]["solo"])
        last = self.of[task][-1]
        return None if alone is None else (last["ended_ns"] - last["launched_ns"]) * one.NS / (alone * self.tasks[task]["epochs"])

    def waited(self):
        """Seconds of all tasks in the queue: before each attempt, or until the end."""
        total = 0
        for number in self.tasks:
            since = self.due(number)
            for attempt in self.of[number]:
                total += attempt["launched_ns"] - since
                since = attempt["ended_ns"]
            if self.tasks[number]["end"] == "interrupted":
                total += max(0, self.end - since)
        return total * one.NS

    def memory(self):
        ran_out = [a for a in self.attempts if a["kind"] == "out_of_memory"]
        again, wait = 0, 0
        for attempts in self.of.values():
            for before, after in zip(attempts, attempts[1:]):
                if before["kind"] == "out_of_memory":
                    again, wait = again + 1, wait + after["launched_ns"] - before["ended_ns"]
        return {
            "tasks_done": len(self.done),
            "out_of_memory": len(ran_out),
            "out_of_memory_newcomers": sum(a["newcomer"] is not False for a in ran_out),
            "out_of_memory_residents": sum(a["newcomer"] is False for a in ran_out),
            "recoveries": again,
            "recovery_wait_s": wait * one.NS,
        }

    def reading_age(self):
        ages = [(d["at_ns"] - d["read_ns"]) * one.NS for d in self.run.tables["decisions"] if d["read_ns"] is not None]
        return nearest_rank(ages, 0.95) if ages else None

    def site(self):
        """Of the cards: energy, activity and memory over the total time, weighted by time."""
        scopes, span = [c["scope"] for c in self.record["cards"]], (self.start, self.end)
        on_cores = not self.run.is_gpu()
        energy = [scaled_growth(one.readings(self.run, "energy_j", s), span) for s in scopes]
        if on_cores:
            energy = [scaled_growth(one.readings(self.run, "cpu_energy_j", "host"), span)]
        active = [weighted(one.readings(self.run, "cpu_ratio" if on_cores else "sm_active_ratio", s), span) for s in scopes]
        if on_cores:
            active = [None if a is None else a / len(c["cores"]) for a, c in zip(active, self.record["cards"])]
        memory = [weighted(one.readings(self.run, "memory_used_bytes", s), span) for s in scopes]
        memory = [None if m is None else m / c["capacity_bytes"] for m, c in zip(memory, self.record["cards"])]
        every = lambda values: None if None in values else float(np.mean(values))
        return {
            "site_energy_j": None if None in energy else float(sum(energy)),
            "site_active_ratio": every(active),
            "site_memory_ratio": every(memory),
        }


def scaled_growth(series, span):
    """Growth of a counter, as if it went on in the parts of the span before the first and after the last reading."""
    rate = one.rate(series, span)
    return None if rate is None else rate * (span[1] - span[0]) * one.NS


def weighted(series, span):
    """Mean over a span; a mean over a window counts for the part of it inside, a reading at a moment until the next one."""
    if series is None:
        return None
    known = ~np.isnan(series.value)
    at, window, value = series.at[known], series.window[known], series.value[known]
    if window.any():
        weight = np.minimum(at, span[1]) - np.maximum(at - window, span[0])
    else:
        weight = np.minimum(np.append(at[1:], span[1]), span[1]) - np.maximum(at, span[0])
    counts = weight > 0
    return float(np.average(value[counts], weights=weight[counts])) if counts.any() else None


def median_alone(stored):
    """Seconds of the median measured epoch of each workload alone."""
    found = {}
    for c in stored.cells():
        epochs = [e for r in stored.of(c) if c["baseline"] and r.completed for e in r.epochs[0] if e["measured"]]
        if epochs:
            found[c["cell"]] = float(np.median(one.lengths(epochs)))
    return found


def policies(stored):
    """(trace, policy, estimate, sharing) → order → the numbers of its runs, averaged."""
    alone, found = median_alone(stored), {}
    for c in stored.traces():
        of = c["trace"]
        runs = [Played(r, alone).numbers() for r in stored.of(c) if r.completed and r.record["validity"]["verdict"] != "discarded"]
        if runs:
            key = (of["trace"], of["policy"], of["estimate"], c["sharing"])
            found.setdefault(key, {})[of["order"]] = {name: average([r[name] for r in runs], name) for name in runs[0]}
    return found


def average(values, name):
    """Geometric; of counts, and where one is 0, arithmetic."""
    if None in values:
        return None
    if name in COUNTS or min(values) <= 0:
        return float(np.mean(values))
    return float(np.exp(np.mean(np.log(values))))


def ratios(policies, reference, name):
    """Of each policy the ratio to the reference within orders, with its interval and p-value: a randomised complete block design, whose
    error all ratios share. Orders that a policy lacks are left out for all."""
    orders = sorted(set.intersection(*(set(of) for of in policies.values())))
    keys = list(policies)
    values = np.array([[policies[key][order].get(name) for order in orders] for key in keys], dtype=float)
    if not orders or not (values > 0).all():
        return None
    logs = np.log(values)
    differences = logs - logs[keys.index(reference)]
    k, n = logs.shape
    if k > MOST_POLICIES:
        return None
    error = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    free = (k - 1) * (n - 1)
    found = {}
    for key, difference in zip(keys, differences):
        if key == reference:
            continue
        terms = [(1.0, 2 * float((error**2).sum()) / free, free, n)] if free else [None]
        found[key] = st.interval(float(difference.mean()), n, terms)
    return found


# With more, each ratio has its own variance, shrunk.
MOST_POLICIES = 8
