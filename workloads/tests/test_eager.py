"""torch without its compiler: nothing of it is loaded to describe, and whoever wants it has it."""

import os
import subprocess
import sys

from harness import WORKLOADS

PROGRAM = """
import sys, torch, collo_describe
described = collo_describe.describe_model("torchvision:squeezenet1_1", (3, 64, 64), 10, "adam")
assert described["approximate"] == [] and described["parameters"] == 727626, described["parameters"]
heavy = {"torch._dynamo.symbolic_convert", "torch._inductor", "torch.distributed.fsdp"} & set(sys.modules)
assert not heavy, heavy

stand = torch._dynamo
from torch._dynamo.exc import Unsupported  # loads the real one
assert torch._dynamo is not stand and torch._dynamo is sys.modules["torch._dynamo"]
assert stand.explain is torch._dynamo.explain and torch._dynamo.exc.Unsupported is Unsupported
assert torch._dynamo.config is sys.modules["torch._dynamo.config"]
assert torch._dynamo.exc.__spec__.origin.endswith("exc.py")
assert torch.compile(lambda x: x + 1, backend="eager", dynamic=True)(torch.ones(3)).sum() == 6
"""


def test_to_describe_loads_no_compiler_and_whoever_wants_it_has_it():
    paths = os.pathsep.join([str(WORKLOADS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    ended = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
