"""The workloads that need no torch, and what is written about all of them."""

import contextlib
import os
import re
import signal
import socket
import time

import pytest
from harness import WORKLOADS, Started, arguments, by_hand, tomllib, written

QUICK = ("--seconds", 0.05, "--items", 5)
WRITTEN = {path.parent.name: written(path.parent.name) for path in WORKLOADS.glob("*/workload.toml")}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_setting_is_used_and_there_is_no_other(name):
    command, settings = " ".join(WRITTEN[name]["command"]), WRITTEN[name]["settings"]
    if "{settings}" not in command:
        assert sorted(re.findall(r"{(\w+)}", command)) == sorted(settings)
        return
    script = (WORKLOADS / name / WRITTEN[name]["command"][1]).read_text()
    options = options_of(script)
    for module in re.findall(r"(\w+)\.add_settings\(", script):
        own = WORKLOADS / name / f"{module}.py"
        options |= options_of((own if own.exists() else WORKLOADS / f"{module}.py").read_text())
    assert options - {"epochs"} == settings.keys()


def options_of(script):
    return {name.replace("-", "_") for name in re.findall(r'add(?:_argument)?\("--([a-z-]+)"', script)}


@pytest.mark.parametrize("name", WRITTEN)
def test_recipes_set_only_settings_of_their_workload_and_none_that_says_what_is_trained(name):
    for recipe in WRITTEN[name].get("recipes", {}).values():
        assert recipe.keys() <= WRITTEN[name]["settings"].keys() - {"recipe", "model", "dataset", "batch_size", "seed"}


@pytest.mark.parametrize("name", WRITTEN)
def test_presets_have_only_settings_of_their_workload(name):
    for preset in WRITTEN[name].get("presets", {}).values():
        assert preset.get("settings", {}).keys() <= WRITTEN[name]["settings"].keys()


@pytest.mark.parametrize("name", ["sleep", "faulty", "lines"])  # the others are started so in their own tests
def test_a_script_takes_the_command_that_is_written(name):
    python, script, *_ = WRITTEN[name]["command"]
    status, stdout, stderr = by_hand(name, *arguments(name), "--help", script=script)
    assert (python, status, stderr) == ("python", 0, "") and stdout.startswith("usage:")


TRACES = {path.stem: tomllib.loads(path.read_text()) for path in (WORKLOADS.parent / "traces").glob("*.toml")}
TASK = re.compile(r"([a-z][a-z0-9-]*)(?::b([1-9]\d*))? ([1-9]\d*)e(?: ([2-9])c)?")


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_has_a_source_and_as_many_tasks_of_workloads_that_exist_as_arrivals(name):
    trace, known = TRACES[name], WRITTEN.keys() | {p for toml in WRITTEN.values() for p in toml.get("presets", {})}
    assert trace["description"] and trace["source"]
    assert sum(tasks["count"] for tasks in trace["tasks"]) == len(trace["arrivals_s"])
    assert trace["arrivals_s"] == sorted(trace["arrivals_s"]) and trace["arrivals_s"][0] == 0
    for tasks in trace["tasks"]:
        found = [TASK.fullmatch(task) for task in tasks["one_of"]]
        assert all(found) and {task[1] for task in found} <= known
        assert len({task[0] for task in found}) == len(found), "each once"


def test_the_traces_of_the_study_are_as_long_as_published():
    ends = {name: (len(trace["arrivals_s"]), trace["arrivals_s"][-1]) for name, trace in TRACES.items()}
    assert (ends["philly-60"], ends["philly-90"]) == ((60, 8966), (90, 12514))


def test_all_workloads_are_there():
    training = {"vision", "language", "gpt", "dlrm", "tiny", "mnist", "text", "generated", "decoder", "segmentation", "detection", "diffusion"}
    assert WRITTEN.keys() == training | {"serve", "square", "stress", "sleep", "faulty", "lines"}
    assert all(workload["description"] for workload in WRITTEN.values())
    presets = {name for workload in WRITTEN.values() for name in workload.get("presets", {})}
    assert presets >= {"small", "medium", "large", "bert-base", "gpt2-large", "dlrm-terabyte", "memory-bound", "serve-resnet50"}


def test_an_epoch_of_sleep_lasts_as_long_as_asked():
    with Started("sleep", "--seconds", 0.3, "--items", 100) as member:
        member.start(epochs=2, after_measured="exit")
        epoch = member.hear()
    assert epoch["items"] == 100
    assert 0.3 <= (epoch["end_ns"] - epoch["start_ns"]) / 1e9 < 0.5


@pytest.mark.parametrize("spin, least, most", [("true", 0.15, 2), ("false", 0, 0.15)])
def test_sleep_burns_cpu_only_when_told_to(spin, least, most):
    with Started("sleep", "--seconds", 1, "--spin", spin) as member:
        member.start(epochs=1, after_measured="keep-running")
        before = cpu_s(member.process.pid)
        member.hear()
        assert least <= cpu_s(member.process.pid) - before <= most


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_lines_prints_what_its_pattern_reads():
    status, stdout, stderr = by_hand("lines", "--epochs", 3, "--rows", 2000, script="fit.py")
    assert (status, stderr) == (0, "")
    found = [re.match(WRITTEN["lines"]["epochs"]["pattern"], line) for line in stdout.splitlines()]
    assert [match["epoch"] for match in found] == ["1", "2", "3"]
    assert all(0 < float(match["seconds"]) < 5 for match in found)


def test_lines_has_never_heard_of_collo():
    source = (WORKLOADS / "lines" / "fit.py").read_text()
    assert "import collo" not in source and "COLLO" not in source


@pytest.mark.parametrize("who, status", [(0, 3), (-1, 3), (1, 0)])
def test_faulty_fails_only_in_the_member_that_is_meant(who, status):
    assert by_hand("faulty", *QUICK, "--fail-at", "epoch1", "--who", who)[0] == status


def test_faulty_without_a_point_to_fail_at_is_well():
    status, stdout, _ = by_hand("faulty", *QUICK)
    assert status == 0 and len(stdout.splitlines()) == 3


@pytest.mark.parametrize(
    "point, heard",
    [
        ("hello", []),
        ("warm_up", ["hello"]),
        ("ready", ["hello"]),
        ("epoch0", ["hello", "ready"]),
        ("epoch1", ["hello", "ready", "epoch"]),
        ("tail", ["hello", "ready", "epoch", "epoch", "done"]),
    ],
)
def test_faulty_fails_at_the_point_that_is_meant(point, heard):
    with Started("faulty", *QUICK, "--fail-at", point) as member:
        member.tell("warm_up")
        member.tell("go", epochs=2, after_measured="keep-running")
        assert [message["event"] for message in member.hear_all()] == heard
        assert member.end()[0] == 3


@pytest.mark.parametrize(
    "how, status, log",
    [
        ("exit", 3, ""),
        ("leave", 0, ""),
        ("signal", -signal.SIGSEGV, ""),
        ("error", 1, "RuntimeError: mat1"),
        ("oom", 1, "Cannot allocate memory"),
        ("oom_text", 1, "RuntimeError: CUDA out of memory"),
        ("data", 1, "error: `data/cifar-10"),
        ("fork_and_exit", 0, ""),
    ],
)
def test_ways_to_end_too_early(how, status, log):
    with Started("faulty", *QUICK, "--fail-at", "ready", "--how", how) as member, leftovers_killed(member) as left:
        member.tell("warm_up")
        assert member.hear()["event"] == "hello"
        if how in ("error", "oom", "data"):
            expected = {"error": "other", "oom": "out_of_memory", "data": "data"}[how]
            error = member.hear()
            assert (error["event"], error["kind"]) == ("error", expected)
        if how == "fork_and_exit":
            left.append(int(member.process.stdout.readline().split()[-1]))
            assert member.process.wait(10) == 0
            os.kill(left[0], 0)  # lives on
            return
        ended = member.end()
        assert ended[0] == status and log in ended[2]


@pytest.mark.parametrize("how, said", [("garbage", b"epoch 1 loss 0.4\n"), ("half", b'{"event":"epo')])
def test_ways_to_talk_nonsense(how, said):
    with Started("faulty", *QUICK, "--fail-at", "ready", "--how", how) as member:
        member.tell("warm_up")
        assert member.hear()["event"] == "hello"
        assert member.channel.recv(1000) == said


def test_a_huge_line_is_100_mb():
    with Started("faulty", *QUICK, "--fail-at", "hello", "--how", "huge", kind=socket.SOCK_STREAM) as member:
        assert len(member.channel.makefile("rb").readline()) == 100_000_001


@pytest.mark.parametrize("how", ["silent", "hang", "freeze"])
def test_ways_to_say_nothing_for_ever(how):
    with Started("faulty", *QUICK, "--fail-at", "hello", "--how", how) as member:
        member.channel.settimeout(0.5)
        with pytest.raises(TimeoutError):
            member.hear()
        if how == "freeze":
            member.process.terminate()
            time.sleep(0.2)
        assert member.process.poll() is None


def test_a_daemon_gets_away_and_the_member_works_on():
    faulty = Started("faulty", *QUICK, "--fail-at", "epoch0", "--how", "daemon")
    with faulty as member, leftovers_killed(member) as left:
        member.start(epochs=2, after_measured="exit")
        left.append(int(member.process.stdout.readline().split()[-1]))
        assert [member.hear()["event"] for _ in range(3)] == ["epoch", "epoch", "done"]
        assert member.process.wait(10) == 0
        assert os.getsid(left[0]) not in (os.getsid(0), left[0])


@contextlib.contextmanager
def leftovers_killed(member):
    pids = []
    try:
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        member.process.stdout.close()
