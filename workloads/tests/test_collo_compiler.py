"""What torch.compile needs: refused in one line before anything is compiled; with all of it a step compiles."""

import sysconfig

import collo_compiler
import pytest
import torch
from collo import SettingError
from forked import by_hand

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without compilers; what is put into the folder is found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def install(folder, *names):
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def refused(device):
    with pytest.raises(SettingError) as error:
        collo_compiler.check(device)
    return str(error.value)


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_it_needs_a_compiler_of_cxx_also_on_a_gpu_for_what_stays_on_the_cpu(bare, monkeypatch, device):
    install(bare, "gcc")
    no_compiler = "`compile` needs a C++ compiler: install `g++` or name one in CXX, or leave `compile` out"
    assert refused(device) == no_compiler
    monkeypatch.setenv("CXX", "my-c++ -O1")
    assert refused(device) == no_compiler
    install(bare, "my-c++")
    collo_compiler.check(device)


@pytest.mark.parametrize("named", [None, "my-cc"])
def test_on_a_gpu_triton_needs_a_compiler_of_c_too(bare, monkeypatch, named):
    install(bare, "g++")
    collo_compiler.check(CPU)
    if named:
        monkeypatch.setenv("CC", named)
    assert refused(CUDA).startswith("`compile` needs a C compiler: install `gcc` or name one in CC")
    install(bare, named or "clang")
    collo_compiler.check(CUDA)


def test_a_c_compiler_with_arguments_is_refused_as_triton_runs_it_as_one_word(bare, monkeypatch):
    install(bare, "g++", "gcc", "ccache")
    monkeypatch.setenv("CC", "ccache gcc")
    said = refused(CUDA)
    assert said.startswith("`compile` needs CC to be one word, as Triton runs it: it is `ccache gcc`: name the")
    collo_compiler.check(CPU)


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_it_needs_the_headers_of_this_python(bare, monkeypatch, device):
    install(bare, "g++", "gcc")
    monkeypatch.setattr(sysconfig, "get_path", lambda name, scheme: f"{bare}/{name}")
    said = refused(device)
    assert said.startswith(f"`compile` needs Python.h, and `{bare}/include/Python.h` is missing: install the headers")
    (bare / "include").mkdir()
    (bare / "include" / "Python.h").touch()
    collo_compiler.check(device)


COMPILE = """
import argparse, os, signal
signal.alarm(120)  # longer than other tests get: ten seconds alone, more amid others
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {folder!r}  # else a second run would compile nothing
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
import torch
import collo_torch
parser = argparse.ArgumentParser()
collo_torch.add_settings(parser, batch_size=4, learning_rate=0.1)
settings = parser.parse_args(["--compile=true"])
device = collo_torch.set_up(settings)
import torch._inductor.config as inductor
inductor.cpp.simdlen, inductor.cpp_cache_precompile_headers = 1, False  # takes a third of the time
line = torch.nn.Linear(1, 1)
points = torch.linspace(-1, 1, 8).view(-1, 1)
losses = []
for settings.compile in (False, True):
    torch.nn.init.zeros_(line.weight), torch.nn.init.zeros_(line.bias)
    optimiser = torch.optim.SGD(line.parameters(), 0.2)
    step = collo_torch.training_step(lambda x, y: ((line(x) - y) ** 2).mean(), line, optimiser, settings)
    losses.append([step(points, 3 * points + 1).item() for _ in range(3)])
from torch._dynamo.utils import counters
print(counters["stats"]["unique_graphs"], sum(abs(one - other) for one, other in zip(*losses)) < 1e-5)
"""


def test_a_step_really_compiles_and_learns_the_same(tmp_path):
    assert by_hand(COMPILE.format(folder=str(tmp_path))) == (0, "1 True\n", "")
    assert list(tmp_path.rglob("*.so")), "the compiler has run"


@pytest.mark.parametrize(
    "said, of_inductor, processes", [(None, 32, collo_compiler.PROCESSES), (None, 2, 2), ("7", 7, 7)]
)
def test_few_processes_compile_unless_the_variable_says_otherwise(monkeypatch, said, of_inductor, processes):
    import torch._inductor.config as inductor

    monkeypatch.delenv("TORCHINDUCTOR_COMPILE_THREADS", raising=False)
    if said:
        monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", said)
    with inductor.patch(compile_threads=of_inductor):  # as it takes from the cores, or from the variable
        collo_compiler.set_up(CPU)
        assert inductor.compile_threads == processes
