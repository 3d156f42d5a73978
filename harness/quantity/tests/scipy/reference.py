"""What SciPy makes of random data: writes `reference.json`, which tests/scipy.rs holds the Rust statistics against.

    python -m venv v && v/bin/pip install scipy==1.17.1 statsmodels==0.15.0 && v/bin/python reference.py

Holm is statsmodels'; the prior of the moderated t is solved here with SciPy's polygamma and brentq, by the formulas of Smyth 2004,
section 6.2, independently of the Rust code.
"""

import json
import sys

import numpy as np
from scipy import optimize, special, stats
from statsmodels.stats.multitest import multipletests

random = np.random.default_rng(20261121)


def prior(s2, df):
    s2 = np.maximum(s2, 1e-5 * np.sort(s2)[len(s2) // 2])  # a variance of nearly 0 would decide everything
    e = np.log(s2) - special.digamma(df / 2) + np.log(df / 2)
    excess = e.var(ddof=1) - special.polygamma(1, df / 2).mean()
    if excess <= 0:
        return float(np.exp(e.mean())), float("inf")
    half = optimize.brentq(lambda x: special.polygamma(1, x) - excess, 1e-6, 1e9, xtol=1e-14, rtol=1e-14)
    return float(np.exp(e.mean() + special.digamma(half) - np.log(half))), float(2 * half)


def campaign(cells, spread):
    runs = random.integers(2, 7, cells)
    groups = [np.exp(random.normal(random.normal(0, 1), 0.03 * np.exp(spread * random.normal()), n)) for n in runs]
    s2 = np.array([np.log(g).var(ddof=1) for g in groups])
    df = runs - 1.0
    if cells < 8:
        pooled = float((s2 * df).sum() / df.sum())
        post = [(pooled, float(df.sum()))] * cells
    else:
        s0, d0 = prior(s2, df)
        total = df.sum()
        post = []
        for s, d in zip(s2, df):
            far = stats.chi2.sf(s / s0 * d, d) if np.isinf(d0) else stats.f.sf(s / s0, d, d0)
            if far < 0.001:  # a cell that jumps keeps its own variance
                post.append((s, d))
            elif np.isinf(d0):
                post.append((s0, total))
            else:
                post.append(((d0 * s0 + d * s) / (d0 + d), min(d0 + d, total)))
    intervals = []
    for group, (variance, free) in zip(groups, post):
        mean, half = np.log(group).mean(), stats.t.ppf(0.975, free) * np.sqrt(variance / len(group))
        intervals.append([float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))])
    return {"groups": [g.tolist() for g in groups], "intervals": intervals}


frees = [1.0, 1.7, 3.0, 6.4, 12.0, 47.0, 900.0]
at = [0.6, 0.9, 0.975, 0.995, 0.9999]
json.dump(
    {
        "t_quantiles": [[p, d, float(stats.t.ppf(p, d))] for d in frees for p in at],
        "t_p": [[t, d, float(2 * stats.t.sf(abs(t), d))] for d in frees for t in random.normal(0, 3, 4).tolist()],
        "holm": [{"p": p, "adjusted": multipletests(p, method="holm")[1].tolist()}
                 for p in (random.uniform(0, 0.2, n).tolist() for n in (1, 2, 5, 20))],
        "campaigns": [campaign(n, s) for n, s in [(3, 0.4), (7, 0.4), (8, 0.0), (12, 0.4), (40, 0.4), (40, 1.2)]],
    },
    open("reference.json" if len(sys.argv) < 2 else sys.argv[1], "w"),
)
