"""What all data sets have in common: where they lie, what makes one a stand-in, writing at once, the command line."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import collo_data
import numpy as np
import pytest
from collo import DataError, SettingError
from collo_data import stand_in as writing
from harness import environment

SMALL = {"imagenet64": 1e-9, "criteo": 1e-9, "wikitext-2": 1e-9, "cifar-10": 1e-9, "cifar-100": 1e-9, "mnist": 1e-9}


def command(data, *arguments, wait=True):
    """`python -m collo_data`: (exit status, stdout, stderr), or the process."""
    words = [sys.executable, "-m", "collo_data", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, env=environment(COLLO_DATA=data), **pipes)
    if not wait:
        return process
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr


# --- names and options ---


@pytest.mark.parametrize(
    "name, nearest", [("cifar10", "cifar-10"), ("CIFAR-100", "cifar-100"), ("wikitext", "wikitext-2")]
)
def test_an_unknown_data_set_is_told_the_nearest_name(name, nearest):
    with pytest.raises(
        SettingError, match=f"there is no data set `{name}`: did you mean `{nearest}`\\? there are cifar-10"
    ):
        collo_data.load(name)


def test_a_name_that_is_near_to_none_is_told_all_of_them():
    with pytest.raises(SettingError, match="^there is no data set `zzz`: there are cifar-10, .*wikitext-2$"):
        collo_data.load("zzz")


def test_the_validation_split_goes_by_any_of_its_names():
    named = {name: collo_data.known_as(name).named for name in collo_data.SETS}
    assert [named["imagenet"](name) for name in ("val", "valid", "validation")] == ["val"] * 3
    assert [named["wikitext-2"](name) for name in ("val", "valid", "validation")] == ["valid"] * 3
    with pytest.raises(SettingError, match="`cifar-10` has no split `val`: it has train, test"):
        named["cifar-10"]("val")


@pytest.mark.parametrize("scale", [0, -1, 1.01, float("nan"), float("inf"), None])
def test_an_absurd_scale_is_refused(data, scale):
    with pytest.raises(SettingError, match="`scale` .*: it is greater than 0 and at most 1"):
        collo_data.synthesize("criteo", scale)
    assert not data.exists()


def test_other_formats_and_seeds_are_refused(data):
    with pytest.raises(SettingError, match="`criteo` is not written as `npz`: its formats are binary, tsv"):
        collo_data.synthesize("criteo", 0.1, format="npz")
    with pytest.raises(SettingError, match="`seed` is -1"):
        collo_data.synthesize("criteo", 0.1, seed=-1)


def test_every_data_set_counts_its_stand_in_at_scale():
    for name in collo_data.SETS:
        known = collo_data.known_as(name)
        least, half, whole = (sum(known.counts(scale).values()) for scale in (1e-9, 0.5, 1))
        assert 0 < least < half < whole and abs(whole - 2 * half) < 5, name
        assert known.counts(1).keys() == set(known.splits)


# --- where they lie ---


@pytest.mark.parametrize("name", ["imagenet64", "imagenet", "criteo", "wikitext-2"])
def test_data_that_is_missing_is_told_where_it_goes_and_how_to_do_without(data, name):
    words = (
        f"`{data / name}` is missing: put .* there, or write a stand-in with `collo data synthesize {name} --scale 0"
    )
    with pytest.raises(DataError, match=words):
        collo_data.load(name)
    with pytest.raises(DataError, match=words):
        collo_data.check(name)
    assert not data.exists()  # these are never written by themselves


@pytest.mark.parametrize("name", SMALL)
def test_a_stand_in_is_a_stand_in_wherever_it_lies(data, name):
    place = collo_data.synthesize(name, SMALL[name])
    assert place == (data / "synthetic" / name, True, True)
    assert collo_data.locate(name) == (place.folder, True, False)
    place.folder.rename(data / name)
    assert collo_data.locate(name) == (data / name, True, False)
    assert collo_data.load(name).describe()["synthetic"] is True


def test_what_lies_with_the_stand_ins_is_one_even_without_its_note(data):
    folder = collo_data.synthesize("wikitext-2", 1e-9).folder
    for note in folder.glob("**/SYNTHETIC"):
        note.unlink()
    assert collo_data.load("wikitext-2").synthetic
    found = collo_data.check("wikitext-2")
    assert found.synthetic and not found.ok


def test_a_part_of_a_stand_in_in_the_real_place_is_no_real_data(data, tmp_path):
    moved = collo_data.synthesize("cifar-100", 1e-9, tmp_path / "some").folder / "cifar-100-python"
    shutil.copytree(moved, data / "cifar-100" / "cifar-100-python")
    assert collo_data.load("cifar-100").synthetic
    linked = collo_data.synthesize("criteo", 1e-9, tmp_path / "other", format="tsv").folder / "train.txt"
    (data / "criteo").mkdir()
    (data / "criteo" / "train.txt").symlink_to(linked)
    assert collo_data.load("criteo").synthetic


def test_a_link_that_leads_nowhere_is_not_taken_for_absent(data):
    data.mkdir()
    (data / "cifar-10").symlink_to(data / "unmounted")
    with pytest.raises(DataError, match="cifar-10` is a link that leads nowhere: put the data there, or remove it"):
        collo_data.load("cifar-10")


def test_a_data_folder_that_cannot_be_written_is_said_so(data):
    data.write_text("a file in the way")
    with pytest.raises(DataError, match="cannot be written .*: make room or set COLLO_DATA to"):
        collo_data.load("cifar-10")


def test_a_stand_in_that_does_not_fit_the_disk_is_not_begun(data, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    with pytest.raises(
        DataError, match="needs about 16,363 MB, 1 MB are free: make room, take a smaller scale, or set"
    ):
        collo_data.synthesize("imagenet64", 1)
    assert os.listdir(data / "synthetic") == []


def test_a_stand_in_that_cannot_be_finished_leaves_nothing(data, monkeypatch):
    def full(folder, note):
        (folder / "half").write_text("of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(collo_data.known_as("criteo"), "fill", full)
    with pytest.raises(DataError, match="criteo` cannot be written .No space left on device.: make room"):
        collo_data.synthesize("criteo", 1e-9)
    assert os.listdir(data / "synthetic") == []


def test_the_same_words_write_nothing_twice_and_others_overwrite_nothing(data):
    first = collo_data.synthesize("criteo", 1e-9)
    assert first.written and not collo_data.synthesize("criteo", 1e-9).written
    for other in ({"scale": 1e-8}, {"seed": 3}, {"format": "tsv"}):
        with pytest.raises(DataError, match="holds something else already: remove it first, or name another folder"):
            collo_data.synthesize("criteo", **{"scale": 1e-9, **other})
    (data / "precious").mkdir()
    (data / "precious" / "file").write_text("of somebody")
    with pytest.raises(DataError, match="holds something else already"):
        collo_data.synthesize("criteo", 1e-9, data / "precious")
    assert os.listdir(data / "precious") == ["file"]


def test_a_check_that_says_no_gives_the_command_that_writes_the_stand_in_again(data):
    folder = collo_data.synthesize("wikitext-2", 1e-9, data / "mine", seed=3, format="tokens").folder
    content = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (folder / "wikitext-2/wiki.test.tokens").unlink()
    said = str(collo_data.check("wikitext-2", folder)).splitlines()[-1]
    words = said.rpartition("`collo data ")[2].rstrip("`").split()
    shutil.rmtree(folder)
    assert command(data, *words)[0] == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == content


def test_a_broken_stand_in_is_told_how_to_write_it_again(data):
    folder = collo_data.synthesize("criteo", 1e-9).folder
    (folder / "train_data.bin").write_bytes(b"cut off")
    with pytest.raises(DataError, match=f"remove `{folder}` and run `collo data synthesize criteo --scale 0.001`$"):
        collo_data.load("criteo")


# --- several at once ---


def test_processes_that_need_the_stand_in_at_once_do_no_harm(data):
    processes = [command(data, "prepare", "cifar-10", wait=False) for _ in range(4)]
    reports = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sorted(report.pop("written") for report in reports) == [False, False, False, True]
    where = str(data / "synthetic/cifar-10")
    assert reports == [{"dataset": "CIFAR-10", "synthetic": True, "items": 10000, "where": where}] * 4
    assert os.listdir(data / "synthetic") == ["cifar-10"]


@pytest.mark.parametrize("name, other", [("criteo", "tsv"), ("imagenet64", "npz")])
def test_one_of_two_writers_of_different_stand_ins_is_told(data, name, other):
    kinds = [[], ["--format", other]]
    processes = [command(data, "synthesize", name, "--scale", "1e-9", *kind, wait=False) for kind in kinds]
    said = [process.communicate(timeout=60) for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 3]
    (error,) = [stderr for (_, stderr), process in zip(said, processes) if process.returncode]
    assert "holds something else already" in error
    assert os.listdir(data / "synthetic") == [name] and collo_data.check(name).ok


def test_the_stand_in_is_complete_from_the_first_moment(data, stand_in):
    folder = data / "synthetic/cifar-10"
    writer = command(data, "prepare", "cifar-10", wait=False)
    while not folder.exists() and writer.poll() is None:
        pass
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*")}
    writer.communicate(timeout=60)
    whole = stand_in / "synthetic/cifar-10"
    assert sizes == {str(path.relative_to(whole)): path.stat().st_size for path in whole.rglob("*")}


def test_a_writer_that_is_ended_leaves_nothing(data):
    writer = command(data, "synthesize", "imagenet64", "--scale", "0.1", wait=False)
    while writer.poll() is None and not list(data.glob("synthetic/.imagenet64-*/*")):
        pass
    writer.send_signal(signal.SIGTERM)
    writer.communicate(timeout=60)
    assert writer.returncode == 143 and os.listdir(data / "synthetic") == []


def test_a_writer_that_was_overtaken_takes_what_is_there(data, monkeypatch):
    known, folder = collo_data.known_as("criteo"), data / "synthetic" / "criteo"
    fill = known.fill

    def overtaken(aside, note):
        monkeypatch.setattr(known, "fill", fill)
        assert collo_data.synthesize("criteo", 1e-9).written
        return fill(aside, note)

    monkeypatch.setattr(known, "fill", overtaken)
    assert writing.write(folder, known.note(1e-9, 10, None), known) is False
    assert os.listdir(data / "synthetic") == ["criteo"] and collo_data.check("criteo").ok


# --- the command line ---


def test_a_check_answers_by_its_exit_status(data, tmp_path):
    assert command(data, "check", "criteo")[0] == 3
    folder = collo_data.synthesize("criteo", 1e-9, tmp_path / "some").folder
    status, stdout, stderr = command(data, "check", "criteo", folder)
    assert (status, stderr) == (0, "")
    assert stdout.splitlines()[0] == f"Criteo in `{folder}`, binary format, a synthetic stand-in"
    assert stdout.splitlines()[-1].startswith("✓ the stand-in is what its note says")
    rows = (folder / "val_data.bin").read_bytes()
    (folder / "val_data.bin").write_bytes(rows[:-160])
    status, stdout, _ = command(data, "check", "criteo", folder, "--json")
    found = json.loads(stdout)
    assert status == 1 and next(iter(found)) == "schema" and found["ok"] is False and found["synthetic"] is True
    assert {"what": "val_data.bin, rows", "expected": 500, "found": 499, "ok": False} in found["lines"]
    status, stdout, _ = command(data, "check", "criteo", folder)
    (row,) = [row for row in stdout.splitlines() if row.startswith("✗  ")]
    assert row.split() == ["✗", "val_data.bin,", "rows", "500", "499"]


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        (["check", "cifar10"], 2, "error: there is no data set `cifar10`: did you mean `cifar-10`?"),
        (["synthesize", "criteo", "--scale", "7"], 2, "error: `scale` is 7.0: it is greater than 0"),
        (["synthesize", "criteo", "--scale", "much"], 2, "invalid float value"),
        (["check", "criteo", "/nowhere/at/all"], 3, "error: `/nowhere/at/all` is missing: put train_data.bin"),
        (["prepare", "imagenet64"], 3, "imagenet64` is missing: put train_data_batch_1 to train_data_batch_10"),
        ([], 2, "usage: collo data"),
    ],
)
def test_a_mistake_is_one_line_and_a_status(data, arguments, status, words):
    ended, stdout, stderr = command(data, *arguments)
    assert (ended, stdout) == (status, "") and words in stderr
    assert "Traceback" not in stderr and (not stderr.startswith("error:") or stderr.count("\n") == 1)


def test_a_stand_in_is_written_where_it_is_told(data, tmp_path):
    words = (
        "synthesize",
        "wikitext-2",
        "--scale",
        "0.001",
        "--to",
        tmp_path / "there",
        "--seed",
        3,
        "--format",
        "tokens",
    )
    status, stdout, stderr = command(data, *words, "--json")
    said = json.loads(stdout)
    assert (status, stderr, said["written"], said["where"]) == (0, "", True, str(tmp_path / "there"))
    assert (said["dataset"], said["scale"], said["seed"], said["format"]) == ("WikiText-2", 0.001, 3, "tokens")
    status, stdout, _ = command(data, *words)
    assert status == 0 and stdout.startswith("there is already this synthetic WikiText-2 in")
    assert not data.exists()


def test_the_list_says_what_there_is_and_where(data):
    collo_data.synthesize("wikitext-2", 1e-9)
    status, stdout, _ = command(data, "list", "--json")
    listed = {entry["name"]: entry for entry in json.loads(stdout)["data_sets"]}
    assert status == 0 and list(listed) == list(collo_data.SETS)
    assert listed["wikitext-2"]["where"] == str(data / "synthetic/wikitext-2") and listed["wikitext-2"]["synthetic"]
    assert listed["imagenet"]["where"] is None and listed["imagenet"]["synthetic"] is None
    assert listed["imagenet64"]["published"] == {"train": 1_281_167, "val": 50_000}
    status, stdout, _ = command(data, "list")
    assert status == 0 and all(name in stdout for name in collo_data.SETS)
    assert not (data / "synthetic" / "cifar-10").exists()  # looking writes nothing


def test_preparing_prints_one_line_for_collo(data):
    collo_data.synthesize("wikitext-2", 1e-9)
    status, stdout, stderr = command(data, "prepare", "wikitext-2")
    prepared = json.loads(stdout)
    assert (status, stderr, stdout.count("\n")) == (0, "", 1)
    assert prepared.pop("items") > 20_000
    where = str(data / "synthetic/wikitext-2")
    assert prepared == {"dataset": "WikiText-2", "synthetic": True, "written": False, "where": where}


# --- for a data loader ---


@pytest.mark.parametrize("name", SMALL)
def test_a_batch_is_new_memory_that_torch_can_take_over(data, name):
    collo_data.synthesize(name, SMALL[name])
    split = collo_data.load(name)
    for array, one in zip(split.__getitems__([2, 0, 1]), split[2]):
        assert array.flags.c_contiguous and array.flags.writeable and array.flags.owndata
        assert len(array) == 3 and np.array_equal(array[0], one)
    with pytest.raises(IndexError):
        split[len(split)]


def test_nothing_but_this_folder_knows_where_the_data_lies(monkeypatch):
    monkeypatch.delenv("COLLO_DATA", raising=False)
    project = pathlib.Path(collo_data.__file__).absolute().parents[2]
    assert collo_data.folder_of_stand_in("criteo") == project / "data" / "synthetic" / "criteo"
