"""Stored runs: a campaign folder in, runs with their tables out."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet


@dataclass
class Readings:
    """What one source read of one metric of one scope, in the order of time; NaN where it had no value."""

    at: np.ndarray
    window: np.ndarray
    value: np.ndarray


@dataclass
class Run:
    record: dict
    device: tuple  # origin of a merged campaign, and card
    cores: int  # that collo may use
    sitting: int = 0  # how often the campaign had been started when it was recorded
    epochs: dict = field(default_factory=dict)  # member → list of epochs
    requests: dict = field(default_factory=dict)  # member → list of requests
    samples: dict = field(default_factory=dict)  # (metric, scope) → source → Readings
    tables: dict = field(default_factory=dict)  # of a trace: tasks, attempts, decisions

    @property
    def cell(self):
        return self.record["cell"]

    @property
    def members(self):
        return range(len(self.record["members"]))

    @property
    def completed(self):
        return self.record["outcome"]["kind"] == "completed"

    @property
    def block(self):
        """Baselines are those of the same block, of the same origin, measured in the same sitting."""
        return (self.device, self.record["block"], self.sitting)

    def is_gpu(self):
        return self.record["device"]["kind"] == "gpu"

    def trains(self, member):
        return self.record["members"][member].get("serving") is None

    def one_process(self):
        return bool(self.cell["mode"].get("one_process"))

    def scope(self, member):
        return "process" if self.one_process() else f"member:{member}"


@dataclass
class Stored:
    manifest: dict
    runs: list

    def cells(self):
        return self.manifest["plan"]["cells"]

    def traces(self):
        return [c for c in self.cells() if c.get("trace")]

    def of(self, cell):
        return [r for r in self.runs if r.cell["cell"] == cell["cell"]]


def rows(path):
    return parquet.read_table(path).to_pylist() if path.exists() else []


def load(folder):
    manifest = json.loads((folder / "campaign.json").read_text())
    plan, runs, sittings = manifest["plan"], [], sittings_of(folder)
    for planned in plan["order"]:
        name = f"{plan['cells'][planned['cell']]['slug']}-{planned['repetition']}"
        if (folder / name / "run.json").exists():
            runs.append(read_run(folder / name, manifest, planned, sittings.get(name, 0)))
    return Stored(manifest, runs)


def sittings_of(folder):
    """By run: how often the campaign had been started or resumed when it was recorded."""
    opened, found, journal = 0, {}, folder / "journal.jsonl"
    for line in journal.read_text().splitlines() if journal.exists() else []:
        entry = json.loads(line)
        opened += entry["event"] == "opened"
        if entry["event"] == "recorded":
            found[entry["folder"]] = opened
    return found


def read_run(folder, manifest, planned, sitting):
    origin = origin_of(manifest, planned)
    machine = (manifest["origins"][origin] if manifest.get("origins") else manifest)["machine"]
    run = Run(json.loads((folder / "run.json").read_text()), (origin, planned.get("card")), machine["cpu_cores"], sitting)
    epochs, requests = defaultdict(list), defaultdict(list)
    for row in rows(folder / "epochs.parquet"):
        epochs[row["member"]].append(row)
    for row in rows(folder / "requests.parquet"):
        requests[row["member"]].append(row)
    run.epochs, run.requests = epochs, requests
    run.tables = {name: rows(folder / f"{name}.parquet") for name in ("tasks", "attempts", "decisions")}
    if (folder / "samples.parquet").exists():
        run.samples = series(parquet.read_table(folder / "samples.parquet"))
    return run


def origin_of(manifest, planned):
    """The campaign that a block of a merged one comes from."""
    for number, origin in enumerate(manifest.get("origins") or []):
        if origin["first_block"] <= planned["block"] <= origin["last_block"]:
            return number
    return 0


def series(table):
    columns = {name: table[name].to_pylist() for name in ("at_ns", "window_ns", "source", "scope", "metric", "value")}
    grouped = defaultdict(lambda: defaultdict(list))
    for at, window, source, scope, metric, value in zip(*columns.values()):
        grouped[(metric, scope)][source].append((at, window, float("nan") if value is None else value))
    found = {}
    for key, by_source in grouped.items():
        found[key] = {}
        for source, readings in by_source.items():
            readings.sort(key=lambda r: r[0])
            at, window, value = zip(*readings)
            found[key][source] = Readings(np.array(at, dtype=float), np.array(window, dtype=float), np.array(value))
    return found


def campaign(path):
    return load(Path(path))
