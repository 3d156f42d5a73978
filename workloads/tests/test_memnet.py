"""GPUMemNet rebuilt: what its ensembles are made of, what they see, how they are split and trained."""

import json
import math
import random
import subprocess
import sys

import pytest
import torch
from collo_memnet import evaluation, training
from collo_memnet.ensembles import (
    MEMBERS, MEMBERS_FOR_CNN, Encoder, MlpEnsemble, TransformerEnsemble, parameters_of, widths,
)  # fmt: skip
from collo_memnet.evaluation import TooFew, evaluate
from collo_memnet.scores import Confusion
from collo_memnet.table import Table, kind_of, on_a_half_circle, tables
from harness import WORKLOADS


def nets(count, seed=1):
    """Rows of small MLPs whose memory is made up: it grows with what they hold."""
    drawn, rows = random.Random(seed), []
    for _ in range(count):
        depth, width, batch = drawn.randint(1, 6), drawn.randint(8, 512), drawn.choice([8, 64, 256])
        layers = []
        for _ in range(depth):
            layers += [["Linear", width, width * width + width], ["ReLU", width, 0]]
        layers += [["Linear", 4, 4 * width + 4], ["cross_entropy", 0, 0]]
        parameters = sum(own for _, _, own in layers)
        memory = 600 + 3 * depth * width * batch / 1000
        rows.append({"family": f"generated mlp {drawn.choice('abc')}", "batch_size": batch, "parameters": parameters,
                     "layers": layers, "memory_mib": memory})  # fmt: skip
    return rows


def table_of(rows):
    (found,) = tables(rows)
    return found


# --- the ensembles ---


def test_members_halve_their_layers_down_to_four():
    assert [widths(depth) for depth in (1, 2, 4)] == [[8], [8, 4], [8, 4, 4, 4]]
    assert (len(MEMBERS), len(MEMBERS_FOR_CNN)) == (13, 16)
    assert sorted(MEMBERS) == sorted([*range(1, 8), *range(1, 7)])
    assert sorted(MEMBERS_FOR_CNN) == sorted([*range(1, 9), *range(4, 9), *range(4, 7)])


def test_parameters_are_as_many_as_those_of_the_published_ensembles():
    # 1.5 to 1.6 k: the seven members that the overheads were published of, with 9 features and 6 bins.
    assert parameters_of(MlpEnsemble(9, 6, range(1, 8))) == 1590
    # 7.6 and 13.6 k with the sines of 46 and 314 places, which are constants here.
    assert parameters_of(TransformerEnsemble(4, 46, 4, 5)) + 46 * (6 + 4) == 7556
    assert parameters_of(TransformerEnsemble(6, 314, 9, 6)) + 314 * (6 + 4) == 13586


def alone(ensemble, inputs, classes):
    """The members as networks of their own, with the ensemble's weights."""
    first = [0] * len(ensemble.layers)
    networks = []
    for depth in ensemble.members:
        layers, before = [], inputs
        for layer in range(depth):
            width = widths(layer + 1)[-1]
            linear, norm = torch.nn.Linear(before, width), torch.nn.BatchNorm1d(width)
            own = slice(first[layer], first[layer] + width)
            side, of_all = ensemble.layers[layer], ensemble.norms[layer]
            mine = side.weight[own][:, side.mask[own][0].bool()]
            linear.weight.data, linear.bias.data = mine.data.clone(), side.bias.data[own].clone()
            norm.weight.data, norm.bias.data = of_all.weight.data[own].clone(), of_all.bias.data[own].clone()
            layers += [linear, norm, torch.nn.ReLU()]
            first[layer] += width
            before = width
        networks.append((depth, layers, before))
    ended = {depth: 0 for depth in ensemble.members}
    made = []
    for depth, layers, before in networks:
        head, place = ensemble.heads[depth - 1], ended[depth]
        ended[depth] += 1
        own = slice(place * classes, (place + 1) * classes)
        last = torch.nn.Linear(before, classes)
        mine = head.weight[own][:, head.mask[own][0].bool()]
        last.weight.data, last.bias.data = mine.data.clone(), head.bias.data[own].clone()
        made.append(torch.nn.Sequential(*layers, last))
    return made


def test_members_side_by_side_compute_what_each_would_alone():
    torch.manual_seed(3)
    ensemble = MlpEnsemble(5, 3, MEMBERS_FOR_CNN)
    for parameter in ensemble.parameters():
        torch.nn.init.normal_(parameter, 0.2, 0.5)
    networks = alone(ensemble, 5, 3)
    x = torch.randn(40, 5)
    expected = torch.stack([network(x) for network in networks]).mean(0)
    torch.testing.assert_close(ensemble(x), expected)
    torch.testing.assert_close(ensemble.eval()(x), torch.stack([network.eval()(x) for network in networks]).mean(0))


def test_no_member_learns_anothers_weights():
    ensemble = MlpEnsemble(5, 3)
    ensemble(torch.randn(16, 5)).square().sum().backward()
    for side in (*ensemble.layers, *(head for head in ensemble.heads if hasattr(head, "mask"))):
        assert not side.weight.grad[side.mask == 0].any() and not side.weight.data[side.mask == 0].any()
    first = ensemble.layers[0]
    assert 0 < first.weight.abs().max() <= math.sqrt(6 / (5 + 8)) and not first.bias.any()  # Xavier


@pytest.mark.parametrize("longest", [20, 90])
def test_what_fills_up_a_sequence_changes_nothing_and_a_batch_is_its_items(longest):
    torch.manual_seed(3)
    encoder = Encoder(4, longest, 6, 3, 2, 5).eval()
    sequence, more, lengths = torch.randn(40, longest, 4), torch.randn(40, 2), torch.randint(1, longest + 1, (40,))
    together = encoder(sequence, more, lengths)
    other = sequence.clone()
    for item, length in enumerate(lengths):
        other[item, length:] = 7.0
    torch.testing.assert_close(encoder(other, more, lengths), together)
    one = encoder(sequence[5:6], more[5:6], lengths[5:6])
    torch.testing.assert_close(one[0], together[5], rtol=1e-4, atol=1e-5)


# --- what they see ---


def test_features_are_those_of_the_published_loaders():
    mlp = {"family": "f", "batch_size": 64, "parameters": 1000, "memory_mib": 2500.0,
           "layers": [["Linear", 30, 600], ["BatchNorm1d", 30, 60], ["Mish", 30, 0], ["Dropout", 30, 0], ["Linear", 10, 340],
                      ["cross_entropy", 0, 0]]}  # fmt: skip
    table = table_of([mlp, mlp])
    angle = 4 * math.pi / 11  # ELU, GELU, Identity, LeakyReLU, Mish
    expected = [2, 64, 1000, 130, 1, 1, math.sin(angle), math.cos(angle)]
    torch.testing.assert_close(table.features[0], torch.tensor(expected))
    assert table.more[0].tolist() == [64, 1000, 130, 130 * 64]
    codes = table.sequences[0].tolist()
    assert codes == [[0, 1, 30, 600], [1, 0, 30, 60], [1, 0, 30, 0], [1, 0, 30, 0], [0, 1, 10, 340]]
    assert (table.kind, table.bin_mib, table.bins.tolist(), table.classes) == ("mlp", 1000, [2, 2], 3)


def test_a_cnn_and_a_transformer_have_their_own_codes_and_bins():
    cnn = [["Conv2d", 90, 10], ["BatchNorm2d", 90, 2], ["SiLU", 90, 0], ["MaxPool2d", 20, 0], ["Linear", 5, 15]]
    encoder = [["Embedding", 8, 80], ["multi_head_attention_forward", 8, 40], ["Dropout", 8, 0], ["LayerNorm", 8, 4],
               ["Linear", 16, 50], ["relu", 16, 0], ["Linear", 2, 9]]  # fmt: skip
    row = {"family": "f", "batch_size": 2, "parameters": 100, "memory_mib": 9000.0}
    of_cnn, of_encoder = tables([{**row, "layers": encoder}, {**row, "layers": cnn}])
    assert (of_cnn.kind, of_encoder.kind) == ("cnn", "transformer")
    assert [codes[:2] for codes in of_cnn.sequences[0].tolist()] == [[0, 1], [0, 0], [1, 0], [1, 0], [1, 1]]
    angle = 7 * math.pi / 10  # ELU, GELU, LeakyReLU, Mish, PReLU, ReLU, SELU, SiLU
    expected = [5, 295, 590, 100, 2, 1, 1, 0, math.sin(angle), math.cos(angle)]
    torch.testing.assert_close(of_cnn.features[0], torch.tensor(expected))
    kinds = [codes[:4] for codes in of_encoder.sequences[0].tolist()]
    assert kinds == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]  # no function
    assert of_encoder.features[0].tolist() == [7, 66, 132, 100, 2, 1, 2, 1, 1]
    assert of_cnn.bins.tolist() == of_encoder.bins.tolist() == [1]


def test_an_mlp_without_an_activation_function_has_the_identity():
    assert kind_of([["Linear", 3, 12]]) == "mlp"
    angle = 2 * math.pi / 11
    assert on_a_half_circle("mlp", [["Linear", 3, 12]]) == (math.sin(angle), math.cos(angle))


# --- splits ---


def test_no_row_is_learned_from_and_judged_by():
    splits = [training.random_split(500), *training.folds(500), *training.by_family([f"f{row % 4}" for row in range(500)])]
    for split in splits:
        parts = [set(part.tolist()) for part in (split.train, split.validation, split.test)]
        assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2]), split.name
    assert [len(part) for part in (splits[0].train, splits[0].validation, splits[0].test)] == [350, 100, 50]
    left_out = splits[-1]
    assert {row % 4 for row in left_out.test.tolist()} == {3} and len(left_out.test) == 125


def test_scaled_features_know_the_training_rows_alone():
    table = table_of(nets(60))
    train = torch.arange(40)
    (before,) = training.inputs_of("mlp", table, train, scaled=True)
    table.features[50] *= 1000
    (after,) = training.inputs_of("mlp", table, train, scaled=True)
    torch.testing.assert_close(before[:40], after[:40])
    torch.testing.assert_close(before[:40].mean(0), torch.zeros(8), atol=1e-5, rtol=0)
    (raw,) = training.inputs_of("mlp", table, train, scaled=False)
    assert torch.equal(raw, table.features)


# --- training ---


def test_training_ends_when_the_validation_loss_has_not_fallen_for_thirty_epochs(monkeypatch):
    table = table_of(nets(40))
    split = training.random_split(40)
    model = training.new_model("mlp", table)
    rising = iter(range(1000))

    def worse_and_worse(model, inputs, rows):
        wrong = torch.zeros(len(rows), table.classes)
        wrong[torch.arange(len(rows)), table.bins[rows]] = -float(next(rising))
        return wrong

    monkeypatch.setattr(training, "logits", worse_and_worse)
    best, epochs = training.fit(model, (table.features,), table.bins, split)
    assert epochs == 31
    assert any(not torch.equal(best[name], value) for name, value in model.state_dict().items()), "the first was the best"
    rising = iter(range(1000, 0, -1))
    monkeypatch.setattr(training, "PATIENCE", 3)
    _, epochs = training.fit(model, (table.features,), table.bins, split, most_epochs=7)
    assert epochs == 7


def results(rows, **asked):
    return {(one["ensemble"], one["folds"]): one for one in evaluate(table_of(rows), True, **asked)}


def test_what_can_be_learned_is_learned_above_the_majority_and_the_same_numbers_come_twice(monkeypatch):
    monkeypatch.setattr(training, "ENSEMBLES", ("mlp",))
    first, second = (results(nets(300), most_epochs=120) for _ in range(2))
    assert first == second
    once, honest = first["mlp", "once"], first["mlp", "honest"]
    assert honest["accuracy"] > honest["majority"] + 0.1, honest
    assert (once["rows"], honest["rows"]) == (30, 210)
    assert sum(bin["rows"] for bin in honest["bins"]) == 210 and honest["bin_mib"] == 1000
    assert [split["split"] for split in honest["splits"]] == ["fold 1", "fold 2", "fold 3"]


def test_original_folds_know_what_they_are_judged_by_and_honest_ones_begin_anew(monkeypatch):
    seen, new_model = [], training.new_model
    learned = {}

    def noted(model, inputs, bins, split, most_epochs):
        learned.setdefault(id(model), (model, set()))[1].update(split.train.tolist())
        seen.append(len(learned[id(model)][1] & set(split.test.tolist())))
        return dict(model.state_dict()), 1

    monkeypatch.setattr(training, "fit", noted)
    table, splits = table_of(nets(90)), training.folds(90)
    training.on_and_on("mlp", table, splits, False, 1)
    assert seen == [0, 21, 21], "all of its test rows were learned from in the fold before"
    seen.clear()
    kept = [training.anew("mlp", table, split, False, 1)[2] for split in splits]
    assert seen == [0, 0, 0] and len(kept) == 3
    one, other = (new_model("mlp", table).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_transformer_ensemble_is_trained_on_a_shape_left_out(monkeypatch):
    monkeypatch.setattr(training, "ENSEMBLES", ("transformer",))
    found = results(nets(60), split="shape", modes=("honest",), most_epochs=2)
    (one,) = found.values()
    assert one["rows"] == 60 and len(one["splits"]) == 3
    assert [split["split"][-1] for split in one["splits"]] == ["a", "b", "c"]


def test_recall_and_what_is_too_low_are_of_true_bins():
    whole = Confusion(3)
    whole.add(torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 0, 2]), torch.tensor(0))
    said = whole.scores(1000)
    assert (said["rows"], said["accuracy"], said["majority"], said["below"]) == (4, 0.5, 0.5, 0.25)
    assert [(bin["from_mib"], bin["rows"], bin["recall"]) for bin in said["bins"]] == [(0, 2, 0.5), (1000, 1, 0.0), (2000, 1, 1.0)]


def test_what_cannot_be_split_says_why():
    with pytest.raises(TooFew, match="9 rows of `mlp` are too few"):
        evaluate(table_of(nets(9)), False)
    with pytest.raises(TooFew, match="in one bin of 1000 MiB"):
        evaluate(table_of([{**row, "memory_mib": 700.0} for row in nets(40)]), False)
    with pytest.raises(TooFew, match="of one family"):
        evaluate(table_of([{**row, "family": "f"} for row in nets(40)]), False, split="shape")


def test_the_command_answers_for_each_kind_there_is(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text(json.dumps({"rows": nets(40)}))
    words = [sys.executable, "-m", "collo_memnet", str(file), "--epochs", "1", "--folds", "honest", "--bin-mib", "500"]
    ran = subprocess.run(words, cwd=WORKLOADS, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["left_out"] == [] and {one["ensemble"] for one in said["results"]} == {"mlp", "transformer"}
    assert {one["folds"] for one in said["results"]} == {"once", "honest"} and said["results"][0]["bin_mib"] == 500
