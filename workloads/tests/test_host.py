"""Several members in one process: `collo_host.py`, from the other end of their channels."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness import WORKLOADS, arguments, environment
from hosts import HOSTED, STUCK_S, Host

GOOD = (HOSTED / "good.py",)
COMPLETE = ["hello", "ready", "epoch", "epoch", "done", "left"]


def events(member):
    return [message["event"] for message in member.messages]


@pytest.fixture
def write(tmp_path):
    """Writes a member's folder: its script and the modules beside it."""

    def write(name, program, **modules):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(program)
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)
        return folder / "train.py"

    return write


def told(*members, **more):
    """What each says in its hello, of members that leave after it."""
    with Host(*members, **more) as host:
        host.hear_all()
        return [(member.said("hello") or member.messages)[0] for member in host.members]


def test_members_pass_the_barrier_and_train_each_on_its_channel_in_one_process():
    with Host(GOOD, GOOD) as host:
        hellos = host.start()
        host.hear_all()
        status, stdout, stderr = host.end()
    assert [events(member) for member in host.members] == [COMPLETE] * 2
    assert [member.code() for member in host.members] == [0, 0]
    assert {hello["pid"] for hello in hellos} == {host.process.pid}
    threads = [hello["thread"] for hello in hellos]
    assert len({thread["id"] for thread in threads} | {host.process.pid}) == 3
    assert [(thread["lock"], thread["stream"]) for thread in threads] == [(True, None)] * 2
    assert (status, stdout, stderr) == (0, "", "")


def test_epochs_of_members_overlap():
    with Host(GOOD, GOOD) as host:
        host.start()
        (_, a), (_, b) = ([m for m in said if m["event"] == "epoch"] for said in host.hear_all())
    assert a["start_ns"] < b["end_ns"] and b["start_ns"] < a["end_ns"]


def test_under_hold_each_member_leaves_when_it_is_told_to_stop():
    with Host(GOOD, GOOD) as host:
        host.start(after_measured="keep-running")
        first, second = host.members
        first.hear_until("done")
        first.tell("stop")
        first.hear_all()
        assert first.code() == 0 and host.process.poll() is None
        before = len(second.said("epoch"))
        for _ in range(3):
            assert second.hear()["event"] in ("epoch", "done")
        assert len(second.said("epoch")) > before
        second.tell("stop")
        second.hear_all()
        assert second.code() == 0
        assert host.end() == (0, "", "")


PROBE = """
import os
before = os.environ.get("OWN")
import argparse, dataclasses, importlib, pickle, sys, threading
import collo, model
from model import Net as Same
import package.part
os.environ["OWN"] = before + "!"
parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int)

@dataclasses.dataclass
class Pair:
    left: "int"
    right: int = 2

seen = {}
def look():
    seen.update(environ=os.environ["OWN"], width=parser.parse_args().width, cwd=os.getcwd(), net=importlib.import_module("model").NAME)
thread = threading.Thread(target=look)
thread.start()
thread.join()
facts = {
    "name": __name__, "file": __file__, "argv": sys.argv[1:], "path": sys.path[0], "before": before, "cwd": os.getcwd(), "seen": seen,
    "model": model.NAME, "modules": sys.modules["model"].NAME, "module": model.Net.__module__, "same": Same is model.Net,
    "pickled": pickle.loads(pickle.dumps([model.Net(), Pair(1)]))[1].right, "part": package.part.NAME,
    "main": sys.modules["__main__"].Pair is Pair, "child": os.popen("echo $OWN").read().strip(),
}
print("printed by", model.NAME)
print("without an end", end="")
member = collo.connect()
member.hello(facts=facts)
"""


def test_arguments_variables_folder_modules_and_output_are_each_members_own(write):
    scripts = []
    for name in ("a", "b"):
        script = write(name, PROBE, model=f"NAME = '{name}'\nclass Net: pass")
        (script.parent / "package").mkdir()
        (script.parent / "package" / "__init__.py").write_text("from . import part\nfrom .part import NAME")
        (script.parent / "package" / "part.py").write_text(f"import model\nNAME = model.NAME + '{name}'")
        scripts.append(script)
    with Host(*((script, f"--width={n}") for n, script in enumerate(scripts)), envs=[{"OWN": "x"}, {"OWN": "y"}]) as host:
        host.hear_all()
        status, stdout, stderr = host.end()
    assert status == 0 and stderr == ""
    assert sorted(stdout.splitlines()) == [
        f"member {n}: {line}" for n, name in enumerate("ab") for line in (f"printed by {name}", "without an end")
    ]
    for n, (name, own, script, member) in enumerate(zip("ab", "xy", scripts, host.members)):
        facts, folder = member.said("hello")[0]["facts"], str(script.parent)
        assert facts == {
            "name": "__main__", "file": str(script), "argv": [f"--width={n}"], "path": folder, "cwd": folder, "before": own,
            "seen": {"environ": own + "!", "width": n, "cwd": folder, "net": name},
            "model": name, "modules": name, "module": "model", "same": True, "pickled": 2, "part": name * 2,
            "main": True, "child": own + "!",
        }  # fmt: skip


def test_what_all_members_have_alike_is_in_the_processs_environment_for_libraries_in_c(write):
    script = write("a", "import collo, ctypes\ngetenv = ctypes.CDLL(None).getenv\ngetenv.restype = ctypes.c_char_p\n"
                   "collo.connect().hello(facts=[str(getenv(name)) for name in (b'ALIKE', b'OWN')])")  # fmt: skip
    hellos = told((script,), (script,), envs=[{"ALIKE": 1, "OWN": 2}, {"ALIKE": 1, "OWN": 3}])
    assert [hello["facts"] for hello in hellos] == [["b'1'", "None"]] * 2


def test_what_a_library_puts_into_the_environment_is_there_for_all_and_what_a_script_puts_there_is_its_own(write):
    libraries = write("libraries", "", library="import os\nos.environ.setdefault('BY_LIBRARY', '1')").parent
    program = "import collo, ctypes, os, library\ngetenv = ctypes.CDLL(None).getenv\ngetenv.restype = ctypes.c_char_p\n"
    program += "seen = [os.environ.get(name) for name in ('BY_LIBRARY', 'BY_SCRIPT')] + [str(getenv(b'BY_LIBRARY'))]\n"
    script = write("a", program + "os.environ['BY_SCRIPT'] = '2'\ncollo.connect().hello(facts=seen)")
    hellos = told((script,), (script,), PYTHONPATH=f"{WORKLOADS}:{libraries}")
    assert [hello["facts"] for hello in hellos] == [["1", None, "b'1'"]] * 2


def test_a_variable_that_libraries_in_c_would_not_find_is_refused(write):
    asks = "import collo, os\nmember = collo.connect()\nos.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'\n"
    script = write("a", asks + "member.hello(facts=1)")
    (error, _) = told((script,), GOOD)
    assert error["kind"] == "setting" and "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`" in error["message"]
    assert error["message"].endswith("put it under [variables] in workload.toml, or share the device in another mode")
    in_force = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    hellos = told((script,), (script,), envs=[in_force] * 2)
    assert [hello.get("facts") for hello in hellos] == [1, 1]  # what is in force anyway may be asked for


def test_a_member_that_fails_before_it_connects_has_left_and_its_traceback_is_its_own(write):
    script = write("a", "import nothing_of_this_name")
    with Host((script,), GOOD) as host:
        host.start()
        host.hear_all()
        status, _, stderr = host.end()
    assert host.members[0].messages == [{"event": "left", "code": 1}]
    assert events(host.members[1]) == COMPLETE and status == 0
    lines = stderr.splitlines()
    assert all(line.startswith("member 0: ") for line in lines) and "collo_host" not in stderr
    assert lines[-1] == "member 0: ModuleNotFoundError: No module named 'nothing_of_this_name'"


def test_what_a_member_leaves_to_atexit_is_done_before_its_last_word_and_only_that(write):
    program = "import atexit, collo, functools\nmember = collo.connect()\nsay = functools.partial(print, flush=True)\n"
    program += "atexit.register(say, 'first')\natexit.register(member._send, 'memory', late=True)\nsay('script')"
    script = write("a", program)
    with Host((script,), (script,)) as host:
        host.hear_all()
        status, stdout, _ = host.end()
    for n, member in enumerate(host.members):
        assert events(member) == ["memory", "left"]
        assert [line for line in stdout.splitlines() if line.startswith(f"member {n}")] == [
            f"member {n}: script",
            f"member {n}: first",
        ]


def test_a_members_worker_processes_end_with_it_and_the_others_stay(write):
    program = """
import collo, multiprocessing, time
member = collo.connect()
worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
worker.start()
member.hello(facts=worker.pid)
member.wait_for_warm_up()
"""
    script = write("a", program)
    with Host((script,), (script,)) as host:
        pids = [member.hear_until("hello")["facts"] for member in host.members]
        host.members[0].tell("warm_up")
        host.members[0].hear_all()
        assert [os.path.exists(f"/proc/{pid}") for pid in pids] == [False, True]
        host.members[1].tell("warm_up")
        host.members[1].hear_all()
        assert not os.path.exists(f"/proc/{pids[1]}")


# --- settings that a process has once ---

SETS = "import collo, sys\nsys.setrecursionlimit({limit})\nmember = collo.connect()\nmember.hello(facts=sys.getrecursionlimit())\n"
TRAINS = "member.wait_for_warm_up()\nmember.ready()\nfor epoch in member.epochs(): epoch.finish()"


def test_a_setting_that_members_want_differently_ends_the_one_that_has_changed_it_whoever_comes_first(write):
    script = write("a", SETS.format(limit=2000) + TRAINS)
    for order in ([(script,), GOOD], [GOOD, (script,)]):
        with Host(*order) as host:
            host.start()
            host.hear_all()
            changed, usual = sorted(host.members, key=lambda member: member.code(), reverse=True)
            assert order[host.members.index(changed)] == (script,)
            assert changed.code() == 1 and events(usual) == COMPLETE
            (error,) = changed.said("error")
            assert error["kind"] == "setting"
            assert error["message"] == (
                f"`sys.setrecursionlimit` is `2000` with this member and `1000` with member {host.members.index(usual)}: "
                "the threads of a process have one value of it; set it alike in all members before they say hello, "
                "or share the device in another mode"
            )


def test_two_values_that_are_both_not_the_usual_one_end_the_later_member(write):
    scripts = [(write(name, SETS.format(limit=limit) + TRAINS),) for name, limit in (("a", 2000), ("b", 3000))]
    with Host(*scripts) as host:
        host.start()
        host.hear_all()
        assert [member.code() for member in host.members] == [0, 1]


def test_a_setting_that_members_want_alike_is_in_force_for_all(write):
    script = write("a", SETS.format(limit=2000) + "member.wait_for_warm_up()\nmember.memory(sys.getrecursionlimit(), 0)\n"
                   "member._send('features', limit=sys.getrecursionlimit())\nmember.ready()")  # fmt: skip
    with Host((script,), (script,)) as host:
        host.start()
        host.hear_all()
        assert [member.said("features")[0]["limit"] for member in host.members] == [2000, 2000]
        assert all(not member.said("memory") for member in host.members)  # the allocator is the process's


def test_a_switch_that_is_thrown_without_a_call_while_members_train_ends_who_trained_under_it(write):
    switches = "import collo, threading\nmember = collo.connect()\nmember.hello()\nmember.wait_for_warm_up()\nmember.ready()\n"
    switches += "for epoch in member.epochs():\n    threading._profile_hook = print\n    epoch.finish()\n"
    script = write("a", switches)
    with Host((script,), (script,)) as host:
        host.start()
        host.hear_all()
        said = [member.said("error") for member in host.members]
        assert sum(map(len, said)) >= 1 and not any(len(member.said("epoch")) == 2 for member in host.members)
        (error, *_) = [error for errors in said for error in errors]
    assert error["kind"] == "setting"
    assert error["message"].startswith("`threading.setprofile` became `print` while members trained, who had agreed on `None`")


def test_each_set_up_finds_what_the_process_began_with(write):
    first = write("a", SETS.format(limit=2000))
    second = write("b", "import collo, sys\ncollo.connect().hello(facts=sys.getrecursionlimit())")
    assert [hello["facts"] for hello in told((first,), (second,))] == [2000, 1000]


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
def test_every_setting_can_be_read_changed_and_put_back():
    program = """
import gc, sys, threading
import torch, collo_regime
regime = collo_regime.Regime()
regime.open()
regime._meet_torch()
usual = regime.read()
assert usual.keys() == regime.settings.keys() | regime.functions.keys(), usual.keys() ^ regime.settings.keys()
others = {"torch.set_default_dtype": torch.float64, "torch.set_float32_matmul_precision": "high", "gc.set_threshold": (5, 5, 5)}
others |= {"torch.multiprocessing.set_sharing_strategy": "file_system", "multiprocessing.set_start_method": "spawn"}
others |= {"torch.use_deterministic_algorithms": (True, True), "sys.setswitchinterval": 0.25, "socket.setdefaulttimeout": 3.0}
others |= {"resource.RLIMIT_AS": (1 << 44, -1), "resource.RLIMIT_DATA": (1 << 44, -1)}
others |= {f"threading.{name}": print for name in ("settrace", "setprofile")}
for name, value in usual.items():
    if name in regime.settings:
        other = others[name] if name in others else not value if isinstance(value, bool) else value + 1
        regime.put({name: other})
        assert regime.read()[name] == other != value, name
        regime.put({name: value})
        assert regime.read()[name] == value, name
print(len(regime.settings))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert ended.stderr == ""
    assert int(ended.stdout) > 25


# --- members that do what no member should ---


def hostile():
    """The table of acts, read from the script without running it as a member."""
    listed = subprocess.run([sys.executable, HOSTED / "hostile.py"], capture_output=True, text=True, env=environment(), check=True)
    acts = {}
    for line in listed.stdout.splitlines():
        name, _, rest = line.partition(": ")
        sentence, _, about = rest.rpartition(" (")
        acts[name] = (sentence, *about.rstrip(")").split("; "))
    return acts


ACTS = hostile()
# The others are run by the harness' own tests, each under its supervisor.
TRIED = (
    "sys_exit", "sys_exit_text", "os_exit", "segfault", "raise_early", "raise_out_of_memory", "raise_with_bad_text",
    "break_excepthook", "raise_in_a_thread", "exit_in_a_thread", "leave_a_thread", "leave_a_daemon_thread", "deadlock",
    "fork_and_go_on", "double_fork", "close_own_channel", "close_another_channel", "close_everything", "close_stdio",
    "say_half_a_line", "ready_twice", "change_arguments", "replace_output", "collect_no_garbage", "break_threads", "trace",
)  # fmt: skip


@pytest.fixture(scope="module")
def tried():
    """What became of a good member and of a hostile one beside it, for each act that is tried."""

    def run(name):
        with Host(GOOD, (HOSTED / "hostile.py", "--act", name)) as host:
            host.start()
            good, bad = host.members
            good.hear_all()
            stays = ACTS[name][2] == "stays"
            if stays:
                bad.channel.settimeout(0.5)  # nothing comes, nor the end
            bad.hear_all()
            return host.members, host.process.poll() if stays else host.process.wait(STUCK_S)

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(TRIED, pool.map(run, TRIED)))


def test_the_table_of_acts_has_a_sentence_for_each():
    assert len(ACTS) >= 60 and set(TRIED) <= ACTS.keys()
    assert all(sentence.endswith((".", "says when.")) for sentence, *_ in ACTS.values())


@pytest.mark.parametrize("name", TRIED)
def test_what_a_hostile_member_does_comes_out_as_the_table_says(name, tried):
    (good, bad), status = tried[name]
    comes_of_it = ACTS[name][2]
    if comes_of_it == "process":
        assert good.code() is None and bad.code() is None and not good.said("done")
        return
    assert events(good) == COMPLETE and good.code() == 0
    if comes_of_it == "stays":
        assert bad.code() is None and status is None
        return
    assert status == 0
    if comes_of_it == "garbles":
        assert not all(isinstance(message, dict) for message in bad.messages)
    elif comes_of_it == "completes":
        assert events(bad) == COMPLETE and bad.code() == 0
    else:
        assert bad.code() == int(comes_of_it)


@pytest.mark.parametrize(
    "name, kind, message",
    [
        ("raise_out_of_memory", "out_of_memory", "CUDA out of memory. Tried to allocate 20.00 MiB"),
        ("ready_twice", "other", "`member.ready()` was called before: it is said once"),
    ],
)
def test_an_error_of_a_member_is_told_on_its_own_channel(name, kind, message, tried):
    (good, bad), _ = tried[name]
    (error,) = bad.said("error")
    assert (error["kind"], error["message"]) == (kind, message)
    assert not good.said("error")


def test_a_member_that_computes_without_end_leaves_some_time_after_stop():
    with Host(GOOD, (HOSTED / "hostile.py", "--act", "loop")) as host:
        host.start(after_measured="keep-running")
        host.members[1].hear_until("epoch")
        time.sleep(0.2)  # now it is in its loop
        for member in host.members:
            member.tell("stop")
        host.hear_all()
        assert [member.code() for member in host.members] == [0, 0]
        assert host.end()[0] == 0


# --- what is refused ---


def test_a_python_that_has_its_lock_is_refused_where_it_is_to_have_none():
    with Host(GOOD, GOOD, lock=False) as host:
        host.hear_all()
        status, _, stderr = host.end()
    for member in host.members:
        error, left = member.messages
        assert error["kind"] == "setting" and left == {"event": "left", "code": 1}
        assert error["message"].startswith("`threads:no-lock` needs a Python without its lock, this one (")
        assert error["message"].endswith("take a free-threaded build (python3.13t), or mode `threads`")
    assert status == 0


def test_without_orders_it_says_what_it_is_for():
    ended = subprocess.run([sys.executable, WORKLOADS / "collo_host.py"], capture_output=True, text=True, env=environment())
    assert ended.returncode == 1
    assert ended.stderr == (
        "error: nothing to host: `COLLO_HOST` is not set\nhint: collo starts this program, for the sharing mode `threads`\n"
    )


# --- with torch ---


TORCH = """
import threading
__version__ = "0"
def __getattr__(name):  # the functions whose calls are watched
    if name.startswith(("set_", "use_")):
        return lambda *_: None
    raise AttributeError(name)
class cuda:
    made, here = [], threading.local()
    class Stream:
        def __init__(self):
            cuda.made.append(self)
            self.cuda_stream = 0x100 + len(cuda.made)
    is_available = is_initialized = staticmethod(lambda: True)
    set_stream = staticmethod(lambda stream: setattr(cuda.here, "stream", stream))
    current_stream = staticmethod(lambda: cuda.here.stream)
import sys
sys.modules["torch.cuda"] = cuda
"""
USES_A_STREAM = """
import collo, threading, torch
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_stream().cuda_stream))
thread.start()
thread.join()
collo.connect().hello(facts=seen)
"""


def test_each_member_and_its_threads_have_a_stream_of_their_own_where_torch_has_a_gpu(write):
    """With a torch that only keeps books: the real one's streams are looked at on a GPU."""
    scripts = [(write(name, USES_A_STREAM),) for name in ("a", "b")]
    libraries = write("libraries", "", torch=TORCH).parent
    hellos = told(*scripts, PYTHONPATH=f"{WORKLOADS}:{libraries}")
    assert [hello["thread"]["stream"] for hello in hellos] == [0x101, 0x102]
    assert [hello["facts"] for hello in hellos] == [[0x101], [0x102]]


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
def test_two_real_trainings_share_a_process_as_they_are(stand_in, write):
    odd = write("odd", "import collo, torch\ntorch.set_num_threads(2)\nmember = collo.connect()\nmember.hello()")
    tiny = (WORKLOADS / "tiny" / "train.py", *arguments("tiny", images=64))
    with Host(tiny, tiny, (odd,), COLLO_DATA=stand_in, hear_s=100) as host:
        hellos = host.start()
        host.hear_all()
        status, stdout, stderr = host.end()
    trained = ["hello", "features", "ready", "epoch", "epoch", "done", "left"]
    assert [events(member) for member in host.members] == [trained, trained, ["error", "left"]]
    assert [member.code() for member in host.members] == [0, 0, 1]
    assert [hello["threads"] for hello in hellos[:2]] == [1, 1]
    assert [hello["thread"]["stream"] for hello in hellos[:2]] == [None, None]  # there are none on a CPU
    losses = [epoch["loss"] for member in host.members[:2] for epoch in member.said("epoch")]
    assert all(0 < loss < 5 for loss in losses)
    error = host.members[2].said("error")[0]
    assert error["kind"] == "setting" and error["message"].startswith("`torch.set_num_threads` is `2` with this member and `1` with")
    assert (status, stdout) == (0, "") and stderr.splitlines() == [f"member 2: error: {error['message']}"]


def test_what_is_said_in_a_process_of_several_has_the_shape_of_the_examples():
    lines = map(json.loads, (WORKLOADS / "protocol.jsonl").read_text().splitlines())
    examples = [line["message"] for line in lines if line["from"] == "host"]
    with Host(GOOD, GOOD) as host:
        (hello, _), _ = host.start(), host.hear_all()
        left = host.members[0].messages[-1]
    on_a_gpu, on_a_cpu, leaving = examples
    assert hello.keys() == on_a_cpu.keys() and hello["thread"].keys() == on_a_cpu["thread"].keys() == on_a_gpu["thread"].keys()
    assert [type(value) for value in hello["thread"].values()] == [type(value) for value in on_a_cpu["thread"].values()]
    assert left == leaving
