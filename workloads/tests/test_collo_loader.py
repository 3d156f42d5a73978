"""Batches and loaders: what is drawn, what workers load, and what is refused before they start."""

import itertools

import collo
import collo_loader
import pytest
import torch
from collo import DataError, SettingError
from test_collo_torch import CPU, Numbers, settings


def batches(**more):
    return collo_loader.Batches(**{"items": 10, "batch_size": 3, "limit": 0, "shuffle": True, "seed": 1, **more})


def test_batches_are_whole_and_hold_no_item_twice():
    drawn = list(itertools.chain(*batches()))
    assert [len(batch) for batch in batches()] == [3, 3, 3] and len(batches()) == 3
    assert len(set(drawn)) == 9 and set(drawn) < set(range(10))


def test_each_epoch_has_another_order_and_each_seed_the_same_ones():
    one, other, third = batches(), batches(), batches(seed=2)
    first, second = list(one), list(one)
    assert first != second
    assert [list(other), list(other)] == [first, second]
    assert list(third) != first


def test_without_shuffling_they_come_as_they_lie():
    assert list(batches(shuffle=False)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize("limit, count", [(0, 3), (2, 2), (3, 3), (99, 3)])
def test_a_limit_ends_the_epoch_earlier_never_later(limit, count):
    assert len(batches(limit=limit)) == len(list(batches(limit=limit))) == count


def test_a_batch_larger_than_the_data_set_is_refused():
    with pytest.raises(SettingError, match="`batch_size` 4 is larger than the data set of 3: make it smaller"):
        collo_loader.loader(Numbers(3), settings())
    assert len(collo_loader.loader(Numbers(4), settings())) == 1


def test_workers_load_the_same_batches_as_the_process_itself():
    alone = collo_loader.loader(Numbers(12), settings())
    with_workers = collo_loader.loader(Numbers(12), settings(workers=2))
    for _ in range(2):
        pairs = list(zip(alone, with_workers, strict=True))
        assert len(pairs) == 3
        for (numbers, squares), (theirs, their_squares) in pairs:
            assert torch.equal(numbers, theirs) and torch.equal(squares, their_squares)
            assert torch.equal(squares, numbers**2) and numbers.dtype == torch.float32


def test_too_little_shared_memory_for_the_workers_is_refused(monkeypatch):
    needed = 4 * 8 * 2 * 3  # items of a batch, their bytes, workers, batches of each under way
    monkeypatch.setattr(collo_loader, "free_bytes", lambda folder: needed - 1)
    with pytest.raises(SettingError, match="2 data-loader workers need about 0 MB of shared memory, /dev/shm has 0 MB"):
        collo_loader.loader(Numbers(8), settings(workers=2))
    monkeypatch.setattr(collo_loader, "free_bytes", lambda folder: needed)
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
