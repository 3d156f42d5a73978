"""The GPT that is written out, and the text that language models read."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import collo_data
import collo_tokens
import numpy as np
import pytest
import torch
from collo import SettingError
from collo_tokens import Tokens
from forked import Forked
from harness import WORKLOADS, Started, environment, written

TINY = {"layers": 2, "heads": 2, "width": 32, "length": 16, "vocabulary": 24, "items": 256, "learning_rate": 0.01}


def imported(workload, name):
    """A module of the workload's folder, under a name of its own: other workloads have a `model.py`, too."""
    spec = importlib.util.spec_from_file_location(f"{workload}_{name}", WORKLOADS / workload / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(workload, preset=None, **settings):
    """The command line as collo writes it: the defaults, over them a recipe's, then a preset's, then these."""
    toml = written(workload)
    own = {**(toml["presets"][preset]["settings"] if preset else {}), **settings}
    settings = {**toml["settings"], **toml.get("recipes", {}).get(own.get("recipe"), {}), **own}
    return [f"--{name.replace('_', '-')}={str(value).lower()}" for name, value in settings.items()]


def forked(workload, arguments, data="nowhere", by_hand=False):
    """The script as a member, without the seconds of its imports."""
    before = f"import test_gpt; test_gpt.as_a_script({workload!r}, {str(data)!r}, {list(arguments)!r})\n"
    return Forked(before + (WORKLOADS / workload / "train.py").read_text(), channel=not by_hand)


def as_a_script(workload, data, arguments):
    """What a shell does for it, in the fork."""
    sys.argv[1:], sys.path[0] = arguments, str(WORKLOADS / workload)
    sys.modules.pop("model", None)
    os.environ["COLLO_DATA"] = data


def trained(member, epochs=2):
    """(hello, features, epochs) of a member that trains to its end."""
    said = [member.hear(), member.hear()]
    member.tell("warm_up")
    said.append(member.hear())
    assert [message["event"] for message in said] == ["hello", "features", "ready"], said
    member.tell("go", epochs=epochs, after_measured="exit")
    *epochs, done = member.hear_all()
    assert done == {"event": "done"}
    assert member.end() == (0, "", "")
    return *said[:2], epochs


def refusal(workload, data="nowhere", **settings):
    """(kind, message) of the error that ends it at once; it is printed as one line."""
    with forked(workload, words(workload, **settings), data) as member:
        error, *more = member.hear_all()
        assert more == [] and error["event"] == "error", [error, *more]
        assert member.end() == (1, "", f"error: {error['message']}\n")
    return error["kind"], error["message"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A data folder with a small stand-in of WikiText-2."""
    root = tmp_path_factory.mktemp("data")
    collo_data.synthesize("wikitext-2", 0.01, root / "synthetic" / "wikitext-2")
    return root


# --- the model ---


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_gpt2_small_has_the_parameters_of_gpt2():
    preset = written("gpt")["presets"]["gpt2-small"]
    sizes = ("layers", "heads", "width", "length", "vocabulary")
    with torch.device("meta"):
        model = imported("gpt", "model").GPT(*(preset["settings"][size] for size in sizes))
    assert parameters(model) == 124_439_808  # as transformers' GPT-2 counts; its paper says 117 M, its repository 124 M
    assert "(124.4 M parameters)" in preset["description"]


def test_a_token_sees_those_before_it_and_none_after():
    torch.manual_seed(1)
    model = imported("gpt", "model").GPT(layers=2, heads=2, width=16, length=8, vocabulary=11)
    ids = torch.randint(11, (3, 8))
    other = ids.clone()
    other[:, 5] = (ids[:, 5] + 1) % 11
    same = (model(ids) == model(other)).all(-1).all(0)
    assert same.tolist() == [True] * 5 + [False] * 3


# --- training ---


def test_it_learns_and_says_what_it_is():
    with Started("gpt", *words("gpt", **TINY)) as member:
        hello, features, epochs = trained(member)
    count = 24 * 32 + 16 * 32 + 2 * (12 * 32**2 + 13 * 32) + 2 * 32
    assert hello["model"] == {"name": "GPT of 2 layers, width 32", "parameters": count}
    assert hello["dataset"] == {"name": "tokens", "synthetic": True, "items": 256}
    assert (hello["length"], hello["precision"], hello["limit_batches"]) == (16, "fp32", None)
    assert features["parameters"] == count and features["batch_size"] == 16
    assert features["layers"] == {"Embedding": 2, "GELU": 2, "LayerNorm": 5, "Linear": 9}
    weighed = 2 * 12 * 32**2 + 24 * 32  # weights that multiply each token; then every token looks at 16
    assert features["flops_per_item"] == 2 * 16 * weighed + 2 * 2 * (2 * 16 * 16 * 32)
    assert [epoch["items"] for epoch in epochs] == [256, 256]
    assert epochs[1]["loss"] < 0.8 * epochs[0]["loss"], epochs


def losses(data="nowhere", **settings):
    with forked("gpt", words("gpt", **{**TINY, **settings}), data) as member:
        return [epoch["loss"] for epoch in trained(member)[2]]


def test_it_learns_from_text(text):
    with forked("gpt", words("gpt", **{**TINY, "dataset": "wikitext-2", "vocabulary": 99}), text) as member:
        hello, _, epochs = trained(member)
    assert hello["dataset"] == {"name": "WikiText-2", "synthetic": True, "items": 256}
    assert epochs[1]["loss"] < 0.95 * epochs[0]["loss"], epochs


def test_two_at_once_have_the_very_same_losses_and_another_seed_has_others():
    assert losses(items=64) == losses(items=64) != losses(items=64, seed=2)


def test_mixed_precision_comes_out_alike_and_not_the_same():
    exact, mixed = losses(), losses(precision="bf16")
    assert exact != mixed and exact == pytest.approx(mixed, rel=0.02)


def test_the_shortest_text_has_something_to_guess():
    assert all(loss > 0 for loss in losses(length=1, items=32))


def test_an_epoch_can_be_cut_short():
    with forked("gpt", words("gpt", **TINY, limit_batches=3)) as member:
        hello, _, epochs = trained(member)
    assert hello["limit_batches"] == 3 and [epoch["items"] for epoch in epochs] == [48, 48]


def test_workers_load_the_same_batches():
    assert losses(items=64, workers=2) == losses(items=64)


def test_by_hand_it_simply_trains():
    with forked("gpt", words("gpt", **TINY), by_hand=True) as script:
        status, stdout, stderr = script.end()
    hello, *epochs = stdout.splitlines()
    assert (status, stderr) == (0, "")
    assert hello.endswith("tokens, a synthetic stand-in; device cpu, 1 thread")
    assert [line.split(" took ")[0] for line in epochs] == ["epoch 0", "epoch 1"]


# --- what cannot be ---


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"heads": 5}, "`heads` is 5 and `width` 96: the heads share it evenly"),
        ({"layers": 0}, "`layers` is 0: it is 1 to 1000"),
        ({"vocabulary": -3}, "`vocabulary` is -3: it is 3 to 1000000"),
        ({"vocabulary": 10**12}, "`vocabulary` is 1000000000000: it is 3 to 1000000"),
        ({"length": 0}, "`length` is 0: it is 1 to 100000"),
        ({"items": -1}, "`items` is -1: it is 0 to 100000000"),
        ({"dataset": "wikitext-103"}, "`dataset` is `wikitext-103`: it is one of tokens, wikitext-2"),
        ({"items": 8}, "`batch_size` 16 is larger than the data set of 8: make it smaller"),
        ({"cuda_graphs": True}, "`cuda_graphs` cannot be true on a CPU: it is a property of NVIDIA GPUs"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, message):
    assert refusal("gpt", **settings) == ("setting", message)


def test_what_could_never_fit_the_memory_is_refused_before_it_is_built():
    kind, message = refusal("gpt", layers=1000, width=100_000)
    assert kind == "setting"
    least = "the weights and AdamW take at least 1920 TB, the machine has"
    assert re.fullmatch(rf"{least} .*: lower `width` or `layers`", message)


def test_text_that_is_not_there_is_named_with_the_way_out(tmp_path):
    kind, message = refusal("gpt", data=tmp_path, dataset="wikitext-2")
    assert kind == "data" and f"`{tmp_path}/wikitext-2` is missing" in message
    assert "collo data synthesize wikitext-2 --scale" in message


# --- the tokens that are made up ---


def test_tokens_come_from_their_seed():
    one, same, other = (Tokens(50, 20, 30, seed).ids for seed in (1, 1, 2))
    assert (one == same).all() and (one != other).any()
    assert one.shape == (50, 20) and one.min() >= 0 and one.max() < 30


def test_a_token_is_mostly_followed_by_the_same_one_and_few_are_frequent():
    ids = Tokens(400, 100, 30, 1).ids
    pairs = np.zeros((30, 30))
    np.add.at(pairs, (ids[:, :-1], ids[:, 1:]), 1)
    assert ((pairs.max(1) / pairs.sum(1)) > 0.7).all()
    firsts = np.bincount(Tokens(10_000, 2, 1000, 1).ids[:, 0])
    assert firsts[0] > 5 * firsts[9] > 0


def test_tokens_are_handed_out_as_every_data_set_does():
    data = Tokens(5, 4, 30, 1)
    (batch,) = data.__getitems__([3, 1])
    assert len(data) == 5 and batch.dtype == np.int64 and batch.shape == (2, 4)
    assert (data[1][0] == batch[1]).all()
    assert data.describe() == {"name": "tokens", "synthetic": True, "items": 5}


def test_more_tokens_than_memory_holds_are_refused():
    with pytest.raises(SettingError, match="10000000 sequences of 512 tokens are more than the 100000000 tokens"):
        collo_tokens.load("tokens", 10_000_000, 512, 30, 1)


def test_all_the_text_is_read_where_no_number_is_asked_for(text, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(text))
    some, whole = (collo_tokens.load("wikitext-2", items, 16, 99, 1) for items in (7, 0))
    assert some.describe()["items"] == 7 and len(whole) == collo_data.prepare("wikitext-2")["items"] // 16
    assert whole.ids.max() == 98


def prepare(dataset, data):
    """(exit status, stdout, stderr) of the command that is written."""
    _, *command = [word.format(dataset=dataset) for word in written("gpt")["prepare"]]
    command, env = [sys.executable, *command], environment(COLLO_DATA=data)
    done = subprocess.run(command, cwd=WORKLOADS / "gpt", env=env, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_preparing_reads_text_and_has_nothing_to_do_for_tokens(text, tmp_path):
    status, stdout, _ = prepare("wikitext-2", text)
    assert status == 0 and json.loads(stdout)["items"] > 20_000
    status, stdout, _ = prepare("tokens", tmp_path)
    nowhere = {"dataset": "tokens", "synthetic": True, "written": False, "items": None, "where": None}
    assert (status, json.loads(stdout)) == (0, nowhere)
    status, stdout, stderr = prepare("wikitext-2", tmp_path)
    assert (status, stdout) == (1, "") and stderr.startswith(f"error: `{tmp_path}/wikitext-2` is missing")
