"""What torch.compile needs of the machine besides torch: compilers and Python's headers. A device goes in.

Needs are looked for as Inductor and Triton look for them, so that a member does not end in the middle of its warm-up:

- Inductor compiles with the C++ compiler in CXX, else `g++`, on a GPU for what stays on the CPU. CXX may have arguments
  (torch/_inductor/config.py, `cpp.cxx`; cpp_builder.py, `cpp_compiler_search`). What it compiles includes Python.h.
- Triton compiles a stub of C for each kernel that it launches, with CC, else `gcc` or `clang`. It runs CC as one word,
  so arguments are not understood. The stub includes Python.h too, from the place that sysconfig names
  (triton/runtime/build.py, `_find_compiler` and `_build`).
"""

import os
import shlex
import shutil
import sysconfig

from collo import SettingError

PROCESSES = 4  # that compile, per member, whose load they are; Inductor by itself takes as many as cores, up to 32


def set_up(device):
    """Check that it can compile, and limit what it starts for that. To be called before anything is compiled."""
    check(device)
    if "TORCHINDUCTOR_COMPILE_THREADS" not in os.environ:  # `decide_compile_threads` of torch/_inductor/config.py
        import torch._inductor.config as inductor  # takes a second

        inductor.compile_threads = min(PROCESSES, inductor.compile_threads)


def check(device):
    """Raise a SettingError for the first thing that is missing."""
    if not cxx_compiler():
        raise refused("a C++ compiler", "install `g++` or name one in CXX")
    if device.type == "cuda":
        cc = os.environ.get("CC")
        if cc and len(shlex.split(cc)) > 1 and not shutil.which(cc):
            way_out = "name the compiler alone, or a script that adds the rest"
            raise refused("CC to be one word, as Triton runs it", f"it is `{cc}`: {way_out}")
        if not c_compiler():
            raise refused("a C compiler", "install `gcc` or name one in CC")
    if not os.path.exists(python_header()):
        way_out = "install the headers of this Python (`python3-dev` or `python3-devel`)"
        raise refused(f"Python.h, and `{python_header()}` is missing", way_out)


def refused(what, way_out):
    return SettingError(f"`compile` needs {what}: {way_out}, or leave `compile` out")


def cxx_compiler():
    words = shlex.split(os.environ.get("CXX") or "g++")
    return shutil.which(words[0])


def c_compiler():
    named = os.environ.get("CC")
    return shutil.which(named) if named else shutil.which("gcc") or shutil.which("clang")


def python_header():
    scheme = sysconfig.get_default_scheme()
    scheme = "posix_prefix" if scheme == "posix_local" else scheme  # Debian's, whose headers are not under /usr/local
    return os.path.join(sysconfig.get_path("include", scheme), "Python.h")
