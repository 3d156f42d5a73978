"""ImageNet, downsampled in batches and in class folders: reading, damage, stand-ins."""

import pathlib
import pickle
import shutil
import subprocess
import sys
import zipfile

import collo_data
import numpy as np
import page_cache
import pytest
from collo import DataError, SettingError
from collo_data import mapped
from collo_data.imagenet import IMAGENET, Pictures, crop
from collo_data.imagenet64 import IMAGENET64
from collo_data.place import Place, find
from harness import environment
from PIL import Image
from test_data_cifar import nearest_means

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (11, 3, 12288), np.uint8)
LABELS = RANDOM.integers(1, 1001, (11, 3))
FILES = [name for names in IMAGENET64.files.values() for name in names]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The smallest stand-ins of ImageNet64, in both formats."""
    root = tmp_path_factory.mktemp("imagenet64")
    return {form: collo_data.synthesize("imagenet64", 1e-9, root / form, format=form) for form in IMAGENET64.formats}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The smallest stand-in of ImageNet, of small pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IMAGENET, "longer_side", 64)
        return collo_data.synthesize("imagenet", 1e-9, tmp_path_factory.mktemp("imagenet") / "some")


# --- ImageNet64 ---


def write_real(folder, form, below=""):
    """As the archives unpack: pickles of Python 3 with text keys, or arrays."""
    for name, pixels, labels in zip(FILES, PIXELS, LABELS):
        path = folder / below / f"{name}{IMAGENET64.endings[form]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "python":
            batch = {"data": pixels, "labels": labels.tolist(), "mean": pixels.mean(axis=0)}
            path.write_bytes(pickle.dumps(batch, protocol=3))
        else:
            np.savez_compressed(path, data=pixels, labels=labels)
    return folder / below


@pytest.mark.parametrize("form", IMAGENET64.formats)
@pytest.mark.parametrize("below", ["", "Imagenet64_train"])
def test_batches_are_read_flat_or_as_the_archives_unpack(data, form, below):
    write_real(data / "imagenet64", form, below)
    train, val = collo_data.load("imagenet64"), collo_data.load("imagenet64", "validation")
    assert np.array_equal(train.pixels.reshape(10, 3, 12288), PIXELS[:10]) and not train.synthetic
    assert np.array_equal(train.labels.reshape(10, 3), LABELS[:10] - 1)
    assert np.array_equal(val.labels, LABELS[10] - 1) and len(val) == 3
    some = collo_data.load("imagenet64", images=7)
    assert np.array_equal(some.pixels, train.pixels[:7]) and len(some) == 7
    assert train.shape == (3, 64, 64) and train.classes == 1000
    with pytest.raises(DataError, match="has 30 images, 31 are asked for"):
        collo_data.load("imagenet64", images=31)


def test_labels_that_do_not_count_from_one_are_refused(data):
    path = write_real(data / "imagenet64", "npz") / "train_data_batch_4.npz"
    np.savez(path, data=PIXELS[0], labels=LABELS[0] * 0)
    with pytest.raises(
        DataError, match="train_data_batch_4.npz` has labels from 0 to 0, ImageNet64 has 1 to 1000: unpa"
    ):
        collo_data.load("imagenet64")


@pytest.mark.parametrize(
    "how, reason",
    [
        ("truncated", r"is truncated or no \.npz archive"),
        ("flipped", r"is truncated or no \.npz archive"),
        ("pickled", r"is truncated or no \.npz archive of arrays \(.*allow_pickle"),
        ("without labels", "has no array `labels`"),
        ("wrong shape", r"has data of uint8 \(3, 3072\), not uint8 \(images, 12288\)"),
        ("missing", "is missing"),
    ],
)
def test_a_bad_archive_is_named_with_its_reason(data, how, reason):
    path = write_real(data / "imagenet64", "npz") / "train_data_batch_2.npz"
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[:-100])
    elif how == "flipped":
        path.write_bytes(content[:5000] + bytes([content[5000] ^ 255]) + content[5001:])
    elif how == "pickled":
        np.savez(path, data=PIXELS[0], labels=np.array([1, "two", None], object))
    elif how == "without labels":
        np.savez(path, data=PIXELS[0])
    elif how == "wrong shape":
        np.savez(path, data=PIXELS[0][:, :3072], labels=LABELS[0])
    else:
        path.unlink()
    with pytest.raises(DataError, match=f"train_data_batch_2.npz` {reason}") as error:
        collo_data.load("imagenet64")
    assert str(error.value).endswith(": unpack the ImageNet64 archive again")
    assert not collo_data.check("imagenet64").ok


def test_both_formats_of_imagenet64_hold_the_same(small):
    for form, place in small.items():
        assert collo_data.check("imagenet64", place.folder).ok, form
    for split in IMAGENET64.splits:
        python, npz = (IMAGENET64.load(place, split) for place in small.values())
        assert np.array_equal(python.pixels, npz.pixels) and np.array_equal(python.labels, npz.labels)
        assert (np.bincount(python.labels, minlength=1000) == 2).all()


def test_the_format_of_the_stand_in_is_that_of_the_archives(small):
    with (small["python"].folder / "train_data_batch_1").open("rb") as file:
        batch = pickle.load(file)
    assert batch.keys() == {"data", "labels", "mean"} and type(batch["labels"]) is list
    assert batch["mean"].shape == (12288,) and 1 <= min(batch["labels"]) and batch["data"].dtype == np.uint8
    with zipfile.ZipFile(small["npz"].folder / "val_data.npz") as archive:
        assert set(archive.namelist()) == {"data.npy", "labels.npy"}


def test_imagenet64_can_be_learnt_a_little_from_two_images_a_class(small):
    train, val = (IMAGENET64.load(small["npz"], split) for split in IMAGENET64.splits)
    assert nearest_means(train.pixels, train.labels, val.pixels, val.labels) > 0.1  # by chance 0.001


def test_reading_it_through_counts_the_training_images(small):
    assert IMAGENET64.read_through(small["python"]) == 2000


# --- one array for all members ---


def mappings():
    """The files that this process has mapped."""
    return {pathlib.Path(line.split(maxsplit=5)[5].rstrip()) for line in open("/proc/self/maps") if "/" in line}


def test_preparing_writes_one_array_a_split_and_every_member_maps_it(data):
    write_real(data / "imagenet64", "npz", "Imagenet64_npz")
    said = collo_data.prepare("imagenet64")
    assert (said["items"], said["synthetic"]) == (30, False)
    assert sorted(path.name for path in (data / "imagenet64").iterdir()) == [
        "Imagenet64_npz", "mapped-train", "mapped-val"
    ]  # fmt: skip
    written = np.load(data / "imagenet64" / "mapped-train" / "pixels.npy")
    assert np.array_equal(written.reshape(10, 3, 12288), PIXELS[:10])
    train = collo_data.load("imagenet64")
    assert {path.name for path in mappings() & set((data / "imagenet64" / "mapped-train").iterdir())} == {
        "labels.npy", "pixels.npy"
    }  # fmt: skip
    pixels, labels = train.__getitems__([29, 0])
    assert np.array_equal(pixels.reshape(2, -1), [PIXELS[9][2], PIXELS[0][0]]) and labels[1] == LABELS[0][0] - 1
    assert type(pixels) is np.ndarray and pixels.flags.owndata and pixels.flags.writeable  # torch warns of others


def test_what_is_written_is_not_decoded_again(data, monkeypatch):
    write_real(data / "imagenet64", "python")
    train = collo_data.load("imagenet64")
    monkeypatch.setattr(IMAGENET64, "read", None)
    assert np.array_equal(collo_data.load("imagenet64").pixels, train.pixels)
    assert len(collo_data.load("imagenet64", images=4)) == 4


@pytest.mark.parametrize("how", ["truncated", "no array", "another shape", "without labels", "half a note"])
def test_a_damaged_array_is_written_anew(data, how):
    write_real(data / "imagenet64", "npz")
    before = collo_data.load("imagenet64")
    folder = data / "imagenet64" / "mapped-train"
    content = (folder / "pixels.npy").read_bytes()
    if how in ("truncated", "no array"):
        (folder / "new").write_bytes(content[:-1] if how == "truncated" else b"<html>")
        (folder / "new").rename(folder / "pixels.npy")  # whoever has the old one mapped keeps it
    elif how == "another shape":
        np.save(folder / "new.npy", PIXELS[:10])
        (folder / "new.npy").rename(folder / "pixels.npy")
    elif how == "without labels":
        (folder / "labels.npy").unlink()
    else:
        (folder / "files.json").write_text('{"train_data_ba')
    assert np.array_equal(collo_data.load("imagenet64").pixels, before.pixels)
    assert (folder / "pixels.npy").read_bytes() == content
    assert sorted(path.name for path in folder.iterdir()) == ["files.json", "labels.npy", "pixels.npy"]


def test_the_array_of_other_files_is_written_anew_and_who_has_it_mapped_keeps_it(data):
    folder = write_real(data / "imagenet64", "npz")
    before = collo_data.load("imagenet64")
    np.savez_compressed(folder / "train_data_batch_1.npz", data=PIXELS[0][:2], labels=LABELS[0][:2])
    after = collo_data.load("imagenet64")
    assert (len(before), len(after)) == (30, 29) and np.array_equal(before.pixels[3:], after.pixels[2:])


def test_a_killed_process_leaves_nothing_for_good(data):
    folder = write_real(data / "imagenet64", "npz")
    (folder / ".mapped-train-0123abcd").mkdir()
    collo_data.load("imagenet64")
    assert not list(folder.glob(".mapped*"))


def test_several_processes_at_once_write_it_once(data):
    folder = write_real(data / "imagenet64", "npz")
    program = f"""
import collo_data
from collo_data.imagenet64 import IMAGENET64
read = IMAGENET64.read
IMAGENET64.read = lambda form, path: print(path.name) or read(form, path)
collo_data.prepare("imagenet64")
"""
    words = [sys.executable, "-c", program]
    started = [subprocess.Popen(words, env=environment(COLLO_DATA=data), stdout=subprocess.PIPE) for _ in range(3)]
    decoded = b"".join(process.communicate()[0] for process in started).decode().split()
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sorted(decoded) == sorted(f"{name}.npz" for name in FILES) and not list(folder.glob(".mapped*"))


def test_without_locks_they_all_end_with_the_same_array(data, monkeypatch):
    folder = write_real(data / "imagenet64", "npz")
    array, write = collo_data.load("imagenet64"), mapped.write
    shutil.rmtree(folder / "mapped-train")

    def no_locks(*_):
        raise OSError(9, "Bad file descriptor")

    def another_is_faster(*args):
        monkeypatch.setattr(mapped, "write", write)
        collo_data.load("imagenet64")
        write(*args)

    monkeypatch.setattr(mapped.fcntl, "flock", no_locks)
    monkeypatch.setattr(mapped, "write", another_is_faster)
    assert np.array_equal(collo_data.load("imagenet64").pixels, array.pixels) and not list(folder.glob(".mapped*"))


@pytest.mark.parametrize(
    "where, said",
    [
        ("mkdir", r"mapped-train` cannot be written \(Read-only file system\): give this user the right to, or put links"),
        ("disk", r"mapped-train`, the decoded images that members share, needs about 0 MB, 0 MB are free: make room"),
    ],
)
def test_where_it_cannot_be_written_the_way_out_is_said(data, monkeypatch, where, said):
    write_real(data / "imagenet64", "npz")

    def read_only(*_):
        raise OSError(30, "Read-only file system")

    if where == "mkdir":
        monkeypatch.setattr(pathlib.Path, "mkdir", read_only)
    else:
        monkeypatch.setattr(mapped.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(1, 1, 30 * 12288 - 1))
    with pytest.raises(DataError, match=said):
        collo_data.load("imagenet64")


def test_the_array_of_a_stand_in_stays_one_wherever_it_is_moved(small, tmp_path, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(tmp_path))
    IMAGENET64.read_through(small["npz"])
    real = tmp_path / "imagenet64"
    real.mkdir()
    (real / "mapped-train").symlink_to(small["npz"].folder / "mapped-train")
    (real / "train_data_batch_1").touch()
    assert (small["npz"].folder / "mapped-train" / "SYNTHETIC").exists() and find("imagenet64").synthetic


def test_seven_members_share_one_array_in_memory(data):
    page_cache.write_stand_in(data / "synthetic" / "imagenet64", 3000)
    collo_data.prepare("imagenet64")
    size = 3000 * 12288
    found = page_cache.measured(members=7)
    assert all(before["Rss"] < 0.1 * size for before, _, _ in found), "nothing is read before it is asked for"
    assert all(after["Rss"] == pytest.approx(size, rel=0.01) for _, after, _ in found)
    assert sum(after["Pss"] for _, after, _ in found) == pytest.approx(size, rel=0.01)


def test_a_member_whose_epochs_are_cut_short_reads_no_more_than_it_draws(data):
    page_cache.write_stand_in(data / "synthetic" / "imagenet64", 30_000)
    collo_data.prepare("imagenet64")
    [(_, after, _)] = page_cache.measured(members=1, share=0.001)
    # With a page that is asked for the kernel maps those around it that it has at hand, up to a huge page of 2 MiB.
    assert after["Rss"] <= 30 * 2 * 2**21 < 0.5 * 30_000 * 12288


# --- ImageNet ---


def test_pictures_are_decoded_cropped_and_labelled_by_their_folder(pictures):
    train, val = IMAGENET.load(pictures, "train", size=48), IMAGENET.load(pictures, "val", size=48)
    assert (len(train), len(val)) == (2000, 1000) and train.synthetic
    images, labels = train.__getitems__([0, 1, 1999])
    assert images.dtype == np.uint8 and images.shape == (3, 3, 48, 48) and labels.tolist() == [0, 0, 999]
    assert images.flags.c_contiguous and (train.classes, train.shape) == (1000, (3, 48, 48))
    assert train.path(1999).parent.name == "n00001000" and train.path(1999).suffix == ".JPEG"
    image, label = val[500]
    assert image.shape == (3, 48, 48) and label == 500


def test_a_crop_depends_on_seed_and_index_alone(pictures):
    one, again, other = (IMAGENET.load(pictures, "train", size=32, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.__getitems__([5, 6, 7])[0], again.__getitems__([7, 6, 5])[0][::-1])
    assert not np.array_equal(one[5][0], other[5][0])
    assert np.array_equal(one[-1][0], one[1999][0])
    middles = [IMAGENET.load(pictures, "val", size=32, seed=seed)[7][0] for seed in (1, 2)]
    assert np.array_equal(*middles)  # validation is no gamble


def test_the_middle_of_a_picture_is_taken_for_validation(tmp_path):
    picture = np.zeros((256, 512, 3), np.uint8)
    picture[16:240, 144:368] = 255  # exactly what is left of it
    Image.fromarray(picture).save(tmp_path / "wide.jpeg", quality=100)
    names, labels, place = np.array([b"wide.jpeg"]), np.array([3]), Place(tmp_path, False)
    image, label = Pictures(IMAGENET, place, tmp_path, names, labels, 224, 1, at_random=False)[0]
    assert label == 3 and image.shape == (3, 224, 224) and image.mean() > 250


def test_the_shorter_side_that_a_middle_is_taken_of_can_be_asked_for(pictures):
    """CARMA's Inception.py: Resize(299), CenterCrop(299). Nothing is lost above and below."""
    whole = IMAGENET.load(pictures, "train", size=64, crop="centre", resize=64)
    picture = whole.decoded(3)
    width, height = (round(side * 64 / min(picture.size)) for side in picture.size)
    scaled = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    left, top = (width - 64) // 2, (height - 64) // 2
    assert np.array_equal(whole[3][0], scaled[:, top : top + 64, left : left + 64])
    assert not np.array_equal(whole[3][0], IMAGENET.load(pictures, "train", size=64, crop="centre")[3][0])
    with pytest.raises(SettingError, match="`resize` is 63: it is 0, or at least 64"):
        IMAGENET.load(pictures, "train", size=64, resize=63)


def test_grey_pictures_get_three_colours(tmp_path):
    Image.fromarray(np.full((40, 30), 77, np.uint8)).save(tmp_path / "grey.jpeg")
    split = Pictures(IMAGENET, Place(tmp_path, False), tmp_path, np.array([b"grey.jpeg"]), np.zeros(1, int), 8, 1, True)
    assert (abs(split[0][0].astype(int) - 77) <= 2).all()


def test_a_random_crop_stays_inside_the_picture():
    random = np.random.default_rng(0)
    for width, height in ((500, 375), (3, 1000), (1, 1), (1000, 2)):
        for _ in range(50):
            left, top, right, bottom = crop(random, width, height)
            assert 0 <= left < right <= width and 0 <= top < bottom <= height


def test_pictures_can_be_learnt_a_little(pictures):
    train, val = (IMAGENET.load(pictures, split, size=16) for split in IMAGENET.splits)
    (images, labels), (others, other_labels) = (split.__getitems__(range(len(split))) for split in (train, val))
    assert nearest_means(images, labels, others, other_labels) > 0.1  # by chance 0.001


def test_a_check_looks_into_every_folder(pictures):
    found = collo_data.check("imagenet", pictures.folder)
    assert found.ok and found.synthetic
    assert {line.what: line.found for line in found.lines}["train, class folders"] == 1000


@pytest.fixture
def changed(pictures, tmp_path, monkeypatch):
    """The same class folders, linked, to be changed as if they were real."""
    monkeypatch.setenv("COLLO_DATA", str(tmp_path))
    for split in IMAGENET.splits:
        (tmp_path / "imagenet" / split).mkdir(parents=True)
        for folder in (pictures.folder / split).glob("n*"):
            (tmp_path / "imagenet" / split / folder.name).symlink_to(folder)
    return tmp_path / "imagenet"


def own(folder):
    """A copy instead of the link, that may be damaged."""
    linked = folder.resolve()
    folder.unlink()
    return shutil.copytree(linked, folder)


@pytest.mark.parametrize(
    "how, reason", [("truncated", "is truncated"), ("text", "is no picture"), ("empty", "is no pict")]
)
def test_a_bad_picture_is_named_when_a_batch_asks_for_it(changed, how, reason):
    split = collo_data.load("imagenet", size=16)
    path = split.path(0)
    own(path.parent)
    content = path.read_bytes()
    path.write_bytes({"truncated": content[: len(content) // 2], "text": b"<html>", "empty": b""}[how])
    assert split[1][1] == 0  # others are still read
    with pytest.raises(DataError, match=f"{path.name}` {reason}.*: unpack the ImageNet archive again"):
        split.__getitems__([1, 0])
    found = collo_data.check("imagenet")
    wrong = [line for line in found.lines if line.ok is False and "damaged" in line.what]
    assert path.name in wrong[0].found


def test_a_smaller_imagenet_is_not_imagenet(changed):
    (changed / "train" / "n00000007").unlink()
    with pytest.raises(DataError, match="train` has 999 class folders, ImageNet has 1000: unpack the ImageNet archive"):
        collo_data.load("imagenet")
    assert not collo_data.check("imagenet").ok


def test_an_empty_class_and_differing_classes_are_named(changed):
    (changed / "val" / "n00000007").rename(changed / "val" / "n99999999")
    with pytest.raises(DataError, match=f"val` has other class folders than `{changed}/train`"):
        collo_data.load("imagenet", "val")
    for path in own(changed / "train" / "n00000007").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="n00000007` holds no pictures"):
        collo_data.load("imagenet")


def test_pictures_without_class_folders_are_told_where_to_go(changed):
    (changed / "val").rename(changed / "elsewhere")
    (changed / "val").mkdir()
    Image.new("RGB", (8, 8)).save(changed / "val" / "ILSVRC2012_val_00000001.JPEG")
    with pytest.raises(
        DataError, match="val` holds pictures but no class folders: move each into the folder of its class"
    ):
        collo_data.load("imagenet", "val")
    assert len(collo_data.load("imagenet")) == 2000  # training needs none of them


def test_a_missing_split_or_an_absurd_size_is_refused(changed):
    with pytest.raises(SettingError, match="`size` is 0: it is 1 or more pixels"):
        collo_data.load("imagenet", size=0)
    shutil.rmtree(changed / "val")
    with pytest.raises(DataError, match="val` is missing: unpack the ImageNet archive again"):
        collo_data.load("imagenet", "val")


def test_a_part_of_the_pictures_is_not_all_of_them(changed):
    found = collo_data.check("imagenet")
    wrong = {line.what: (line.expected, line.found) for line in found.lines if line.ok is False}
    assert not found.synthetic and wrong["train, pictures"] == (1_281_167, 2000)
    assert wrong["val, pictures of each class"] == ("50", "1")


def test_part_of_a_stand_in_linked_into_the_real_place_stays_synthetic(pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(tmp_path))
    (tmp_path / "imagenet").mkdir()
    for split in IMAGENET.splits:
        (tmp_path / "imagenet" / split).symlink_to(pictures.folder / split)
    assert collo_data.load("imagenet").synthetic


def test_only_imagenet_needs_pil():
    program = "import sys, collo_data; [collo_data.known_as(name) for name in collo_data.SETS if name != 'imagenet']"
    words = [sys.executable, "-c", program + "; print('PIL' in sys.modules)"]
    assert subprocess.run(words, env=environment(), capture_output=True, text=True, check=True).stdout == "False\n"
