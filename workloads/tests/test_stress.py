"""The stress members: how they idle, on a clock made for the test, what their work is, and two epochs of each."""

import pytest
import torch
from collo import SettingError
from harness import written
from scripts import by_hand, flags, module, trained

duty, kinds = module("stress", "duty"), module("stress", "kinds")
CPU = torch.device("cpu")


def few(**settings):
    small = {} if settings.get("kind") == "launch" else {"size_mb": 1}
    return flags("stress", **{"rounds": 5, **small, **settings})


class Clock:
    """Time that passes only by working and sleeping; a sleep may last longer than asked."""

    def __init__(self, late_s=0.0):
        self.now_s, self.late_s, self.slept_s = 0.0, late_s, []

    def __call__(self):
        return self.now_s

    def sleep(self, seconds):
        self.slept_s.append(seconds)
        self.now_s += seconds + (self.late_s if seconds else 0)

    def work(self, seconds):
        self.now_s += seconds


# --- the duty ---


@pytest.mark.parametrize("dial, idle_s", [(100, 0), (50, 0.25), (25, 0.75), (20, 1.0), (1, 24.75)])
def test_a_dial_is_the_share_of_the_time_that_it_works(dial, idle_s):
    assert duty.idle_s(0.25, dial) == pytest.approx(idle_s)
    assert 0.25 / (0.25 + duty.idle_s(0.25, dial)) == pytest.approx(dial / 100)


@pytest.mark.parametrize("dial", [100, 50, 5])
@pytest.mark.parametrize("late_s", [0, 0.0001, 0.003])
def test_alone_it_works_as_long_as_the_dial_says(dial, late_s):
    clock = Clock(late_s)
    idle = duty.Idle(duty.idle_s(0.01, dial), clock, clock.sleep)
    for _ in range(1000):
        clock.work(0.01)
        idle.rest()
    assert 1000 * 0.01 / clock.now_s == pytest.approx(dial / 100, rel=0.002)


def test_beside_others_the_work_takes_longer_and_the_idling_does_not():
    times_s = []
    for slowdown in (1, 3):
        clock = Clock()
        idle = duty.Idle(0.01, clock, clock.sleep)
        for _ in range(100):
            clock.work(0.01 * slowdown)
            idle.rest()
        times_s.append(clock.now_s)
    assert times_s == pytest.approx([100 * (0.01 + 0.01), 100 * (0.03 + 0.01)])


def test_after_a_long_delay_it_idles_again_instead_of_making_up_for_it():
    clock = Clock(late_s=10)
    idle = duty.Idle(0.1, clock, clock.sleep)
    idle.rest()
    clock.late_s = 0
    for _ in range(5):
        idle.rest()
    assert clock.slept_s == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.1])  # one rest of the five was skipped, no more


def test_at_full_dial_it_never_sleeps():
    clock = Clock()
    idle = duty.Idle(duty.idle_s(0.01, 100), clock, clock.sleep)
    for _ in range(3):
        idle.rest()
    assert clock.slept_s == []


def test_the_calibration_leaves_out_the_first_rounds_and_single_stalls():
    clock, rounds_s = Clock(), iter([5.0] * duty.FIRST_ROUNDS + [0.04, 3.0] + [0.04] * 20)
    assert duty.alone_s(lambda: clock.work(next(rounds_s)), 100, clock, clock.sleep) == pytest.approx(0.04)


def test_the_calibration_goes_on_until_it_has_seen_enough():
    for round_s, expected in ((1.0, duty.FEWEST_ROUNDS), (0.001, round(duty.LEAST_S / 0.001))):
        clock, rounds = Clock(), []
        duty.alone_s(lambda: (rounds.append(1), clock.work(round_s)), 100, clock, clock.sleep)
        assert len(rounds) == pytest.approx(duty.FIRST_ROUNDS + expected, abs=1)


def test_a_round_after_a_pause_counts_if_there_will_be_pauses():
    """Cold caches: 10 ms amid others, 20 ms after a pause."""
    clock = Clock()
    last_end_s = [0.0]

    def work():
        clock.work(0.02 if clock.now_s > last_end_s[0] else 0.01)
        last_end_s[0] = clock.now_s

    assert duty.alone_s(work, 100, clock, clock.sleep) == pytest.approx(0.01)
    assert duty.alone_s(work, 50, clock, clock.sleep) == pytest.approx(0.02)
    assert max(clock.slept_s) == pytest.approx(0.01)
    duty.alone_s(work, 1, clock, clock.sleep)
    assert max(clock.slept_s) == duty.LONGEST_PAUSE_S


# --- the work ---


def test_compute_multiplies_squares_that_fill_the_size():
    work = kinds.work_of("compute", 1, "fp32", CPU)
    side = 256  # the multiple of 64 of which three squares fit 1 MB
    assert (work.amount, work.unit, work.size_mb) == (2 * side**3, "FLOP", 1)
    assert kinds.work_of("compute", 1, "bf16", CPU).amount == 2 * 384**3
    operation, *_ = kinds.compute(1, "fp32", CPU)
    assert torch.equal(operation(), operation()) and operation().shape == (side, side)


def test_memory_reads_two_vectors_and_writes_one():
    operation, amount, unit = kinds.memory(3, "fp32", CPU)
    total = operation()
    assert (amount, unit, len(total)) == (3_000_000, "B", 250_000)
    assert total.unique().tolist() == [1 + 3 * 2]


def test_launch_starts_as_many_as_it_says():
    operation, *_ = kinds.launch(None, "fp32", CPU)
    work = kinds.work_of("launch", 0, "fp32", CPU)
    assert operation().item() == 1 and operation().item() == 2
    assert (work.amount, work.unit, work.size_mb) == (kinds.OPERATIONS["cpu"]["launch"], "launches", None)


def test_every_kind_has_a_size_where_it_can_run():
    assert kinds.OPERATIONS["cuda"].keys() == kinds.KINDS.keys()
    for device in ("cpu", "cuda"):
        assert kinds.SIZE_MB[device].keys() == kinds.OPERATIONS[device].keys() - {"launch"}


@pytest.mark.parametrize(
    "asked, words",
    [
        (("disk", 0, "fp32"), "`kind` is `disk`: it is one of compute, memory, pcie, launch"),
        (("pcie", 0, "fp32"), "`kind` cannot be `pcie` on a CPU"),
        (("memory", -1, "fp32"), "`size_mb` is -1: it is 0 or more"),
        (("launch", 5, "fp32"), "`size_mb` is 5, and `launch` works on one number: set it to 0"),
        (("memory", 0, "bf16"), "`precision` is `bf16`: only `compute` has one, leave it at fp32 for `memory`"),
        (("compute", 0, "fp8"), "`precision` is `fp8`: it is one of fp32, tf32, bf16, fp16"),
        (("compute", 0, "tf32"), "`precision` cannot be `tf32` on a CPU"),
        (("memory", 10**9, "fp32"), "the buffers take 1000 TB, the machine has "),
    ],
)
def test_work_that_cannot_be_is_named_with_the_way_out(asked, words):
    with pytest.raises(SettingError) as error:
        kinds.work_of(*asked, CPU)
    assert words in str(error.value)


# --- two epochs ---


@pytest.mark.parametrize("kind, unit", [("compute", "FLOP"), ("memory", "B"), ("launch", "launches")])
def test_every_kind_goes_through_its_epochs(kind, unit):
    heard, (status, stdout, stderr) = trained("stress", *few(kind=kind))
    assert (status, stderr) == (0, "")
    (hello,) = heard["hello"]
    assert (hello["kind"], hello["dial"], hello["per_round"]["unit"]) == (kind, 100, unit)
    assert hello["size_mb"] == (None if kind == "launch" else 1) and hello["per_round"]["amount"] > 0
    assert hello["precision"] == ("fp32" if kind == "compute" else None)
    assert hello.keys().isdisjoint({"model", "dataset"})
    assert [(epoch["items"], epoch["loss"]) for epoch in heard["epoch"]] == [(5, None)] * 2
    assert stdout.startswith("a round works ") and stdout.endswith(" ms alone and idles 0.000 ms\n")


def test_by_hand_it_shows_how_fast_and_for_which_share_it_worked():
    status, stdout, stderr = by_hand("stress", *few(dial=30), "--epochs", 1)
    hello, calibrated, epoch, rate = stdout.splitlines()
    assert (status, stderr) == (0, "") and epoch.startswith("epoch 0 took ")
    works_ms, idles_ms = (float(word) for word in calibrated.split() if word[0].isdigit())
    assert idles_ms == pytest.approx(works_ms * 70 / 30, abs=0.01)
    assert " FLOP/s while it worked, " in rate and rate.endswith("% of the time")


@pytest.mark.parametrize("setting", [{"dial": 0}, {"dial": 101}, {"rounds": 0}, {"kind": "pcie", "size_mb": 0}])
def test_dials_out_of_range_are_told_in_one_line(setting):
    heard, (status, _, stderr) = trained("stress", *few(**setting))
    (error,) = heard["error"]
    (name, _), *_ = setting.items()
    assert (status, error["kind"]) == (1, "setting") and error["message"].startswith(f"`{name}` ")
    assert stderr == f"error: {error['message']}\n"


def test_each_kind_is_a_preset_and_only_the_link_needs_a_gpu():
    presets = written("stress")["presets"]
    assert {name: preset["settings"] for name, preset in presets.items()} == {
        f"{kind}-bound": {"kind": kind} for kind in kinds.KINDS
    }
    assert [name for name, preset in presets.items() if preset.get("requires") == "cuda"] == ["pcie-bound"]
