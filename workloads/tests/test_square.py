"""The microbenchmark: its dials, the kernel under the real compiler, and its launch at a driver made for the test."""

import ctypes

import pytest
import torch
from harness import written
from scripts import by_hand, flags, module, trained

kernel = module("square", "kernel")


def few(**settings):
    return flags("square", **{"blocks": 4, "threads": 32, "launches": 300, **settings})


def test_it_squares_through_its_epochs_and_trains_nothing():
    heard, ended = trained("square", *few())
    assert ended == (0, "", "")
    (hello,) = heard["hello"]
    assert hello["kernel"] == "torch" and hello["device"] == "cpu" and hello["sm_count"] is None
    assert hello.keys().isdisjoint({"model", "dataset"})
    assert [(epoch["items"], epoch["loss"]) for epoch in heard["epoch"]] == [(300 * 4 * 32, None)] * 2
    assert heard.keys() == {"hello", "ready", "epoch", "done"}


def test_by_hand_it_says_which_kernel_ran():
    status, stdout, stderr = by_hand("square", *few(), "--epochs", 1)
    hello, used, epoch, rate = stdout.splitlines()
    assert (status, stderr, used) == (0, "", "kernel torch")
    assert epoch.startswith("epoch 0 took ") and rate.endswith(" µs per launch")


@pytest.mark.parametrize(
    "setting, words",
    [
        ({"threads": 1025}, "`threads` is 1025: it is 1 to 1024"),
        ({"threads": 0}, "`threads` is 0"),
        ({"blocks": 2**31}, f"`blocks` is {2**31}: it is 1 to {2**31 - 1}"),
        ({"blocks": -1}, "`blocks` is -1"),
        ({"launches": 0}, "`launches` is 0: it is 1 to "),
        ({"kernel": "cuda"}, "`kernel` cannot be `cuda` on a CPU: leave it at auto"),
        ({"kernel": "triton"}, "`kernel` is `triton`: it is one of auto, cuda, torch"),
        ({"blocks": 2**31 - 1, "threads": 1024}, "the items and their squares take 17.59 TB, the machine has "),
    ],
)
def test_dials_out_of_range_are_told_in_one_line(setting, words):
    heard, (status, _, stderr) = trained("square", *few(**setting))
    (error,) = heard["error"]
    assert (status, error["kind"]) == (1, "setting") and words in error["message"]
    assert stderr == f"error: {error['message']}\n"


# --- the kernel; NVRTC comes with torch and needs no GPU ---

needs_nvrtc = pytest.mark.skipif(torch.version.cuda is None, reason="this torch comes without CUDA")


@needs_nvrtc
@pytest.mark.parametrize("shared_items", [True, False])
@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
def test_the_kernel_compiles(capability, shared_items):
    code = kernel.compiled(*capability, torch.version.cuda, shared_items)
    assert code[:4] == b"\x7fELF" and kernel.NAME in code


@needs_nvrtc
def test_a_gpu_that_the_compiler_does_not_know_is_said():
    with pytest.raises(RuntimeError, match="^NVRTC: NVRTC_ERROR_INVALID_OPTION$"):
        kernel.compiled(3, 0, torch.version.cuda)


def test_a_compiler_that_is_not_there_is_said():
    with pytest.raises(OSError, match="^NVRTC is not there: no `libnvrtc.so.7`$"):
        kernel.library("NVRTC", "libnvrtc.so.7")


POINTER = ctypes.POINTER(ctypes.c_void_p)


class Driver:
    """Does what the CUDA driver does with these calls, on the CPU. The arguments arrive as C has them."""

    def __init__(self, status=0):
        self.launches, self.status = [], status
        self.cuModuleLoadData = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_char_p)(self.load)
        self.cuModuleGetFunction = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_void_p, ctypes.c_char_p)(self.find)
        self.cuGetErrorString = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(self.error)
        dimensions = [ctypes.c_uint] * 7
        self.cuLaunchKernel = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, *dimensions, ctypes.c_void_p, POINTER, ctypes.c_void_p
        )(self.launch)

    def load(self, module, code):
        module[0] = 11
        return 0 if code == b"code" else 200

    def find(self, function, module, name):
        function[0] = 12
        return 0 if (module, name) == (11, b"square") else 500

    def error(self, status, text):
        self.text = ctypes.create_string_buffer(b"unspecified launch failure")
        ctypes.cast(text, POINTER)[0] = ctypes.addressof(self.text)
        return 0

    def launch(self, function, *rest):
        *dimensions, stream, arguments, extra = rest
        items, squares = (ctypes.cast(arguments[n], ctypes.POINTER(ctypes.c_void_p))[0] for n in (0, 1))
        self.launches.append((function, *dimensions, stream, extra))
        count = dimensions[0] * dimensions[3]
        read, write = (ctypes.cast(address, ctypes.POINTER(ctypes.c_float)) for address in (items, squares))
        for item in range(count):
            write[item] = read[item] * read[item]
        return self.status


def test_a_launch_has_exactly_the_blocks_and_threads_asked_for(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(kernel, "library", lambda *_: driver)
    items, squares = torch.arange(6.0), torch.zeros(6)
    square = kernel.loaded(b"code", 2, 3, items.data_ptr(), squares.data_ptr(), stream=77)
    square()
    square()
    assert driver.launches == [(12, 2, 1, 1, 3, 1, 1, 0, 77, None)] * 2
    assert squares.tolist() == [0, 1, 4, 9, 16, 25]


def test_a_launch_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(kernel, "library", lambda *_: Driver(status=719))
    items = torch.zeros(1)
    square = kernel.loaded(b"code", 1, 1, items.data_ptr(), items.data_ptr(), stream=0)
    with pytest.raises(RuntimeError, match="^CUDA: unspecified launch failure$"):
        square()


def test_the_default_is_the_kernel_of_the_study():
    defaults = written("square")["settings"]
    assert defaults["shared_items"] is True and kernel.INDEX[True] == b"threadIdx.x"
    assert defaults["kernel"] == "auto"
