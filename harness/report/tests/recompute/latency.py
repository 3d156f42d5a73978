"""The requests of serving members."""

import math

import numpy as np

import intervals as st
import one_run as one

QUANTILES = {"latency_p50_s": 0.50, "latency_p95_s": 0.95, "latency_p99_s": 0.99}
NAMES = (*QUANTILES, "within_slo_ratio", "goodput_per_s", "offered_per_s", "answered_per_s")


def counted_spans(run, member, threshold):
    """Measured epochs of a member that serves: spans of service."""
    return [(e["start_ns"], e["end_ns"]) for e in one.counted_epochs(run, member, threshold)]


def in_spans(at, spans):
    return any(start <= at < end for start, end in spans)


def of_run(run, members, threshold):
    """Of the requests to equal members of a run, taken together: latencies of all, and what they answer per second together."""
    latencies, due, answered, seconds = [], 0, 0, 0.0
    slo = run.record["members"][members[0]]["serving"].get("slo_s")
    for member in members:
        spans = counted_spans(run, member, threshold)
        seconds += sum(end - start for start, end in spans) * one.NS / len(members)
        for request in run.requests[member]:
            end = request["end_ns"]
            if in_spans(request["arrival_ns"], spans):
                due += 1
                latencies.append(math.inf if end is None else (end - request["arrival_ns"]) * one.NS)
            answered += end is not None and in_spans(end, spans)
    if not seconds:
        return {}
    found = {name: quantile(latencies, p) for name, p in QUANTILES.items()}
    found |= {"offered_per_s": due / seconds, "answered_per_s": answered / seconds, "due": due}
    if slo is not None and due:
        in_time = sum(latency <= slo for latency in latencies)
        found |= {"within_slo_ratio": in_time / due, "goodput_per_s": in_time / seconds}
    return found


def quantile(latencies, p):
    """By nearest rank; NaN where it is among requests that were never answered, None with too few requests."""
    if 1 - p ** len(latencies) < 0.95:
        return None
    value = sorted(latencies)[math.ceil(p * len(latencies)) - 1]
    return math.nan if math.isinf(value) else value


def quantity(name, runs):
    """Over repetitions; null if it is null in one of them."""
    values = [run.get(name) for run in runs]
    if not values or any(v is None or math.isnan(v) for v in values):
        return None
    log = st.log_moments(values)
    variance = st.own([log])[0]
    if log is None or variance is None:
        return st.mean_without_interval(values)
    if name == "within_slo_ratio":
        variance = (max(variance[0], binomial_floor(runs)), variance[1])
    q = st.interval(log.mean, log.n, [(1.0, *variance, log.n)])
    if name == "within_slo_ratio" and q.high is not None:
        q.high = min(q.high, 1.0)
    return q


def binomial_floor(runs):
    """Variance of the logarithm of a binomial share, half a request away from none and from all; mean over repetitions."""
    shares = [((run["within_slo_ratio"] * run["due"] + 0.5) / (run["due"] + 1), run["due"]) for run in runs]
    return float(np.mean([(1 - share) / (share * due) for share, due in shares]))
