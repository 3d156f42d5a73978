"""Batches and loaders: what is drawn, what workers load, and what is refused before they start."""

import contextlib
import itertools
import time
import types

import collo
import collo_loader
import pytest
import torch
from collo import DataError, SettingError
from forked import by_hand
from test_collo_torch import CPU, Numbers, settings


def batches(**more):
    return collo_loader.Batches(**{"items": 10, "batch_size": 3, "limit": 0, "shuffle": True, "seed": 1, **more})


def epochs(of, count=1):
    """The first epochs of such batches, each a list."""
    endless = iter(of)
    return [list(itertools.islice(endless, len(of))) for _ in range(count)]


def test_batches_are_whole_and_hold_no_item_twice():
    [drawn] = epochs(batches())
    items = list(itertools.chain(*drawn))
    assert [len(batch) for batch in drawn] == [3, 3, 3] and len(batches()) == 3
    assert len(set(items)) == 9 and set(items) < set(range(10))


def test_each_epoch_has_another_order_and_each_seed_the_same_ones():
    first, second = epochs(batches(), 2)
    assert first != second
    assert epochs(batches(), 2) == [first, second]
    assert epochs(batches(seed=2)) != [first]


def test_without_shuffling_they_come_as_they_lie():
    assert epochs(batches(shuffle=False), 2) == [[[0, 1, 2], [3, 4, 5], [6, 7, 8]]] * 2


@pytest.mark.parametrize("limit, count", [(0, 3), (2, 2), (3, 3), (99, 3), (0.01, 1), (0.5, 1), (0.7, 2), (0.99, 2)])
def test_a_limit_ends_the_epoch_earlier_never_later(limit, count):
    assert len(batches(limit=limit)) == count
    first, second = epochs(batches(limit=limit), 2)
    assert second == epochs(batches(), 2)[1][:count], "the next one begins with an order of its own"


def test_a_batch_larger_than_the_data_set_is_refused():
    with pytest.raises(SettingError, match="`batch_size` 4 is larger than the data set of 3: make it smaller"):
        collo_loader.loader(Numbers(3), settings())
    assert len(collo_loader.loader(Numbers(4), settings())) == 1


def in_epochs(loader, warm_up=3, count=3):
    """The numbers of the warm-up's batches and of those of each epoch."""
    drawn = [loader.first(warm_up), *(loader for _ in range(count))]
    return [[numbers.tolist() for numbers, _ in batches] for batches in drawn]


@pytest.mark.parametrize("limit", [0, 2, 0.4])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_every_epoch_has_the_order_that_the_seed_gives_it(workers, limit):
    seeded = torch.Generator().manual_seed(1)
    orders = [torch.randperm(22, generator=seeded)[:20].view(-1, 4).tolist() for _ in range(4)]
    count = {0: 5, 2: 2, 0.4: 2}[limit]
    expected = [orders[0][: min(count, 3)], *(order[:count] for order in orders[1:])]
    assert in_epochs(collo_loader.loader(Numbers(22), settings(workers=workers, limit_batches=limit))) == expected


def test_workers_load_the_same_batches_as_the_process_itself():
    alone = collo_loader.loader(Numbers(12), settings())
    with_workers = collo_loader.loader(Numbers(12), settings(workers=2))
    for _ in range(2):
        pairs = list(zip(alone, with_workers, strict=True))
        assert len(pairs) == 3
        for (numbers, squares), (theirs, their_squares) in pairs:
            assert torch.equal(numbers, theirs) and torch.equal(squares, their_squares)
            assert torch.equal(squares, numbers**2) and numbers.dtype == torch.float32


class Counted(Numbers):
    """Counts the batches that were loaded, by whichever process."""

    def __init__(self, count):
        super().__init__(count)
        self.loaded = torch.zeros(1, dtype=torch.int64).share_memory_()

    def __getitems__(self, indices):
        self.loaded += 1
        return super().__getitems__(indices)


def eventually(true):
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


def test_when_an_epoch_ends_its_workers_have_loaded_the_beginning_of_the_next():
    data, ahead = Counted(24), collo_loader.PREFETCHED
    loader = collo_loader.loader(data, settings(workers=1))
    data.loaded.zero_()  # one item was looked at for its size
    for drawn, batches in ((3, loader.first(3)), (3 + 6, loader), (3 + 6 + 6, loader)):
        list(batches)
        assert eventually(lambda: data.loaded.item() == drawn + ahead), "while nobody asks for them"


def test_without_workers_no_batch_is_loaded_before_it_is_wanted():
    data = Counted(20)
    loader = collo_loader.loader(data, settings())
    list(loader)
    assert data.loaded.item() == len(loader) == 5


@pytest.mark.parametrize("workers", [0, 1])
def test_an_epoch_that_was_left_before_its_end_is_not_continued(workers):
    loader = collo_loader.loader(Numbers(20), settings(workers=workers))
    for _ in loader:
        break
    drawn = [number for numbers, _ in loader for number in numbers.tolist()]
    assert sorted(drawn) == list(range(20))


FROM_3_14_ON = """
import argparse, mmap, multiprocessing, os
import numpy
multiprocessing.set_start_method("forkserver", force=True)
import collo_torch
parser = argparse.ArgumentParser()
collo_torch.add_settings(parser, batch_size=2, learning_rate=0.1)
class Mapped:
    bytes = mmap.mmap(-1, 4096)
    def __init__(self):
        self.bytes = Mapped.bytes  # which cannot be sent to another process
    def __len__(self):
        return 4
    def __getitems__(self, indices):
        return (numpy.array([os.getppid() for _ in indices]),)
loader = collo_torch.loader(Mapped(), parser.parse_args(["--workers=1"]))
print({parent for (parents,) in loader for parent in parents.tolist()} == {os.getpid()})
"""


def test_workers_are_forks_of_the_member_also_where_python_forks_a_server_by_itself():
    assert by_hand(FROM_3_14_ON) == (0, "True\n", "")


# --- page-locked memory and copies ---


@pytest.mark.parametrize(
    "asked, gpu, pinned", [("auto", True, True), ("auto", False, False), ("false", True, False), ("true", True, True)]
)
def test_batches_are_page_locked_on_a_gpu_unless_the_settings_say_otherwise(monkeypatch, asked, gpu, pinned):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert collo_loader.loader(Numbers(8), settings(pin_memory=asked)).pin_memory is pinned


class Card:
    """A GPU's streams, which write down what they are given to do."""

    def __init__(self, monkeypatch):
        self.done, self.current = [], types.SimpleNamespace(name="computing")
        self.current.wait_stream = lambda other: self.done.append(f"computing waits for {other.name}")
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: types.SimpleNamespace(name="copying"))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self.current)
        monkeypatch.setattr(torch.cuda, "stream", self.stream)
        monkeypatch.setattr(collo_loader, "copy_stream", collo_loader.copy_stream.__wrapped__)

    @contextlib.contextmanager
    def stream(self, stream):
        self.on = stream.name
        yield
        self.on = "computing"

    def batch(self, number):
        return (types.SimpleNamespace(to=lambda device, non_blocking: self.copied(number, non_blocking)),)

    def copied(self, number, non_blocking):
        assert non_blocking and self.on == "copying"
        self.done.append(f"copy {number}")
        keep = lambda stream: self.done.append(f"{number} is kept for {stream.name}")  # noqa: E731
        return types.SimpleNamespace(number=number, record_stream=keep)


def test_each_batch_is_on_its_way_to_the_gpu_before_the_step_on_the_one_before_it(monkeypatch):
    card = Card(monkeypatch)
    for (batch,) in collo_loader.on(torch.device("cuda"), map(card.batch, (1, 2, 3))):
        card.done.append(f"step {batch.number}")
    assert card.done == [
        "copy 1", "computing waits for copying", "1 is kept for computing",
        "copy 2", "step 1", "computing waits for copying", "2 is kept for computing",
        "copy 3", "step 2", "computing waits for copying", "3 is kept for computing",
        "step 3",
    ]  # fmt: skip


def test_nothing_goes_to_the_gpu_where_there_is_no_batch(monkeypatch):
    card = Card(monkeypatch)
    assert list(collo_loader.on(torch.device("cuda"), [])) == card.done == []


def test_on_a_cpu_batches_are_handed_on_as_they_are():
    there = [(torch.ones(2),), (torch.zeros(2),)]
    assert all(mine is theirs for mine, theirs in zip(collo_loader.on(CPU, there), there, strict=True))


# --- what is refused, and errors ---


def test_too_little_shared_memory_for_the_workers_is_refused(monkeypatch):
    needed = 4 * 8 * 2 * 3  # items of a batch, their bytes, workers, batches of each under way
    monkeypatch.setattr(collo_loader, "free_bytes", lambda folder: needed - 1)
    with pytest.raises(SettingError, match="2 data-loader workers need about 0 MB of shared memory, /dev/shm has 0 MB"):
        collo_loader.loader(Numbers(8), settings(workers=2))
    monkeypatch.setattr(collo_loader, "free_bytes", lambda folder: needed)
    collo_loader.loader(Numbers(8), settings(workers=2))
    monkeypatch.setenv("COLLO_MEMBERS", "7")  # the others' workers may not have begun
    with pytest.raises(SettingError, match="0 MB of shared memory, 7 members need 7 times that, /dev/shm has 0 MB"):
        collo_loader.loader(Numbers(8), settings(workers=2))
    monkeypatch.setattr(collo_loader, "free_bytes", lambda folder: 7 * needed)
    collo_loader.loader(Numbers(8), settings(workers=2))
    monkeypatch.setattr(collo_loader, "free_bytes", lambda folder: None)  # not known is not too little
    collo_loader.loader(Numbers(8), settings(workers=2))


def test_free_bytes_of_a_folder_that_is_not_there_are_not_known(tmp_path):
    assert collo_loader.free_bytes(tmp_path / "none") is None
    assert collo_loader.free_bytes(tmp_path) > 0


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_wrong_with_the_data_is_one_line_also_from_a_worker(workers):
    wrong = Numbers(8, bad=5, error=DataError("`numbers/5` is truncated: count again"))
    loader = collo_loader.loader(wrong, settings(workers=workers))
    with pytest.raises(DataError) as error:
        list(collo_loader.on(CPU, loader))
    assert str(error.value) == "`numbers/5` is truncated: count again"


@pytest.mark.parametrize("error", [MemoryError("no room"), OSError(12, "Cannot allocate memory")])
def test_out_of_memory_in_a_worker_is_out_of_memory(error):
    loader = collo_loader.loader(Numbers(8, bad=5, error=error), settings(workers=1))
    with pytest.raises(type(error)) as raised:
        list(collo_loader.on(CPU, loader))
    assert collo._kind(raised.value) == "out_of_memory"
