"""Says in one line of JSON which versions are here. Imports none of the packages: that takes seconds, and a GPU's memory."""

import importlib.metadata
import importlib.util
import json
import pathlib
import platform
import re
import sys


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def torch_cuda(torch):
    """The CUDA that torch is built for, `13.0`; None for a build that has none."""
    for place in places():
        # Every build writes it down, also those that came with a container or from conda.
        written = re.search(r"^cuda\b[^=\n]*=\s*(?:None|['\"](\d+\.\d+))", text(place / "version.py"), re.M)
        if written:
            return written[1]
    local = re.search(r"\+cu(\d+)(\d)\b", torch)
    if local or "+cpu" in torch:
        return local and "{}.{}".format(*local.groups())
    for need in importlib.metadata.requires("torch") or []:
        named = re.match(r"(?:nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit)\s*(?:\[[^\]]*\])?\s*\(?==\s*(\d+\.\d+)", need)
        if named and ("platform_machine" not in need or platform.machine() in need):
            return named[1]
    return None


def places():
    yield pathlib.Path(importlib.metadata.distribution("torch").locate_file("torch"))
    found = importlib.util.find_spec("torch")
    if found and found.origin:
        yield pathlib.Path(found.origin).parent


def text(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


facts = {name: version(name) for name in ("torch", "torchvision", "timm", "numpy")}
facts["python"] = ".".join(map(str, sys.version_info[:3]))
if facts["torch"]:
    facts["torch_cuda"] = torch_cuda(facts["torch"])
print(json.dumps({name: value for name, value in facts.items() if value}))
