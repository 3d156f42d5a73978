"""A kernel of the study's shape, compiled at run time: blocks × threads, each thread squares one item.

The CUDA text goes to NVRTC, the compiler that comes with torch, and the machine code to the driver; neither needs an
installed toolkit. (torch's own `torch.cuda._compile_kernel` does: it asks for CUDA_HOME.) A launch has exactly these
blocks and threads and is one call into the driver.
"""

import ctypes
import sys

NAME = b"square"
SOURCE = b"""
extern "C" __global__ void square(const float *items, float *squares) {
    size_t item = INDEX;
    squares[item] = items[item] * items[item];
}
"""
INDEX = {
    True: b"threadIdx.x",  # each block squares the same items, which the caches hold: the study's kernel
    False: b"(size_t) blockIdx.x * blockDim.x + threadIdx.x",
}


def compiled(major, minor, cuda, shared_items=True):
    """Machine code for GPUs of compute capability `major.minor`, by the NVRTC of CUDA `cuda`, such as `13.0`."""
    nvrtc = library("NVRTC", f"libnvrtc.so.{str(cuda).split('.')[0]}", "libnvrtc.so")

    def check(status):
        if status:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"NVRTC: {nvrtc.nvrtcGetErrorString(status).decode()}")

    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = SOURCE.replace(b"INDEX", INDEX[shared_items])
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, NAME, 0, None, None))
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{major}{minor}".encode())
    try:
        check(nvrtc.nvrtcCompileProgram(program, len(options), options))
        check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetCUBIN(program, code))
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def loaded(code, blocks, threads, items, squares, stream):
    """A function without arguments that launches the kernel once. `items` and `squares` are addresses on the GPU.

    CUDA has to be initialised in this thread: torch does that with the first tensor.
    """
    driver = library("the CUDA driver", "libcuda.so.1")
    launch = driver.cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    driver.cuModuleGetFunction.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]

    def check(status):
        if status:
            text = ctypes.c_char_p()
            driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"CUDA: {(text.value or b'unknown error').decode()}")

    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuModuleLoadData(ctypes.byref(module), code))
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, NAME))
    addresses = ctypes.c_void_p(items), ctypes.c_void_p(squares)
    arguments = (ctypes.c_void_p * 2)(*map(ctypes.addressof, addresses))

    def launch_once(kept=(code, addresses)):  # what C has the addresses of must not be collected
        status = launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, None)
        if status:
            check(status)

    return launch_once


def library(name, *files):
    if not sys.platform.startswith("linux"):
        raise OSError(f"{name} is only looked for on Linux")
    for file in files:
        try:
            return ctypes.CDLL(file)
        except OSError:
            pass
    raise OSError(f"{name} is not there: no `{files[0]}`")
