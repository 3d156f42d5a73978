"""The GPU allocator's peaks, those of the warm-up by themselves: tuning may need far more memory than training does.

cuDNN tries algorithms with as much workspace as is free on the card at that moment, and what it took stays in the
allocator's cache (`torch.backends.cudnn.benchmark`; ATen/native/cudnn/Conv_v8.cpp). Left there, a member's footprint
would say how much its neighbours had left over when it warmed up. So the cache is given back when the warm-up ends.
"""

import contextlib

import torch

import collo


class Peaks:
    def __init__(self):
        self.keep_cache = False  # as timm's script does, and the study with it
        self.of_warm_up = None  # (allocated, reserved) in bytes, once it is over
        self.of_replay = 0  # bytes of temporary memory in a captured step: its graph keeps them, and replays allocate none

    def end_warm_up(self, device):
        """The warm-up's peaks are kept, and those of the training begin with what the training needs."""
        if device.type == "cuda" and collo.hosted():  # whose peaks they are cannot be told, and others have work on their way
            collo.synchronise(device)
            if not self.keep_cache:
                torch.cuda.empty_cache()
        elif device.type == "cuda":
            torch.cuda.synchronize(device)
            self._count_to_warm_up(device)
            if not self.keep_cache:
                torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)

    @contextlib.contextmanager
    def of_a_capture(self):
        """Around the capture of a CUDA graph: only then is the memory of its replays requested from the allocator."""
        if collo.hosted():  # whose peaks they are cannot be told
            yield
            return
        self._count_to_warm_up()
        torch.cuda.reset_peak_memory_stats()
        yield
        self._count_to_warm_up()
        self.of_replay = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()

    def tell(self, member, device):
        """A CPU has no allocator to tell of."""
        if device.type == "cuda":
            member.memory(*self.now(device), *(self.of_warm_up or ()))

    def now(self, device=None):
        return torch.cuda.max_memory_allocated(device) + self.of_replay, torch.cuda.max_memory_reserved(device)

    def _count_to_warm_up(self, device=None):
        peaks = self.now(device)
        self.of_warm_up = tuple(map(max, peaks, self.of_warm_up or peaks))  # of two, where there are two loaders


peaks = Peaks()  # of this process: it has one device
