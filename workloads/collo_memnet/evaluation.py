"""Every ensemble on every split of a table, as many trainings at once as there are cores."""

import multiprocessing
import os

import torch

from . import training
from .scores import Confusion

SPLITS = ("random", "shape")
MODES = ("original", "honest")
FEWEST_ROWS = 30


class TooFew(Exception):
    """What cannot be split, with the reason."""


def evaluate(table, scaled, split="random", modes=MODES, most_epochs=training.MOST_EPOCHS):
    """A list of results: of which ensemble, over which rows, whether folds were trained anew, and its scores."""
    if len(table) < FEWEST_ROWS:
        raise TooFew(f"{len(table)} rows of `{table.kind}` are too few: {FEWEST_ROWS} or more can be split")
    if table.classes == 1:
        said = f"all rows of `{table.kind}` are in one bin of {table.bin_mib} MiB"
        raise TooFew(f"{said}: nothing can be learned from them")
    apart = training.by_family(table.families) if split == "shape" else training.folds(len(table))
    if len(apart) < 2:
        raise TooFew(f"all rows of `{table.kind}` are of one family: none can be left out")
    once = training.ENSEMBLES if split != "shape" else ()
    asked = [(ensemble, "once", [training.random_split(len(table))]) for ensemble in once]
    for ensemble in training.ENSEMBLES:
        if "original" in modes:
            asked.append((ensemble, "original", apart))
        if "honest" in modes:
            # The first of the original is trained anew, too: it is not trained twice.
            asked += [(ensemble, "honest", [one]) for one in (apart[1:] if "original" in modes else apart)]
    # The longest first.
    asked.sort(key=lambda one: (one[0] != "transformer", one[1] != "original"))
    jobs = [(table, *one, scaled, most_epochs) for one in asked]
    found = [answer for answers in of_all(jobs) for answer in answers]
    return [result(table, ensemble, mode, found, scaled) for ensemble in training.ENSEMBLES for mode in ("once", *modes)
            if any(one[:2] == (ensemble, mode) for one in found)]  # fmt: skip


def of_all(jobs):
    """The answers in the order of the jobs. Each is made by one thread, so it does not depend on how many there are."""
    cores = min(len(os.sched_getaffinity(0)), len(jobs))
    with multiprocessing.get_context("fork").Pool(cores, one_thread) as pool:
        return pool.starmap(work, jobs, chunksize=1)


def one_thread():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def work(table, ensemble, mode, splits, scaled, most_epochs):
    """[(ensemble, mode, name of the split, predicted bins, rows, bin of most training rows, epochs)]"""
    def answer(mode, split, bins, epochs):
        return ensemble, mode, split.name, bins, split.test, table.bins[split.train].bincount().argmax(), epochs

    if mode != "original":
        (split,) = splits
        by_best, _, _, epochs = training.anew(ensemble, table, split, scaled, most_epochs)
        return [answer(mode, split, by_best, epochs)]
    trained_on, by_best = training.on_and_on(ensemble, table, splits, scaled, most_epochs)
    answers = [answer("original", split, bins, epochs) for split, (bins, epochs) in zip(splits, trained_on)]
    return [*answers, answer("honest", splits[0], by_best, trained_on[0][1])]


def result(table, ensemble, mode, found, scaled):
    parts = sorted((one for one in found if one[:2] == (ensemble, mode)), key=lambda one: one[2])
    whole = Confusion(table.classes)
    accuracies = []
    for _, _, name, bins, rows, commonest, epochs in parts:
        true = table.bins[rows]
        whole.add(true, bins, commonest)
        accuracy = int((bins == true).sum()) / len(rows)
        accuracies.append({"split": name, "rows": len(rows), "accuracy": accuracy, "epochs": epochs})
    return {
        "kind": table.kind,
        "bin_mib": table.bin_mib,
        "ensemble": ensemble,
        "folds": mode,
        "scaled": scaled,
        **whole.scores(table.bin_mib),
        "splits": accuracies,
    }
