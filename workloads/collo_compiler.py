"""What torch.compile needs of the machine besides torch. A device goes in."""

import os
import shutil


def compiler(device):
    """The compiler that torch.compile will call, of C++ on a CPU, of C for Triton on a GPU. None if it is not there."""
    if device.type == "cpu":
        return shutil.which((os.environ.get("CXX") or "g++").split()[0])
    return os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
