"""Batches for a training loop: a data set and the common settings go in, tensors on the device come out.

Knows no model. What a loader with workers needs of the machine is checked before it is made.
"""

import ctypes
import math
import os
import signal

import torch

from collo import DataError, SettingError

PREFETCHED = 2  # batches that each data-loader worker keeps ready: torch's own default
SHARED_MEMORY = "/dev/shm"
PR_SET_PDEATHSIG = 1  # of prctl(2)


class Batches:
    """Batches of shuffled indices, another order each epoch. Whole ones only: all steps have one shape."""

    def __init__(self, items, batch_size, limit, shuffle, seed):
        self.items, self.batch_size, self.shuffle = items, batch_size, shuffle
        self.count = min(limit or math.inf, items // batch_size)
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.count

    def __iter__(self):
        # Drawn when the first batch is wanted: a loader with workers asks for two iterators and uses one.
        order = torch.randperm(self.items, generator=self.generator) if self.shuffle else torch.arange(self.items)
        yield from order[: self.count * self.batch_size].view(-1, self.batch_size).tolist()


def loader(data, settings, shuffle=True):
    """Batches of `data` as tuples of tensors. `data` answers `__getitems__(indices)` with a tuple of arrays."""
    if settings.batch_size > len(data):
        too_large = f"`batch_size` {settings.batch_size} is larger than the data set of {len(data)}"
        raise SettingError(f"{too_large}: make it smaller")
    if settings.workers:
        check_shared_memory(data, settings)
    return torch.utils.data.DataLoader(
        data,
        batch_sampler=Batches(len(data), settings.batch_size, settings.limit_batches, shuffle, settings.seed),
        collate_fn=as_tensors,
        num_workers=settings.workers,
        prefetch_factor=PREFETCHED if settings.workers else None,
        worker_init_fn=end_with_the_member,
        persistent_workers=settings.workers > 0,  # else each epoch would start them anew
        pin_memory=settings.pin_memory,
        generator=torch.Generator().manual_seed(settings.seed),
    )


def as_tensors(arrays):
    return tuple(map(torch.from_numpy, arrays))


def end_with_the_member(worker):
    """By itself a data-loader worker takes five seconds to see that its member is gone; the kernel tells it at once."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def check_shared_memory(data, settings):
    """Workers hand batches over in shared memory; where it ends they die of a bus error that names nothing."""
    item_bytes = sum(array.nbytes for array in data.__getitems__([0]))
    needed = item_bytes * settings.batch_size * settings.workers * (PREFETCHED + 1)
    free = free_bytes(SHARED_MEMORY)
    if free is not None and free < needed:
        raise SettingError(
            f"{settings.workers} data-loader workers need about {needed / 1e6:.0f} MB of shared memory, "
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
    """The batches, copied to the device; from page-locked memory the copy runs beside the training."""
    try:
        for batch in batches:
            yield tuple(tensor.to(device, non_blocking=True) for tensor in batch)
    except DataError as error:  # a worker's comes wrapped in its traceback: the last line is what it said
        raise DataError(str(error).strip().splitlines()[-1].removeprefix("collo.DataError: ")) from None
