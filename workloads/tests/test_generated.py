"""Networks that are drawn at random: the rules they are drawn by, and that they train."""

import pytest
import torch
from collo import SettingError
from collo_features import features
from scripts import flags, module, script, trained

draw, nets = module("generated", "draw"), module("generated", "nets")
OPEN = {
    "shape": "drawn", "depth": 0, "width": 0, "normalisation": "drawn", "dropout": -1, "activation": "drawn",
    "inputs": 0, "outputs": 0, "channels": 0, "length": 0, "heads": 0,
}  # fmt: skip


def drawn(kind, seed, **fixed):
    return draw.drawn(kind, seed, {**OPEN, **fixed})


# --- the rules ---


@pytest.mark.parametrize("kind", draw.KINDS)
def test_a_seed_draws_the_same_network_and_another_seed_another(kind):
    assert drawn(kind, 7) == drawn(kind, 7) != drawn(kind, 8)


@pytest.mark.parametrize(
    "kind, fixed", [("mlp", {"depth": 3}), ("cnn", {"activation": "tanh"}), ("transformer", {"length": 64})]
)
def test_to_fix_one_size_leaves_all_others_as_they_were(kind, fixed):
    free, bound = drawn(kind, 7), drawn(kind, 7, **fixed)
    assert {name: value for name, value in bound.items() if free[name] != value and name != "pooled_every"} == fixed


@pytest.mark.parametrize(
    "kind, least, most",
    [  # thesis tables 5.2, 5.4 and 5.6
        ("mlp", {"inputs": 4, "outputs": 1, "depth": 1},
         {"inputs": 4096, "outputs": 1024, "depth": 10}),
        ("cnn", {"channels": 1, "inputs": 16, "outputs": 2, "depth": 1, "width": 16},
         {"channels": 3, "inputs": 224, "outputs": 22_000, "depth": 29, "width": 512}),
        ("transformer",
         {"inputs": 50_000, "outputs": 2, "depth": 2, "width": 128, "length": 128, "heads": 2},
         {"inputs": 10**6, "outputs": 1000, "depth": 39, "width": 2048, "length": 1024, "heads": 16}),
    ],
)  # fmt: skip
def test_what_is_drawn_fills_the_ranges_of_the_thesis_and_never_leaves_them(kind, least, most):
    all_nets = [drawn(kind, seed) for seed in range(1000)]
    for name in least:
        found = [net[name] for net in all_nets]
        assert least[name] <= min(found) and max(found) <= most[name], name
        room = most[name] - least[name]
        assert min(found) <= least[name] + 0.05 * room and max(found) >= most[name] - 0.05 * room, name
    assert {net["shape"] for net in all_nets} == set(draw.SHAPES[kind])
    assert {net["activation"] for net in all_nets} == set(draw.ACTIVATIONS[kind])
    with_dropout = [net["dropout"] for net in all_nets if net["dropout"]]
    assert 0.1 <= min(with_dropout) and max(with_dropout) <= 0.5
    if kind != "transformer":
        assert 400 < len(with_dropout) < 600 and 400 < sum(net["normalisation"] == "batch" for net in all_nets) < 600
        assert all(net["outputs"] <= max(1, net["inputs"] / 4) for net in all_nets) or kind == "cnn"
    else:
        assert all(net["width"] % net["heads"] == 0 and 2 <= net["inner"] / net["width"] <= 4 for net in all_nets)


@pytest.mark.parametrize(
    "kind, shape, depth, expected",
    [
        ("mlp", "pyramid", 4, [64, 32, 16, 10]),
        ("mlp", "bottleneck", 2, [64, 32, 16]),
        ("mlp", "uniform", 3, [128, 128, 128]),
        ("mlp", "gradual", 3, [89, 50, 11]),
        ("cnn", "uniform", 3, [128, 128, 128]),
        ("cnn", "pyramid", 4, [128, 256, 512, 1024]),
        ("cnn", "gradual", 4, [128, 181, 256, 362]),
        ("cnn", "bottleneck", 5, [256, 128, 256, 512, 1024]),
        ("cnn", "bottleneck", 2, [256, 128]),
        ("cnn", "hourglass", 4, [128, 512, 512, 128]),
        ("cnn", "hourglass", 1, [128]),
    ],
)
def test_the_shapes_are_those_of_the_generators(kind, shape, depth, expected):
    net = {"kind": kind, "shape": shape, "depth": depth, "width": 128, "outputs": 10}
    assert draw.widths(net) == expected


@pytest.mark.parametrize(
    "kind, fixed, said",
    [
        ("mlp", {"depth": -1}, "`depth` is -1: it is 1 to 1000, or 0 to draw it"),
        ("mlp", {"shape": "hourglass"}, "`shape` is `hourglass`: for `mlp` it is pyramid, uniform, .*, or drawn"),
        ("cnn", {"activation": "identity"}, "`activation` is `identity`: for `cnn` it is relu, .*, or drawn"),
        ("transformer", {"normalisation": "batch"}, "`normalisation` is `batch`: for `transformer` it is layer, or"),
        ("transformer", {"width": 100, "heads": 16}, "`heads` is 16 and `width` 100: the heads share it evenly"),
        ("mlp", {"dropout": 1.0}, "`dropout` is 1.0: it is 0 to less than 1, or -1 to draw it"),
    ],
)
def test_what_cannot_be_fixed_says_why(kind, fixed, said):
    with pytest.raises(SettingError, match=said):
        drawn(kind, 1, **fixed)


# --- the networks ---

SMALL = {
    "mlp": {"inputs": 50},
    "cnn": {"inputs": 30, "width": 8, "depth": 12, "outputs": 9},
    "transformer": {"inputs": 99, "width": 32, "depth": 3, "length": 16},
}


@pytest.mark.parametrize("kind", draw.KINDS)
def test_what_is_called_the_least_is_less_than_what_a_training_step_keeps(kind):
    for seed in range(12):
        net = drawn(kind, seed, **SMALL[kind])
        with torch.device("meta"):
            model = nets.build(net)
            items = nets.shown(net, torch.zeros(4, *nets.shape(net), dtype=torch.int64))
        sequence = features(model, (items[:1],))["sequence"]
        weights = sum(parameter.numel() for parameter in model.parameters())
        kept = {}

        def keep(tensor, kept=kept):
            kept[tensor.untyped_storage()._cdata] = (tensor, tensor.numel() * tensor.element_size())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            model(items)
        own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
        kept_bytes = sum(size for place, (_, size) in kept.items() if place not in own)
        least = nets.least_bytes(sequence, 4, 4)
        assert 0 < least <= 16 * weights + kept_bytes, net


@pytest.mark.parametrize("kind", draw.KINDS)
def test_each_kind_learns_its_items_by_heart_and_says_what_was_drawn(kind):
    settings = {**SMALL[kind], "kind": kind, "batch_size": 4, "items": 16, "depth": 2, "dropout": 0.0}
    said, ended = trained("generated", *flags("generated", **settings, learning_rate=0.005), epochs=15)
    assert ended == (0, "", "")
    (hello,), (told,), epochs = said["hello"], said["features"], said["epoch"]
    net = hello["generated"]
    assert net == drawn(kind, 1, **{**SMALL[kind], "depth": 2, "dropout": 0.0})
    assert hello["dataset"] == {"name": "random", "synthetic": True, "items": 16}
    assert told["batch_size"] == 4 and told["sequence"][-1][:2] == ["Linear", net["outputs"]]
    assert epochs[-1]["loss"] < 0.95 * epochs[0]["loss"], [epoch["loss"] for epoch in epochs]


def test_an_epoch_is_eight_batches_unless_said_otherwise():
    said, ended = trained("generated", *flags("generated", inputs=20, outputs=1, batch_size=6), epochs=1)
    assert ended == (0, "", "")
    assert said["epoch"][0]["items"] == 48 and 0 < said["epoch"][0]["loss"] < 5  # one output says yes or no


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"kind": "gan"}, "`kind` is `gan`: it is one of mlp, cnn, transformer"),
        (
            {"normalisation": "batch", "batch_size": 1},
            "`batch_size` is 1 and this mlp of seed 1 normalises each batch, one item has no variance: ",
        ),
        ({"items": 8}, "`batch_size` 32 is larger than the data set of 8: make it smaller"),
        (
            {"kind": "cnn", "width": 2048, "depth": 20, "inputs": 224, "batch_size": 4000, "shape": "uniform"},
            "this cnn of seed 1 at batch size 4000 takes at least ",
        ),
        ({"inputs": 10**6, "outputs": 2, "width": 8, "items": 10**9}, "1000000000 random items take 1000 TB, the "),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, message):
    with script("generated", *flags("generated", **settings)) as member:
        error = member.hear()
        assert member.end() == (1, "", f"error: {error['message']}\n")
    assert error["kind"] == "setting" and error["message"].startswith(message)
    if "takes at least" in message:
        assert error["message"].endswith("lower `batch_size`, `depth` or `width`, or take another `seed`")
