"""The LSTM and the small Transformer of the utilisation paper."""

import pytest
import torch
from harness import written
from scripts import flags, module, script, trained

model = module("text", "model")
PRESETS = written("text")["presets"]
TINY = {"width": 32, "length": 16, "vocabulary": 24, "items": 256, "learning_rate": 0.02}


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_as_large_as_it_says(name):
    settings = {**written("text")["settings"], **PRESETS[name]["settings"]}
    tokens, width, layers, length = (settings[key] for key in ("vocabulary", "width", "layers", "length"))
    with torch.device("meta"):
        if settings["model"] == "lstm":
            built = model.LSTM(tokens, width, layers, settings["bidirectional"])
            # four gates, each with weights of what comes in and of what it said before, and two biases; both directions
            first, later = (2 * 4 * width * (inputs + width + 2) for inputs in (width, 2 * width))
            count = first + (layers - 1) * later + 2 * width * tokens
        else:
            built = model.Transformer(tokens, width, layers, settings["heads"], length)
            count = layers * (12 * width**2 + 13 * width) + length * width + width * tokens
    assert parameters(built) == count + (tokens + 1) * width + tokens
    assert f"({count / 1e6 + (tokens * width + width + tokens) / 1e6:.1f} M parameters)" in PRESETS[name]["description"]


@pytest.mark.parametrize("bidirectional, seen", [(True, [True] * 8), (False, [False] * 5 + [True] * 3)])
def test_from_both_ends_every_place_sees_every_token(bidirectional, seen):
    torch.manual_seed(1)
    built = model.LSTM(11, 16, 2, bidirectional)
    ids = torch.randint(10, (3, 8))
    other = ids.clone()
    other[:, 5] = (ids[:, 5] + 1) % 10
    changed = (built(ids) != built(other)).any(-1).any(0)
    assert changed.tolist() == seen


@pytest.mark.parametrize(
    "settings, layers",
    [
        ({"model": "lstm", "layers": 2}, {"Embedding": 1, "LSTM": 1, "Linear": 1}),
        (
            {"model": "transformer", "items": 1024},
            {"Dropout": 3, "Embedding": 1, "LayerNorm": 2, "Linear": 3, "NonDynamicallyQuantizableLinear": 1},
        ),
    ],
)
def test_it_learns_and_says_what_it_is(settings, layers):
    said, ended = trained("text", *flags("text", **{**TINY, **settings}), epochs=3)
    assert ended == (0, "", "")
    (hello,), (features,), epochs = said["hello"], said["features"], said["epoch"]
    items = settings.get("items", 256)
    assert hello["dataset"] == {"name": "tokens", "synthetic": True, "items": items} and hello["length"] == 16
    name = {"lstm": "LSTM of 2 layers, width 32, from both ends", "transformer": "Transformer of 1 layer, width 32"}
    assert hello["model"]["name"] == name[settings["model"]]
    assert features["layers"] == layers and features["sequence"][0] == ["Embedding", 16 * 32, 25 * 32]
    assert [epoch["items"] for epoch in epochs] == 3 * [items]
    assert epochs[2]["loss"] < 0.98 * epochs[0]["loss"], epochs


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"model": "gru"}, "`model` is `gru`: it is one of lstm, transformer"),
        ({"model": "transformer", "heads": 5}, "`heads` is 5 and `width` 64: the heads share it evenly"),
        ({"layers": 0}, "`layers` is 0: it is 1 to 100"),
        ({"width": 10_000, "vocabulary": 1_000_000, "layers": 100}, "the weights and Adam take at least 1.6 TB, "),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, message):
    with script("text", *flags("text", **settings)) as member:
        error = member.hear()
        assert member.end() == (1, "", f"error: {error['message']}\n")
    assert error["kind"] == "setting" and error["message"].startswith(message)
