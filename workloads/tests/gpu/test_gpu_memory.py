"""Out of memory on a card, wherever it happens: a member tells it as that, never as a crash."""

import pytest
from card import Neighbour, OnDevice, error

gpu = pytest.mark.gpu
MIB = 2**20

LIMITED = """
import argparse
import torch
import collo
import collo_torch
LIMIT = 512 * 2**20
member = collo.connect()
device = torch.device("{device}")
if device.type == "cuda":
    whole = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(LIMIT / whole)
parser = argparse.ArgumentParser()
collo_torch.add_settings(parser, batch_size=4, learning_rate=0.1)
settings = parser.parse_args([])
settings.cuda_graphs = "{place}" == "capture"
member.hello(device=device.type)

def too_much():  # on a CPU more than any machine has
    return torch.empty(2 * LIMIT if device.type == "cuda" else 10**15, dtype=torch.uint8, device=device)

class Grows(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 1
    @staticmethod
    def backward(context, gradient):
        too_much()
        return gradient

# Weights and gradients fit, Adam's moments do not.
side = int((0.3 * LIMIT / 4) ** 0.5) if "{place}" == "optimiser" else 8
model = torch.nn.Linear(side, side, bias=False, device=device)
optimiser = torch.optim.AdamW(model.parameters(), capturable=settings.cuda_graphs)

def loss_of(x):
    x = model(x)
    if "{place}" == "forward" or "{place}" == "capture" and torch.cuda.is_current_stream_capturing():
        too_much()
    return (Grows.apply(x) if "{place}" == "backward" else x).square().mean()

step = collo_torch.training_step(loss_of, model, optimiser, settings)
for _ in range(4):
    step(torch.ones(1, side, device=device)).item()
"""


@pytest.mark.parametrize(
    "device, place",
    [
        *(pytest.param("cuda", place, marks=gpu) for place in ("forward", "backward", "optimiser", "capture")),
        ("cpu", "backward"),
    ],
)
def test_out_of_memory_is_told_as_such_in_every_part_of_a_step(device, place):
    with OnDevice(device, program=LIMITED.format(device=device, place=place)) as member:
        said = member.train(epochs=1)
        assert error(said)["kind"] == "out_of_memory", said
        assert member.end(timeout=30)[0] == 1


# What the first call of a library takes for itself, outside of torch's allocator.
BESIDE_A_NEIGHBOUR = """
import torch
import collo
member = collo.connect()
{before}
member.hello(device="cuda")
member.wait_for_warm_up()
{then}
torch.cuda.synchronize()
member.ready()
"""


@gpu
@pytest.mark.parametrize(
    "leave_mib, before, then",
    [
        (300, "", "torch.empty(400 * 2**20, dtype=torch.uint8, device='cuda')"),
        (16, "", "torch.zeros(1, device='cuda')"),
        (4, "a = torch.ones(512, 512, device='cuda')", "a @ a"),
        (4, "a = torch.ones(512, 512, device='cuda', dtype=torch.bfloat16)", "a @ a"),
        (
            4,
            "a = torch.ones(8, 64, 64, 64, device='cuda'); c = torch.nn.Conv2d(64, 64, 3).cuda()\n"
            "torch.backends.cudnn.benchmark = True",
            "c(a).sum().backward()",
        ),
    ],
    ids=["the context or the first tensor", "the context alone", "cublasCreate", "cublasLt", "the first convolution"],
)
def test_what_a_neighbour_has_left_is_not_enough_and_that_is_out_of_memory(leave_mib, before, then):
    program = BESIDE_A_NEIGHBOUR.format(before=before, then=then)
    with Neighbour() as neighbour, OnDevice("cuda", program=program) as member:
        assert member.hear()["event"] == "hello"
        neighbour.fill(leave_mib * MIB)
        member.tell("warm_up")
        said = member.hear()
        assert (said["event"], said.get("kind")) == ("error", "out_of_memory"), said
        assert member.end(timeout=30)[0] == 1
