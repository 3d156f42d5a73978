"""The numbers of one run, from its epochs and samples alone."""

from dataclasses import replace

import numpy as np

import instances

NS = 1e-9
LEAST_LOAD_NS = 1e8  # ten clock ticks
GPU_SOURCES = {  # which source a figure of the GPU is of, the preferred one first
    "sm_active_ratio": ("gpm", "dcgm"),
    "graphics_active_ratio": ("gpm", "dcgm"),
    "sm_occupancy_ratio": ("gpm", "dcgm"),
    "dram_active_ratio": ("gpm", "dcgm"),
    "pcie_rx_bytes_per_s": ("gpm", "dcgm", "nvml"),
    "pcie_tx_bytes_per_s": ("gpm", "dcgm", "nvml"),
}
COUNTERS = ("energy_j", "cpu_energy_j", "read_bytes", "written_bytes", "involuntary_context_switches", "voluntary_context_switches")


def window(run):
    """All members train, and none warms up: (start, end) in ns."""
    measured = [[e for e in run.epochs[m] if e["measured"]] for m in run.members]
    if any(not epochs for epochs in measured):
        return None
    start = max(epochs[0]["start_ns"] for epochs in measured)
    end = min([max(epochs[-1]["end_ns"] for epochs in measured)] + [m["training_end_ns"] for m in run.record["members"]])
    return (float(start), float(end)) if end > start else None


def together(run):
    """The span in which all members train."""
    members = run.record["members"]
    return max(m["training_start_ns"] for m in members), min(m["training_end_ns"] for m in members)


def overlap(run, epoch):
    start, end = together(run)
    shared = min(end, epoch["end_ns"]) - max(start, epoch["start_ns"])
    return max(0, shared) / (epoch["end_ns"] - epoch["start_ns"])


def counted_epochs(run, member, threshold):
    """Measured epochs; of members that exit only those in which all were training."""
    epochs = [e for e in run.epochs[member] if e["measured"]]
    if run.cell["after_measured"] == "exit":
        epochs = [e for e in epochs if overlap(run, e) >= threshold]
    return epochs


def lengths(epochs):
    return [(e["end_ns"] - e["start_ns"]) * NS for e in epochs]


def epoch_time(run, member, threshold):
    if not run.trains(member):
        return None
    found = lengths(counted_epochs(run, member, threshold))
    return float(np.mean(found)) if found else None


def items_per_s(run, member, threshold):
    epochs = counted_epochs(run, member, threshold)
    if not epochs or any(e["items"] is None for e in epochs) or not run.trains(member):
        return None
    return sum(e["items"] for e in epochs) / sum(lengths(epochs))


def overlap_mean(run):
    found = [overlap(run, e) for m in run.members for e in run.epochs[m] if e["measured"]]
    return float(np.mean(found)) if found else None


def start_skew(run):
    starts = [m["training_start_ns"] for m in run.record["members"]]
    return (max(starts) - min(starts)) * NS


def makespan(run):
    go = run.record["timeline"]["go_ns"]
    ends = [e["end_ns"] for m in run.members for e in run.epochs[m] if e["measured"]]
    return (max(ends) - go) * NS if ends else None


def loss(run, member):
    """Of the last measured epoch."""
    epochs = [e for e in run.epochs[member] if e["measured"]]
    return epochs[-1]["loss"] if epochs else None


def readings(run, metric, scope, sources=None):
    """Of the preferred source that read anything."""
    by_source = run.samples.get((metric, scope), {})
    for source in sources or by_source:
        series = by_source.get(source)
        if series is not None and source == "dcgm" and metric.endswith("_active_ratio"):
            series = believed(series)
        if series is not None and metric == "cpu_ratio":
            series = bounded(series, scope, run.cores)
        if series is not None and not np.isnan(series.value).all():
            return series
    return None


def believed(series):
    """Of DCGM: a share above 1 is none."""
    return replace(series, value=np.where(series.value > 1, np.nan, series.value))


def bounded(series, scope, cores):
    """No load is more than the cores; those of the machine are over ten ticks or more."""
    is_short = (series.window > 0) & (series.window < LEAST_LOAD_NS) & (scope == "host")
    return replace(series, value=np.where(is_short, np.nan, np.minimum(series.value, cores or np.inf)))


def inside(series, span):
    """Readings of the window: of means over a span those wholly inside, of gauges those at a moment inside."""
    known = ~np.isnan(series.value)
    whole = known & (series.at - series.window >= span[0]) & (series.at <= span[1])
    return series.at[whole], series.value[whole], series.window[whole]


def mean(series, span):
    if series is None or span is None:
        return None
    _, values, windows = inside(series, span)
    if len(values):
        return float(np.average(values, weights=windows if windows.any() else None))
    shared = np.minimum(series.at, span[1]) - np.maximum(series.at - series.window, span[0])
    part = (shared > 0) & (series.window > 0) & ~np.isnan(series.value)
    return float(np.average(series.value[part], weights=shared[part])) if part.any() else None


def rate(series, span):
    """Growth of a counter per second, between its first and last reading in the window; None if it decreased."""
    if series is None or span is None:
        return None
    at, values, _ = inside(series, span)
    if len(at) < 2 or (np.diff(values) < 0).any():
        return None
    return float((values[-1] - values[0]) / ((at[-1] - at[0]) * NS))


def p95(series, span):
    if series is None or span is None:
        return None
    _, values, _ = inside(series, span)
    return float(np.quantile(values, 0.95)) if len(values) else None


def halves(series, span):
    """Means of the first and of the second half of the window."""
    if series is None or span is None:
        return None
    middle = (span[0] + span[1]) / 2
    found = mean(series, (span[0], middle)), mean(series, (middle, span[1]))
    return found if None not in found else None


def process_span(run):
    """While any member trained: of what is of no single member."""
    members = run.record["members"]
    return float(min(m["training_start_ns"] for m in members)), float(max(m["training_end_ns"] for m in members))


def member_span(run, member):
    """From the first start until the end of its own training."""
    return process_span(run)[0], float(run.record["members"][member]["training_end_ns"])


def peak(run, metric, scope, span):
    series = readings(run, metric, scope)
    if series is None:
        return None
    _, values, _ = inside(series, span)
    return float(values.max()) if len(values) else None


def pss_peak(run, scope, span):
    """The largest RSS, less what RSS counted too often at the reading of PSS with the largest RSS, both from one walk; at least the largest PSS."""
    of = lambda metric: inside(series, span) if (series := readings(run, metric, scope)) is not None else ([], [], [])
    (at, pss, _), (walked_at, walked, _), (_, rss, _) = of("pss_bytes"), of("rss_at_pss_bytes"), of("rss_bytes")
    with_rss = dict(zip(walked_at, walked))
    pairs = [(with_rss[when], share) for when, share in zip(at, pss) if when in with_rss]
    if not pairs:
        return None
    resident, share = max(pairs)
    return float(max(max([*rss, resident]) - max(0.0, resident - share), max(share for _, share in pairs)))


def footprints(run):
    """By how they are read, the best first: the peak of each member, or of the process that all are threads of."""
    scopes = [("process", process_span(run))] if run.one_process() else [(run.scope(m), member_span(run, m)) for m in run.members]
    kernel = [run.record["process"]] if run.one_process() else run.record["members"]
    if run.is_gpu():
        return {"gpu_memory": [peak(run, "gpu_memory_bytes", *of) for of in scopes]}
    return {
        "pss_peak": [pss_peak(run, *of) for of in scopes],
        "rss": [peak(run, "rss_bytes", *of) for of in scopes],
        "peak_rss": [of.get("peak_rss_bytes") for of in kernel],
    }


def memory_kind(runs):
    """How the memory of all runs of a cell is read: the first way that has a reading of all members that have any."""
    read = [footprints(run) for run in runs]
    for kind in read[0] if read else ():
        columns = [column for of in read for column in zip(*of.values())]
        at = list(read[0]).index(kind)
        if any(set(column) != {None} for column in columns) and all(column[at] is not None for column in columns if set(column) != {None}):
            return kind
    return None


def headroom(run, used):
    """Memory that further members could use."""
    if used is None:
        return None
    if run.cell["mode"]["partitioned"]:
        whole = instances.memory(run)
    else:
        whole = run.record["device"]["memory_bytes"]
        card = peak(run, "memory_used_bytes", gpu_scope(run), process_span(run)) if run.is_gpu() else None
        used = max(used, card or 0.0)
    return whole - used if whole is not None and whole > used else None


def gpu_scope(run):
    scopes = sorted({scope for _, scope in run.samples if scope.startswith("gpu:")})
    return scopes[0] if len(scopes) == 1 else None


def resolution(run, span):
    """Relative standard deviation that the steps of the energy counter leave; 0 if it moved between all readings."""
    series = readings(run, "energy_j", gpu_scope(run)) if run.is_gpu() else readings(run, "cpu_energy_j", "host")
    if series is None or span is None:
        return 0.0
    moved = np.diff(inside(series, span)[1]) > 0
    return float(np.sqrt(2 / 12) / moved.sum()) if moved.any() and not moved.all() else 0.0


def power_of_counter(run, span):
    """Watts of the whole device, from its energy counter."""
    if run.is_gpu():
        return rate(readings(run, "energy_j", gpu_scope(run)), span)
    return rate(readings(run, "cpu_energy_j", "host"), span)


REDUCED = 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80  # NVML's reasons that reduce the clocks: not idle, nor clocks that were set


def throttled(run, span):
    """Share of the readings of the reasons with one that reduces the clocks."""
    series = readings(run, "throttle_reasons", gpu_scope(run))
    if series is None or span is None:
        return None
    _, masks, _ = inside(series, span)
    return float(np.mean([int(mask) & REDUCED != 0 for mask in masks])) if len(masks) else None


def idle_power(run):
    """Watts from the launch until the last reading at which the GPU's used memory is not yet more than at the launch."""
    scope = gpu_scope(run)
    used, power = readings(run, "memory_used_bytes", scope), readings(run, "power_w", scope)
    if used is None or power is None or run.cell["mode"]["mps"]:
        return None
    launched = run.record["timeline"]["launched_ns"]
    later = used.at >= launched
    at, more = used.at[later], used.value[later] > used.value[later][:1] + 16 * 2**20
    if not more.any() or more[0]:
        return None
    last = min(at[more.argmax() - 1], min(m["training_start_ns"] for m in run.record["members"]))
    before = (power.at <= last) & (power.at - power.window >= launched) & ~np.isnan(power.value)
    return float(power.value[before].mean()) if before.any() else None
