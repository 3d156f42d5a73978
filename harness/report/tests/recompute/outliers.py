"""Runs far from the others of their cell: the generalized extreme studentized deviate test (Rosner 1983) over cells that scatter alike."""

import math

import numpy as np
from scipy import stats

import intervals as st
from repetition import one_makespan, training_s

LEVEL = 0.005
SHARE, MOST = 0.1, 50
LEAST_IN_GROUP = 3
ASSUMED_DF = 4.0
LEAST_DEVIATION = 0.01


def far_runs(cells, numbers):
    """(cell, repetition) → how far its time is from the mean of the others', less 1; `numbers` are the runs of each cell that count."""
    groups = []
    for c in cells:
        of = numbers[c["cell"]]
        for device in sorted({n.run.device for n in of}):
            timed = [(n, t) for n in of if n.run.device == device and (t := compared_s(c, n)) is not None and t > 0]
            groups.append([(c["cell"], n.run.record["repetition"], math.log(t)) for n, t in timed])
    found = {(cell, repetition): math.expm1(distance) for cell, repetition, distance in outliers(groups)}
    return {run: deviation for run, deviation in found.items() if abs(deviation) > LEAST_DEVIATION}


def compared_s(c, n):
    """Members that exit train their last epochs in less company: only the makespan compares like with like."""
    if c["after_measured"] == "exit":
        return one_makespan(n)
    return training_s(n) or one_makespan(n)


def outliers(groups):
    left, found, significant = [list(g) for g in groups], [], 0
    eligible = sum(len(g) for g in groups if len(g) >= LEAST_IN_GROUP)
    most = min(max(int(SHARE * eligible), 1), MOST)
    while len(found) < most:
        furthest = [furthest_of(g) for g in left if len(g) >= LEAST_IN_GROUP]
        if not furthest:
            break
        candidates = sum(len(g) for g in left if len(g) >= LEAST_IN_GROUP)
        size, distance, run, group = max(furthest, key=lambda f: f[0])
        group.remove(run)
        found.append((*run[:2], distance))
        expected = scatter([moments(g) for g in left if len(g) > 1], moments(group))
        if size > stats.t.ppf(1 - LEVEL / 2 / candidates, expected[1]) * math.sqrt(expected[0]):
            significant = len(found)
    return found[:significant]


def furthest_of(group):
    """Of the furthest run its distance from the mean of all in units of one run's scatter, and from the mean of the others."""
    n, mean = len(group), np.mean([log for *_, log in group])
    run = max(group, key=lambda run: abs(run[2] - mean))
    distance = float((run[2] - mean) * n / (n - 1))
    return abs(distance) / math.sqrt(n / (n - 1)), distance, run, group


def moments(group):
    return float(np.var([log for *_, log in group], ddof=1)), len(group) - 1.0


def scatter(all_cells, own):
    """Variance and degrees of freedom of one cell, moderated by those of all."""
    s2, df = (np.array(of) for of in zip(*all_cells))
    pooled = float((s2 * df).sum() / df.sum())
    lent = st.prior(s2, df) if len(s2) >= st.FEW_CELLS and pooled > 0 else (pooled, ASSUMED_DF)
    free = min(lent[1], float(df.sum()))
    return (free * lent[0] + own[1] * own[0]) / (free + own[1]), free + own[1]
