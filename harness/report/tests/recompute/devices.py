"""Cells measured on several devices that differ: each device counts alike, and the interval contains what each takes."""

import numpy as np

import intervals as st


def moments(values, on):
    """Of one cell: its logarithms with the variance within devices, and the terms that come besides; None on one device."""
    logs = {d: np.log([v for v, at in zip(values, on) if at == d]) for d in sorted(set(on))}
    df = len(values) - len(logs)
    if len(logs) < 2 or df < 1:
        return None
    means = np.array([of.mean() for of in logs.values()])
    within = sum(float(((of - of.mean()) ** 2).sum()) for of in logs.values()) / df
    weight = np.sqrt(sum(1 / len(of) for of in logs.values()) * len(values) / len(logs) ** 2)
    return st.Log(float(means.mean()), within, len(values), df), float(weight), float(means.var(ddof=1))


def share(known):
    """Cells with their values and where each was measured: quantities of a kind that differs between devices."""
    of_devices = {key: moments(values, on) if values and min(values) > 0 else None for key, (values, on) in known.items()}
    logs = {key: of[0] if of else st.log_moments(known[key][0]) for key, of in of_devices.items()}
    found = {}
    for (key, log), variance in zip(logs.items(), st.shrink(list(logs.values()))):
        if log is None:
            found[key] = st.mean_without_interval(known[key][0]) if known[key][0] else None
            continue
        _, weight, between = of_devices[key] or (log, 1.0, 0.0)
        terms = [None if variance is None else (weight, *variance, log.n)]
        if of_devices[key]:
            # Not divided by the number of devices.
            terms.append((1.0, between * log.n, np.inf, log.n))
        found[key] = st.interval(log.mean, log.n, terms)
    return found
