import json
import subprocess
import sys

from harness import WORKLOADS, by_hand, environment


def run(program, **more):
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=WORKLOADS, env=environment(**more), capture_output=True, text=True, timeout=120
    )


TRAINS = """
import torch
import collo
member = collo.connect()
member.hello()
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs(3):
    for _ in epoch.batches(range(2)):
        torch.ones(8, 8) @ torch.ones(8, 8)
    epoch.finish(items=2)
"""


def test_each_measured_epoch_has_a_trace_of_its_operators_and_the_warm_up_has_none(tmp_path):
    done = run(TRAINS, COLLO_TORCH_PROFILER=tmp_path / "member-0")
    assert done.returncode == 0, done.stderr
    traces = sorted((tmp_path / "member-0").iterdir())
    assert [trace.name for trace in traces] == ["epoch-1.json", "epoch-2.json"]
    for trace in traces:
        names = [event.get("name") for event in json.loads(trace.read_text())["traceEvents"]]
        assert names.count("aten::matmul") == 2


def test_without_the_variable_nothing_is_profiled_or_imported():
    done = run(TRAINS + "import sys; assert 'collo_profiler' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_a_script_without_torch_says_that_it_cannot_be_profiled(tmp_path):
    code, _, err = by_hand("sleep", "--seconds", 0.05, "--items", 5, COLLO_TORCH_PROFILER=tmp_path)
    assert code != 0 and "watches scripts that train with torch" in err, err
