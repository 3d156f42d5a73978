"""Intervals from repetitions: means of logarithms, shared variances, Student's t, Holm."""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

FEW_CELLS = 8
KEEPS_ITS_OWN = 0.001
ROUNDING = 1e-13


@dataclass
class Quantity:
    estimate: float
    low: float | None
    high: float | None
    n: int
    df: float | None = None
    variance: float | None = None  # of the logarithm of the estimate


def mean_without_interval(values, difference=False):
    """Geometric, but of differences and where a value is 0 or less."""
    values = np.asarray(values, dtype=float)
    mean = np.exp(np.log(values).mean()) if (values > 0).all() and not difference else values.mean()
    return Quantity(float(mean), None, None, len(values))


@dataclass
class Log:
    """Mean and variance of the logarithms of one cell's repetitions."""

    mean: float
    variance: float | None
    n: int
    df: float | None = None

    def __post_init__(self):
        self.df = self.n - 1.0 if self.df is None else self.df


def log_moments(values):
    values = np.asarray(values, dtype=float)
    if len(values) == 0 or not (values > 0).all():
        return None
    logs = np.log(values)
    variance = None if len(logs) < 2 else 0.0 if values.max() - values.min() <= ROUNDING * values.max() else float(logs.var(ddof=1))
    return Log(float(logs.mean()), variance, len(logs))


def prior(s2, df):
    """Scale and degrees of freedom of the cells' variances (Smyth 2004, section 6.2)."""
    s2 = np.maximum(s2, 1e-5 * (np.sort(s2)[len(s2) // 2] or s2.max()))
    e = np.log(s2) - special.digamma(df / 2) + np.log(df / 2)
    excess = e.var(ddof=1) - special.polygamma(1, df / 2).mean()
    if excess <= 0:
        return float(np.exp(e.mean())), np.inf
    half = optimize.brentq(lambda x: special.polygamma(1, x) - excess, 1e-6, 1e9, xtol=1e-14, rtol=1e-14)
    return float(np.exp(e.mean() + special.digamma(half) - np.log(half))), float(2 * half)


def shrink(logs, learnt=None, far=None):
    """Variance and degrees of freedom of each cell, shared between those that have any. `learnt` are the cells without their runs far from
    the others, from which the others learn; `far` are the cells that have, or are compared with, such runs: none gets less than its own."""
    shared = moderate(logs, logs if learnt is None else learnt)
    own = [None if l is None or l.variance is None else (l.variance, float(l.df)) for l in logs]
    is_wider = lambda mine, lent: mine is not None and (lent is None or mine[0] > lent[0])
    return [mine if odd and is_wider(mine, lent) else lent for mine, lent, odd in zip(own, shared, far or [False] * len(logs))]


def moderate(logs, learnt):
    known = [l for l in learnt if l is not None and l.variance is not None]
    if not known:
        return [None] * len(logs)
    s2 = np.array([l.variance for l in known])
    df = np.array([float(l.df) for l in known])
    total = float(df.sum())
    pooled = (float((s2 * df).sum() / total), total)
    if len(known) < FEW_CELLS or pooled[0] == 0:
        return [pooled if l is not None else None for l in logs]
    s0, d0 = prior(s2, df)

    def of(l):
        if l is None:
            return None
        if l.variance is None:
            return (s0, min(d0, total))
        d = float(l.df)
        if l.variance <= 3 * s0:
            far = 1.0
        else:
            far = stats.chi2.sf(l.variance / s0 * d, d) if np.isinf(d0) else stats.f.sf(l.variance / s0, d, d0)
        if far < KEEPS_ITS_OWN:
            return (l.variance, d)
        if np.isinf(d0):
            return (s0, total)
        return ((d0 * s0 + d * l.variance) / (d0 + d), min(d0 + d, total))

    return [of(l) for l in logs]


def own(logs):
    """Each cell's own variance."""
    return [None if l is None or l.variance is None else (l.variance, l.df) for l in logs]


def interval(mean, n, terms):
    """An estimate with its interval. A term is (weight, variance of one, degrees of freedom, repetitions); without one for the cell's own
    repetitions, or with one that is not known, there is none."""
    if n < 2 or any(term is None for term in terms):
        return Quantity(float(np.exp(mean)), None, None, n)
    variance = sum(weight**2 * s2 / repetitions for weight, s2, _, repetitions in terms)
    # A term without scatter makes nothing less certain.
    scattered = [df for weight, s2, df, _ in terms if weight != 0 and s2 > 0 and np.isfinite(df)]
    free = min(scattered or [df for weight, _, df, _ in terms if weight != 0])
    half = stats.t.ppf(0.975, free) * np.sqrt(variance)
    return Quantity(float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half)), n, free, variance)


def ratio(above, below):
    """Of two estimates with variances of their own: both are added, the degrees of freedom are the fewer ones."""
    mean = np.log(above.estimate / below.estimate)
    if above.variance is None or below.variance is None:
        return Quantity(float(np.exp(mean)), None, None, above.n)
    return interval(mean, above.n, [(1.0, above.variance, above.df, 1), (1.0, below.variance, below.df, 1)])


def p_beyond(q, relevant):
    """P-value of the hypothesis that a ratio lies within the threshold of 1: twice the tail beyond it."""
    if q is None or q.variance is None:
        return None
    beyond = abs(np.log(q.estimate)) - np.log1p(relevant)
    if beyond <= 0:
        return 1.0
    if q.variance == 0:
        return 0.0
    return float(min(1.0, 2 * stats.t.sf(beyond / np.sqrt(q.variance), q.df)))


def holm(ps):
    """Adjusted p-values; absent ones stay absent."""
    known = sorted((p, i) for i, p in enumerate(ps) if p is not None)
    adjusted, largest = [None] * len(ps), 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[i] = largest
    return adjusted


def verdict(q, adjusted, relevant):
    if adjusted is None:
        return None
    if q.low >= 1 / (1 + relevant) and q.high <= 1 + relevant:
        return "same"
    if adjusted < 0.05 and q.estimate > 1 + relevant:
        return "better"
    if adjusted < 0.05 and q.estimate < 1 / (1 + relevant):
        return "worse"
    return "cannot_tell"
