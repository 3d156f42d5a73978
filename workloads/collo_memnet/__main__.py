"""`python -m collo_memnet ROWS.json`: the file has {"rows": [...]}, as `table.py` says what a row is."""

import argparse
import json
import os
import sys

from . import evaluation, table, training
from .evaluation import MODES, SPLITS, TooFew


def main(words=None):
    what = "GPUMemNet rebuilt, trained and judged on these rows"
    parser = argparse.ArgumentParser(prog="collo_memnet", description=what)
    parser.add_argument("rows", metavar="ROWS.json")
    parser.add_argument("--scaled", action="store_true", help="features in deviations from their mean; else raw")
    parser.add_argument("--folds", default="both", choices=(*MODES, "both"),
                        help="original: one model goes on from fold to fold, as the public code does; honest: anew")
    parser.add_argument("--split", default="random", choices=SPLITS, help="shape: each family is left out once")
    parser.add_argument("--bin-mib", type=int, help="width of a bin; by default 1000 for MLPs, else 8000, as published")
    parser.add_argument("--epochs", type=int, default=training.MOST_EPOCHS, help="at most")
    parser.add_argument("--to", metavar="FILE", help="else to standard output")
    asked = parser.parse_args(words)
    with open(asked.rows, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    modes = MODES if asked.folds == "both" else (asked.folds,)
    results, left_out = [], []
    for one in table.tables(rows, asked.bin_mib):
        try:
            results += evaluation.evaluate(one, asked.scaled, asked.split, modes, asked.epochs)
        except TooFew as why:
            left_out.append(str(why))
    text = json.dumps({"schema": 1, "results": results, "left_out": left_out}, allow_nan=False) + "\n"
    if asked.to:
        with open(f"{asked.to}.part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{asked.to}.part", asked.to)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
