"""Batches for a training loop: a data set and the common settings go in, tensors on the device come out.

Knows no model. What a loader with workers needs of the machine is checked before it is made.
"""

import ctypes
import functools
import itertools
import os
import signal

import torch

import collo
from collo import DataError, SettingError

PINNING = ("auto", "true", "false")  # auto: on a GPU
PREFETCHED = 2  # batches that each data-loader worker keeps ready: torch's own default
SHARED_MEMORY = "/dev/shm"
PR_SET_PDEATHSIG = 1  # of prctl(2)


def batches_left(limit, whole):
    """How many batches of an epoch `limit_batches` leaves: 0 leaves all, a share below 1 at least one."""
    if 0 < limit < 1:
        return max(1, int(limit * whole))
    return min(limit or whole, whole)


class Batches:
    """Batches of shuffled indices, another order each epoch. Whole ones only: all steps have one shape."""

    def __init__(self, items, batch_size, limit, shuffle, seed):
        self.items, self.batch_size, self.shuffle = items, batch_size, shuffle
        self.count = batches_left(limit, items // batch_size)
        self.generator = torch.Generator().manual_seed(seed)
        self.first = None  # how many the very next order is cut to: a warm-up takes a few

    def __len__(self):
        """Of an epoch."""
        return self.count

    def __iter__(self):
        """One epoch after another, without an end: who loads ahead does so over the ends of epochs, too."""
        # Drawn when a batch is wanted: a loader with workers asks for two iterators and uses one.
        while True:
            order = torch.randperm(self.items, generator=self.generator) if self.shuffle else torch.arange(self.items)
            count, self.first = self.first or self.count, None
            yield from map(torch.Tensor.tolist, order[: count * self.batch_size].view(-1, self.batch_size))


class Loader(torch.utils.data.DataLoader):
    """A data loader that never runs dry: what its workers load ahead at an epoch's end is the next one's beginning.

    torch's own begins each epoch with nothing loaded, and the time until the first batch is there counts as training.
    """

    running, at_an_end = None, False

    def __iter__(self):
        return self._taken(len(self))

    def first(self, most):
        """The first few batches of an order of their own, for the warm-up; whole epochs follow them."""
        self.batch_sampler.first = count = min(most, len(self))
        self.at_an_end = False
        return self._taken(count)

    def _taken(self, count):
        if not self.at_an_end:  # the first ones, or the last epoch was left before its end: then a new order is drawn
            self.running = super().__iter__()
        self.at_an_end = False
        yield from itertools.islice(self.running, count)
        self.at_an_end = True


def loader(data, settings, shuffle=True):
    """Batches of `data` as tuples of tensors. `data` answers `__getitems__(indices)` with a tuple of arrays."""
    if settings.batch_size > len(data):
        too_large = f"`batch_size` {settings.batch_size} is larger than the data set of {len(data)}"
        raise SettingError(f"{too_large}: make it smaller")
    if settings.workers and not collo.describing():
        check_shared_memory(data, settings)
    return Loader(
        data,
        batch_sampler=Batches(len(data), settings.batch_size, settings.limit_batches, shuffle, settings.seed),
        collate_fn=as_tensors,
        num_workers=settings.workers,
        prefetch_factor=PREFETCHED if settings.workers else None,
        worker_init_fn=end_with_the_member,
        persistent_workers=settings.workers > 0,
        # Python 3.14 would start a server that forks. Then mapped files would be sent to each worker, or could not be,
        # and the kernel would watch that server instead of the member. Workers never touch CUDA.
        multiprocessing_context="fork" if settings.workers else None,
        pin_memory=pins(settings),
        generator=torch.Generator().manual_seed(settings.seed),
    )


def as_tensors(arrays):
    return tuple(map(torch.from_numpy, arrays))


def pins(settings):
    """Whether batches are loaded into page-locked memory: on a GPU, unless the settings say otherwise."""
    return torch.cuda.is_available() if settings.pin_memory == "auto" else settings.pin_memory == "true"


def end_with_the_member(worker):
    """By itself a data-loader worker takes five seconds to see that its member is gone; the kernel tells it at once."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def check_shared_memory(data, settings):
    """Workers hand batches over in shared memory; where it ends they die of a bus error that names nothing.

    What is free now is for the whole group, whose other members may not have begun: each may count on its part alone.
    """
    members = int(os.environ.get("COLLO_MEMBERS", "1"))
    item_bytes = sum(array.nbytes for array in data.__getitems__([0]))
    needed = item_bytes * settings.batch_size * settings.workers * (PREFETCHED + 1)
    free = free_bytes(SHARED_MEMORY)
    if free is not None and free / members < needed:
        of_each = f"{members} members need {members} times that, " if members > 1 else ""
        raise SettingError(
            f"{settings.workers} data-loader workers need about {needed / 1e6:.0f} MB of shared memory, {of_each}"
            f"{SHARED_MEMORY} has {free / 1e6:.0f} MB free: "
            "lower `workers` or `batch_size`, or enlarge it (containers: `--shm-size`)"
        )


def free_bytes(folder):
    try:
        state = os.statvfs(folder)
    except OSError:
        return None
    return state.f_bavail * state.f_frsize


def on(device, batches):
    """The batches on the device. To a GPU each is copied while the step before it computes."""
    try:
        yield from ahead(device, batches) if device.type == "cuda" else batches
    except DataError as error:  # a worker's comes wrapped in its traceback: the last line is what it said
        raise DataError(str(error).strip().splitlines()[-1].removeprefix("collo.DataError: ")) from None


def ahead(device, batches):
    """Each batch when the next one is on its way, in a stream of its own: so copies and kernels overlap.

    As timm's loader does it (timm/data/loader.py, `PrefetchLoader`). From memory that is not page-locked the host waits
    for the copy, in that stream alone; from page-locked memory it does not.
    """
    copying, waiting = copy_stream(device), None
    for batch in batches:
        with torch.cuda.stream(copying):
            coming = tuple(tensor.to(device, non_blocking=True) for tensor in batch)
        if waiting is not None:
            yield waiting
        computing = torch.cuda.current_stream(device)
        computing.wait_stream(copying)
        for tensor in coming:
            tensor.record_stream(computing)  # or its memory would be the next copy's while a step still reads it
        waiting = coming
    if waiting is not None:
        yield waiting


@functools.cache
def copy_stream(device):
    """One for all epochs: memory is cached for each stream by itself, and another one would begin with none."""
    return torch.cuda.Stream(device)
