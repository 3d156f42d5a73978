"""Out of memory in every library's words: `out_of_memory.jsonl`, the list that collo reads as well."""

import json
import sys
import types

import collo
import pytest
from harness import WORKLOADS, Started

ENTRIES = [json.loads(line) for line in (WORKLOADS / "out_of_memory.jsonl").read_text().splitlines()]
MIB = 1 << 20
FULL = {"free_bytes": 300 * MIB, "total_bytes": 40960 * MIB, "allocated_bytes": None, "reserved_bytes": None}
ROOMY = {**FULL, "free_bytes": 20000 * MIB}
UNKNOWN = dict.fromkeys(FULL)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["text"])
def test_every_text_of_the_list_is_found_in_its_example_and_none_before_it(entry):
    error = RuntimeError(entry["example"].upper())
    assert collo._judge(error, FULL) == ("out_of_memory", entry["whose"])
    told = ("out_of_memory", entry["whose"]) if entry["sure"] else ("other", None)
    assert collo._judge(error, ROOMY) == collo._judge(error, UNKNOWN) == told


# What cards say to trainings that do not fit, with full cards: `sure` where nothing else is meant by it.
SAID = [
    ("CUDA out of memory. Tried to allocate 20.00 MiB", "sure"),
    ("CUDA error: out of memory", "sure"),
    ("CUDA driver error: out of memory", "sure"),
    ("Triton Error [CUDA]: out of memory", "sure"),
    ("backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory.", "sure"),
    ('NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/CUDACachingAllocator.cpp":1154', "sure"),
    ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "sure"),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "a symptom"),
    ("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", "a symptom"),
    ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "a symptom"),
    ("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "a symptom"),
    ("FIND was unable to find an engine to execute this computation", "a symptom"),
    ("GET was unable to find an engine to execute this computation", "a symptom"),
    ("Unable to find a valid cuDNN algorithm to run convolution", "a symptom"),
    ("CUDA error: an illegal memory access was encountered", "no"),
    ("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "no"),
]


@pytest.mark.parametrize("text, is_it", SAID)
def test_out_of_memory_is_known_in_the_words_of_cublas_and_cudnn_too(text, is_it):
    card, other = ("out_of_memory", "card"), ("other", None)
    assert collo._judge(RuntimeError(text), FULL) == (other if is_it == "no" else card)
    assert collo._judge(RuntimeError(text), ROOMY) == (card if is_it == "sure" else other)


def test_little_is_free_below_512_mib_or_2_percent():
    of = lambda free, total: collo._little_is_free({"free_bytes": free * MIB, "total_bytes": total * MIB})
    assert of(511, 10000) and not of(512, 10000)
    assert of(1599, 80000) and not of(1600, 80000)


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(12, "no"), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_memory_of_the_host_is_told_from_memory_of_the_card(error):
    assert collo._judge(error, FULL) == ("out_of_memory", "host")


def test_without_the_list_the_type_of_the_exception_still_says_it(monkeypatch, tmp_path):
    monkeypatch.setattr(collo, "__file__", str(tmp_path / "collo.py"))
    assert collo._judge(MemoryError(), UNKNOWN) == ("out_of_memory", "host")
    full = type("OutOfMemoryError", (RuntimeError,), {})("full")
    assert collo._judge(full, UNKNOWN) == ("out_of_memory", "either")
    assert collo._judge(RuntimeError("CUDA out of memory"), UNKNOWN) == ("other", None)


def cuda(**answers):
    """A torch with such a `cuda`."""
    return types.SimpleNamespace(cuda=types.SimpleNamespace(**{name: lambda a=a: a() for name, a in answers.items()}))


def broken():
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def test_the_cards_memory_is_asked_only_where_cuda_is_in_use_and_what_it_does_not_tell_is_null(monkeypatch):
    counts = {"memory_allocated": lambda: 3, "memory_reserved": lambda: 4}
    for torch, expected in [
        (None, UNKNOWN),
        (types.SimpleNamespace(), UNKNOWN),  # half imported
        (cuda(is_initialized=lambda: False, mem_get_info=broken, **counts), UNKNOWN),
        (cuda(is_initialized=lambda: True, mem_get_info=broken, **counts), {**UNKNOWN, "allocated_bytes": 3, "reserved_bytes": 4}),
        (
            cuda(is_initialized=lambda: True, mem_get_info=lambda: (1, 2), **counts),
            {"free_bytes": 1, "total_bytes": 2, "allocated_bytes": 3, "reserved_bytes": 4},
        ),
    ]:
        monkeypatch.setitem(sys.modules, "torch", torch)
        assert collo._card_memory() == expected


def test_an_error_carries_whose_memory_ran_out_and_what_the_card_had():
    program = f"""
import collo, sys, types
member = collo.connect()
sys.modules["torch"] = types.SimpleNamespace(__version__="0", cuda=types.SimpleNamespace(
    is_initialized=lambda: True, mem_get_info=lambda: ({300 * MIB}, {40960 * MIB}),
    memory_allocated=lambda: 3, memory_reserved=lambda: 4))
raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
"""
    with Started("sleep", program=program) as member:
        (told,) = member.hear_all()
    assert (told["event"], told["kind"], told["whose"]) == ("error", "out_of_memory", "card")
    assert {name: told[name] for name in FULL} == {
        "free_bytes": 300 * MIB, "total_bytes": 40960 * MIB, "allocated_bytes": 3, "reserved_bytes": 4
    }


def test_an_error_outside_cuda_knows_nothing_of_a_card():
    with Started("sleep", program="import collo; collo.connect()\nraise MemoryError") as member:
        (told,) = member.hear_all()
    assert (told["kind"], told["whose"]) == ("out_of_memory", "host")
    assert {name: told[name] for name in UNKNOWN} == UNKNOWN
