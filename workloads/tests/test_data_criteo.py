"""Criteo as text and as DLRM preprocesses it: reading, splits, blocks, table sizes, damage, stand-ins."""

import collo_data
import numpy as np
import pytest
from collo import DataError, SettingError
from collo_data import rows
from collo_data.criteo import CRITEO, DAY_ROWS, KAGGLE, TERABYTE

NAMES = ("train", "val", "test")


def line(label, numbers, categories):
    return "\t".join(map(str, (label, *numbers, *categories)))


LINE = line(1, range(13), [f"{8 * column:x}" for column in range(26)])
GAPS = line(0, ["", "-2", *[""] * 10, "7"], ["", "ff", *[""] * 24])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The smallest stand-ins, in both formats."""
    root = tmp_path_factory.mktemp("criteo")
    return {form: collo_data.synthesize("criteo", 1e-9, root / form, format=form) for form in CRITEO.formats}


def write_text(data, lines, name="train.txt", end="\n"):
    (data / "criteo").mkdir(parents=True, exist_ok=True)
    (data / "criteo" / name).write_text("\n".join(lines) + end)
    return data / "criteo" / name


def write_binary(data, table, counts=(100,) * 26, names=NAMES):
    folder = data / "criteo"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}_data.bin").write_bytes(np.asarray(table, "<i4").tobytes())
    np.savez(folder / "day_fea_count.npz", counts=np.array(counts, np.int32))
    return folder


def table(count):
    """Rows that know their number, in the first count."""
    made = np.zeros((count, 40), int)
    made[:, 1] = np.arange(count)
    made[:, 14:] = np.arange(count)[:, None] % 100
    return made


# --- text ---


def test_a_text_that_is_cut_in_its_last_field_is_not_as_expected(tmp_path):
    folder = collo_data.synthesize("criteo", 1e-9, tmp_path / "cut", format="tsv").folder
    assert collo_data.check("criteo", folder).ok
    whole = (folder / "train.txt").read_bytes()
    (folder / "train.txt").write_bytes(whole[:-4])
    wrong = [line.what for line in collo_data.check("criteo", folder).lines if line.ok is False]
    assert wrong == ["train.txt, the last row ends"]


def test_a_line_becomes_logarithms_indices_and_a_label(data):
    write_text(data, [LINE] * 6 + [GAPS] * 8)
    clicks = collo_data.load("criteo")
    dense, categories, labels = clicks.__getitems__([0, 11])
    assert (dense.dtype, categories.dtype, labels.dtype) == (np.float32, np.int64, np.float32)
    assert np.allclose(dense[0], np.log1p(np.arange(13))) and labels.tolist() == [1, 0]
    assert categories[0].tolist() == [8 * column % size for column, size in enumerate(KAGGLE)]
    assert np.allclose(dense[1], [0] * 12 + [np.log(8)])  # missing and below 0 are 0
    assert categories[1].tolist() == [0, 0xFF] + [0] * 24
    assert clicks.table_sizes == KAGGLE and not clicks.synthetic


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_last_line_may_have_no_end(data, end):
    write_text(data, [LINE] * 13 + [GAPS], end=end)
    read = [collo_data.load("criteo", split) for split in NAMES]
    assert [len(split) for split in read] == [12, 1, 1]
    assert read[1][0][2] == 0 and read[2][0][2] == 1


def test_lines_are_found_across_the_chunks_of_a_file(data, monkeypatch):
    path = write_text(data, [line(0, [number] * 13, ["a"] * 26) for number in range(100)])
    whole = rows.line_starts(CRITEO, path)
    monkeypatch.setattr(rows, "CHUNK_BYTES", 37)
    assert np.array_equal(rows.line_starts(CRITEO, path), whole) and len(whole) == 101
    assert np.array_equal(rows.line_starts(CRITEO, path, most=10), whole[:11])


def test_the_last_seventh_is_for_testing_and_validation(data):
    write_text(data, [line(0, [number] * 13, "0" * 26) for number in range(50)])
    first = {}
    for split in NAMES:
        read = collo_data.load("criteo", split)
        first[split] = (round(np.expm1(read[0][0][0])), len(read))
    assert first == {"train": (0, 43), "test": (43, 4), "val": (47, 3)}


def test_the_last_day_of_the_terabyte_is_for_testing_and_validation(data):
    for day, count in ((0, 4), (2, 3), (23, 5)):
        write_text(data, [line(0, [10 * day + row] * 13, "0" * 26) for row in range(count)], f"day_{day}")
    numbers = {}
    for split in NAMES:
        clicks = collo_data.load("criteo", split)
        dense, _, _ = clicks.__getitems__(range(len(clicks)))
        numbers[split] = np.expm1(dense[:, 0]).round().astype(int).tolist()
    assert numbers == {"train": [0, 1, 2, 3, 20, 21, 22], "test": [230, 231, 232], "val": [233, 234]}
    assert clicks.table_sizes == TERABYTE


def test_days_beyond_the_block_are_not_opened(data, monkeypatch):
    write_text(data, [LINE] * 5, "day_0")
    write_text(data, [LINE] * 5, "day_1")
    opened, names = CRITEO.opened, set()
    monkeypatch.setattr(CRITEO, "opened", lambda path: names.add(path.name) or opened(path))
    assert len(collo_data.load("criteo", rows=2, block=1)) == 2 and names == {"day_0"}
    assert len(collo_data.load("criteo", rows=10)) == 10


@pytest.mark.parametrize(
    "bad, reason",
    [
        (LINE.rpartition("\t")[0], "has 39 columns in line 3, not 40"),
        (LINE + "\t1", "has 41 columns in line 3, not 40"),
        ("", "has 1 columns in line 3, not 40"),
        (line("x", range(13), "0" * 26), "has `x` in column 1 of line 3, which is no integer"),
        (line(0, [*range(12), "1.5"], "0" * 26), r"has `1\.5` in column 14 of line 3, which is no integer"),
        (
            line(0, range(13), ["0", "wx", *"0" * 24]),
            "has `wx` in column 16 of line 3, which is no hexadecimal category",
        ),
        (line(0, [2**70, *range(12)], "0" * 26), "in column 2 of line 3, which is no integer"),
        (line(0, range(13), ["-5", *"0" * 25]), "has a category below 0 in line 3"),
        (line(2, range(13), "0" * 26), "has a label that is neither 0 nor 1 in line 3"),
    ],
    ids=["short", "long", "blank", "label", "fraction", "category", "huge", "negative", "no label"],
)
def test_a_bad_line_is_named_by_its_number(data, bad, reason):
    path = write_text(data, [LINE, LINE, bad, *[LINE] * 11])
    clicks = collo_data.load("criteo")
    assert clicks[1][2] == 1
    with pytest.raises(DataError, match=f"{path.name}` .*{reason}: unpack the Criteo archive again"):
        clicks.__getitems__([0, 2])
    assert not collo_data.check("criteo").ok
    with pytest.raises(DataError, match="line 3"):
        collo_data.prepare("criteo")


def test_a_line_keeps_its_number_in_any_split(data):
    write_text(data, [LINE] * 13 + ["cut off"])
    with pytest.raises(DataError, match="train.txt` has 1 columns in line 14, not 40"):
        collo_data.load("criteo", "val")[0]


# --- binary ---


def test_rows_of_int32_are_read_where_they_lie(data):
    rows = table(6)
    rows[2, :14] = [1, *range(13)]
    rows[2, 14:] = range(26)
    write_binary(data, rows)
    clicks = collo_data.load("criteo", "val")
    dense, categories, labels = clicks.__getitems__(np.array([2]))
    assert np.allclose(dense, np.log1p(np.arange(13))[None]) and categories.tolist() == [list(range(26))]
    assert labels.tolist() == [1] and dense.dtype == labels.dtype == np.float32 and categories.dtype == np.int64
    assert clicks.table_sizes == (100,) * 26 and isinstance(clicks.rows.rows, np.memmap)
    assert len(clicks) == 6
    with pytest.raises(IndexError):
        clicks[6]


def test_validation_takes_the_test_rows_where_it_has_none_of_its_own(data):
    write_binary(data, table(3), names=("train", "test"))
    assert len(collo_data.load("criteo", "val")) == 3
    (data / "criteo" / "test_data.bin").rename(data / "criteo" / "terabyte_processed_val.bin")
    assert len(collo_data.load("criteo", "val")) == 3
    with pytest.raises(DataError, match="test_data.bin` is missing: unpack the Criteo archive again"):
        collo_data.load("criteo", "test")


def test_a_block_is_so_many_rows_of_the_split(data):
    write_binary(data, table(10))
    clicks = collo_data.load("criteo", rows=4, block=1)
    dense, _, _ = clicks.__getitems__([0, 3, -1])
    assert len(clicks) == 4 and np.expm1(dense[:, 0]).round().tolist() == [4, 7, 7]
    for outside in (4, -5):  # these rows are on disk, but not in the block
        with pytest.raises(IndexError):
            clicks.__getitems__([outside])
    with pytest.raises(DataError, match="has 10 rows to train, 12 are asked for: ask for fewer"):
        collo_data.load("criteo", rows=4, block=2)
    for bad in ({"rows": -1}, {"block": 1}, {"rows": 4, "block": -1}):
        with pytest.raises(SettingError, match="they count from 0"):
            collo_data.load("criteo", **bad)


def test_tables_are_as_large_as_asked_for(data):
    write_binary(data, table(99))
    clicks = collo_data.load("criteo", max_table=7)
    assert clicks.table_sizes == (7,) * 26 and clicks[50][1].tolist() == [50 % 7] * 26
    sizes = tuple(range(1, 27))
    clicks = collo_data.load("criteo", table_sizes=sizes)
    assert clicks.table_sizes == sizes and clicks[50][1].tolist() == [50 % size for size in sizes]
    assert collo_data.load("criteo", table_sizes=sizes, max_table=5).table_sizes == (1, 2, 3, 4, *[5] * 22)
    for bad in ({"table_sizes": sizes[1:]}, {"table_sizes": (0, *sizes[1:])}, {"max_table": -1}):
        with pytest.raises(SettingError, match="`(table_sizes|max_table)` "):
            collo_data.load("criteo", **bad)


@pytest.mark.parametrize(
    "how, reason",
    [
        ("cut", r"train_data.bin` is truncated or of another format \(1590 bytes, no multiple of 160\)"),
        ("empty", "train_data.bin` holds no rows"),
        ("label", "train_data.bin` has a label that is neither 0 nor 1 in row 3"),
        ("below", "train_data.bin` has a category below 0 in row 3"),
        ("beyond", "train_data.bin` has a category beyond day_fea_count.npz in row 3"),
        ("no counts", "day_fea_count.npz` is missing"),
        ("bad counts", r"day_fea_count.npz` is truncated or no \.npz archive with `counts`"),
        ("other counts", "day_fea_count.npz` is truncated or no .npz archive with `counts`"),
        ("few counts", r"day_fea_count.npz` has counts of int64 \(3,\), not 26 integers of 1 or more"),
    ],
)
def test_a_bad_binary_file_is_named_with_its_reason(data, how, reason):
    rows = table(10)
    rows[2, 0] = 3 if how == "label" else 0
    rows[2, 20] = {"below": -1, "beyond": 100}.get(how, 0)
    folder = write_binary(data, rows)
    path = folder / "train_data.bin"
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-10])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "no counts":
        (folder / "day_fea_count.npz").unlink()
    elif how == "bad counts":
        (folder / "day_fea_count.npz").write_bytes(b"PK\x03\x04")
    elif how == "other counts":
        np.savez(folder / "day_fea_count.npz", other=np.ones(26, int))
    elif how == "few counts":
        np.savez(folder / "day_fea_count.npz", counts=np.ones(3, int))
    with pytest.raises(DataError, match=f"{reason}.*: unpack the Criteo archive again"):
        collo_data.load("criteo").__getitems__([2])
    assert not collo_data.check("criteo").ok


def test_an_empty_folder_is_not_taken_for_absent(data):
    (data / "criteo").mkdir(parents=True)
    words = (
        "holds neither train_data.bin nor train.txt nor day_0: unpack .* or remove the folder and run `collo data synth"
    )
    with pytest.raises(DataError, match=words):
        collo_data.load("criteo")


# --- the stand-ins ---


def test_both_formats_of_a_stand_in_hold_the_same(small):
    for split, count in (("train", 6000), ("test", 500), ("val", 500)):
        binary, text = (CRITEO.load(place, split, max_table=1000) for place in small.values())
        assert len(binary) == len(text) == count and binary.table_sizes == text.table_sizes and binary.synthetic
        for one, other in zip(binary.__getitems__(range(count)), text.__getitems__(range(count))):
            assert one.dtype == other.dtype and np.array_equal(one, other)


def test_the_stand_in_has_gaps_and_hexadecimal_categories(small):
    lines = (small["tsv"].folder / "train.txt").read_text().splitlines()
    fields = [text.split("\t") for text in lines]
    assert len(lines) == 7000 and {len(columns) for columns in fields} == {40}
    assert {columns[0] for columns in fields} == {"0", "1"}
    assert any("" in columns[1:14] for columns in fields) and any("" in columns[14:] for columns in fields)
    assert all(len(category) in (0, 8) for columns in fields for category in columns[14:])


def test_a_stand_in_depends_on_its_seed(small, tmp_path):
    again, other = (collo_data.synthesize("criteo", 1e-9, tmp_path / str(seed), seed=seed) for seed in (10, 11))
    content = (small["binary"].folder / "train_data.bin").read_bytes()
    assert (again.folder / "train_data.bin").read_bytes() == content != (other.folder / "train_data.bin").read_bytes()


def test_check_and_prepare_know_a_sound_stand_in(small, monkeypatch, tmp_path):
    for form, place in small.items():
        assert collo_data.check("criteo", place.folder).ok, form
        data = tmp_path / form
        data.mkdir()
        (data / "criteo").symlink_to(place.folder)
        monkeypatch.setenv("COLLO_DATA", str(data))
        prepared = collo_data.prepare("criteo")
        assert (prepared["items"], prepared["synthetic"], prepared["dataset"]) == (6000, True, "Criteo")


def test_real_rows_are_counted_against_the_published(data):
    write_text(data, [LINE] * 14)
    (found,) = [line for line in collo_data.check("criteo").lines if line.ok is False]
    assert found == ("train.txt, rows", 45_840_617, 14, False)
    write_binary(data, table(4))
    wrong = {line.what: (line.expected, line.found) for line in collo_data.check("criteo").lines if line.ok is False}
    assert wrong["train_data.bin, rows"] == (sum(DAY_ROWS[:23]), 4)


def test_clicks_can_be_learnt(small):
    train, val = (CRITEO.load(small["binary"], split, max_table=64) for split in ("train", "val"))
    numbers, categories, labels = train.__getitems__(range(len(train)))
    weights, of_categories, bias, every = np.zeros(13), np.zeros((26, 64)), 0.0, np.arange(26)

    def click(numbers, categories):
        return 1 / (1 + np.exp(-(numbers @ weights + of_categories[every, categories].sum(axis=1) + bias)))

    for start in [*range(0, 6000, 100)] * 5:
        batch = slice(start, start + 100)
        error = (click(numbers[batch], categories[batch]) - labels[batch]) / 100
        weights -= 0.1 * (numbers[batch].T @ error)
        np.subtract.at(of_categories, (every, categories[batch]), 0.1 * error[:, None])
        bias -= 0.1 * error.sum()
    numbers, categories, clicked = val.__getitems__(range(len(val)))
    assert loss(click(numbers, categories), clicked) < 0.95 * loss(np.full(500, labels.mean()), clicked)


def loss(guess, clicked):
    return -np.where(clicked == 1, np.log(guess), np.log(1 - guess)).mean()
