import json
import os
import pickle
import struct
import subprocess
import sys

import cifar
import numpy as np
import pytest
from collo import DataError
from harness import WORKLOADS, Started, environment

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (5, 20, 3072), np.uint8)
LABELS = RANDOM.integers(0, 10, (5, 20))


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


def as_python_3_writes_it(pixels, labels):
    return pickle.dumps({b"data": pixels, b"labels": labels.tolist()}, protocol=2)


def as_records(pixels, labels):
    return np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1).tobytes()


FORMATS = {
    "python 2": ("cifar-10-batches-py", "", as_python_2_wrote_it),
    "python 3": ("cifar-10-batches-py", "", as_python_3_writes_it),
    "binary": ("cifar-10-batches-bin", ".bin", as_records),
}


def write_real(data, form):
    name, ending, encode = FORMATS[form]
    folder = data / "cifar-10" / name
    folder.mkdir(parents=True)
    for batch, pixels, labels in zip(cifar.TRAIN, PIXELS, LABELS):
        (folder / f"{batch}{ending}").write_bytes(encode(pixels, labels))
    (folder / f"test_batch{ending}").write_bytes(encode(PIXELS[0], LABELS[0]))
    return folder / f"data_batch_1{ending}"


@pytest.mark.parametrize("form", FORMATS)
def test_real_batches_are_read_as_they_were_written(data, form):
    write_real(data, form)
    read = cifar.load()
    assert not read.synthetic
    assert read.pixels.dtype == np.uint8 and read.pixels.shape == (100, 3, 32, 32)
    assert np.array_equal(read.pixels.reshape(5, 20, 3072), PIXELS)
    assert np.array_equal(read.labels.reshape(5, 20), LABELS)


@pytest.mark.parametrize("form", FORMATS)
def test_the_first_images_are_the_first_of_all(data, form):
    first = write_real(data, form)
    all_of_them = cifar.load()
    first.with_name(first.name.replace("1", "3")).unlink()  # is not even opened
    some = cifar.load(images=33)
    assert np.array_equal(some.pixels, all_of_them.pixels[:33]) and np.array_equal(some.labels, all_of_them.labels[:33])


def test_the_stand_in_is_in_the_format_of_the_real_thing(stand_in, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(stand_in))
    read = cifar.load()
    assert read.synthetic and read.describe() == {"name": "CIFAR-10", "synthetic": True, "items": 10000}
    assert set(read.labels) == set(range(10))
    assert (stand_in / "synthetic/cifar-10/SYNTHETIC").exists()
    (stand_in / "cifar-10").symlink_to(stand_in / "synthetic/cifar-10")
    try:
        again = cifar.load()
    finally:
        (stand_in / "cifar-10").unlink()
    assert not again.synthetic and np.array_equal(again.pixels, read.pixels)


def test_the_stand_in_is_the_same_everywhere(stand_in, tmp_path):
    cifar.write_stand_in(tmp_path / "cifar-10")
    for path in (tmp_path / "cifar-10/cifar-10-batches-py").iterdir():
        twin = stand_in / "synthetic/cifar-10/cifar-10-batches-py" / path.name
        assert path.read_bytes() == twin.read_bytes(), path.name


def test_processes_that_write_the_stand_in_at_once_do_no_harm(data):
    command, env = [sys.executable, WORKLOADS / "cifar.py"], environment(COLLO_DATA=data)
    processes = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    reports = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sorted(report.pop("written") for report in reports) == [False, False, False, True]
    where = str(data / "synthetic/cifar-10")
    assert reports == [{"dataset": "CIFAR-10", "synthetic": True, "items": 10000, "where": where}] * 4
    assert os.listdir(data / "synthetic") == ["cifar-10"]


def test_the_stand_in_is_complete_from_the_first_moment(data, stand_in):
    folder = data / "synthetic/cifar-10"
    with subprocess.Popen([sys.executable, WORKLOADS / "cifar.py"], env=environment(COLLO_DATA=data)) as writer:
        while not folder.exists() and writer.poll() is None:
            pass
        sizes = {path.name: path.stat().st_size for path in folder.rglob("*")}
    assert sizes == {path.name: path.stat().st_size for path in (stand_in / "synthetic/cifar-10").rglob("*")}


def damage(path, how):
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[:-1000])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "missing":
        path.unlink()
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
        ("python 2", "labels", "has labels from 200 to 209, CIFAR-10 has 0 to 9"),
        ("python 2", "text", "is not a CIFAR-10 python batch ("),
        ("python 2", "another pickle", "is not a CIFAR-10 python batch (a dict with b'data' and b'labels')"),
        ("python 2", "fine labels", "is not a CIFAR-10 python batch (a dict with b'data' and b'labels')"),
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
        cifar.load()
    assert str(error.value).startswith(f"`{path}` {reason}")
    assert str(error.value).endswith(": unpack the CIFAR-10 archive again")
    assert "\n" not in str(error.value)


def test_a_bad_stand_in_may_be_removed(data):
    batches = data / "synthetic" / "cifar-10" / "cifar-10-batches-py"
    batches.mkdir(parents=True)
    (batches.parent / "SYNTHETIC").touch()
    with pytest.raises(DataError, match=f"data_batch_1` is missing: remove `{batches.parent}`, it is written anew$"):
        cifar.load()


def test_a_folder_without_batches_is_not_taken_for_absent(data):
    (data / "cifar-10").mkdir(parents=True)
    with pytest.raises(DataError, match="holds neither cifar-10-batches-py nor cifar-10-batches-bin: unpack"):
        cifar.load()


def test_a_data_folder_that_cannot_be_written_is_said_so(data):
    data.write_text("a file in the way")
    with pytest.raises(DataError, match="cannot be written .*: make room or set COLLO_DATA to"):
        cifar.load()


@pytest.mark.parametrize("images, words", [(101, "has 100 images, 101 are asked for"), (-1, "-1 images are asked for")])
def test_more_images_than_there_are_or_fewer_than_none_are_refused(data, images, words):
    write_real(data, "binary")
    with pytest.raises(DataError, match=words):
        cifar.load(images)


def test_a_member_tells_collo_about_bad_data(data):
    path = write_real(data, "binary")
    damage(path, "truncated")
    with Started("sleep", program="import collo, cifar; collo.connect(); cifar.load()", COLLO_DATA=data) as member:
        (error,) = member.hear_all()
        assert (error["event"], error["kind"]) == ("error", "data")
        assert member.end() == (1, "", f"error: {error['message']}\n")
