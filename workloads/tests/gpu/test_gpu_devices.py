"""A device that is not there, and a machine that cannot compile: told in one line, never the CPU instead."""

import pytest
from card import TRAINING, OnDevice, command, error, trained

gpu = pytest.mark.gpu
ABSENT = "GPU-00000000-0000-4000-8000-000000000000"


@gpu
@pytest.mark.parametrize("absent", [ABSENT, "MIG" + ABSENT[3:]])
@pytest.mark.parametrize("workload", [*TRAINING, "tiny", "square", "stress"])
def test_a_card_that_is_not_there_is_an_error_and_not_the_cpu(workload, absent):
    arguments, variables = command(workload)
    with OnDevice("cuda", workload, arguments, **{**variables, "CUDA_VISIBLE_DEVICES": absent}) as member:
        told = error(member.train(epochs=1))
        assert member.end(timeout=30)[0] == 1
    assert told["kind"] == "setting" and f"gives this process {absent}" in told["message"]


@gpu
def test_without_the_daemon_of_its_mps_folder_a_member_is_on_the_card_or_fails_but_never_on_the_cpu(tmp_path):
    (tmp_path / "pipe").mkdir()
    arguments, variables = command("gpt")
    variables = {**variables, "CUDA_MPS_PIPE_DIRECTORY": tmp_path / "pipe", "CUDA_MPS_LOG_DIRECTORY": tmp_path}
    with OnDevice("cuda", "gpt", arguments, **variables) as member:
        said = member.train(epochs=1)
        member.end(timeout=30)
    if "hello" in said:
        assert said["hello"][0]["device"].startswith("GPU-")
    else:
        assert error(said)["kind"] == "setting"


NO_HEADERS = """
import sysconfig
sysconfig.get_path = lambda name, scheme=None, get_path=sysconfig.get_path: "/nowhere" if name == "include" else \\
    get_path(name, scheme) if scheme else get_path(name)
"""


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=gpu), "cpu"])
def test_a_python_without_headers_is_told_before_anything_is_compiled(device):
    told = error(trained(device, "gpt", before=NO_HEADERS, compile=True))
    assert told["kind"] == "setting" and "`/nowhere/Python.h` is missing: install the headers" in told["message"]
