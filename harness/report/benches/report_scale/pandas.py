"""The aggregation of a report as somebody would write it in a notebook: run by run, clipped to its window, by scope and metric.

In: a file of JSON, `[[path, start_ns, end_ns], ...]`. Out: one line of JSON.
"""

import json
import resource
import sys
import time

import pandas

with open(sys.argv[1], encoding="utf-8") as file:
    runs = json.load(file)
begin = time.perf_counter()
rows = 0
groups = 0
for path, start_ns, end_ns in runs:
    table = pandas.read_parquet(path)
    rows += len(table)
    inside = table[(table["at_ns"] >= start_ns) & (table["at_ns"] <= end_ns)]
    values = inside.groupby(["scope", "metric"])["value"]
    found = values.agg(["mean", "max"])
    found["p95"] = values.quantile(0.95)
    groups += len(found)
seconds = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "rows": rows, "groups": groups, "peak_bytes": peak, "pandas": pandas.__version__}))
