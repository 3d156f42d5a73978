"""The numbers of each cell and member: those of its repetitions, with intervals, ratios to baselines, verdicts."""

import copy
import math

import numpy as np

import devices
import latency
import one_run as one
import intervals as st
import outliers
import pace
from repetition import Numbers, mean, one_epoch, one_makespan, training_s

MEMBER_OWN = ("epoch_time_s", "memory_bytes", "cpu_ratio", "items_per_s", "read_bytes_per_s", "involuntary_switches_per_s")
CELL_OWN = (
    "epoch_time_s", "overlap_ratio", "start_skew_s", "makespan_s", "memory_bytes", "memory_headroom_bytes", "cpu_ratio", "items_per_s",
    "energy_j_per_epoch", "energy_j_per_epoch_above_idle", "energy_j_per_item", "pcie_rx_bytes_per_item", "pcie_tx_bytes_per_item",
    "throttled_ratio",
)
OF_COUNTER = ("energy_j_per_epoch", "energy_j_per_epoch_above_idle", "energy_j_per_item")
SHARES_AT_MOST_ONE = ("fairness", "overlap_ratio", "throttled_ratio")


def geometric(values):
    return float(np.exp(np.mean(np.log(values))))


class Cells:
    """All cells of a campaign that are neither traces nor watched."""

    def __init__(self, stored, differing=()):
        """`differing` names the quantities that differ between the devices of the campaign."""
        self.campaign, self.differing = stored.manifest, set(differing)
        self.cells = [c for c in stored.cells() if not c.get("trace") and not c.get("observe")]
        self.runs = {c["cell"]: [r for r in stored.of(c) if r.completed] for c in self.cells}
        self.memory_kind = {name: one.memory_kind(self.counted(name)) for name in self.runs}
        of = lambda name: [Numbers(r, self.campaign, self.memory_kind[name]) for r in self.counted(name)]
        self.numbers = {name: of(name) for name in self.runs}
        self.idle_power()
        # The pace is that of all runs.
        self.timed = [n for of in self.numbers.values() for n in of]
        self.far = outliers.far_runs(self.cells, self.numbers)
        self.near = self.without(self.far) if self.far else None
        self.compute()

    def without(self, far):
        """The same cells without some runs: what cells lend each other is learnt from them."""
        near = copy.copy(self)
        is_near = lambda n: (n.run.cell["cell"], n.run.record["repetition"]) not in far
        near.numbers, near.near = {name: [n for n in of if is_near(n)] for name, of in self.numbers.items()}, None
        near.compute()
        return near

    def compute(self):
        self.paces, self.known = {}, {}
        self.found = {c["cell"]: {"members": [{} for _ in c["members"]], "metrics": {}} for c in self.cells}
        self.pools = {}
        for name in CELL_OWN:
            self.pool(name, lambda n, name=name: n.values.get(name))
        for name in MEMBER_OWN:
            self.pool_members(name)
        self.other_metrics()
        self.ratios()
        self.of_solo()
        self.latencies()
        self.verdicts()

    def counted(self, cell):
        """Valid runs, or if there are none the indicative ones."""
        runs = self.runs[cell]
        valid = [r for r in runs if r.record["validity"]["verdict"] == "valid"]
        return valid or [r for r in runs if r.record["validity"]["verdict"] in ("indicative", "informative")]

    def idle_power(self):
        watts = {}
        for numbers in self.numbers.values():
            for n in numbers:
                if n.run.is_gpu() and (found := one.idle_power(n.run)) is not None:
                    watts.setdefault((n.run.device, bool(n.run.cell["mode"]["partitioned"])), []).append(found)
        for numbers in self.numbers.values():
            for n in numbers:
                of = watts.get((n.run.device, bool(n.run.cell["mode"]["partitioned"])))
                n.energy(float(np.median(of)) if of else None)

    def pool(self, name, of):
        """A quantity of the cells, whose variance they share."""
        values = {cell: [of(n) for n in numbers] for cell, numbers in self.numbers.items()}
        self.pools[name] = self.variances(values, name)
        floors = {cell: self.floor(cell) for cell in values} if name in OF_COUNTER else {}
        found = self.on_devices(values, name) if name in self.differing else self.share(values, name, floors)
        for cell, q in found.items():
            # Where a repetition leaves nothing free, the mean of the others is not what is free.
            is_full = name == "memory_headroom_bytes" and None in values[cell]
            self.found[cell][name] = None if is_full else q

    def on_devices(self, values, name):
        """The same of a quantity that differs between devices."""
        assert self.near is None, f"{name} differs between devices, and there are far runs: not recomputed"
        known = {}
        for key, of in values.items():
            at = [n.run.device for n in self.numbers[key if isinstance(key, str) else key[0]]]
            pairs = [(v, d) for v, d in zip(of, at) if v is not None]
            known[key] = [v for v, _ in pairs], [d for _, d in pairs]
        return devices.share(known)

    def variances(self, values, name):
        """Of each cell the moments of its logarithms, and the variance that it shares: what others lend is learnt without far runs."""
        known = {cell: [v for v in of if v is not None] for cell, of in values.items()}
        self.known[name] = known
        logs, learnt, far = [st.log_moments(of) for of in known.values()], None, None
        if self.near:
            without = self.near.known[name]
            learnt = [st.log_moments(without[cell]) for cell in without]
            far = [of != without.get(cell, []) for cell, of in known.items()]
        return dict(zip(known, zip(logs, st.shrink(logs, learnt, far))))

    def floor(self, cell):
        """The variance that the steps of the energy counter leave."""
        return float(np.mean([n.resolution**2 for n in self.numbers[cell]])) if self.numbers[cell] else 0.0

    def share(self, values, name, floors=None):
        found, at_most_one = {}, name in SHARES_AT_MOST_ONE
        shared = self.variances(values, name)
        for cell, (log, variance) in shared.items():
            if not (of := self.known[name][cell]):
                found[cell] = None
            elif log is None:
                found[cell] = st.mean_without_interval(of)
            else:
                term = None if variance is None else (1.0, max(variance[0], (floors or {}).get(cell, 0.0)), variance[1], log.n)
                found[cell] = limited(st.interval(log.mean, log.n, [term]), at_most_one)
        return found

    def pool_members(self, name):
        places = [(c["cell"], m) for c in self.cells for m in range(len(c["members"]))]
        values = {(cell, m): [n.members[m][name] for n in self.numbers[cell]] for cell, m in places}
        of = f"{name} of members"
        found = self.on_devices(values, of) if name in self.differing else self.share(values, of)
        for (cell, member), q in found.items():
            self.found[cell]["members"][member][name] = q

    def other_metrics(self):
        for cell, numbers in self.numbers.items():
            for metric in sorted({m for n in numbers for m in n.metrics}):
                values = [n.metrics[metric] for n in numbers if metric in n.metrics]
                log = st.log_moments(values)
                variance = st.own([log])[0]
                difference = metric.endswith("_drift_c")
                if difference or log is None or variance is None:
                    q = st.mean_without_interval(values, difference)
                else:
                    q = st.interval(log.mean, log.n, [(1.0, *variance, log.n)])
                self.found[cell]["metrics"][metric] = limited(q, is_share(metric))

    def baseline(self, run, solo, value):
        """Geometric mean of the baseline's runs of the same block, else at the pace of the run, else of all: (value, baseline, which)."""
        of = self.numbers.get(solo, [])
        block = [v for n in of if n.run.block == run.block and (v := value(n)) is not None]
        if block:
            return geometric(block), solo, BLOCK
        if of and (at := self.pace(run.device, value)):
            log = at.log_at(solo, run.cell["cell"], run.record["repetition"])
            if log is not None:
                return math.exp(log), solo, PACE
        every = [v for n in of if n.run.device == run.device and (v := value(n)) is not None]
        return geometric(every) if every else None, solo, MEAN

    def pace(self, device, value):
        """Of one device, by epoch times or makespans."""
        key = device, value is one_makespan
        if key not in self.paces:
            here = [n for n in self.timed if n.run.device == device]
            self.paces[key] = pace.fit(here, one_makespan if key[1] else training_s)
        return self.paces[key]

    def ratios(self):
        """Slowdown, STP, ANTT, gain and fairness of each repetition, by the baselines of its block."""
        found = {name: {} for name in ("slowdown", "slowdown_on_slice", "stp", "antt", "throughput_gain", "fairness")}
        of_members = {}
        for c in self.cells:
            slices = c.get("alone_on_slice") or [None] * len(c["members"])
            for n in self.numbers[c["cell"]]:
                epochs = [m["epoch_time_s"] for m in n.members]
                alone = [self.baseline(n.run, m["solo"], one_epoch) for m in c["members"]]
                on_slice = [self.baseline(n.run, label, one_epoch) for label in slices]
                for name, ratio in self.ratios_of(c, n, epochs, alone, on_slice).items():
                    found[name].setdefault(c["cell"], []).append(ratio)
                for i, (e, base) in enumerate(zip(epochs, alone)):
                    of_members.setdefault((c["cell"], i), []).append(over_bases([e], [base]))
        for name, ratios in found.items():
            for cell, q in self.with_baselines(ratios, name).items():
                self.found[cell][name] = q
        for (cell, member), q in self.with_baselines(of_members, "slowdown", " of members").items():
            self.found[cell]["members"][member]["slowdown"] = q

    def ratios_of(self, c, n, epochs, alone, on_slice):
        slowdowns = [None if None in (e, b) else e / b for e, (b, _, _) in zip(epochs, alone)]
        uniform = len({m["solo"] for m in c["members"]}) == 1
        progress = [1 / e if e else None for e in epochs] if uniform else [1 / s if s else None for s in slowdowns]
        fair = min(progress) / max(progress) if len(progress) > 1 and None not in progress else None
        stp = over_bases(epochs, alone, inverse=True)
        gain = self.gain(c, n, epochs, alone, stp)
        ends = [progress.index(min(progress)), progress.index(max(progress))] if fair else []
        of_fair = {alone[i][1:]: 0.0 for i in ends if not uniform and alone[i][2] != BLOCK}
        for i, sign in zip(ends, (1, -1)):
            if alone[i][1:] in of_fair:
                of_fair[alone[i][1:]] += sign
        slowdown = over_bases(epochs, alone)
        return {
            "slowdown": slowdown,
            "antt": slowdown,
            "stp": stp,
            "fairness": None if fair is None else Ratio(fair, of_fair),
            "slowdown_on_slice": over_bases(epochs, on_slice),
            "throughput_gain": gain,
        }

    def gain(self, c, n, epochs, alone, stp):
        by = gain_by(c)
        if by == "makespan":
            alone = [self.baseline(n.run, m["solo"], one_makespan) for m in c["members"]]
            return sum_over([b for b, _, _ in alone], alone, n.values["makespan_s"])
        if by == "progress":
            return stp
        return sum_over([b for b, _, _ in alone], alone, mean(epochs))

    def with_baselines(self, ratios, name, of_members=""):
        """Intervals of ratios; the variance of a baseline that is not of the same block is added by its weight."""
        by = {key: gain_by(self.cell(key)) for key in ratios}
        values = {key: [r.value for r in of if r is not None] for key, of in ratios.items()}
        own = self.variances({key: of for key, of in values.items() if not self.cell(key)["baseline"]}, name + of_members)
        found = {}
        for key, of in values.items():
            if self.cell(key)["baseline"]:
                found[key] = exactly_one(len(of)) if name not in ("fairness", "slowdown_on_slice") else None
                continue
            log, variance = own[key]
            if log is None:
                found[key] = st.mean_without_interval(of) if of else None
                continue
            by_makespan = (name, by[key]) == ("throughput_gain", "makespan")
            pool = self.pools["makespan_s" if by_makespan else "epoch_time_s"]
            terms = [None if variance is None else (1.0, *variance, log.n)]
            known = [r for r in ratios[key] if r is not None]
            weights = {at: float(np.mean([r.outside.get(at, 0.0) for r in known])) for at in sorted({at for r in known for at in r.outside})}
            for (solo, _), weight in (of for of in weights.items() if of[0][1] == MEAN):
                base, shared = pool[solo]
                terms.append(None if shared is None else (weight, *shared, base.n))
            paced = {solo: weight for (solo, how), weight in weights.items() if how == PACE}
            # At one pace all baselines of a device deviate together.
            for device in sorted({n.run.device for n in self.numbers[self.cell(key)["cell"]]} if paced else ()):
                at = self.pace(device, one_makespan if by_makespan else one_epoch)
                terms.append((1.0, at.variance(self.cell(key)["cell"], paced) * log.n, at.free, log.n))
            found[key] = limited(st.interval(log.mean, log.n, terms), name in SHARES_AT_MOST_ONE)
        return found

    def cell(self, key):
        name = key if isinstance(key, str) else key[0]
        return next(c for c in self.cells if c["cell"] == name)

    def of_solo(self):
        """Ratios of quantities that are no times to what the members have alone: all runs of the baselines count."""
        self.over_alone("memory_of_solo", "memory_bytes")
        self.over_alone("pcie_rx_of_solo", "pcie_rx_bytes_per_item", share_of_each=True)
        self.solo_activity()
        self.energy_of_solo()

    def solo_activity(self):
        """Σ of the members' solo SMACT. It is the same for every repetition: a variance of 0, with the groups' degrees of freedom."""
        values = {cell: [n.metrics.get("sm_active_ratio") for n in numbers] for cell, numbers in self.numbers.items()}
        pool = self.variances(values, "sm_active_ratio")
        free = sum(max(len(self.numbers[c["cell"]]) - 1, 0) for c in self.cells if not c["baseline"] and self.activity(c, pool))
        for c in self.cells:
            alone, n = self.activity(c, pool), len(self.numbers[c["cell"]])
            if not alone or not n:
                self.found[c["cell"]]["solo_sm_active_sum_ratio"] = None
                continue
            total = sum(math.exp(alone[m["solo"]][0].mean) for m in c["members"])
            terms = [(1.0, 0.0, free, n) if free else None] + weighted(c, alone, total)
            self.found[c["cell"]]["solo_sm_active_sum_ratio"] = st.interval(math.log(total), n, terms)

    def activity(self, c, pool):
        found = {m["solo"]: pool.get(m["solo"], (None, None)) for m in c["members"]}
        return found if all(log is not None for log, _ in found.values()) else None

    def energy_of_solo(self):
        """Joules of the group ÷ those of the same work in turn: P ÷ Σ (Eᵢ ÷ eᵢ)."""
        name, of = "energy_of_solo", "energy_j_per_epoch"
        values, weights = {}, {}
        for c in self.cells:
            alone = self.alone(c, of)
            if c["baseline"] or alone is None:
                continue
            for n in self.numbers[c["cell"]]:
                epochs = [m["epoch_time_s"] for m in n.members]
                if n.watts is None or None in epochs:
                    continue
                parts = [math.exp(alone[m["solo"]][0].mean) / e for m, e in zip(c["members"], epochs)]
                values.setdefault(c["cell"], []).append(n.watts / sum(parts))
                weights.setdefault(c["cell"], []).append([part / sum(parts) for part in parts])
        own = self.variances(values, name)
        for c in self.cells:
            log, variance = own.get(c["cell"], (None, None))
            known = [n for n in self.numbers[c["cell"]] if n.values[of] is not None]
            self.found[c["cell"]][name] = exactly_one(len(known)) if c["baseline"] else None
            if log is None:
                continue
            terms = [None if variance is None else (1.0, max(variance[0], self.floor(c["cell"])), variance[1], log.n)]
            parts = np.mean(weights[c["cell"]], axis=0)
            for solo, (base, shared) in self.alone(c, of).items():
                weight = sum(part for part, m in zip(parts, c["members"]) if m["solo"] == solo)
                # The baseline's joules come from the same counter.
                term = None if shared is None else (weight, max(shared[0], self.floor(solo)), shared[1], base.n)
                terms.append(term)
            self.found[c["cell"]][name] = st.interval(log.mean, log.n, terms)

    def over_alone(self, name, of, share_of_each=False):
        """A quantity ÷ the sum of what the members have of it alone, or their mean."""
        groups = [c for c in self.cells if not c["baseline"]]
        values = {}
        for c in groups:
            if alone := self.alone(c, of):
                total = sum(math.exp(alone[m["solo"]][0].mean) for m in c["members"])
                divisor = total / len(c["members"]) if share_of_each else total
                values[c["cell"]] = [None if (v := n.values[of]) is None else v / divisor for n in self.numbers[c["cell"]]]
        own = self.variances(values, name)
        for c in self.cells:
            known = [v for n in self.numbers[c["cell"]] if (v := n.values[of]) is not None]
            self.found[c["cell"]][name] = exactly_one(len(known)) if c["baseline"] else None
        for c in groups:
            log, variance = own.get(c["cell"], (None, None))
            if log is None:
                continue
            alone = self.alone(c, of)
            total = sum(math.exp(alone[m["solo"]][0].mean) for m in c["members"])
            terms = [None if variance is None else (1.0, *variance, log.n)]
            terms += weighted(c, alone, total)
            self.found[c["cell"]][name] = st.interval(log.mean, log.n, terms)

    def alone(self, c, of):
        """The moments of each distinct member alone; None if one is missing."""
        found = {m["solo"]: self.pools[of].get(m["solo"], (None, None)) for m in c["members"]}
        return found if all(log is not None for log, _ in found.values()) else None

    def latencies(self):
        """Of members that serve: of each, equal ones together, and of the cell if all of them are equal."""
        threshold = self.campaign["thresholds"]["overlap_ratio"]
        for c in self.cells:
            runs, found = [n.run for n in self.numbers[c["cell"]]], self.found[c["cell"]]
            groups = {}
            for i, m in enumerate(c["members"]):
                if runs and not runs[0].trains(i):
                    groups.setdefault(m["solo"], []).append(i)
            servers = [(found, members) for members in groups.values() if len(groups) == 1]
            servers += [(found["members"][i], [i]) for members in groups.values() for i in members]
            for of, members in servers:
                of_runs = [latency.of_run(run, members, threshold) for run in runs]
                of |= {name: latency.quantity(name, of_runs) for name in latency.NAMES}
            for i in (i for members in groups.values() for i in members):
                capacity = [{"capacity_per_s": run.record["members"][i]["serving"].get("capacity_per_s")} for run in runs]
                found["members"][i]["capacity_per_s"] = latency.quantity("capacity_per_s", capacity)
            for of, members in servers:
                own, alone = of["latency_p99_s"], self.found.get(c["members"][members[0]]["solo"], {}).get("latency_p99_s")
                of["latency_p99_of_solo"] = None if None in (own, alone) else exactly_one(own.n) if c["baseline"] else st.ratio(own, alone)

    def verdicts(self):
        groups = [c["cell"] for c in self.cells if not c["baseline"]]
        gains = [self.found[cell].get("throughput_gain") for cell in groups]
        relevant = self.campaign["thresholds"]["relevant_ratio"]
        ps = [st.p_beyond(q, relevant) for q in gains]
        for cell, q, p, adjusted in zip(groups, gains, ps, st.holm(ps)):
            said = st.verdict(q, adjusted, relevant) if p is not None else None
            self.found[cell]["throughput_gain_verdict"] = None if p is None else {"p": p, "p_adjusted": adjusted, "verdict": said}


# What a baseline's time is: of the run's own block, at the pace of the run, or the mean over all runs.
BLOCK, PACE, MEAN = "block", "pace", "mean"


class Ratio:
    """A ratio to baselines in one repetition, with the weight of each that is not of the same block."""

    def __init__(self, value, outside):
        self.value, self.outside = value, outside


def over_bases(epochs, bases, inverse=False):
    """Mean of epoch ÷ baseline, or sum of baseline ÷ epoch."""
    if None in epochs or any(b is None for b, _, _ in bases):
        return None
    parts = [b / e if inverse else e / b for e, (b, _, _) in zip(epochs, bases)]
    return Ratio(sum(parts) if inverse else float(np.mean(parts)), outside(parts, bases))


def sum_over(parts, bases, divisor):
    """Sum of baselines ÷ something of the group."""
    if None in parts or divisor is None:
        return None
    return Ratio(sum(parts) / divisor, outside(parts, bases))


def outside(parts, bases):
    weights = {}
    for part, (_, *at) in zip(parts, bases):
        if at[1] != BLOCK:
            weights[tuple(at)] = weights.get(tuple(at), 0.0) + part / sum(parts)
    return weights


def gain_by(c):
    if c["after_measured"] == "exit":
        return "makespan"
    return "epoch_time" if len({m["solo"] for m in c["members"]}) == 1 else "progress"


def limited(q, at_most_one):
    if q is not None and at_most_one:
        q.estimate, q.low, q.high = (None if v is None else min(v, 1.0) for v in (q.estimate, q.low, q.high))
    return q


def is_share(metric):
    """Of something: neither cores, nor a change."""
    return metric.endswith("_ratio") and metric != "cpu_ratio" and not metric.endswith("_drift_ratio")


def exactly_one(n):
    """A baseline's ratio to itself."""
    return st.Quantity(1.0, 1.0, 1.0, n) if n else None


def weighted(c, alone, total):
    """The terms of the members alone in the variance of the logarithm of their sum."""
    terms = []
    for solo, (log, shared) in alone.items():
        weight = sum(m["solo"] == solo for m in c["members"]) * math.exp(log.mean) / total
        terms.append(None if shared is None else (weight, *shared, log.n))
    return terms
