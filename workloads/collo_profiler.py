"""torch's profiler around a measured epoch, as `observe = "torch-profiler"` asks. Its trace is written where collo measures it.

Starting, stopping and writing count towards the epoch: whoever profiles every epoch waits for them.
"""

import os
import sys

from collo import SettingError

VARIABLE = "COLLO_TORCH_PROFILER"  # the folder for the traces; set by `observers/torch-profiler.toml`


class ProfiledEpoch:
    """The profiler of one epoch, running since it was made."""

    def __init__(self, folder, index):
        torch = sys.modules.get("torch")
        if torch is None:
            raise SettingError("`torch-profiler` watches scripts that train with torch, and this one does not import it")
        from torch.profiler import ProfilerActivity, profile

        self.path = os.path.join(folder, f"epoch-{index}.json")
        os.makedirs(folder, exist_ok=True)
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            activities.append(ProfilerActivity.CUDA)
        self.profile = profile(activities=activities)
        self.profile.start()

    def end(self):
        self.profile.stop()
        self.profile.export_chrome_trace(self.path)


def begin(index):
    """The profiler of this epoch; None where nobody asked for one."""
    folder = os.environ.get(VARIABLE)
    return ProfiledEpoch(folder, index) if folder else None
