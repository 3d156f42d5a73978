import json
import re
import socket
import subprocess
import sys
import time

import collo
import pytest
from harness import WORKLOADS, Started, by_hand, environment

EXAMPLES = [json.loads(line) for line in (WORKLOADS / "protocol.jsonl").read_text().splitlines()]
QUICK = ("--seconds", 0.05, "--items", 5)
QUIET_END = (0, "", "")

ALL_IT_CAN_SAY = """
import collo
member = collo.connect()
member.hello(model=("m", 1), dataset={"name": "CIFAR-10", "synthetic": True, "items": 2}, memory_bytes=1, limit_batches=4,
             precision="bf16", allocator="native", serving={"rate_per_s": 20.0, "batch_size": 4, "slo_s": 0.05})
member.features(batch_size=2, parameters=1, model_mb=4e-6, flops_per_item=2, activations_per_item=1, layers={"Linear": 1},
                sequence=[["Linear", 1, 1]])
member.wait_for_warm_up()
member.capacity(84.2, 61.0)
member.ready()
for epoch in member.epochs():
    for item in epoch.batches(range(2)):
        pass
    epoch.finish(items=2, loss=0.5)
    member.requests([1, 2, 3], [2, 3, None], [3, None, None])
    member.memory(allocated_bytes=1, reserved_bytes=2, warm_up_allocated_bytes=3, warm_up_reserved_bytes=4)
raise ValueError("enough")
"""


def shape(message):
    """The keys, and the kinds of the values that are never null; ints and floats are one kind."""
    kinds = {int: "number", float: "number", str: "text", bool: "truth", dict: "object"}
    return {key: kinds.get(type(value)) for key, value in message.items() if key not in ("sm_count", "items", "loss")}


def test_what_a_member_says_has_the_shape_of_the_examples():
    with Started("sleep", program=ALL_IT_CAN_SAY) as member:
        hello = member.start(epochs=2, after_measured="exit")
        said = [hello, member.features, member.capacity, {"event": "ready"}, *member.hear_all()]
    said = {message["event"]: message for message in said}
    examples = {}
    for message in (e["message"] for e in EXAMPLES if e["from"] == "member"):
        examples[message["event"]] = {**examples.get(message["event"], {}), **message}
    assert said.keys() == examples.keys()
    for event, example in examples.items():
        assert shape(said[event]) == shape(example), event


def test_many_requests_are_told_in_lines_that_can_be_read():
    program = ALL_IT_CAN_SAY.replace("[1, 2, 3], [2, 3, None], [3, None, None]", "*[[10**14] * 5001] * 3")
    with Started("sleep", program=program) as member:
        member.start(epochs=1, after_measured="exit")
        epoch, *told = (member.hear() for _ in range(4))
    assert [len(line["arrival_ns"]) for line in told] == [2000, 2000, 1001]
    assert all(len(json.dumps(line)) < 1 << 18 and line["start_ns"] == line["end_ns"] for line in told)


def test_a_member_understands_every_command_of_the_examples():
    commands = [e["message"] for e in EXAMPLES if e["from"] == "harness"]
    assert {c["command"] for c in commands} == {"warm_up", "go", "stop"}
    stop = next(c for c in commands if c["command"] == "stop")
    for go in (c for c in commands if c["command"] == "go"):
        with Started("sleep", *QUICK) as member:
            member.start(go["epochs"], go["after_measured"])
            events = [member.hear() for _ in range(go["epochs"] + 1)]
            assert [e["event"] for e in events] == ["epoch"] * go["epochs"] + ["done"]
            if go["after_measured"] == "keep-running":
                member.channel.send(json.dumps(stop).encode() + b"\n")
            assert member.end() == QUIET_END


def test_under_hold_a_member_trains_on_unmeasured_until_stop():
    before_ns = time.monotonic_ns()
    with Started("sleep", *QUICK) as member:
        hello = member.start(epochs=3, after_measured="keep-running")
        assert hello["pid"] == member.process.pid
        assert hello["protocol"] == 1 and hello["device"] == "cpu" and hello["sm_count"] is None
        assert hello["versions"] == {"python": "%d.%d.%d" % sys.version_info[:3]}
        events = [member.hear() for _ in range(6)]
        member.tell("stop")
        member.hear_all()
        assert member.end() == QUIET_END
    assert events.pop(3) == {"event": "done"}
    assert [e["index"] for e in events] == [0, 1, 2, 3, 4]
    assert [e["measured"] for e in events] == [False, True, True, False, False]
    times = [t for e in events for t in (e["start_ns"], e["end_ns"])]
    assert before_ns < times[0] and times == sorted(times) and times[-1] < time.monotonic_ns()
    assert all(e["end_ns"] - e["start_ns"] >= 50e6 for e in events)


LEFT_TO_DO = """
import collo, time
member = collo.connect()
member.hello(serving={"rate_per_s": 20.0, "batch_size": 1, "slo_s": None})
member.wait_for_warm_up()
member.ready()
asked = []
for epoch in member.epochs(before_done=lambda: member.requests(asked, asked, [time.monotonic_ns()] * len(asked))):
    asked.append(time.monotonic_ns())
    epoch.finish(items=1)
"""


@pytest.mark.parametrize("after_measured", ["exit", "keep-running"])
def test_what_is_left_of_the_measured_epochs_is_done_before_collo_hears_of_their_end(after_measured):
    with Started("sleep", program=LEFT_TO_DO) as member:
        member.start(epochs=3, after_measured=after_measured)
        heard = [member.hear() for _ in range(5)]
        member.tell("stop")
        heard += member.hear_all()
    assert [message["event"] for message in heard[:5]] == ["epoch"] * 3 + ["requests", "done"]
    assert len(heard[3]["arrival_ns"]) == 3
    assert {message["event"] for message in heard[5:]} <= {"epoch"}, "once, however long it goes on"


def test_whole_epochs_are_measured_until_the_time_is_over():
    with Started("sleep", *QUICK) as member:  # epochs of 50 ms and more
        member.start(epochs=2, after_measured="exit", measure_for_ns=120_000_000)
        *epochs, done = member.hear_all()
        assert done == {"event": "done"} and member.end() == QUIET_END
    first, *measured = epochs
    assert first["measured"] is False and all(e["measured"] for e in measured)
    spans = [e["end_ns"] - measured[0]["start_ns"] for e in measured]
    assert spans[-1] >= 120e6 and all(span < 120e6 for span in spans[:-1]), spans


THEIR_OWN_START = """
import time
now = [0]
time.monotonic_ns = lambda: now[0]
import collo
member = collo.connect()
member.hello()
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    now[0] += 60
    epoch.start_ns = now[0]
    now[0] += 50
    epoch.finish(items=1)
"""


def test_the_time_counts_from_the_start_that_a_trainers_callback_has_set():
    with Started("sleep", program=THEIR_OWN_START) as member:
        member.start(epochs=2, after_measured="exit", measure_for_ns=100)
        events = member.hear_all()
    assert [(e["event"], e.get("start_ns"), e.get("end_ns")) for e in events] == [
        ("epoch", 60, 110),
        ("epoch", 170, 220),
        ("epoch", 280, 330),
        ("done", None, None),
    ]


def test_under_release_a_member_leaves_when_it_is_done():
    with Started("sleep", *QUICK) as member:
        member.start(epochs=2, after_measured="exit")
        assert [e["event"] for e in member.hear_all()] == ["epoch", "epoch", "done"]
        assert member.end() == QUIET_END


def test_the_only_epoch_is_measured():
    with Started("sleep", *QUICK) as member:
        member.start(epochs=1, after_measured="exit")
        assert member.hear()["measured"] is True


@pytest.mark.parametrize("moment", ["before its turn", "before go", "in an epoch"])
@pytest.mark.parametrize("what", ["stop", "the harness goes away"])
def test_it_ends_at_once_and_quietly(moment, what):
    with Started("sleep", "--seconds", 60, "--items", 6000) as member:
        assert member.hear()["event"] == "hello"
        if moment != "before its turn":
            member.tell("warm_up")
            assert member.hear() == {"event": "ready"}
        if moment == "in an epoch":
            member.tell("go", epochs=2, after_measured="keep-running")
            time.sleep(0.1)
        start = time.monotonic()
        if what == "stop":
            member.tell("stop")
            assert member.hear_all() == []  # an unfinished epoch is not reported
        else:
            member.channel.close()
        assert member.end() == QUIET_END
        assert time.monotonic() - start < 1


def test_an_epoch_cut_short_by_the_script_itself_is_not_reported():
    loop = "    while not member.stopped: pass\n"
    program = ALL_IT_CAN_SAY.replace("    for item in epoch.batches(range(2)):\n        pass\n", loop)
    with Started("sleep", program=program) as member:
        member.start(epochs=2, after_measured="keep-running")
        time.sleep(0.1)  # now it is in its first epoch
        member.tell("stop")
        assert member.hear_all() == []
        assert member.end() == QUIET_END


def test_stop_ends_a_member_that_is_stuck_in_a_batch():
    with Started("faulty", *QUICK, "--fail-at", "epoch1", "--how", "hang") as member:
        member.start(epochs=2, after_measured="keep-running")
        assert member.hear()["index"] == 0
        time.sleep(0.1)
        start = time.monotonic()
        member.tell("stop")
        assert member.end() == QUIET_END
        assert 1.5 < time.monotonic() - start < 4


USES_A_GPU = """
import sys, time, types
def synchronize(device=None):
    print("waits for the GPU", flush=True)
    {synchronize}
sys.modules["torch.cuda"] = types.SimpleNamespace(is_initialized=lambda: True, synchronize=synchronize)
import collo
member = collo.connect()
member.hello()
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    for batch in epoch.batches(range(10**6)):
        time.sleep({batch_s})
"""


@pytest.mark.parametrize("synchronize", ["pass", "raise RuntimeError('CUDA error: unspecified launch failure')"])
def test_a_member_on_a_gpu_leaves_when_its_gpu_has_done_what_it_was_given(synchronize):
    with Started("sleep", program=USES_A_GPU.format(synchronize=synchronize, batch_s=0.01)) as member:
        member.start(epochs=2, after_measured="keep-running")
        member.tell("stop")
        assert member.end() == (0, "waits for the GPU\n", "")


def test_on_a_gpu_stop_leaves_more_time_yet_less_than_the_harness_does():
    with Started("sleep", program=USES_A_GPU.format(synchronize="pass", batch_s=60)) as member:
        member.start(epochs=2, after_measured="keep-running")
        time.sleep(0.1)  # now it is stuck in a batch
        start = time.monotonic()
        member.tell("stop")
        assert member.end() == QUIET_END
        assert 3.5 < time.monotonic() - start < 5
    limits = WORKLOADS.parent / "harness" / "measure" / "src" / "observe" / "limits.rs"
    [harness_s] = re.findall(r"^pub const GRACE: Duration = Duration::from_secs\((\d+)\);", limits.read_text(), re.M)
    assert collo.GRACE_S < collo.GRACE_ON_A_GPU_S < int(harness_s)


def test_a_harness_that_dies_between_two_messages_is_no_error_of_the_member():
    with Started("sleep", *QUICK) as member:
        member.start(epochs=100, after_measured="keep-running")
        member.hear()
        member.channel.close()
        assert member.end() == QUIET_END


def test_unknown_commands_and_keys_are_ignored():
    with Started("sleep", *QUICK) as member:
        member.tell("sing", loudly=True)
        member.hear()
        member.tell("warm_up", since="protocol 2")
        assert member.hear() == {"event": "ready"}
        member.tell("sing")
        member.tell("go", epochs=1, after_measured="exit", mood="good")
        assert [e["event"] for e in member.hear_all()] == ["epoch", "done"]


def test_a_stream_will_do_too():
    with Started("sleep", *QUICK, kind=socket.SOCK_STREAM) as member:
        member.tell("warm_up")
        member.tell("go", epochs=1, after_measured="exit")
        assert member.end() == QUIET_END
        lines = member.channel.makefile().read().splitlines()
        assert [json.loads(line)["event"] for line in lines] == ["hello", "ready", "epoch", "done"]


def test_a_unix_socket_will_do_too(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "collo"))
        listener.listen()
        env = environment(COLLO_SOCKET=tmp_path / "collo")
        with subprocess.Popen([sys.executable, "train.py"], cwd=WORKLOADS / "sleep", env=env) as process:
            channel, _ = listener.accept()
            with channel:
                assert json.loads(channel.makefile().readline())["pid"] == process.pid
                channel.sendall(b'{"command":"stop"}\n')
                assert process.wait(10) == 0


def test_the_channel_is_for_this_process_alone():
    program = (
        "import collo, os; m = collo.connect()\n"
        "m.hello(versions={'fd': str(os.get_inheritable(m.channel.fileno())), 'env': str('COLLO_FD' in os.environ)})"
    )
    with Started("sleep", program=program) as member:
        assert member.hear()["versions"].items() >= {"fd": "False", "env": "False"}.items()


def test_a_channel_that_is_not_there_is_said_so():
    status, _, stderr = by_hand("sleep", COLLO_FD=999)
    assert status == 1
    assert stderr == "error: nobody at `COLLO_FD=999`: [Errno 9] Bad file descriptor\nhint: unset it to train by hand\n"


def test_by_hand_it_trains_and_prints_a_line_per_epoch():
    status, stdout, stderr = by_hand("sleep", *QUICK, "--epochs", 3)
    assert (status, stderr) == (0, "")
    hello, *epochs = stdout.splitlines()
    assert hello == "device cpu, 1 thread"
    assert [line.rsplit(" ", 2)[0] for line in epochs] == ["epoch 0 took", "epoch 1 took", "epoch 2 took"]


@pytest.mark.parametrize(
    "statement, kind, message",
    [
        ("raise MemoryError", "out_of_memory", "MemoryError"),
        ("raise RuntimeError('CUDA out of memory. Tried …')", "out_of_memory", "CUDA out of memory. Tried …"),
        ('raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory")', "out_of_memory", "can't allocate memory"),
        ("raise type('OutOfMemoryError', (RuntimeError,), {})('full')", "out_of_memory", "full"),
        ("raise OSError(12, 'no')", "out_of_memory", "[Errno 12] no"),
        ("raise OSError(2, 'no')", "other", "[Errno 2] no"),
        ("raise collo.DataError('`x` is missing: get it')", "data", "`x` is missing: get it"),
        ("raise collo.SettingError('`width` is 0: it is 1 or more')", "setting", "`width` is 0: it is 1 or more"),
        ("1 / 0", "other", "division by zero"),
        ("raise ValueError('no MemoryError happened')", "other", "no MemoryError happened"),
    ],
)
def test_an_exception_is_told_before_the_traceback(statement, kind, message):
    with Started("sleep", program=f"import collo; collo.connect()\n{statement}") as member:
        (error,) = member.hear_all()
        assert (error["event"], error["kind"]) == ("error", kind)
        assert error["message"].endswith(message)
        status, _, stderr = member.end()
    assert status == 1
    if kind in ("data", "setting"):
        assert stderr == f"error: {message}\n"
    else:
        assert stderr.startswith("Traceback") and message in stderr


def test_a_loss_that_is_no_number_is_absent():
    program = ALL_IT_CAN_SAY.replace("loss=0.5", "loss=float('nan')")
    with Started("sleep", program=program) as member:
        member.start(epochs=1, after_measured="exit")
        assert member.hear()["loss"] is None


def test_an_epoch_without_an_end_is_an_error_of_the_script():
    program = ALL_IT_CAN_SAY.replace("epoch.finish(items=2, loss=0.5)", "pass")
    with Started("sleep", program=program) as member:
        member.start(epochs=1, after_measured="exit")
        errors = [e for e in member.hear_all() if e["event"] == "error"]
    assert errors[0]["message"] == "epoch 0 has no end: call `epoch.finish()` after its last batch"


IN_ORDER = """
member.hello()
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    epoch.finish(items=2)
"""


@pytest.mark.parametrize(
    "line, instead, message",
    [
        ("member.hello()", "pass", "RuntimeError: call `member.hello()` before `member.wait_for_warm_up()`"),
        ("member.hello()\nmember.wait_for_warm_up()", "pass", "RuntimeError: call `member.hello()` before `member.ready()`"),
        ("member.ready()", "pass", "RuntimeError: call `member.ready()` before `member.epochs()`"),
        ("member.hello()", "member.hello(); member.hello()", "RuntimeError: `member.hello()` was called before: it is said once"),
        ("member.ready()", "member.ready(); member.ready()", "RuntimeError: `member.ready()` was called before: it is said once"),
        ("items=2)", "items=2); epoch.finish()", "RuntimeError: epoch 0 was finished before: call `epoch.finish()` once"),
        ("items=2", "items=-2", "ValueError: `items` is -2: it is 0 or more"),
        ("items=2", "items=0.5", "TypeError: `items` is 0.5: it is a whole number"),
        ("member.ready()", "member.requests([1, 2], [1], [])", "ValueError: 2 arrivals, 1 starts and 0 ends: each request has"),
    ],
)
def test_what_is_said_in_the_wrong_order_is_an_error_of_the_script_by_hand_too(line, instead, message):
    program = "import collo\nmember = collo.connect()" + IN_ORDER.replace(line, instead)
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=WORKLOADS, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(message)


def test_items_may_be_counted_by_another_library():
    program = "import collo\nmember = collo.connect()" + IN_ORDER.replace("items=2", "items=Two()")
    program = "class Two:\n    def __index__(self): return 2\n" + program
    with Started("sleep", program=program) as member:
        member.start(epochs=1, after_measured="exit")
        assert member.hear()["items"] == 2
