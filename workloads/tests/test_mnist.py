"""MNIST as it lies on disk, and the profiling study's CNN that trains on it."""

import gzip
import struct

import collo_data
import numpy as np
import pytest
import torch
from collo import DataError
from collo_data.mnist import MNIST
from scripts import flags, module, script, trained

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (30, 28, 28), np.uint8)
LABELS = RANDOM.integers(0, 10, 30, np.uint8)


def idx(values):
    """As the page of MNIST describes the files: a number that ends with the dimensions, their sizes, the bytes."""
    return struct.pack(f">{1 + values.ndim}i", 0x800 + values.ndim, *values.shape) + values.tobytes()


def write_real(data, pack, below="."):
    folder = data / "mnist" / below
    folder.mkdir(parents=True)
    for split in ("train", "t10k"):
        for name, values in ((f"{split}-images-idx3-ubyte", PIXELS), (f"{split}-labels-idx1-ubyte", LABELS)):
            content = idx(values)
            (folder / (name + pack)).write_bytes(gzip.compress(content) if pack else content)
    return folder


# --- the data set ---


@pytest.mark.parametrize("pack, below", [("", "."), (".gz", "."), ("", "MNIST/raw"), (".gz", "raw")])
def test_the_files_are_read_packed_or_not_and_where_torchvision_puts_them(data, pack, below):
    write_real(data, pack, below)
    split = collo_data.load("mnist", images=7)
    pixels, labels = split.__getitems__([6, 0])
    assert len(split) == 7 and split.describe() == {"name": "MNIST", "synthetic": False, "items": 7}
    assert (pixels == PIXELS[[6, 0], None]).all() and (labels == LABELS[[6, 0]]).all()
    assert (split.shape, split.classes, labels.dtype) == ((1, 28, 28), 10, np.int64)
    assert len(collo_data.load("mnist", "test")) == 30


def test_a_stand_in_of_either_format_is_what_its_note_says(data):
    for form in MNIST.formats:
        folder = data / form
        collo_data.synthesize("mnist", 1e-9, folder, format=form)
        findings = collo_data.check("mnist", folder)
        assert findings.ok and findings.format == form, str(findings)


def test_real_data_is_held_against_what_is_published(data):
    folder = write_real(data, ".gz")
    found = {line.what: line for line in collo_data.check("mnist").lines}
    assert found["train-images-idx3-ubyte.gz, images"][1:] == (60_000, 30, False)
    assert found["t10k-labels-idx1-ubyte.gz, md5"].ok is False
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    found = {line.what: line for line in collo_data.check("mnist").lines}
    assert found["t10k-labels-idx1-ubyte.gz, md5"].found == "is missing"


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("train-images-idx3-ubyte", idx(PIXELS)[:-1], r"is truncated or .*\(23519 bytes of 30 × 28 × 28\)"),
        ("train-images-idx3-ubyte", b"<html>not found</html>", "is no idx file of bytes in 3 dimensions"),
        ("train-images-idx3-ubyte", b"", "is no idx file of bytes in 3 dimensions"),
        ("train-images-idx3-ubyte", idx(PIXELS[:, :27]), "has pictures of 27 × 28, not 28 × 28"),
        ("train-images-idx3-ubyte", idx(PIXELS[:9]), r"has 9 images but labels of uint8 \(30,\)"),
        ("train-labels-idx1-ubyte", idx(LABELS + 9), "has labels from 9 to 18, MNIST has 0 to 9"),
        ("train-labels-idx1-ubyte", idx(PIXELS), "is no idx file of bytes in 1 dimension"),
    ],
)
def test_damage_is_told_with_the_file_and_the_reason(data, name, content, said):
    folder = write_real(data, "")
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"^`{folder}/{name}` {said}: unpack|^`.*images-idx3-ubyte` {said}: unpack"):
        collo_data.load("mnist")


def test_a_packed_file_that_ends_too_early_is_said_so(data):
    folder = write_real(data, ".gz")
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"images-idx3-ubyte.gz` is truncated or no .gz file"):
        collo_data.load("mnist")


# --- the network ---


def test_the_network_has_the_parameters_of_pytorchs_example():
    model = module("mnist", "model").CNN()
    # conv 1-32 and 32-64 of 3 × 3, linear 9216-128 and 128-10, each with its biases
    assert sum(p.numel() for p in model.parameters()) == 32 * 10 + 64 * 289 + 128 * 9217 + 10 * 129 == 1_199_882
    assert model(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    collo_data.synthesize("mnist", 0.001, root / "synthetic" / "mnist")
    return root


def test_it_learns_and_says_what_it_is(data_folder):
    """Sixty pictures, over and over: so few are soon known by heart."""
    said, ended = trained("mnist", *flags("mnist", batch_size=20, decay=1.0), epochs=20, data=data_folder)
    assert ended == (0, "", "")
    (hello,), (features,) = said["hello"], said["features"]
    assert hello["model"] == {"name": "CNN of MNIST", "parameters": 1_199_882}
    assert hello["dataset"] == {"name": "MNIST", "synthetic": True, "items": 60}
    assert features["layers"] == {"Conv2d": 2, "Dropout": 2, "Flatten": 1, "Linear": 2, "MaxPool2d": 1, "ReLU": 3}
    assert features["flops_per_item"] == 2 * (676 * 9 * 32 + 576 * 288 * 64 + 9216 * 128 + 128 * 10)
    losses = [epoch["loss"] for epoch in said["epoch"]]
    assert [epoch["items"] for epoch in said["epoch"]] == 20 * [60]
    assert losses[-1] < 0.8 * losses[0], losses


def test_the_rate_falls_after_each_epoch(data_folder):
    few = {"batch_size": 20, "workers": 0}
    runs = [trained("mnist", *flags("mnist", **few, decay=decay), data=data_folder)[0] for decay in (0.7, 1.0)]
    (first, later), (same, other) = ([epoch["loss"] for epoch in run["epoch"]] for run in runs)
    assert first == same and later != other


def test_to_prepare_pictures_one_by_one_is_another_load_and_the_same_training(data_folder):
    few = {"batch_size": 20, "workers": 0}
    runs = [trained("mnist", *flags("mnist", **few, one_by_one=each), data=data_folder)[0] for each in (True, False)]
    one_by_one, at_once = ([epoch["loss"] for epoch in run["epoch"]] for run in runs)
    assert one_by_one == pytest.approx(at_once, rel=1e-3)
    assert [run["hello"][0]["dataset"]["items"] for run in runs] == [60, 60]


def test_a_decay_that_is_none_is_refused(data_folder):
    with script("mnist", *flags("mnist", decay=1.5), data=data_folder) as member:
        error = member.hear()
    assert error["kind"] == "setting"
    assert error["message"] == "`decay` is 1.5: it is greater than 0 and at most 1, which leaves the rate"
