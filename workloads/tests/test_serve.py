"""Serving: the queue on a clock made for the test, what answers, and a member that is asked for real."""

import itertools
import math
import statistics

import pytest
import torch
from collo import SettingError
from harness import written
from scripts import by_hand, flags, module, script, trained

open_loop, nets = module("serve", "open_loop"), module("serve", "nets")
CPU = torch.device("cpu")
MS = 10**6


def few(**settings):
    return flags("serve", **{"image_size": 32, "rate": 200.0, "window": "200ms", **settings})


class Clock:
    """Time that passes only by answering and sleeping, in nanoseconds."""

    def __init__(self, late_ns=0):
        self.now_ns, self.late_ns, self.slept_s = 0, late_ns, []

    def __call__(self):
        return self.now_ns

    def sleep(self, seconds):
        self.slept_s.append(seconds)
        self.now_ns += round(seconds * 1e9) + self.late_ns


class Asked:
    """An open loop whose requests come at these milliseconds, and whose answers take so long, however many at once."""

    def __init__(self, arrivals_ms, answer_ms, batch_size=1, late_ns=0, stop_at_ms=math.inf):
        self.clock, self.batches, self.told = Clock(late_ns), [], []
        never = iter(lambda: 10**15, None)
        arrivals = [ms * MS for ms in arrivals_ms]
        self.loop = open_loop.OpenLoop(
            [*arrivals, *(next(never) for _ in range(3))], batch_size, self.answer, self.hear,
            lambda: self.clock.now_ns >= stop_at_ms * MS, self.clock, self.clock.sleep,
        )  # fmt: skip
        self.answer_ms = answer_ms
        self.loop.open()

    def answer(self, count):
        self.batches.append(count)
        self.clock.now_ns += self.answer_ms * MS

    def hear(self, *arrays):
        self.told += [tuple(None if ns is None else ns / MS for ns in times) for times in zip(*arrays)]

    def latencies_ms(self, until_ms):
        return [ns / MS for ns in self.loop.serve_until(until_ms * MS)]


# --- the queue ---


def test_who_waits_for_another_waits_from_its_own_arrival():
    asked = Asked([10, 12, 14, 40], answer_ms=10)
    assert asked.latencies_ms(until_ms=100) == [10, 18, 26, 10]
    assert asked.told == [(10, 10, 20), (12, 20, 30), (14, 30, 40), (40, 40, 50)]


def test_a_server_that_stalls_is_asked_all_the_same():
    """The closed loop of a naive client would have seen one latency of 1 s; here a hundred requests did."""
    asked = Asked(range(0, 1000, 10), answer_ms=1000, batch_size=100)
    assert asked.latencies_ms(until_ms=1001) == [1000, *(2000 - ms for ms in range(10, 1000, 10))]


def test_those_that_wait_are_answered_together_up_to_the_batch_size():
    asked = Asked([0, 1, 2, 3, 4, 5], answer_ms=10, batch_size=3)
    assert asked.latencies_ms(until_ms=50) == [10, 19, 18, 17, 26, 25]
    assert asked.batches == [1, 3, 2]


def test_nobody_waits_for_a_batch_to_fill():
    asked = Asked([0, 100], answer_ms=10, batch_size=8)
    assert asked.latencies_ms(until_ms=200) == [10, 10] and asked.batches == [1, 1]


def test_what_waits_at_the_end_of_an_epoch_is_answered_in_the_next():
    asked = Asked([0, 5, 8], answer_ms=10)
    assert asked.latencies_ms(until_ms=10) == [10]
    assert asked.latencies_ms(until_ms=40) == [15, 22]


def test_what_waits_when_it_leaves_has_neither_start_nor_end():
    asked = Asked([0, 5, 8, 900], answer_ms=10, stop_at_ms=10)
    assert asked.latencies_ms(until_ms=100) == [10]
    asked.loop.close()
    assert asked.told == [(0, 0, 10), (5, None, None), (8, None, None)]


def test_what_was_due_in_the_last_measured_epoch_is_answered_and_its_wait_counts():
    asked = Asked([0, 5, 8, 21, 900], answer_ms=10)
    assert asked.latencies_ms(until_ms=10) == [10]
    asked.loop.catch_up(1000 * MS)
    assert asked.told == [(0, 0, 10), (5, 10, 20), (8, 20, 30)]  # what came meanwhile is of the next epoch
    assert asked.latencies_ms(until_ms=100) == [15, 22, 19], "what was answered between two epochs counts to the next"


def test_a_queue_that_only_grows_is_left_behind_after_a_while():
    asked = Asked(range(100), answer_ms=10)
    asked.latencies_ms(until_ms=10)
    asked.loop.catch_up(25 * MS)
    assert asked.clock.now_ns == 40 * MS
    ends = [end for arrival, _, end in asked.told if arrival <= 10]  # all that were due by then, each told once
    assert ends == [10, 20, 30, 40] + [None] * 7 and len(asked.told) == 11
    asked.loop.catch_up(0)
    assert asked.clock.now_ns == 40 * MS and [end for *_, end in asked.told[11:]] == [None] * 30  # of 11 ms to 40 ms


def test_a_stop_ends_the_catching_up_too():
    asked = Asked(range(100), answer_ms=10, stop_at_ms=25)
    asked.latencies_ms(until_ms=10)
    asked.loop.catch_up(1000 * MS)
    assert asked.clock.now_ns == 30 * MS


def test_an_answer_that_was_given_up_has_a_start_and_no_end():
    asked = Asked([0], answer_ms=10, stop_at_ms=5)
    asked.loop.answer = lambda count: False
    asked.clock.sleep(0.001)
    assert asked.latencies_ms(until_ms=100) == []
    assert asked.told[0] == (0, 1, None)


def test_what_an_error_kept_from_its_answer_is_told_as_well():
    asked = Asked([0, 0], answer_ms=10)

    def fail(count):
        raise RuntimeError("CUDA error")

    asked.loop.answer = fail
    with pytest.raises(RuntimeError):
        asked.latencies_ms(until_ms=100)
    asked.loop.close()
    assert asked.told == [(0, 0, None), (0, None, None)]


def test_it_tells_about_once_a_second_and_at_the_end_of_an_epoch():
    asked = Asked(range(0, 3000, 100), answer_ms=1)
    heard = []
    asked.loop.told = lambda arrivals, *_: heard.append(len(arrivals))
    asked.latencies_ms(until_ms=2500)
    assert heard == [10, 10, 5]  # those before 1000 ms, 2000 ms and 2500 ms


def test_between_requests_it_sleeps_until_the_next_one_and_being_late_counts():
    asked = Asked([30, 200], answer_ms=1, late_ns=100_000)
    assert asked.latencies_ms(until_ms=300) == [pytest.approx(1.1), pytest.approx(1.1, abs=0.1)]
    assert max(asked.clock.slept_s) <= open_loop.LONGEST_NAP_S
    assert len(asked.clock.slept_s) < 12  # it does not spin


# --- arrivals ---


def drawn(rate, seed=1, repetition="1", copy="0", count=20_000):
    arrivals = iter(open_loop.Arrivals(rate, seed, repetition, copy))
    times_s = [next(arrivals) / 1e9 for _ in range(count)]
    return [b - a for a, b in zip([0, *times_s], times_s)]


def test_gaps_are_exponential_with_the_mean_that_was_asked():
    gaps_s = drawn(rate=50)
    assert statistics.mean(gaps_s) == pytest.approx(1 / 50, rel=0.03)
    assert statistics.stdev(gaps_s) == pytest.approx(1 / 50, rel=0.03)  # of an exponential distribution equal to its mean
    assert sum(gap > 2 / 50 for gap in gaps_s) / len(gaps_s) == pytest.approx(math.exp(-2), rel=0.05)


def test_waiting_times_are_those_of_queueing_theory():
    """M/D/1 at a load of 0.8: the mean wait is load / (2 (1 - load)) answers, by Pollaczek and Khinchine."""
    clock, answer_ns = Clock(), 8 * MS

    def answer(count):
        clock.now_ns += answer_ns

    arrivals = open_loop.Arrivals(rate=100, seed=3)
    loop = open_loop.OpenLoop(arrivals, 1, answer, lambda *_: None, lambda: False, clock, clock.sleep)
    loop.open()
    latencies_ns = loop.serve_until(4000 * 10**9)
    waits = [(ns - answer_ns) / answer_ns for ns in latencies_ns]
    assert len(waits) > 300_000 and statistics.mean(waits) == pytest.approx(0.8 / (2 * 0.2), rel=0.05)


def test_a_seed_draws_the_same_times_and_each_copy_and_repetition_its_own():
    assert drawn(20, count=50) == drawn(20, count=50)
    assert drawn(20, count=50) != drawn(20, seed=2, count=50)
    assert drawn(20, count=50) != drawn(20, copy="1", count=50)
    assert drawn(20, count=50) != drawn(20, repetition="2", count=50)


# --- settings ---


@pytest.mark.parametrize("text, ns", [("50ms", 50 * MS), ("2s", 2000 * MS), ("0.5s", 500 * MS), ("1m", 60_000 * MS)])
def test_a_time_is_read_with_its_unit(text, ns):
    assert open_loop.duration_ns("slo", text) == ns


@pytest.mark.parametrize(
    "given, words",
    [
        ({"slo": "50"}, "`slo` is `50`: it is a time above 0 with its unit, as in `50ms` or `2s`, or empty for none"),
        ({"slo": "0ms"}, "`slo` is `0ms`: it is a time above 0"),
        ({"slo": "fast"}, "`slo` is `fast`: it is a time above 0 with its unit"),
        ({"slo": "-5ms"}, "`slo` is `-5ms`: it is a time above 0"),
        ({"window": ""}, "`window` is ``: it is a time above 0 with its unit, as in `50ms` or `2s`"),
        ({"window": "2h"}, "`window` is `2h`: an epoch of serving is an hour at most"),
        ({"rate": 0.0}, "`rate` is 0: it is above 0 and up to 10000 requests per second"),
        ({"rate": -3.0}, "`rate` is -3: it is above 0"),
        ({"rate": math.nan}, "`rate` is nan: it is above 0"),
        ({"rate": math.inf}, "`rate` is inf: it is above 0"),
        ({"batch_size": 0}, "`batch_size` is 0: it is 1 to 64 requests answered together"),
        ({"batch_size": 65}, "`batch_size` is 65: it is 1 to 64 requests answered together"),
    ],
)
def test_settings_that_cannot_be_are_named_with_the_way_out(given, words):
    settings = {"rate": 20.0, "batch_size": 4, "slo": "50ms", "window": "10s", **given}
    with pytest.raises(SettingError) as error:
        open_loop.check(**settings)
    assert words in str(error.value)


def test_an_empty_slo_is_none():
    assert open_loop.check(20.0, 4, "", "10s") == (None, 10_000 * MS)


def test_less_than_its_rate_is_a_result_and_a_rate_that_must_be_a_mistake_is_refused():
    assert open_loop.check_capacity(79.0, 84.2, 4) is None
    words = "`rate` is 90 a second, this device answers 84 a second alone, 4 at a time: lower `rate` to 79,"
    assert open_loop.check_capacity(90.0, 84.2, 4).startswith(words)
    assert "lower `rate` to 39," in open_loop.check_capacity(40.0, 42.0, 4), "0.95 × 42 is less than 40"
    with pytest.raises(SettingError) as error:
        open_loop.check_capacity(5.0, 0.3, 1)
    assert "answers 0.3 a second alone, 1 at a time: lower `rate` to 0.28," in str(error.value)


@pytest.mark.parametrize(("number", "least"), [(39.9, 39), (80.0, 80), (7.0, 7), (0.285, 0.28), (1234.5, 1234)])
def test_what_is_rounded_down_is_never_more(number, least):
    assert open_loop.rounded_down(number) == pytest.approx(least)


def test_the_capacity_counts_requests_and_not_batches():
    clock = Clock()

    def answer(count):
        clock.now_ns += 20 * MS

    seconds = lambda: clock.now_ns / 1e9  # noqa: E731
    assert open_loop.per_s(answer, 4, seconds) == pytest.approx(200)


# --- what answers ---


class Given:
    def __init__(self, **settings):
        self.__dict__ = {**written("serve")["settings"], **settings}


def test_a_text_continued_with_kept_keys_and_values_is_the_text_continued_without():
    torch.manual_seed(1)
    decoder = nets.Decoder(Given(kind="decode", prompt=5, tokens=7, batch_size=3), CPU, torch.float32)
    for count in (3, 2):  # what is kept of an earlier, larger batch must not be read
        assert decoder.answer(count) is True
        text = decoder.prompts[:count]
        for _ in range(7):
            text = torch.cat([text, decoder.model(text).argmax(1, keepdim=True)], 1)
        assert torch.equal(decoder.texts, text[:, 5:])


def test_a_generation_that_is_told_to_stop_is_given_up():
    decoder = nets.Decoder(Given(kind="decode"), CPU, torch.float32, stopped=lambda: True)
    assert decoder.answer(1) is False


def test_a_classifier_answers_each_picture_by_itself():
    torch.manual_seed(1)
    net = nets.Classifier(Given(image_size=32), CPU, torch.float32)
    net.answer(4)
    together, alone = net.classes, []
    for picture in net.pictures:
        net.pictures = picture[None]
        net.answer(1)
        alone.append(net.classes)
    assert torch.equal(together, torch.cat(alone))


def test_the_small_decoder_has_the_published_number_of_parameters():
    layers, heads, width, vocabulary, longest = nets.DECODERS["gpt2"]
    with torch.device("meta"):
        model = nets.GPT(layers, heads, width, vocabulary, longest)
    assert sum(parameter.numel() for parameter in model.parameters()) == 124_439_808  # Hugging Face's gpt2, counted


@pytest.mark.parametrize(
    "given, words",
    [
        ({"kind": "decode", "model": "gpt5"}, "`model` is `gpt5`: to decode it is one of tiny, gpt2, gpt2-medium"),
        ({"kind": "decode", "prompt": 1000, "tokens": 25}, "are 1025 together: `tiny` reads 1024 at most"),
        ({"kind": "decode", "tokens": 0}, "`tokens` is 0: it is 1 or more"),
        ({"image_size": 8}, "`image_size` is 8: it is 32 to 2048 pixels a side"),
        ({"model": "resnet51"}, "`resnet51` is no classifier of timm"),
        ({"model": "cait_xxs24_224", "image_size": 64}, "takes 224 only: set it to 224"),
    ],
)
def test_a_model_that_cannot_be_is_named_with_the_way_out(given, words):
    with pytest.raises(SettingError) as error:
        nets.served(Given(**given), CPU, torch.float32, None)
    assert words in str(error.value)


# --- a member ---


@pytest.mark.parametrize("settings", [{}, {"kind": "decode", "tokens": 2, "prompt": 4, "slo": "", "batch_size": 2}])
def test_a_member_serves_its_epochs_and_tells_every_request(settings):
    heard, (status, _, stderr) = trained("serve", *few(**settings), epochs=3)
    assert (status, stderr) == (0, "")
    (hello,), (capacity,) = heard["hello"], heard["capacity"]
    batch_size, slo_s = settings.get("batch_size", 4), None if "slo" in settings else 0.05
    assert hello["serving"] == {"rate_per_s": 200.0, "batch_size": batch_size, "slo_s": slo_s}
    assert "dataset" not in hello and capacity["requests_per_s"] > 0
    epochs = heard["epoch"]
    assert [epoch["measured"] for epoch in epochs] == [False, True, True]
    assert all(0.2 <= (epoch["end_ns"] - epoch["start_ns"]) / 1e9 < 1 for epoch in epochs)
    told = [times for line in heard["requests"] for times in zip(line["arrival_ns"], line["start_ns"], line["end_ns"])]
    assert [arrival for arrival, *_ in told] == sorted(arrival for arrival, *_ in told)
    answered = [times for times in told if times[2] is not None]
    within = [end for *_, end in answered if end <= epochs[-1]["end_ns"]]  # others were due by then, and answered later
    assert sum(epoch["items"] for epoch in epochs) == len(within) > 60  # of 120 that come in 0.6 s
    assert all(arrival <= start <= end for arrival, start, end in answered)
    assert epochs[0]["start_ns"] <= min(arrival for arrival, *_ in told)


ANSWERS_SLOWLY = """
import nets, time
answer = nets.Classifier.answer
nets.Classifier.answer = lambda self, count: (time.sleep(0.05), answer(self, count))
"""


def test_when_it_says_done_every_request_of_its_measured_epochs_has_an_answer():
    with script("serve", *few(rate=60.0, batch_size=8, window="500ms"), before=ANSWERS_SLOWLY) as member:
        member.tell("warm_up")
        member.tell("go", epochs=2, after_measured="keep-running")
        heard = []
        while not heard or heard[-1]["event"] != "done":
            heard.append(member.hear())
        member.tell("stop")
        member.hear_all()
        assert member.end()[0] == 0
    last = [message for message in heard if message["event"] == "epoch"][-1]
    assert last["measured"]
    lines = [message for message in heard if message["event"] == "requests"]
    told = [times for line in lines for times in zip(line["arrival_ns"], line["start_ns"], line["end_ns"])]
    due = iter(open_loop.Arrivals(60.0, 1))
    begun = told[0][0] - next(due)
    arrived = 1 + sum(1 for _ in itertools.takewhile(lambda ns: begun + ns < last["end_ns"], due))
    assert sum(end is not None for arrival, _, end in told if arrival < last["end_ns"]) == arrived


def test_a_window_in_which_nobody_came_is_no_epoch_without_items():
    heard, (status, _, stderr) = trained("serve", *few(rate=0.001, window="20ms"), epochs=2)
    assert (status, stderr) == (0, "") and [epoch["items"] for epoch in heard["epoch"]] == [None, None]


def test_under_hold_it_serves_on_until_stop_and_every_request_is_told_once():
    with script("serve", *few()) as member:
        member.tell("warm_up")
        member.tell("go", epochs=1, after_measured="keep-running")
        heard = []
        while [message["event"] for message in heard].count("epoch") < 2:
            heard.append(member.hear())
        member.tell("stop")
        heard += member.hear_all()
        assert member.end()[0] == 0
    assert [message["measured"] for message in heard if message["event"] == "epoch"] == [True, False]
    arrivals = [ns for message in heard if message["event"] == "requests" for ns in message["arrival_ns"]]
    due, first = iter(open_loop.Arrivals(200.0, 1)), arrivals[0]
    gaps = [next(due) for _ in arrivals]
    assert [ns - first for ns in arrivals] == [gap - gaps[0] for gap in gaps]  # by the schedule, none left out


@pytest.mark.parametrize(
    "given, words",
    [
        ({"slo": "50"}, "`slo` is `50`: it is a time above 0 with its unit"),
        ({"rate": 10_000.0, "kind": "decode", "model": "tiny", "prompt": 64, "tokens": 64}, "`rate` is 10000 a second, this device answers "),
        ({"precision": "tf32"}, "`precision` cannot be `tf32` on a CPU"),
        ({"kind": "audio"}, "`kind` is `audio`: it is one of vision, decode"),
    ],
)
def test_what_cannot_be_had_is_told_in_one_line(given, words):
    heard, (status, _, stderr) = trained("serve", *few(**given))
    (error,) = heard["error"]
    assert (status, error["kind"]) == (1, "setting") and error["message"].startswith(words)
    assert stderr == f"error: {error['message']}\n" and "epoch" not in heard


def test_by_hand_it_shows_its_latencies():
    status, stdout, stderr = by_hand("serve", *few(), "--epochs", 1)
    assert (status, stderr) == (0, "")
    assert "answered, half of them within" in stdout
