"""Every script with every setting on a card, and what a step must not do there. Some of it runs on the CPU as well."""

import functools
import math

import pytest
from card import TRAINING, OnDevice, capability, losses, trained
from harness import WORKLOADS, written

gpu = pytest.mark.gpu
on_both = pytest.mark.parametrize("device", [pytest.param("cuda", marks=gpu), "cpu"])

# Settings, and how far the losses may be from those of the same without what is named third.
COMBINATIONS = {
    "tune": ({"tune": True}, 1e-2, ("tune",)),
    "keep-cache": ({"keep_cache": True}, 1e-3, ("keep_cache",)),
    "tf32": ({"precision": "tf32"}, 1e-2, ("precision",)),
    "bf16": ({"precision": "bf16"}, 5e-2, ("precision",)),
    "fp16": ({"precision": "fp16"}, 0.5, ("precision",)),  # its first steps may learn nothing
    "channels-last": ({"channels_last": True}, 1e-3, ("channels_last",)),
    "graphs": ({"cuda_graphs": True}, 1e-3, ("cuda_graphs",)),
    "graphs-bf16": ({"cuda_graphs": True, "precision": "bf16"}, 1e-3, ("cuda_graphs",)),
    "graphs-bf16-channels-last": (
        {"cuda_graphs": True, "precision": "bf16", "channels_last": True}, 1e-3, ("cuda_graphs",)
    ),
    "compile": ({"compile": True}, 1e-2, ("compile",)),
    "compile-graphs": ({"compile": True, "cuda_graphs": True}, 1e-2, ("compile", "cuda_graphs")),
    "not-pinned": ({"pin_memory": "false"}, 1e-3, ("pin_memory",)),
    "workers": ({"workers": 2}, 1e-3, ("workers",)),
    "workers-graphs": ({"workers": 2, "cuda_graphs": True}, 1e-3, ("workers", "cuda_graphs")),
    "malloc-async": ({"allocator": "cudaMallocAsync"}, 1e-3, ("allocator",)),
}  # fmt: skip
DRAWS, OF_DRAWING = {"language", "text", "generated", "mnist", "diffusion"}, 0.2  # compiled, it draws other numbers
NO_TWO_STEPS_ALIKE = {"detection"}  # what was found is counted on the host, and other digits find other things


@functools.cache
def losses_of(device, workload, data, settings):
    return losses(trained(device, workload, data=data, **dict(settings)))


@gpu
@pytest.mark.parametrize("combination", COMBINATIONS)
@pytest.mark.parametrize("workload", TRAINING)
def test_every_script_trains_with_every_setting_and_its_losses_are_those_without_it(workload, combination, stand_in):
    settings, tolerance, without = COMBINATIONS[combination]
    has = written(workload)["settings"]
    if not settings.keys() <= has.keys():
        pytest.skip(f"`{workload}` has no {' and no '.join(settings.keys() - has.keys())}")
    if workload in NO_TWO_STEPS_ALIKE and (settings.get("cuda_graphs") or settings.get("compile")):
        pytest.skip(f"no two steps of `{workload}` are alike: it refuses graphs, and would compile each step anew")
    if settings.get("precision") in ("tf32", "bf16") and capability() < (8, 0):
        pytest.skip("a card before Ampere has no tensor cores for it")
    settings = {"tune": False, **settings}
    plain = {name: value for name, value in settings.items() if name not in without}
    found = losses_of("cuda", workload, stand_in, tuple(sorted(settings.items())))
    expected = losses_of("cuda", workload, stand_in, tuple(sorted({"tune": False, **plain}.items())))
    tolerance = OF_DRAWING if workload in DRAWS and settings.get("compile") else tolerance
    tolerance = 1.0 if workload in NO_TWO_STEPS_ALIKE else tolerance
    assert all(map(math.isfinite, found)) and len(found) == 2
    assert found == pytest.approx(expected, rel=tolerance)


@gpu
def test_what_is_in_force_and_what_was_needed_is_told(stand_in):
    said = trained("cuda", "vision", data=stand_in)
    [hello] = said["hello"]
    assert hello["device"].startswith("GPU-")
    assert (hello["pin_memory"], hello["tune"], hello["keep_cache"]) == (True, True, False)
    assert len(said["memory"]) == 2
    for peaks in said["memory"]:
        assert 0 < peaks["allocated_bytes"] <= peaks["reserved_bytes"]
        assert 0 < peaks["warm_up_allocated_bytes"] <= peaks["warm_up_reserved_bytes"]


@pytest.mark.parametrize(
    "device, settings",
    [
        *(pytest.param("cuda", settings, marks=gpu) for settings in ({}, {"workers": 2}, {"pin_memory": "false"})),
        ("cpu", {"workers": 2}),
    ],
)
def test_what_arrives_on_the_device_is_what_was_loaded(device, settings):
    with OnDevice(device, program=ARRIVES.format(device=device, settings=settings)) as member:
        said = member.train(epochs=1)
        assert member.end(timeout=30)[0] == 0, said
    assert losses(said) == [0.0]


ARRIVES = """
import argparse
import numpy as np
import torch
import collo
import collo_torch
class Numbers:
    def __len__(self):
        return 4000
    def __getitems__(self, indices):
        return (np.repeat(np.array(indices, np.int64)[:, None], 10_000, axis=1),)
parser = argparse.ArgumentParser()
collo_torch.add_settings(parser, batch_size=40, learning_rate=0.1)
settings = argparse.Namespace(**{{**vars(parser.parse_args([])), **{settings}}})
member = collo.connect()
device = collo_torch.set_up(settings)
assert device.type == "{device}"
loader, alone = (collo_torch.loader(Numbers(), settings) for _ in range(2))
busy = torch.ones(2000, 2000, device=device)
member.hello(device="{device}")
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    wrong = torch.zeros((), dtype=torch.int64, device=device)
    for (batch,), (expected,) in zip(epoch.batches(collo_torch.on(device, loader)), alone):
        if device.type == "cuda":
            for _ in range(3):
                busy = busy @ busy * 1e-4  # the copies overtake it
        wrong += (batch != expected[:, :1].to(device)).sum()
    epoch.finish(items=4000, loss=wrong.item())
"""


# --- a step does not wait for the GPU ---

WATCHED = """
import contextlib, torch, collo_torch
from torch.utils._python_dispatch import TorchDispatchMode
class NoItem(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("called a synchronizing operation")
        return function(*args, **(kwargs or {{}}))
@contextlib.contextmanager
def without_waiting():
    if not torch.cuda.is_available():
        with NoItem():
            yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
step_of, taken = collo_torch.training_step, []
def watched(*args, **more):
    step = step_of(*args, **more)
    def watched_step(*batch):
        taken.append(batch)
        if len(taken) <= collo_torch.WARM_UP_BATCHES:
            return step(*batch)
        with without_waiting():
            loss = step(*batch)
            {spoil}
        return loss
    return watched_step
collo_torch.training_step = watched
"""


@pytest.mark.parametrize(
    "device, workload",
    [
        *(pytest.param("cuda", workload, marks=gpu) for workload in TRAINING if workload not in NO_TWO_STEPS_ALIKE),
        ("cpu", "dlrm"),  # the others' AdamW reads its own counters on a CPU
    ],
)
def test_no_step_waits_for_the_gpu(device, workload, stand_in):
    said = trained(device, workload, before=WATCHED.format(spoil=""), data=stand_in, tune=False)
    assert len(losses(said)) == 2


@on_both
def test_a_step_that_waits_for_the_gpu_would_be_found(device, stand_in):
    said = trained(device, "dlrm", before=WATCHED.format(spoil="loss.item()"), data=stand_in)
    assert "called a synchronizing" in said["error"][0]["message"]


# --- what trains nothing, and what has no such settings ---


@gpu
@pytest.mark.parametrize(
    "workload, settings",
    [
        ("tiny", {}),
        ("square", {"kernel": "cuda"}),
        ("square", {"kernel": "cuda", "shared_items": False}),
        ("square", {"kernel": "torch"}),
        *(("stress", {"kind": kind}) for kind in ("compute", "memory", "pcie", "launch")),
        *(("stress", {"kind": "compute", "precision": precision}) for precision in ("tf32", "bf16", "fp16")),
        ("stress", {"kind": "compute", "dial": 50}),
        *(("serve", {"kind": kind}) for kind in ("vision", "decode") if (WORKLOADS / "serve").exists()),
    ],
)
def test_the_others_run_on_a_card(workload, settings, stand_in):
    said = trained("cuda", workload, data=stand_in, **settings)
    assert said["hello"][0]["device"].startswith("GPU-") and len(said["epoch"]) == 2
    assert len(said["memory"]) == 2 and "error" not in said


# --- the end ---


@gpu
@pytest.mark.parametrize("cuda_graphs", ["false", "true"])
def test_a_member_on_a_card_leaves_quietly_in_the_middle_of_an_epoch(cuda_graphs):
    arguments = ("--items", 20_000, "--epochs", 1, "--cuda-graphs", cuda_graphs)
    with OnDevice("cuda", "gpt", arguments) as member:
        member.start(epochs=1, after_measured="keep-running")
        member.tell("stop")
        assert member.hear_all() == []
        status, _, stderr = member.end(timeout=5)
    assert (status, stderr) == (0, "")
