"""DLRM: its tables and its arithmetic, the clicks made in memory, and training on both formats of Criteo."""

import functools
import os

import collo_data
import collo_memory
import numpy as np
import pytest
import torch
from collo import SettingError
from collo_features import features
from harness import written
from scripts import by_hand, flags, module, script, trained

DEFAULTS = written("dlrm")["settings"]
PRESETS = written("dlrm")["presets"]
SMALL = {"table_bytes": "100kB", "embedding_width": 4, "bottom": "16-4", "top": "16-1", "batch_size": 64}
LEARNABLE = {"tables": 20, "table_bytes": "unscaled", "block_rows": 4096, "validation_rows": 1024, "learning_rate": 1}
NUMBERS, TABLES = 13, 26


tables, model, clicks = (module("dlrm", name) for name in ("tables", "model", "clicks"))
small = functools.partial(flags, "dlrm", **SMALL)


def shape(name):
    """(rows, parameters) of a preset."""
    s = {**DEFAULTS, **PRESETS[name]["settings"]}
    rows = tables.rows(s["tables"], s["max_table"], s["table_bytes"], s["embedding_width"])
    bottom, top = model.bottom_widths(s["bottom"], s["embedding_width"]), model.top_widths(s["top"])
    dlrm = model.DLRM(rows, s["embedding_width"], bottom, top, device="meta")
    return sum(rows), sum(parameter.numel() for parameter in dlrm.parameters())


# --- the tables ---


def test_the_published_tables_have_the_published_rows():
    assert {name: (len(counts), sum(counts)) for name, counts in tables.KNOWN.items()} == {
        "kaggle": (TABLES, 33_762_577),
        "terabyte": (TABLES, 882_774_559),
        "terabyte-40m": (TABLES, 187_767_399),  # 24.0 billion weights of width 128
    }


@pytest.mark.parametrize(
    "preset, rows, parameters",
    [
        ("dlrm-kaggle", 33_762_577, 540_677_217),
        ("dlrm-terabyte", 54_184_588, 6_937_996_161),
        ("dlrm-carma", 54_184_588, 3_469_075_649),
        ("dlrm-24b", 187_767_399, 24_036_595_969),
    ],
)
def test_a_preset_is_as_large_as_it_says(preset, rows, parameters):
    assert shape(preset) == (rows, parameters)
    unit, divisor = ("M", 1e6) if parameters < 1e9 else ("B", 1e9)
    said = PRESETS[preset]["description"]
    assert any(f"{parameters / divisor:.{digits}f} {unit} parameters" in said for digits in (0, 1))


@pytest.mark.parametrize("table_bytes, width", [("100kB", 4), ("32MB", 16), ("2GiB", 16), ("8GB", 16), ("96GB", 128)])
def test_tables_take_about_the_bytes_asked_for(table_bytes, width):
    rows = tables.rows("kaggle", 0, table_bytes, width)
    asked = collo_memory.bytes_of(table_bytes)
    assert 0.99 * asked <= sum(rows) * width * 4 <= asked and min(rows) >= 1 and len(rows) == TABLES


def test_tables_are_cut_at_the_top_so_that_small_ones_stay():
    rows, whole = tables.rows("kaggle", 0, "32MB", 16), tables.KNOWN["kaggle"]
    assert rows == tuple(min(count, max(rows)) for count in whole) and max(rows) < max(whole)


def test_a_limit_or_a_number_sets_the_rows():
    assert tables.rows("terabyte", 1000, "unscaled", 16) == tuple(min(n, 1000) for n in tables.KNOWN["terabyte"])
    assert tables.rows("70", 0, "unscaled", 16) == (70,) * TABLES


@pytest.mark.parametrize(
    "asked, words",
    [
        (("avazu", 0, "unscaled", 16), "`tables` is `avazu`: it is one of kaggle, terabyte, terabyte-40m"),
        (("0", 0, "unscaled", 16), "`tables` is `0`"),
        (("9" * 5000, 0, "unscaled", 16), "`tables` is `999"),
        (("-5", 0, "unscaled", 16), "`tables` is `-5`"),
        (("kaggle", -1, "unscaled", 16), "`max_table` is -1"),
        (("kaggle", 10, "8GB", 16), "`max_table` 10 and `table_bytes` 8GB both say how large the tables are"),
        (("kaggle", 0, "8 gigs", 16), "`table_bytes` is `8 gigs`: it is a size such as 500MB or 8GB, or unscaled"),
        (("kaggle", 0, "-8GB", 16), "`table_bytes` is `-8GB`"),
        (("kaggle", 0, "1kB", 16), "`table_bytes` is 1kB: 26 tables of one row take 1.664 kB"),
        (("kaggle", 0, "999999999TB", 1), "no table can have more than"),
    ],
)
def test_tables_that_cannot_be_are_named_with_the_way_out(asked, words):
    with pytest.raises(SettingError) as error:
        tables.rows(*asked)
    assert words in str(error.value)


@pytest.mark.parametrize("text, size", [("1B", 1), ("8GB", 8 * 10**9), ("8GiB", 8 * 2**30), ("1.5 kB", 1500)])
def test_sizes_are_read_by_their_unit(text, size):
    assert collo_memory.bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "8", "GB", "8gb", "-1GB", "1e9B", "8GBs", "9" * 400 + "GB"])
def test_what_is_no_size_is_none(text):
    assert collo_memory.bytes_of(text) is None


def test_what_could_never_fit_is_refused_with_both_numbers():
    there = collo_memory.memory_bytes(torch.device("cpu"))
    collo_memory.check_fits(there, torch.device("cpu"), "it takes", "take less")
    with pytest.raises(SettingError, match=r"^it takes 9000 TB, the machine has .*[MGT]B: take less$"):
        collo_memory.check_fits(9e15, torch.device("cpu"), "it takes", "take less")


def test_a_container_has_the_memory_that_it_is_given(tmp_path):
    limit = tmp_path / "memory.max"
    assert collo_memory.container_limit_bytes(limit) == float("inf")
    for text, size in (("max\n", float("inf")), ("4096\n", 4096)):
        limit.write_text(text)
        assert collo_memory.container_limit_bytes(limit) == size


# --- the model ---


def test_the_interaction_is_the_one_computed_by_hand():
    vectors = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([[5.0, 6.0]])]
    pairs = torch.tensor([3, 6, 7])  # (1, 0), (2, 0), (2, 1) of a 3 × 3 matrix
    assert model.interaction(vectors, pairs).tolist() == [[1, 2, 1 * 3 + 2 * 4, 1 * 5 + 2 * 6, 3 * 5 + 4 * 6]]


def test_the_model_takes_all_pairs_and_no_vector_with_itself():
    dlrm = model.DLRM((3, 4), 2, [2], [1])
    assert dlrm.pairs.tolist() == [3, 6, 7]
    assert dlrm.top[0].in_features == 2 + 3


def test_a_logit_is_what_its_numbers_and_categories_make_it():
    dlrm = model.DLRM((3, 4), 2, [2], [1])
    with torch.no_grad():
        dlrm.bottom[0].weight.zero_()
        dlrm.bottom[0].bias.copy_(torch.tensor([1.0, -7.0]))  # rectified to [1, 0]
        dlrm.tables[0].weight.copy_(torch.tensor([[0.0, 0], [0, 0], [3, 4]]))
        dlrm.tables[1].weight.copy_(torch.tensor([[0.0, 0], [5, 6], [0, 0], [0, 0]]))
        dlrm.top[0].weight.fill_(1)
        dlrm.top[0].bias.fill_(0.5)
    logits = dlrm(torch.zeros(2, NUMBERS), torch.tensor([[2, 1], [0, 0]]))
    assert logits.tolist() == [1 + 0 + 3 + 5 + (15 + 24) + 0.5, 1.5]


def test_sparse_and_dense_gradients_make_the_same_step():
    weights = []
    for sparse in (True, False):
        torch.manual_seed(1)
        dlrm = model.DLRM((50,) * 3, 4, [4], [8, 1], sparse)
        optimiser = torch.optim.SGD(dlrm.parameters(), 0.1)
        dlrm(torch.ones(6, NUMBERS), torch.arange(18).view(6, 3) % 5).sum().backward()
        assert dlrm.tables[0].weight.grad.is_sparse == sparse
        optimiser.step()
        weights.append([parameter.detach() for parameter in dlrm.parameters()])
    assert all(torch.allclose(one, other) for one, other in zip(*weights))


@pytest.mark.parametrize("limit, told", [(0, None), (3, 3), (7, 7), (8, None), (0.5, 4)])
def test_a_limit_is_told_where_it_cuts_the_block_or_the_validation(limit, told):
    few = flags("dlrm", table_bytes="1MB", block_rows=64, validation_rows=32, batch_size=8, limit_batches=limit)
    heard, _ = trained("dlrm", *few)
    (hello,) = heard["hello"]
    assert hello["limit_batches"] == told
    assert heard["epoch"][0]["items"] == 8 * (told or 8)


def test_the_features_count_every_table():
    dlrm = model.DLRM((10,) * TABLES, 4, [16, 4], [16, 1])
    told = features(dlrm, (torch.zeros(1, NUMBERS), torch.zeros(1, TABLES, dtype=torch.int64)))
    assert told["layers"] == {"EmbeddingBag": TABLES, "Linear": 4, "ReLU": 3}
    mlps = 13 * 16 + 16 * 4 + (4 + 27 * 26 // 2) * 16 + 16 * 1
    assert told["flops_per_item"] == 2 * (mlps + 27 * 27 * 4)  # and the products of all 27 vectors
    assert told["parameters"] == TABLES * 10 * 4 + mlps + 16 + 4 + 16 + 1
    assert told["activations_per_item"] == 2 * 16 + 2 * 4 + TABLES * 4 + 2 * 16 + 1


@pytest.mark.parametrize(
    "widths, words",
    [
        (lambda: model.bottom_widths("64-8", 16), "`bottom` is `64-8`, `embedding_width` is 16"),
        (lambda: model.bottom_widths("13-512-16", 16), "leave them out"),
        (lambda: model.bottom_widths("", 16), "`bottom` is ``: it is widths of layers"),
        (lambda: model.bottom_widths("64--16", 16), "`bottom` is `64--16`"),
        (lambda: model.bottom_widths("64-0-16", 16), "`bottom` is `64-0-16`"),
        (lambda: model.bottom_widths("64,16", 16), "such as 512-256-64"),
        (lambda: model.top_widths("512-256"), "`top` is `512-256`: its last layer is 1 wide"),
        (lambda: model.top_widths("65537-1"), "1 to 65536"),
    ],
)
def test_malformed_mlps_are_named(widths, words):
    with pytest.raises(SettingError) as error:
        widths()
    assert words in str(error.value)


# --- the clicks ---


def test_clicks_have_the_shapes_of_criteo_and_stay_inside_the_tables():
    rows = (1, 2, 3, 1000) + (40,) * 22
    made = clicks.Clicks(5000, rows, seed=1)
    numbers, categories, labels = made.__getitems__([4, 2, 4999])
    assert [(a.shape, a.dtype) for a in (numbers, categories, labels)] == [
        ((3, NUMBERS), np.float32), ((3, TABLES), np.int64), ((3,), np.float32)
    ]  # fmt: skip
    assert made.categories.min() == 0 and (made.categories.max(axis=0) < rows).all()
    assert 0.1 < made.labels.mean() < 0.6 and set(made.labels) == {0, 1}
    assert made.describe() == {"name": "random clicks", "synthetic": True, "items": 5000}


def test_clicks_depend_on_their_seed_alone():
    one, same, other = (clicks.Clicks(100, (50,) * TABLES, seed) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(one.__getitems__(range(100)), same.__getitems__(range(100))))
    assert (one.categories != other.categories).any()


def test_few_categories_are_frequent():
    of_table = clicks.Clicks(20_000, (10_000,) * TABLES, seed=1).categories[:, 0]
    assert 0.4 < (of_table < 100).mean() < 0.6


# --- training ---


def test_it_learns_and_says_what_it_is():
    heard, ended = trained("dlrm", *small(**LEARNABLE), epochs=4)
    assert ended == (0, "", "")
    (hello,), epochs = heard["hello"], heard["epoch"]
    assert hello["dataset"] == {"name": "random clicks", "synthetic": True, "items": 4096 + 1024}
    assert hello["model"]["name"] == "dlrm" and hello["precision"] == "fp32" and hello["device"] == "cpu"
    (told,) = heard["features"]
    assert told["parameters"] == hello["model"]["parameters"] and told["layers"]["EmbeddingBag"] == TABLES
    assert told["batch_size"] == 64
    losses = [epoch["loss"] for epoch in epochs]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.9 * losses[0], losses
    assert {epoch["items"] for epoch in epochs} == {4096}  # of training only


@pytest.fixture(scope="module")
def criteo(tmp_path_factory):
    """A data folder for each format, with the smallest stand-in there is."""
    folders = {}
    for form in ("binary", "tsv"):
        folders[form] = tmp_path_factory.mktemp(form)
        place = folders[form] / "synthetic" / "criteo"
        collo_data.synthesize("criteo", 1e-9, place, format=form)
    return folders


def test_both_formats_of_criteo_train_alike(criteo):
    said = {}
    for form, folder in criteo.items():
        heard, ended = trained("dlrm", *small(dataset="criteo", block_rows=256, validation_rows=64), data=folder)
        assert ended == (0, "", "")
        assert heard["hello"][0]["dataset"]["synthetic"] is True
        said[form] = [epoch["loss"] for epoch in heard["epoch"]]
    assert len(said["binary"]) == 2 and said["binary"][1] < said["binary"][0]
    assert said["binary"] == said["tsv"]


@pytest.mark.parametrize("limit", [2, 0.5])
def test_by_hand_the_validation_is_shown_and_limited_like_the_block(limit):
    few = {"block_rows": 256, "validation_rows": 256, "limit_batches": limit}
    status, stdout, stderr = by_hand("dlrm", *small(**few), "--epochs", 1)
    assert (status, stderr) == (0, "")
    hello, epoch, validation = stdout.splitlines()
    assert "random clicks, a synthetic stand-in" in hello and epoch.startswith("epoch 0 took ")
    words = validation.split()
    assert words[:2] == ["validation", "loss"] and 0.3 < float(words[2].rstrip(",")) < 1.5
    share = float(words[3].rstrip("%"))
    assert 0 <= share <= 100 and abs(share / 100 * 128 - round(share / 100 * 128)) < 0.1  # of two batches of 64


def test_a_block_needs_no_validation():
    status, stdout, stderr = by_hand("dlrm", *small(block_rows=128, validation_rows=0), "--epochs", 1)
    assert (status, stderr) == (0, "") and "validation" not in stdout and "epoch 0 took" in stdout


def test_what_it_learns_holds_for_rows_that_it_has_not_seen():
    status, stdout, _ = by_hand("dlrm", *small(**LEARNABLE), "--epochs", 4)
    losses = [float(line.split()[2].rstrip(",")) for line in stdout.splitlines() if line.startswith("validation")]
    assert status == 0 and len(losses) == 4 and losses[-1] < 0.9 * losses[0], losses


def test_tables_beyond_the_memory_are_refused_before_they_are_made():
    status, _, stderr = by_hand("dlrm", *small(table_bytes="40TB", sparse=False, tables="terabyte"))
    assert status == 1 and stderr.count("\n") == 1
    assert stderr.startswith("error: the embedding tables and their gradients take 80 TB, the machine has ")


def test_criteo_that_is_not_there_is_said_in_one_line(tmp_path):
    with script("dlrm", *small(dataset="criteo"), data=tmp_path) as member:
        error = member.hear()
    assert (error["event"], error["kind"]) == ("error", "data")
    assert os.fspath(tmp_path) in error["message"] and "collo data synthesize criteo" in error["message"]


def test_rows_that_make_no_batch_are_named():
    status, _, stderr = by_hand("dlrm", *small(validation_rows=10))
    assert status == 1 and "error: `validation_rows` is 10: it is 64 or more, a whole batch, or 0 for none" in stderr
