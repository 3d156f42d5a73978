"""How much memory the device has, and what cannot fit it. A torch device goes in, bytes or a SettingError come out.

Only what could never fit is refused here. What fits alone and not beside others is a finding: it may run out of memory.
"""

import os
import re

import torch

import collo
from collo import SettingError

CONTAINER_LIMIT = "/sys/fs/cgroup/memory.max"
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def check_fits(needed_bytes, device, what, way_out):
    """`what` takes at least `needed_bytes` on the device, for example "the matrices take"."""
    there = float("inf") if collo.describing() else memory_bytes(device)
    if needed_bytes > there:
        where = "GPU" if device.type == "cuda" else "machine"
        raise SettingError(f"{what} {shown(needed_bytes)}, the {where} has {shown(there)}: {way_out}")


def memory_bytes(device):
    """All of the GPU's as CUDA shows it, of a MIG instance its own; or all that this machine lets us have."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), container_limit_bytes())


def container_limit_bytes(path=CONTAINER_LIMIT):
    try:
        with open(path) as limit:
            return float(limit.read().replace("max", "inf"))
    except (OSError, ValueError):
        return float("inf")


def bytes_of(text):
    """Of `8GB`, 8 × 10⁹; of `8GiB`, 8 × 2³⁰. None if it is no size."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?(|[kMGT]|[KMGT]i)B", text)
    return round(float(match[1]) * UNITS[match[2]]) if match else None


def shown(size_bytes):
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.4g} {name}"
    return f"{size_bytes / 1e3:.4g} kB"
