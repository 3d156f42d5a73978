"""Reproduces the numbers of a report from the stored runs, by `docs/guide/metrics.md` and nothing else.

    python recompute.py CAMPAIGN REPORTS

CAMPAIGN is `runs/EXPERIMENT/CAMPAIGN`, REPORTS a folder with `report.json`, and, where there are any, `cells.csv`, `dataset.csv` and
`terminal.txt`. Prints each number that differs by more than 1e-9, and ends with 1 if there is one; numpy, scipy and pyarrow only.
"""

import sys
from pathlib import Path

import cells
import comparison
import stored
import traces


def main(campaign, reports):
    runs = stored.campaign(campaign)
    # Which quantities differ between the devices of a campaign is taken from the report; what that means for intervals is not.
    found = cells.Cells(runs, comparison.differing(Path(reports)))
    checked = comparison.Checked()
    comparison.compare_json(checked, found, Path(reports))
    comparison.compare_traces(checked, traces.policies(runs), Path(reports), runs.manifest["thresholds"]["relevant_ratio"])
    comparison.compare_csv(checked, found, Path(reports))
    comparison.compare_dataset(checked, found, Path(reports))
    comparison.compare_terminal(checked, found, Path(reports))
    for difference in checked.differences:
        print(difference)
    left = ", ".join(sorted(checked.left)) or "none"
    print(f"{checked.numbers} numbers compared, {len(checked.differences)} differ; not recomputed: {left}")
    return 1 if checked.differences or not checked.numbers else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
