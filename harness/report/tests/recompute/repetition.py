"""The numbers of one repetition of a cell: what depends on no other run but for the idle power."""

import numpy as np

import one_run as one

P95 = {f"{name}_p95_ratio": f"{name}_ratio" for name in ("sm_active", "sm_occupancy", "dram_active")}


class Numbers:
    """Of one run: what depends on no other run."""

    def __init__(self, run, campaign, memory_kind):
        self.run, t = run, campaign["thresholds"]
        read = one.footprints(run)[memory_kind] if memory_kind else [None]
        self.footprints = read if len(read) == len(run.members) else read * len(run.members)
        span, all_train = one.window(run), all(run.trains(m) for m in run.members)
        self.span = span
        self.members = [self.of_member(m, t["overlap_ratio"]) for m in run.members]
        self.values = {
            "overlap_ratio": one.overlap_mean(run) if len(run.members) > 1 else None,
            "start_skew_s": one.start_skew(run) if len(run.members) > 1 else None,
            "makespan_s": one.makespan(run) if all_train and campaign["plan"].get("measure_for_s") is None else None,
            "memory_bytes": total(read),
            "throttled_ratio": one.throttled(run, span) if run.is_gpu() else None,
        }
        uniform = len({m["spec"]["solo"] for m in run.record["members"]}) == 1
        self.values["epoch_time_s"] = mean([m["epoch_time_s"] for m in self.members]) if uniform else None
        self.values["cpu_ratio"] = self.cpu()
        self.values["items_per_s"] = total([m["items_per_s"] for m in self.members])
        self.values["memory_headroom_bytes"] = one.headroom(run, self.values["memory_bytes"])
        self.watts = one.power_of_counter(run, span)
        self.resolution = one.resolution(run, span)
        self.metrics = self.other_metrics()

    def cpu(self):
        if self.run.one_process():
            return one.mean(one.readings(self.run, "cpu_ratio", "process"), self.span)
        return total([m["cpu_ratio"] for m in self.members])

    def of_member(self, member, threshold):
        run, scope = self.run, f"member:{member}"
        span = self.span
        return {
            "epoch_time_s": one.epoch_time(run, member, threshold),
            "memory_bytes": None if run.one_process() else self.footprints[member],
            "cpu_ratio": None if run.one_process() else one.mean(one.readings(run, "cpu_ratio", scope), span),
            "items_per_s": one.items_per_s(run, member, threshold),
            "read_bytes_per_s": one.rate(one.readings(run, "read_bytes", scope), span),
            "involuntary_switches_per_s": one.rate(one.readings(run, "involuntary_context_switches", scope), span),
            "loss": one.loss(run, member),
        }

    def other_metrics(self):
        """Means of all other metrics of the whole device over the measured window."""
        scope, found = one.gpu_scope(self.run) if self.run.is_gpu() else None, {}
        for metric, of in self.run.samples:
            if of not in ("host", scope) or metric in (*one.COUNTERS, "throttle_reasons"):
                continue
            series = one.readings(self.run, metric, of, one.GPU_SOURCES.get(metric) if of == scope else None)
            found[metric] = one.mean(series, self.span)
            if metric in P95.values():
                name = next(k for k, v in P95.items() if v == metric)
                found[name] = one.p95(series, self.span)
        clock, temperature = (one.halves(one.readings(self.run, m, scope), self.span) for m in ("sm_clock_mhz", "temperature_c"))
        found["sm_clock_drift_ratio"] = clock[1] / clock[0] if clock else None
        found["temperature_drift_c"] = temperature[1] - temperature[0] if temperature else None
        return {metric: value for metric, value in found.items() if value is not None}

    def energy(self, idle):
        """Joules of the device per epoch and item, from its power by the counter."""
        self.idle_w = idle
        epochs = [m["epoch_time_s"] for m in self.members]
        rate = sum(1 / e for e in epochs) if all(epochs) else None
        items, watts = self.values["items_per_s"], self.watts
        of = lambda power, per: power / per if power is not None and power > 0 and per else None
        self.values["energy_j_per_epoch"] = of(watts, rate)
        self.values["energy_j_per_epoch_above_idle"] = of(watts - idle, rate) if None not in (watts, idle) else None
        self.values["energy_j_per_item"] = of(watts, items)
        for direction in ("rx", "tx"):
            traffic = self.metrics.get(f"pcie_{direction}_bytes_per_s")
            self.values[f"pcie_{direction}_bytes_per_item"] = of(traffic, items)


def mean(values):
    return float(np.mean(values)) if values and None not in values else None


def total(values):
    return float(sum(values)) if values and None not in values else None


def one_epoch(numbers):
    return numbers.members[0]["epoch_time_s"]


def one_makespan(numbers):
    return numbers.values["makespan_s"]


def training_s(numbers):
    """The epoch times of all members that train, summed."""
    return total([m["epoch_time_s"] for i, m in enumerate(numbers.members) if numbers.run.trains(i)]) or None
