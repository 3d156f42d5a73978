"""What the training scripts share: settings that are refused, batches, loaders, steps, and what is told of a model."""

import argparse
import contextlib
import types

import collo_torch
import numpy as np
import pytest
import torch
from collo import SettingError
from collo_features import features
from collo_peaks import Peaks
from forked import Forked, by_hand
from harness import WORKLOADS
from scripts import trained
from torch import nn

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def settings(**more):
    parser = argparse.ArgumentParser()
    collo_torch.add_settings(parser, batch_size=4, learning_rate=0.1)
    return argparse.Namespace(**{**vars(parser.parse_args([])), **more})


class Numbers:
    """A data set of the numbers from 0, each with its square; reading item `bad` fails."""

    def __init__(self, count, bad=None, error=None):
        self.count, self.bad, self.error = count, bad, error

    def __len__(self):
        return self.count

    def __getitems__(self, indices):
        if self.bad in indices:
            raise self.error
        numbers = np.array(indices, np.float32)
        return numbers, numbers**2

    def describe(self):
        return {"name": "numbers", "synthetic": True, "items": self.count}


# --- settings ---


def test_the_defaults_can_be_had_on_a_cpu():
    collo_torch.check_settings(settings(), CPU)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"precision": "tf32"}, "`precision` cannot be `tf32` on a CPU: it is a property of NVIDIA GPUs"),
        ({"cuda_graphs": True}, "`cuda_graphs` cannot be true on a CPU"),
        ({"pin_memory": "true"}, "`pin_memory` cannot be `true` on a CPU"),
        ({"pin_memory": "always"}, "`pin_memory` is `always`: it is one of auto, true, false"),
        ({"allocator": "cudaMallocAsync"}, "`allocator` cannot be `cudaMallocAsync` on a CPU"),
        ({"precision": "fp8"}, "`precision` is `fp8`: it is one of fp32, tf32, torch, bf16, fp16"),
        ({"read_loss": "batch"}, "`read_loss` is `batch`: it is one of epoch, step"),
        ({"allocator": "jemalloc"}, "`allocator` is `jemalloc`: it is one of native, cudaMallocAsync"),
        ({"batch_size": 0}, "`batch_size` is 0: it is 1 or more"),
        ({"limit_batches": -1}, "`limit_batches` is -1: it is 0 or more, 0 for the whole epoch"),
        ({"limit_batches": 1.0}, "`limit_batches` is 1.0: a share of the epoch lies between 0 and 1"),
        ({"limit_batches": 2.5}, "`limit_batches` is 2.5: a share of the epoch lies between 0 and 1"),
        ({"limit_batches": float("nan")}, "`limit_batches` is nan: a share of the epoch lies between 0 and 1"),
        ({"workers": -1}, "`workers` is -1: it is 0 or more, 0 to load in the training process"),
        ({"workers": 257}, "`workers` is 257: more than 256"),
        ({"learning_rate": 0.0}, "`learning_rate` is 0.0: it is greater than 0"),
        ({"learning_rate": float("nan")}, "`learning_rate` is nan: it is greater than 0"),
        ({"seed": -1}, "`seed` is -1: it is a whole number from 0"),
        ({"seed": 2**63}, "`seed` is 9223372036854775808: it is a whole number from 0"),
    ],
)
def test_a_setting_that_cannot_be_had_on_a_cpu_is_refused(wrong, said):
    with pytest.raises(SettingError) as error:
        collo_torch.check_settings(settings(**wrong), CPU)
    assert said in str(error.value)


def test_a_gpu_may_have_all_of_them(monkeypatch):
    monkeypatch.setattr(collo_torch, "allocator", lambda: "cudaMallocAsync")
    of_gpus = {"precision": "tf32", "cuda_graphs": True, "pin_memory": "true", "allocator": "cudaMallocAsync"}
    collo_torch.check_settings(settings(**of_gpus), CUDA)


def test_another_allocator_than_asked_for_is_no_allocator(monkeypatch):
    monkeypatch.setattr(collo_torch, "allocator", lambda: "native")
    with pytest.raises(SettingError, match="the allocator is `native`, not `cudaMallocAsync` as asked: set PYTORCH_"):
        collo_torch.check_settings(settings(allocator="cudaMallocAsync"), CUDA)


def test_cuda_graphs_cannot_scale_losses(monkeypatch):
    monkeypatch.setattr(collo_torch, "allocator", lambda: "native")
    with pytest.raises(SettingError, match="`cuda_graphs` cannot be true with `precision` fp16"):
        collo_torch.check_settings(settings(cuda_graphs=True, precision="fp16"), CUDA)


@pytest.mark.parametrize("text, value", [("true", True), ("false", False)])
def test_a_flag_is_true_or_false(text, value):
    assert collo_torch.flag(text) is value
    with pytest.raises(argparse.ArgumentTypeError, match=f"`{text.upper()}` is neither true nor false"):
        collo_torch.flag(text.upper())


SET_UP = """
import argparse, sys
import torch
import collo_torch
parser = argparse.ArgumentParser()
collo_torch.add_settings(parser, batch_size=4, learning_rate=0.1)
torch.cuda.is_available, collo_torch.allocator = lambda: {gpu}, lambda: "native"
device = collo_torch.set_up(parser.parse_args(["--precision={precision}", "--seed=7", "--tune={tune}"]))
drawn = torch.rand(1).item()
torch.manual_seed(7)
print(device, torch.get_num_threads(), torch.get_num_interop_threads(), drawn == torch.rand(1).item(),
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark)
"""


@pytest.mark.parametrize(
    "gpu, precision, tune, said",
    [
        (False, "fp32", "true", "cpu 1 1 True False False True"),
        (True, "fp32", "true", "cuda 1 1 True False False True"),  # torch by itself has convolutions use TF32
        (True, "tf32", "false", "cuda 1 1 True True True False"),
        (True, "bf16", "true", "cuda 1 1 True False False True"),
        (True, "torch", "true", "cuda 1 1 True False True True"),  # what it is before anybody says a word, see below
    ],
)
def test_setting_up_puts_the_settings_in_force(gpu, precision, tune, said):
    assert by_hand(SET_UP.format(gpu=gpu, precision=precision, tune=tune)) == (0, said + "\n", "")


def test_no_script_has_tf32_switches_of_its_own():
    """`serve` had, and with `precision` torch it ran in fp32."""
    own = [path.name for path in WORKLOADS.glob("*/*.py") if "cudnn.allow_tf32" in path.read_text()]
    assert own == ["test_collo_torch.py"]


def test_torch_by_itself_uses_tf32_in_convolutions_alone():
    switches = "torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32"
    assert by_hand(f"import torch; print({switches})") == (0, "False True\n", "")


@pytest.mark.parametrize("nothing", [None, "", "-1", "NoDevFiles"])
def test_without_a_gpu_that_was_given_a_process_is_on_the_cpu(monkeypatch, nothing):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if nothing is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", nothing)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert collo_torch.given_device().type == "cpu"


def test_a_gpu_that_was_given_and_cannot_be_used_is_an_error_and_not_the_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-2f6e")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def init():
        raise RuntimeError("Error 802: system not yet initialized\nmore")

    monkeypatch.setattr(torch.cuda, "init", init)
    said = "gives this process GPU-2f6e, and CUDA cannot be used: Error 802: system not yet initialized; "
    with pytest.raises(SettingError, match=said):
        collo_torch.given_device()


USE_TORCH = [path.parent.name for path in WORKLOADS.glob("*/train.py") if "import collo_torch" in path.read_text()]


@pytest.mark.parametrize("workload", sorted(USE_TORCH))
def test_no_script_falls_back_to_the_cpu(workload, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-2f6e")
    heard, (status, _, stderr) = trained(workload)
    [error] = heard["error"]
    assert (status, error["kind"], heard.keys()) == (1, "setting", {"error"})
    assert error["message"].startswith("`CUDA_VISIBLE_DEVICES` gives this process GPU-2f6e"), stderr


# --- out of memory ---


TOO_MUCH = """
import collo, torch
member = collo.connect()
def too_much(_=None):
    return torch.empty(10**15)  # more than any machine has; torch's own words are told
class Grows(torch.autograd.Function):
    forward = staticmethod(lambda context, x: x * 1)
    backward = staticmethod(lambda context, gradient: too_much())
"""


@pytest.mark.parametrize("moment", ["too_much()", "Grows.apply(torch.ones(1, requires_grad=True)).backward()"])
def test_out_of_memory_in_set_up_and_in_backward_is_out_of_memory(moment):
    with Forked(TOO_MUCH + moment) as member:
        (told,) = member.hear_all()
        assert (told["event"], told["kind"]) == ("error", "out_of_memory"), told
        assert member.end()[0] == 1


# --- the step ---


def steps(**more):
    """The losses of 20 steps of a line through points on a line."""
    torch.manual_seed(0)
    line = nn.Linear(1, 1)
    optimiser = torch.optim.SGD(line.parameters(), 0.2)
    points = torch.linspace(-1, 1, 8).view(-1, 1)
    step = collo_torch.training_step(
        lambda x, y: nn.functional.mse_loss(line(x).float(), y), line, optimiser, settings(**more)
    )
    losses = [step(points, 3 * points + 1) for _ in range(20)]
    assert not any(loss.requires_grad for loss in losses)
    return [loss.item() for loss in losses]


def test_a_step_learns():
    losses = steps()
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.05 * losses[0]


def test_bf16_learns_nearly_the_same_and_not_exactly():
    losses, exact = steps(precision="bf16"), steps()
    assert losses != exact
    assert losses[:10] == pytest.approx(exact[:10], rel=0.1)


def test_fp16_learns_the_same_once_its_losses_are_scaled():
    losses, exact = steps(precision="fp16"), steps()
    skipped = losses.count(losses[0]) - 1  # steps whose gradients did not fit: the scale is halved, nothing is learnt
    assert 0 < skipped < 5
    assert losses[skipped : skipped + 10] == pytest.approx(exact[:10], rel=0.1)


@pytest.mark.parametrize("read_loss, times", [("epoch", 0), ("step", 5)])
def test_the_loss_is_read_after_each_step_only_when_asked(monkeypatch, read_loss, times):
    line, read = nn.Linear(1, 1), []
    optimiser = torch.optim.SGD(line.parameters(), 0.2)
    step = collo_torch.training_step(lambda x: line(x).mean(), line, optimiser, settings(read_loss=read_loss))
    item = torch.Tensor.item

    def spy(tensor):
        read.append((optimiser.steps, tensor.requires_grad))
        return item(tensor)

    optimiser.steps, update = 0, optimiser.step

    def counted(*args, **given):
        optimiser.steps += 1
        return update(*args, **given)

    monkeypatch.setattr(optimiser, "step", counted)
    monkeypatch.setattr(torch.Tensor, "item", spy)
    losses = [step(torch.ones(2, 1)) for _ in range(5)]
    monkeypatch.undo()
    assert [steps for steps, _ in read] == [1, 2, 3, 4, 5][:times]  # once each, behind the update
    assert all(loss.shape == () for loss in losses)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_loss_is_compiled_only_when_asked(monkeypatch, compiled):
    seen = []
    monkeypatch.setattr(torch, "compile", lambda function: seen.append(function) or function)
    assert steps(compile=compiled) == steps()
    assert len(seen) == compiled


class Graph:
    """CUDA's part: while a step is captured nothing is computed; a replay does, and puts the loss where it was."""

    def __init__(self):
        self.capturing = False

    @contextlib.contextmanager
    def capture(self, graph, capture_error_mode):
        assert graph is self and capture_error_mode == "thread_local"
        self.capturing = True
        yield
        self.capturing = False

    def step(self, numbers):
        self.inputs, self.loss = numbers, torch.tensor(float("nan")) if self.capturing else numbers.sum()
        return self.loss

    def replay(self):
        self.loss.copy_(self.inputs.sum())


def test_a_graph_is_captured_once_and_replayed_on_each_batch(monkeypatch):
    graph, calls = Graph(), []
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    monkeypatch.setattr(collo_torch.peaks, "of_a_capture", contextlib.nullcontext)
    fakes = {"CUDAGraph": lambda: graph, "graph": graph.capture, "stream": contextlib.nullcontext}
    for name, fake in {**fakes, "Stream": lambda: stream, "current_stream": lambda: stream}.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    step = collo_torch.graphed(lambda numbers: calls.append(graph.capturing) or graph.step(numbers))

    batch, losses = torch.tensor([1.0, 2.0]), []
    for number in (1, 10, 100, 1000, 10_000):
        losses.append(step(number * batch))
    assert [loss.item() for loss in losses] == [3.0, 30.0, 300.0, 3000.0, 30_000.0]  # none is written over
    assert calls == [False] * (collo_torch.WARM_UP_BATCHES - 1) + [True], "captured in the warm-up, which is not longer"
    assert batch.tolist() == [1.0, 2.0]


class Failing:
    """The capture of a step that fails in it: ending it fails, too, and torch tells that."""

    def __enter__(self):
        pass

    def __exit__(self, *_):
        raise RuntimeError("CUDA error: operation failed due to a previous error during capture")


def test_out_of_memory_in_a_capture_is_told_and_not_that_the_capture_failed(monkeypatch):
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    monkeypatch.setattr(collo_torch, "peaks", Peaks())
    Allocator(monkeypatch)
    fakes = {"CUDAGraph": object, "stream": contextlib.nullcontext, "graph": lambda graph, capture_error_mode: Failing()}
    for name, fake in {**fakes, "Stream": lambda: stream, "current_stream": lambda: stream}.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    calls = []

    def step(numbers):
        calls.append(numbers)
        if len(calls) == collo_torch.WARM_UP_BATCHES:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB")

    graphed = collo_torch.graphed(step)
    with pytest.raises(torch.OutOfMemoryError, match="^CUDA out of memory"):
        for _ in range(collo_torch.WARM_UP_BATCHES):
            graphed(torch.zeros(2))


def test_a_model_learns_the_same_with_a_graph_and_without_one(monkeypatch):
    """While a step is captured it computes nothing; here the capture keeps it, and a replay does it."""
    monkeypatch.setattr(collo_torch.peaks, "of_a_capture", contextlib.nullcontext)
    kept, stream = [], types.SimpleNamespace(wait_stream=lambda other: None)
    fakes = {"stream": contextlib.nullcontext, "Stream": lambda: stream, "current_stream": lambda: stream}
    fakes["CUDAGraph"] = lambda: types.SimpleNamespace(replay=lambda: kept[1].copy_(kept[0]()))
    fakes["graph"] = lambda graph, capture_error_mode: contextlib.nullcontext()
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)

    def losses(wrapped):
        torch.manual_seed(0)
        line, calls = nn.Linear(1, 1), []
        optimiser = torch.optim.SGD(line.parameters(), 0.2, momentum=0.9)
        step = collo_torch.training_step(lambda x: line(x).pow(2).mean(), line, optimiser, settings())

        def capturable(x):
            calls.append(x)
            if wrapped and len(calls) == collo_torch.WARM_UP_BATCHES:
                kept[:] = [lambda: step(x), torch.zeros(())]
                return kept[1]
            return step(x)

        taken = collo_torch.graphed(capturable) if wrapped else capturable
        return [taken(torch.full((4, 1), float(number))).item() for number in range(1, 9)]

    assert losses(wrapped=True) == losses(wrapped=False)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("there, taken", [(2, 2), (3, 3), (9, 3)])
def test_warming_up_takes_a_few_batches_and_no_more(there, taken, workers):
    seen, loader = [], collo_torch.loader(Numbers(4 * there), settings(workers=workers))
    collo_torch.warm_up(lambda *batch: seen.append(batch) or torch.zeros(()), loader, CPU)
    assert len(seen) == taken
    assert len(loader) == len(list(loader)) == there, "the epochs are whole again"


# --- what a member tells ---


class Heard:
    """A member that keeps what it is told to say."""

    def __init__(self):
        self.said = []

    def __getattr__(self, event):
        return lambda *args, **fields: self.said.append((event, args, fields))


@pytest.mark.parametrize("limit, said", [(0, None), (2, 2), (3, None), (4, None), (0.01, 1), (0.5, 1), (0.99, 2)])
def test_a_limit_is_told_where_it_cuts_an_epoch_short(limit, said):
    member = Heard()
    collo_torch.say_hello(member, settings(limit_batches=limit), CPU, "line", nn.Linear(2, 3), Numbers(14), width=7)
    event, _, hello = member.said.pop()
    assert (event, hello["limit_batches"]) == ("hello", said)
    assert hello["model"] == ("line", 9) and hello["dataset"]["items"] == 14
    assert (hello["device"], hello["sm_count"], hello["memory_bytes"], hello["allocator"]) == ("cpu", None, None, None)
    assert (hello["precision"], hello["width"]) == ("fp32", 7)
    assert (hello["pin_memory"], hello["tune"], hello["keep_cache"]) == (False, None, None)  # of GPUs


@pytest.mark.parametrize("limit, said", [(3, 3), (0, None), (0.5, None)])
def test_without_a_data_set_a_number_always_cuts_and_a_share_is_of_nothing_known(limit, said):
    member = Heard()
    collo_torch.say_hello(member, settings(limit_batches=limit), CPU, "line", nn.Linear(2, 3))
    assert member.said[0][2]["limit_batches"] == said and member.said[0][2]["dataset"] is None


def test_a_limit_is_read_as_a_number_of_batches_or_as_a_share():
    parser = argparse.ArgumentParser()
    collo_torch.add_settings(parser, batch_size=4, learning_rate=0.1)
    read = [parser.parse_args([f"--limit-batches={text}"]).limit_batches for text in ("0", "7", "0.25")]
    assert read == [0, 7, 0.25] and [type(value) for value in read] == [int, int, float]


@pytest.mark.parametrize("sm_count", [108, 14])
def test_a_gpu_is_seen_by_the_digits_of_its_uuid_and_by_its_size(monkeypatch, sm_count):
    digits = "4d6b1c2e-0f7a-5a53-9c1d-8e2b7a90c1d4"  # of a card or of a MIG instance: CUDA gives no prefix
    shown = types.SimpleNamespace(uuid=digits, multi_processor_count=sm_count, total_memory=5 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: shown)
    seen = collo_torch.as_seen(CUDA)
    assert seen == {"device": f"GPU-{digits}", "sm_count": sm_count, "memory_bytes": 5 * 2**30}


def test_a_cpu_has_no_memory_of_an_allocator_to_tell():
    member, peaks = Heard(), Peaks()
    peaks.end_warm_up(CPU)
    peaks.tell(member, CPU)
    assert member.said == []


class Allocator:
    """torch.cuda's: bytes in use, bytes held, and the most of each since the peaks were reset."""

    def __init__(self, monkeypatch):
        self.calls, self.used, self.held, self.most = [], 0, 0, (0, 0)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: self.calls.append("synchronize"))
        monkeypatch.setattr(torch.cuda, "empty_cache", self.empty_cache)
        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", self.reset)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device=None: self.used)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device=None: self.most[0])
        monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device=None: self.most[1])

    def use(self, peak, left):
        """Some work that needs `peak` bytes for a moment and `left` bytes afterwards."""
        self.used, self.held = left, max(self.held, peak)
        self.most = max(self.most[0], peak), max(self.most[1], self.held)

    def empty_cache(self):
        self.calls.append("empty_cache")
        self.held = self.used

    def reset(self, device=None):
        self.most = self.used, self.held


@pytest.mark.parametrize("keep_cache, reserved", [(False, 40), (True, 1000)])
def test_the_warm_up_and_the_training_have_peaks_of_their_own(monkeypatch, keep_cache, reserved):
    member, peaks, gpu = Heard(), Peaks(), Allocator(monkeypatch)
    peaks.keep_cache = keep_cache
    gpu.use(1000, left=10)  # trying algorithms
    peaks.end_warm_up(CUDA)
    gpu.use(40, left=10)
    peaks.tell(member, CUDA)
    assert member.said == [("memory", (40, reserved, 1000, 1000), {})]
    assert gpu.calls == ["synchronize"] + ["empty_cache"] * (not keep_cache)


def test_of_two_warm_ups_the_larger_peaks_are_told(monkeypatch):
    member, peaks, gpu = Heard(), Peaks(), Allocator(monkeypatch)
    for peak in (1000, 30):  # of a training block and of its validation
        gpu.use(peak, left=10)
        peaks.end_warm_up(CUDA)
    peaks.tell(member, CUDA)
    assert member.said == [("memory", (10, 10, 1000, 1000), {})]


def test_what_a_captured_step_works_in_belongs_to_the_peaks_of_its_replays(monkeypatch):
    """A replay asks the allocator for nothing: by its own count only weights and gradients would be there."""
    member, gpu = Heard(), Allocator(monkeypatch)
    monkeypatch.setattr(collo_torch, "peaks", Peaks())
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    fakes = {"stream": contextlib.nullcontext, "Stream": lambda: stream, "current_stream": lambda: stream}
    fakes["CUDAGraph"] = lambda: types.SimpleNamespace(replay=lambda: None)
    fakes["graph"] = lambda graph, capture_error_mode: contextlib.nullcontext()
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    needs = iter([5000, 3100, 3000])  # cuDNN tries its algorithms in the first step

    def step(numbers):
        gpu.use(next(needs), left=1000)
        return torch.zeros(())

    step = collo_torch.graphed(step)
    for _ in range(collo_torch.WARM_UP_BATCHES):
        step(torch.zeros(2))
    collo_torch.peaks.end_warm_up(CUDA)
    for _ in range(4):
        step(torch.zeros(2))
        gpu.use(1040, left=1000)  # the next batch
    collo_torch.tell_memory(member, CUDA)
    ((_, (allocated, _, of_warm_up, _), _),) = member.said
    assert (allocated, of_warm_up) == (1040 + 2000, 5000)


def test_without_a_warm_up_of_its_own_a_member_tells_no_peaks_of_one(monkeypatch):
    member, gpu = Heard(), Allocator(monkeypatch)
    gpu.use(70, left=10)
    Peaks().tell(member, CUDA)
    assert member.said == [("memory", (70, 70), {})]


@pytest.mark.parametrize(
    "measured, said",
    [
        ((False, True), [(40, 1000, 1000, 1000)]),  # the cache is the script's own affair
        ((True,), [(1000, 1000)]),  # the only epoch
    ],
)
def test_where_a_library_has_the_loop_its_unmeasured_first_epoch_is_the_warm_up(monkeypatch, measured, said):
    member, gpu = Heard(), Allocator(monkeypatch)
    monkeypatch.setattr(collo_torch, "peaks", Peaks())
    for index, (peak, of_the_measured) in enumerate(zip((1000, 40), measured)):
        gpu.use(peak, left=10)
        collo_torch.tell_memory_of(types.SimpleNamespace(index=index, measured=of_the_measured), member, CUDA)
    assert [peaks for _, peaks, _ in member.said] == said and "empty_cache" not in gpu.calls


# --- features ---


def test_the_features_of_a_model_count_parameters_operations_values_and_layers():
    layers = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Identity(), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
    found = features(layers, (torch.zeros(1, 3, 8, 8),))
    assert found == {
        "parameters": 3 * 4 * 9 + 4 + 2560 + 10,
        "model_mb": 4 * 2682 / 1e6,
        "flops_per_item": 2 * (64 * 3 * 4 * 9 + 2560),
        "activations_per_item": 256 + 256 + 256 + 10,
        "layers": {"Conv2d": 1, "Flatten": 1, "Linear": 1, "ReLU": 1},
        "sequence": [["Conv2d", 256, 112], ["ReLU", 256, 0], ["Flatten", 256, 0], ["Linear", 10, 2570]],
    }


def test_one_item_is_enough_for_a_model_with_batch_normalisation():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    found = features(model, (torch.zeros(1, 4),))
    assert found["flops_per_item"] == 32
    assert found["model_mb"] == pytest.approx((4 * (20 + 8 + 8) + 8) / 1e6)  # running means and their count are buffers
    assert model.training and model[0].weight.device == CPU


def test_what_cannot_be_counted_is_none():
    class Odd(nn.Linear):
        def forward(self, x):
            return super().forward(x) * x.sum().item()

    found = features(Odd(2, 2), (torch.zeros(1, 2),))
    assert (found["parameters"], found["flops_per_item"], found["activations_per_item"]) == (6, None, None)


def test_features_are_told_with_the_batch_size():
    member = Heard()
    collo_torch.tell_features(member, nn.Linear(2, 2), (torch.zeros(1, 2),), settings(batch_size=64))
    [(event, _, said)] = member.said
    assert (event, said["batch_size"], said["flops_per_item"]) == ("features", 64, 8)
