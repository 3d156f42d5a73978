"""The pace of a device over a campaign, and what a baseline takes at the pace of a run that has none in its block."""

import numpy as np

CORRELATIONS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MOST_CELLS = 400
NEGLIGIBLE = 1e-12
LEAST_VARIANCE = 1e-20


class Model:
    """One kind of pace, fitted by generalised least squares."""

    def __init__(self, logs, cells, z, v, prior, free):
        x = np.column_stack([cells, z])
        weighed = np.linalg.solve(v, x)
        self.information = x.T @ weighed
        theta = np.linalg.solve(self.information, weighed.T @ logs)
        residual = logs - x @ theta
        noise = np.linalg.solve(v, residual)
        self.s2 = max(float(residual @ noise) / free, LEAST_VARIANCE)
        determinants = np.linalg.slogdet(v)[1] + np.linalg.slogdet(self.information)[1]
        self.log_weight = -0.5 * (determinants + free * np.log(self.s2)) + np.log(prior)
        self.means, self.paces = theta[:-1], theta[-1] * z + residual - noise


class Pace:
    """Fitted to the runs of one device: (cell, repetition, logarithm of a time), in order."""

    def __init__(self, runs):
        self.place = {(cell, repetition): i for i, (cell, repetition, _) in enumerate(runs)}
        labels = sorted({cell for cell, _, _ in runs})
        self.number = {cell: i for i, cell in enumerate(labels)}
        logs, n = np.array([log for _, _, log in runs]), len(runs)
        cells = np.array([[cell == label for label in labels] for cell, _, _ in runs], dtype=float)
        self.runs_of = {label: int(cells[:, i].sum()) for i, label in enumerate(labels)}
        self.free = n - len(labels) - 1
        trend, one = scaled(np.arange(n, dtype=float)), np.eye(n)
        self.models = [Model(logs, cells, trend, one, 1.0, self.free)]
        within = lambda z: z - cells @ ((cells.T @ z) / cells.sum(axis=0))
        for at in range(1, n):
            step = scaled((np.arange(n) >= at).astype(float))
            if float(within(step) @ within(step)) > 1e-9 * n:
                self.models.append(Model(logs, cells, step, one, 1 / (n - 1), self.free))
        distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        for rho in CORRELATIONS:
            for ratio in RATIOS:
                self.models.append(Model(logs, cells, trend, one + ratio * rho**distance, 4 / 36, self.free))
        weights = np.exp([m.log_weight - max(m.log_weight for m in self.models) for m in self.models])
        weights[weights < NEGLIGIBLE] = 0.0
        self.weights = weights / weights.sum()

    def log_at(self, baseline, cell, repetition):
        """Of a baseline at the pace of a run; None where either is not among the runs."""
        run, number = self.place.get((cell, repetition)), self.number.get(baseline)
        if None in (run, number):
            return None
        return sum(w * (m.means[number] + m.paces[run]) for w, m in zip(self.weights, self.models))

    def variance(self, cell, weights):
        """Of the mean over a cell of what it is compared with, by the weight of each baseline; without the noise of the cell's own runs."""
        contrast = np.zeros(len(self.number) + 1)
        for baseline, weight in weights.items():
            contrast[self.number[baseline]] += weight
        whole = sum(weights.values())
        contrast[self.number[cell]] -= whole
        values = [float(contrast[:-1] @ m.means) for m in self.models]
        mean = float(np.dot(self.weights, values))
        parts = [m.s2 * float(contrast @ np.linalg.solve(m.information, contrast)) for m in self.models]
        s2 = sum(w * (part + (value - mean) ** 2) for w, part, value in zip(self.weights, parts, values))
        noise = sum(w * m.s2 for w, m in zip(self.weights, self.models))
        return max(0.0, s2 - whole**2 * noise / self.runs_of[cell])


def scaled(z):
    return (z - z.mean()) / z.std()


def fit(numbers, time_of):
    """From the runs of one device that count; None with too few."""
    runs = []
    for n in sorted(numbers, key=lambda n: (n.run.record["started_utc"], n.run.record["block"], n.run.record["timeline"]["launched_ns"])):
        time_s = time_of(n)
        if time_s is not None and time_s > 0:
            runs.append((n.run.cell["cell"], n.run.record["repetition"], float(np.log(time_s))))
    cells = {cell for cell, _, _ in runs}
    if len(cells) > MOST_CELLS:
        raise NotImplementedError("more cells than the pace is recomputed for")
    return Pace(runs) if len(runs) - len(cells) - 1 >= 1 else None
