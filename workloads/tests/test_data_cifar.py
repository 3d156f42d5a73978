"""CIFAR-10 and CIFAR-100 as they lie on disk: both versions, every kind of damage, and their stand-ins."""

import json
import pickle
import struct

import collo_data
import numpy as np
import pytest
from collo import DataError, SettingError
from collo_data.cifar import CIFAR_10, CIFAR_100
from harness import Started

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (5, 20, 3072), np.uint8)
LABELS = RANDOM.integers(0, 10, (5, 20))
TRAIN = CIFAR_10.files["train"]


def py2(text):
    return b"U" + bytes([len(text)]) + text


def as_python_2_wrote_it(pixels, labels):
    """Byte for byte the layout of the published batches: protocol 2, byte strings, numpy.core."""
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + py2(b"b") + b"\x87R(K\x01"
    array += b"J" + struct.pack("<i", len(pixels)) + b"M\x00\x0c\x86"
    array += b"cnumpy\ndtype\n" + py2(b"u1") + b"K\x00K\x01\x87R(K\x03" + py2(b"|") + b"NNN" + 2 * b"J\xff\xff\xff\xff"
    array += b"K\x00tb\x89T" + struct.pack("<i", pixels.nbytes) + pixels.tobytes() + b"tb"
    list_ = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    label = py2(b"batch_label") + py2(b"training batch 1 of 5")
    return b"\x80\x02}(" + label + py2(b"labels") + list_ + py2(b"data") + array + b"u."


def as_python_3_writes_it(pixels, labels, protocol=2):
    return pickle.dumps({b"data": pixels, b"labels": labels.tolist()}, protocol=protocol)


def as_protocol_5_writes_it(pixels, labels):
    return as_python_3_writes_it(pixels, labels, protocol=5)


def as_records(pixels, labels):
    return np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1).tobytes()


FORMATS = {
    "python 2": ("cifar-10-batches-py", "", as_python_2_wrote_it),
    "python 3": ("cifar-10-batches-py", "", as_python_3_writes_it),
    "protocol 5": ("cifar-10-batches-py", "", as_protocol_5_writes_it),
    "binary": ("cifar-10-batches-bin", ".bin", as_records),
}


def write_real(data, form):
    name, ending, encode = FORMATS[form]
    folder = data / "cifar-10" / name
    folder.mkdir(parents=True)
    for batch, pixels, labels in zip(TRAIN, PIXELS, LABELS):
        (folder / f"{batch}{ending}").write_bytes(encode(pixels, labels))
    (folder / f"test_batch{ending}").write_bytes(encode(PIXELS[0], LABELS[0]))
    return folder / f"data_batch_1{ending}"


@pytest.mark.parametrize("form", FORMATS)
def test_real_batches_are_read_as_they_were_written(data, form):
    write_real(data, form)
    read = collo_data.load("cifar-10")
    assert not read.synthetic
    assert read.pixels.dtype == np.uint8 and read.pixels.shape == (100, 3, 32, 32)
    assert np.array_equal(read.pixels.reshape(5, 20, 3072), PIXELS)
    assert np.array_equal(read.labels.reshape(5, 20), LABELS)
    assert len(collo_data.load("cifar-10", "test")) == 20


@pytest.mark.parametrize("form", FORMATS)
def test_the_first_images_are_the_first_of_all(data, form):
    first = write_real(data, form)
    all_of_them = collo_data.load("cifar-10")
    first.with_name(first.name.replace("1", "3")).unlink()  # is not even opened
    some = collo_data.load("cifar-10", images=33)
    assert np.array_equal(some.pixels, all_of_them.pixels[:33]) and np.array_equal(some.labels, all_of_them.labels[:33])


def test_a_batch_is_collated_from_any_indices(data):
    write_real(data, "binary")
    read = collo_data.load("cifar-10")
    pixels, labels = read.__getitems__([7, 99, 7])
    assert pixels.dtype == np.uint8 and pixels.shape == (3, 3, 32, 32) and labels.dtype == np.int64
    assert np.array_equal(pixels[1].ravel(), PIXELS[4, 19]) and labels.tolist() == LABELS.ravel()[[7, 99, 7]].tolist()
    pixels[:] = 0  # the batch is a copy
    one, label = read[99]
    assert np.array_equal(one.ravel(), PIXELS[4, 19]) and label == LABELS[4, 19]
    assert (read.classes, read.shape, len(read.mean), len(read.std)) == (10, (3, 32, 32), 3, 3)
    with pytest.raises(IndexError):
        read[100]


@pytest.mark.parametrize("form", ["python", "binary"])
def test_the_fine_labels_of_cifar_100_are_taken(data, form):
    fine = RANDOM.integers(0, 100, 20)
    folder = data / "cifar-100" / CIFAR_100.folders[form]
    folder.mkdir(parents=True)
    for name in ("train", "test"):
        if form == "python":
            batch = {b"data": PIXELS[0], b"fine_labels": fine.tolist(), b"coarse_labels": (fine // 5).tolist()}
            (folder / name).write_bytes(pickle.dumps(batch))
        else:
            records = np.concatenate([(fine // 5)[:, None], fine[:, None], PIXELS[0]], axis=1)
            (folder / f"{name}.bin").write_bytes(records.astype(np.uint8).tobytes())
    read = collo_data.load("cifar-100")
    assert np.array_equal(read.labels, fine) and np.array_equal(read.pixels.reshape(20, 3072), PIXELS[0])
    assert read.classes == 100 and read.describe() == {"name": "CIFAR-100", "synthetic": False, "items": 20}


def damage(path, how):
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[:-1000])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "missing":
        path.unlink()
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    elif how == "labels":
        encode = as_records if path.suffix else as_python_3_writes_it
        path.write_bytes(encode(PIXELS[0], LABELS[0] + 200))
    elif how == "text":
        path.write_bytes(b"<html>404 not found</html>")
    elif how == "another pickle":
        path.write_bytes(pickle.dumps([1, 2, 3]))
    elif how == "fine labels":  # CIFAR-100
        path.write_bytes(pickle.dumps({b"data": PIXELS[0], b"fine_labels": LABELS[0].tolist()}))
    elif how == "wrong size":
        path.write_bytes(as_python_3_writes_it(PIXELS[0][:, :1024], LABELS[0]))
    elif how == "too few labels":
        path.write_bytes(as_python_3_writes_it(PIXELS[0], LABELS[0][:-1]))
    elif how == "a trap":
        path.write_bytes(b"cposix\nsystem\n(S'touch trapped'\ntR.")


@pytest.mark.parametrize(
    "form, how, reason",
    [
        ("python 2", "truncated", "is truncated"),
        ("python 3", "truncated", "is truncated"),
        ("python 2", "empty", "is truncated"),
        ("python 2", "missing", "is missing"),
        ("python 2", "a folder", "is a folder, not a file"),
        ("python 2", "labels", "has labels from 200 to 209, CIFAR-10 has 0 to 9"),
        ("python 2", "text", "is not a CIFAR-10 python batch ("),
        ("python 2", "another pickle", "is not a CIFAR-10 python batch (a dict with 'data' and 'labels')"),
        ("python 2", "fine labels", "is not a CIFAR-10 python batch (a dict with 'data' and 'labels')"),
        ("python 2", "wrong size", "has data of uint8 (20, 1024), not uint8 (images, 3072)"),
        ("python 2", "too few labels", "has 20 images but labels of int64 (19,)"),
        ("python 2", "a trap", "is not a CIFAR-10 python batch (it wants to run `posix.system`)"),
        ("binary", "truncated", "is truncated or of another format (60460 bytes, no multiple of 3073)"),
        ("binary", "empty", "holds no images"),
        ("binary", "missing", "is missing"),
        ("binary", "labels", "has labels from 200 to 209, CIFAR-10 has 0 to 9"),
    ],
)
def test_a_bad_file_is_named_with_the_reason_and_the_way_out(data, form, how, reason):
    path = write_real(data, form)
    damage(path, how)
    with pytest.raises(DataError) as error:
        collo_data.load("cifar-10")
    assert str(error.value).startswith(f"`{path}` {reason}")
    assert str(error.value).endswith(": unpack the CIFAR-10 archive again")
    assert "\n" not in str(error.value)
    failed = [line for line in collo_data.check("cifar-10").lines if line.ok is False and "images" in line.what]
    assert f"{path.name}, images" in [line.what for line in failed] and failed[0].found.startswith(reason)


def test_a_bad_stand_in_may_be_removed(data):
    batches = data / "synthetic" / "cifar-10" / "cifar-10-batches-py"
    batches.mkdir(parents=True)
    (batches.parent / "SYNTHETIC").touch()
    with pytest.raises(DataError, match=f"data_batch_1` is missing: remove `{batches.parent}`, it is written anew$"):
        collo_data.load("cifar-10")


def test_a_folder_without_batches_is_not_taken_for_absent(data):
    (data / "cifar-10").mkdir(parents=True)
    with pytest.raises(DataError, match="holds neither cifar-10-batches-py nor cifar-10-batches-bin: unpack"):
        collo_data.load("cifar-10")


@pytest.mark.parametrize(
    "images, kind, words",
    [(101, DataError, "has 100 images, 101 are asked for"), (-1, SettingError, "`images` is -1: it is 1 or more")],
)
def test_more_images_than_there_are_or_fewer_than_none_are_refused(data, images, kind, words):
    write_real(data, "binary")
    with pytest.raises(kind, match=words):
        collo_data.load("cifar-10", images=images)


def test_a_member_tells_collo_about_bad_data(data):
    path = write_real(data, "binary")
    damage(path, "truncated")
    program = "import collo, collo_data; collo.connect(); collo_data.load('cifar-10')"
    with Started("sleep", program=program, COLLO_DATA=data) as member:
        (error,) = member.hear_all()
        assert (error["event"], error["kind"]) == ("error", "data")
        assert member.end() == (1, "", f"error: {error['message']}\n")


# --- the stand-ins ---


def test_the_stand_in_is_in_the_format_of_the_real_thing(data, stand_in, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(stand_in))
    read = collo_data.load("cifar-10")
    assert read.synthetic and read.describe() == {"name": "CIFAR-10", "synthetic": True, "items": 10000}
    assert set(read.labels) == set(range(10))
    data.mkdir()
    (data / "cifar-10").symlink_to(stand_in / "synthetic/cifar-10")
    monkeypatch.setenv("COLLO_DATA", str(data))
    again = collo_data.load("cifar-10")
    assert again.synthetic and np.array_equal(again.pixels, read.pixels)


def test_the_stand_in_is_the_same_everywhere(stand_in, tmp_path):
    collo_data.synthesize("cifar-10", folder=tmp_path / "cifar-10")
    for path in (tmp_path / "cifar-10/cifar-10-batches-py").iterdir():
        twin = stand_in / "synthetic/cifar-10/cifar-10-batches-py" / path.name
        assert path.read_bytes() == twin.read_bytes(), path.name


def test_a_note_says_what_was_written(stand_in):
    note = json.loads((stand_in / "synthetic/cifar-10/SYNTHETIC").read_text())
    counts = {"train": 10000, "test": 1000}
    assert note == {"name": "cifar-10", "scale": None, "seed": 10, "format": "python", "counts": counts}


@pytest.mark.parametrize("name, count", [("cifar-10", 500), ("cifar-100", 500)])
def test_both_formats_of_a_stand_in_hold_the_same(name, count, tmp_path):
    read = {}
    known = collo_data.known_as(name)
    for form in known.formats:
        place = collo_data.synthesize(name, 0.01, tmp_path / form, seed=3, format=form)
        assert collo_data.check(name, place.folder).ok
        read[form] = known.load(place, "train")
    assert len(read["python"]) == count and set(read["python"].labels) == set(range(known.classes))
    assert np.array_equal(read["python"].pixels, read["binary"].pixels)
    assert np.array_equal(read["python"].labels, read["binary"].labels)
    other = known.load(collo_data.synthesize(name, 0.01, tmp_path / "other", seed=4), "train")
    assert not np.array_equal(read["python"].pixels, other.pixels)


def test_the_smallest_stand_in_has_every_class(tmp_path):
    for name in ("cifar-10", "cifar-100"):
        known, place = collo_data.known_as(name), collo_data.synthesize(name, 1e-9, tmp_path / name)
        for split in known.splits:
            assert np.bincount(known.load(place, split).labels, minlength=known.classes).min() >= 2


def test_the_nearest_mean_of_a_class_often_tells_the_class(stand_in, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(stand_in))
    train, test = (collo_data.load("cifar-10", split) for split in ("train", "test"))
    assert nearest_means(train.pixels, train.labels, test.pixels, test.labels) > 0.8


def nearest_means(pixels, labels, others, other_labels):
    """The share of the others whose class has the nearest mean image."""
    flat, others = (array.reshape(len(array), -1).astype(np.float32) for array in (pixels, others))
    means = np.stack([flat[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
    means, others = means - flat.mean(axis=0), others - flat.mean(axis=0)
    nearest = (others @ means.T - (means**2).sum(axis=1) / 2).argmax(axis=1)
    return (nearest == other_labels).mean()


# --- what a check finds ---


def test_a_part_of_the_real_data_is_not_all_of_it(data):
    write_real(data, "python 3")
    found = collo_data.check("cifar-10")
    wrong = {line.what: (line.expected, line.found) for line in found.lines if line.ok is False}
    assert not found.ok and not found.synthetic
    assert wrong["data_batch_5, images"] == (10_000, 20)
    assert wrong["batches.meta, md5"] == ("5ff9c542aee3614f3951f8cda6e48888", "is missing")
    assert wrong["data_batch_1, md5"][0] == "c99cafc152244af753f735de768cd75f"
    assert "unpack the CIFAR-10 archive again" in str(found).splitlines()[-1]


def test_a_stand_in_that_is_not_what_its_note_says_is_found(tmp_path):
    folder = collo_data.synthesize("cifar-10", 0.002, tmp_path / "some").folder
    assert collo_data.check("cifar-10", folder).ok
    (folder / "SYNTHETIC").write_text((folder / "SYNTHETIC").read_text().replace('"train": 100', '"train": 200'))
    found = collo_data.check("cifar-10", folder)
    assert not found.ok and "collo data synthesize cifar-10" in str(found).splitlines()[-1]
    (folder / "SYNTHETIC").write_text("written by an older version")
    (folder / "cifar-10-batches-py" / "SYNTHETIC").unlink()
    found = collo_data.check("cifar-10", folder)
    assert found.synthetic and not found.ok


def test_the_folder_of_the_batches_can_be_checked_itself(stand_in):
    found = collo_data.check("cifar-10", stand_in / "synthetic/cifar-10/cifar-10-batches-py")
    assert found.ok and found.synthetic
