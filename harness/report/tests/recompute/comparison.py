"""Numbers of a report beside those recomputed."""

import csv
import json
import math
import re

import intervals
import traces

TOLERANCE = 1e-9
NO_QUANTITY = {"members", "metrics", "throughput_gain_verdict"}
# Quantities of a trace in which no direction is better, so that no ratio of theirs is judged.
NEITHER = {"site_memory_ratio", "decisions_per_s"}
# What a quantity of a report has.
ENDS = ("estimate", "low", "high", "repetitions", "df")


class Checked:
    def __init__(self):
        self.numbers, self.differences, self.left = 0, [], set()

    def number(self, where, reported, found, away=0.0):
        """Both absent is alike, too. `away` is accepted of probabilities near 1, which depend on rounding errors."""
        self.numbers += 1
        near_one = away and None not in (reported, found) and found > 0.5 and abs(reported - found) < away
        if not alike(reported, found) and not near_one:
            self.differences.append(f"{where}: reported {reported}, recomputed {found}")

    def within(self, where, printed, found, away):
        self.numbers += 1
        if not abs(printed - found) <= away and not (printed < 100 and 0 <= found - printed < 2 * away and found < 100):
            self.differences.append(f"{where}: printed {printed}, recomputed {found}")


def alike(reported, found):
    if reported is None or found is None:
        return reported is None and found is None
    if isinstance(reported, str) or isinstance(found, str):
        return reported == found
    return math.isclose(reported, found, rel_tol=TOLERANCE, abs_tol=1e-300)


def ends(q):
    if q is None:
        return dict.fromkeys(ENDS)
    return {"estimate": q.estimate, "low": q.low, "high": q.high, "repetitions": q.n, "df": q.df}


def is_quantity(value):
    return isinstance(value, dict) and set(ENDS) <= set(value)


def compare_quantity(checked, where, reported, q):
    found = ends(q)
    # Of repetitions that do not differ the degrees of freedom are those of rounding errors.
    constant = q is not None and q.low is not None and alike(q.low, q.high)
    for end in ENDS[:-1] if constant else ENDS:
        checked.number(f"{where}.{end}", (reported or {}).get(end), found[end])


def compare_quantities(checked, where, reported, found):
    """All quantities that the report has of a cell or a member, and all that were recomputed."""
    for name in sorted({n for n, v in reported.items() if is_quantity(v)} | found.keys() - NO_QUANTITY):
        if name in found:
            compare_quantity(checked, f"{where} {name}", reported.get(name), found[name])
        else:
            checked.left.add(name)


def differing(reports):
    return {d["quantity"] for d in json.loads((reports / "report.json").read_text())["device_differences"]}


def compare_json(checked, found, reports):
    report = json.loads((reports / "report.json").read_text())
    for cell in report["cells"]:
        name, ours = cell["cell"], found.found[cell["cell"]]
        compare_quantities(checked, name, cell, ours)
        compare_quantities(checked, f"{name} metrics", cell["metrics"], ours["metrics"])
        for i, (member, of) in enumerate(zip(cell["members"], ours["members"])):
            compare_quantities(checked, f"{name} member {i}", member, of)
        checked.number(f"{name} memory_kind", cell.get("memory_kind"), found.memory_kind[name])
        compare_second_look(checked, name, cell.get("second_look"), found)
        verdict, own = cell.get("throughput_gain_verdict") or {}, ours.get("throughput_gain_verdict") or {}
        for key in ("p", "p_adjusted", "verdict"):
            checked.number(f"{name} throughput_gain_verdict.{key}", verdict.get(key), own.get(key))


# Given once more without the far runs.
TWICE = ("throughput_gain", "slowdown", "epoch_time_s", "makespan_s")


def compare_second_look(checked, name, look, found):
    """The far runs of a cell, and the quantities that they are in, or that are compared with one, without them."""
    left_out = {(run["cell"], run["repetition"]): run["deviation_ratio"] for run in (look or {}).get("left_out", [])}
    for run in sorted(left_out.keys() | {run for run in found.far if run[0] == name}):
        checked.number(f"{name} second_look {run}", left_out.get(run), found.far.get(run))
    if found.near is None:
        return
    ours = found.near.found[name]
    moved = {k for k in TWICE if found.known[k].get(name, []) != found.near.known[k].get(name, [])}
    reported = look["quantities"] if look else {}
    for quantity in sorted(moved | reported.keys()):
        compare_quantity(checked, f"{name} second_look {quantity}", reported.get(quantity), ours[quantity] if quantity in moved else None)


def compare_traces(checked, policies, reports, relevant):
    """Every policy by order, and the mean over its orders."""
    report = json.loads((reports / "report.json").read_text())
    for matrix in report["traces"]:
        for policy in matrix["policies"]:
            ours = policies[(matrix["trace"], policy["policy"], policy["estimate"], policy["sharing"])]
            where = f"{matrix['trace']} {policy['label']}"
            for of in policy["by_order"]:
                own = ours[of["order"]]
                for name in sorted(of["values"].keys() | {n for n, v in own.items() if v is not None}):
                    checked.number(f"{where} order {of['order']} {name}", of["values"].get(name), own.get(name))
            compare_ratios(checked, where, policy, policies, reference_of(matrix), relevant)
            for name in next(iter(ours.values())):
                mean = traces.average([own[name] for own in ours.values()], name)
                checked.number(f"{where} {name}", (policy.get(name) or {}).get("estimate"), mean)


def reference_of(matrix):
    policy = next(p for p in matrix["policies"] if p["label"] == matrix["reference"])
    return (matrix["trace"], policy["policy"], policy["estimate"], policy["sharing"])


def compare_ratios(checked, where, policy, policies, reference, relevant):
    """Ratios to the reference within orders, corrected over the policies by Holm."""
    key = (reference[0], policy["policy"], policy["estimate"], policy["sharing"])
    for name, reported in policy["ratios"].items():
        ours = traces.ratios(policies, reference, name)
        if ours is None:
            checked.left.add(f"ratio of {name}")
            continue
        compare_quantity(checked, f"{where} ratio of {name}", reported["ratio"], ours[key])
        ps = [intervals.p_beyond(q, relevant) for q in ours.values()]
        place = list(ours).index(key)
        for found, end in ((ps, "p"), (intervals.holm(ps), "p_adjusted")):
            judged = None if name in NEITHER else found[place]
            checked.number(f"{where} ratio of {name}.{end}", reported[end], judged, away=1e-8)


def compare_csv(checked, found, reports):
    if not (reports / "cells.csv").exists():
        return
    with open(reports / "cells.csv", newline="") as file:
        for row in csv.DictReader(file):
            ours = found.found.get(row["cell"])
            if ours is None:
                continue
            own = {name: q for name, q in ours.items() if name not in NO_QUANTITY}
            own |= {f"metrics.{name}": q for name, q in ours["metrics"].items()}
            for name, q in own.items():
                if name not in row:
                    continue
                for suffix, end in (("", "estimate"), ("_low", "low"), ("_high", "high"), ("_repetitions", "repetitions")):
                    text = row.get(name + suffix, "")
                    checked.number(f"cells.csv {row['cell']} {name}{suffix}", float(text) if text else None, ends(q)[end])
            verdict, text = ours.get("throughput_gain_verdict") or {}, row["throughput_gain_p_adjusted"]
            checked.number(f"cells.csv {row['cell']} p_adjusted", float(text) if text else None, verdict.get("p_adjusted"))


MEMBER_COLUMNS = ("epoch_time_s", "items_per_s", "memory_bytes", "cpu_ratio", "read_bytes_per_s", "involuntary_switches_per_s", "loss")
GROUP_COLUMNS = ("overlap_ratio", "start_skew_s", "makespan_s", "memory_bytes", "cpu_ratio", "items_per_s", "energy_j_per_epoch")

DEVICE_COLUMNS = ("sm_active_ratio", "sm_active_p95_ratio", "gpu_utilization_ratio", "sm_occupancy_ratio", "sm_occupancy_p95_ratio",
                  "dram_active_ratio", "dram_active_p95_ratio", "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s", "power_w", "sm_clock_mhz",
                  "temperature_c", "cpu_ratio")


def compare_dataset(checked, found, reports):
    """A row per member of each repetition: the numbers of single runs."""
    if not (reports / "dataset.csv").exists():
        return
    by_run = {(cell, n.run.record["repetition"]): n for cell, numbers in found.numbers.items() for n in numbers}
    with open(reports / "dataset.csv", newline="") as file:
        for row in csv.DictReader(file):
            n = by_run.get((row["cell"], int(row["repetition"])))
            if n is None:
                continue
            own = {name: n.members[int(row["member"])][name] for name in MEMBER_COLUMNS}
            own |= {f"group_{name}": n.values[name] for name in GROUP_COLUMNS}
            own |= {f"device_{name}": n.metrics.get(name) for name in DEVICE_COLUMNS}
            own |= {"device_throttled_ratio": n.values["throttled_ratio"], "device_power_by_counter_w": n.watts}
            own |= {"device_idle_power_w": n.idle_w}
            where = f"dataset.csv {row['cell']} {row['repetition']} {row['member']}"
            for name, value in own.items():
                checked.number(f"{where} {name}", float(row[name]) if row[name] else None, value)


# Heads of the terminal's columns: the quantity, and what one of it is in the unit of the head.
HEADS = {
    "epoch s": ("epoch_time_s", 1.0),
    "epoch ms": ("epoch_time_s", 1e-3),
    "slowdown": ("slowdown", 1.0),
    "gain": ("throughput_gain", 1.0),
    "fairness": ("fairness", 1.0),
    "memory": ("memory_bytes", 2.0**30),
    "cpu": ("cpu_ratio", 0.01),
    "overlap": ("overlap_ratio", 0.01),
    "p99 ms": ("latency_p99_s", 1e-3),
    "p99 ÷ alone": ("latency_p99_of_solo", 1.0),
    "in time": ("within_slo_ratio", 0.01),
}


def compare_terminal(checked, found, reports):
    """Printed numbers are rounded ones: half a unit of the last digit away at most, an interval's half width a whole one."""
    if not (reports / "terminal.txt").exists():
        return
    lines = (reports / "terminal.txt").read_text().splitlines()
    heads = next((line for line in lines if line.startswith("cell  ")), None)
    if heads is None:
        return
    names = re.split(r"\s{2,}", heads.strip())
    for line in lines:
        fields = re.split(r"\s{2,}", line.strip())
        ours = found.found.get(fields[0])
        if ours is None or len(fields) != len(names):
            continue
        for head, text in zip(names[1:], fields[1:]):
            if head not in HEADS and head != "validity":
                checked.left.add(f"terminal {head}")
            elif head in HEADS and (match := re.match(r"([\d.]+)(?: ±([\d.]+))?(?: GiB| %)?$", text)):
                name, unit = HEADS[head]
                q = ours.get(name) or (slowest(ours) if name == "slowdown" else None)
                compare_printed(checked, f"terminal {fields[0]} {head}", match[1], match[2], q, unit)


def slowest(ours):
    """The slowdown of the members that train beside others that serve."""
    return max((q for m in ours["members"] if (q := m.get("slowdown"))), key=lambda q: q.estimate, default=None)


def compare_printed(checked, where, estimate, half, q, unit):
    digit = 10.0 ** -len(estimate.partition(".")[2])
    own = q.estimate / unit if q else math.nan
    checked.within(where, float(estimate), own, 0.500001 * digit)
    if half and q:
        checked.within(f"{where} ±", float(half), max(q.high - q.estimate, q.estimate - q.low) / unit, 1.000001 * digit)
