"""One model on all GPUs that the member was given: `torch.nn.DataParallel`, as the study's tasks of two GPUs train.

A learner goes in, and out comes what is called like it. Each GPU has a batch of `batch_size` of its own; the first has the
optimiser's state besides, and what the model puts out on all of them, which is why it holds the most memory.
"""

import torch

import collo_torch
from collo import SettingError

WAYS = ("auto", "off")


def cards(settings, device):
    """How many GPUs each step is spread to: all that the process sees; on a CPU one device, as ever."""
    collo_torch.one_of("data_parallel", settings.data_parallel, WAYS)
    if settings.data_parallel == "off" or device.type != "cuda":
        return 1
    count = torch.cuda.device_count()
    for name in ("compile", "cuda_graphs"):
        if count > 1 and getattr(settings, name):
            way_out = "set `data_parallel` to off, or give the member one"
            raise SettingError(f"`{name}` cannot be true on {count} GPUs, to which each step is spread: {way_out}")
    return count


class InPrecision(torch.nn.Module):
    """Runs a learner in mixed precision, in whatever thread. The threads of DataParallel enable autocast without its type
    (torch/nn/parallel/parallel_apply.py), so that they would compute in fp16.
    """

    def __init__(self, learner, low_precision):
        super().__init__()
        self.learner, self.low_precision = learner, low_precision

    def forward(self, *batch):
        with torch.autocast(batch[0].device.type, self.low_precision, enabled=self.low_precision is not None):
            return self.learner(*batch)


class Parallel:
    """The mean loss over the GPUs; `spread` takes a module and is called as it is."""

    def __init__(self, learner, spread=torch.nn.DataParallel, low_precision=None):
        learner.gathers = True
        self.learner, self.spread = learner, spread(InPrecision(learner, low_precision))

    def __call__(self, *batch):
        gathered = self.spread(*batch)
        if self.learner.keeps_outputs:
            self.learner.outputs = gathered
        return gathered["loss"].mean()
