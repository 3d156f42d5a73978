"""A member's training step described instead of run: what it allocates and computes, for any batch size, without a GPU.

With COLLO_DESCRIBE=1 a training script describes itself when it comes to its warm-up, writes JSON to the path in
COLLO_DESCRIPTION, and leaves: see `begin` and `leave_described`, which `collo_torch` calls. Models without a script:

    python -m collo_describe --model timm:resnet50 --input 3x224x224 --classes 1000 --optimizer adam --to FILE

Weights are never drawn and data never read. One description serves every batch size: the step is traced with a prime
number of items, and what is divisible by it grows with the batch. Whatever cannot be described says why, and how.
"""

import argparse
import contextlib
import gc
import json
import os
import pathlib
import signal
import sys
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.optim import optimizer as optimisers
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

import collo
import collo_eager
from collo import SettingError
from collo_as_gpu import as_on_a_gpu
from collo_classifiers import build, made_for, maker
from collo_description import summary, upper_envelope
from collo_features import Seen, layers_of
from collo_torch import PRECISIONS
from collo_trace import BUFFERS, INPUT, TEMPORARY, LiveTensors, Trace

PRIMES = (13, 17, 19, 23, 29)  # the first that divides no size of the model and of an item
LIMIT_S = 120  # the largest model of the catalogue takes 11 s of a core
OPTIMISERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.01, momentum=0.9),
}


class Describing:
    """From `begin` to `end` fake tensors take the place of all others, and everything torch does is seen."""

    def __init__(self, limit_s=LIMIT_S):
        self.stack, self.limit_s = contextlib.ExitStack(), limit_s
        self.approximate, self.precision = [], "fp32"
        self.model = self.optimiser = self.example = self.generated = None

    def begin(self):
        collo_eager.begin()
        self.stack.enter_context(in_time(self.limit_s))
        self.fake = self.stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        self.stack.enter_context(as_on_a_gpu())
        self.trace = self.stack.enter_context(Trace(PRIMES[0]))
        return self

    def end(self):
        self.stack.close()

    def __enter__(self):
        return self.begin()

    def __exit__(self, *_):
        self.end()

    def described(self, step, item, ahead=True):
        """The description of `step(*batch)`, traced twice: what the first one leaves is there in the second.

        `item` has tensors of a batch of one. With `ahead` the next batch is there while one is computed on, as
        collo_loader copies it.
        """
        trace, model = self.trace, self.model
        trace.setting_up = False
        if trace.reads:
            self.approximate.append(f"the set-up reads a value back {trace.reads} times: the model may be a guess")
        batch = trace.batch = prime_for(model, item)
        trace.forget_what_is_gone()
        fake_tensor = self.fake_tensor_peak(batch)
        of_gradients = trace.learn(model)
        trace.kinds = [BUFFERS if kind == TEMPORARY else kind for kind in trace.kinds]
        ends, seen, coming, trace.reads = [len(trace.events)], Seen(), [], 0
        of_layers, of_optimiser = watched(model, seen), watched_optimisers(trace)
        if ahead:
            coming.append(self.batch_of(item, batch))
        told = current = None
        for counting in (False, True):
            coming.append(self.batch_of(item, batch))
            current = coming.pop(0)
            trace.begin_step(counting)
            with contextlib.nullcontext() if counting else seen:
                told = step(*current)
            trace.learn_state_of(self.optimiser)
            ends.append(len(trace.events))
            remove(of_layers)
        remove(of_gradients + of_optimiser)
        if trace.reads:
            self.approximate.append(f"the step reads a value back {trace.reads} times: what depends on it is a guess")
        if any(isinstance(module, torch.nn.RNNBase) for module in model.modules()):
            self.approximate.append("recurrent layers are traced word by word, cuDNN computes them in one piece")
        sequence = [(name, values / batch, parameters) for name, values, parameters in seen.sequence]
        del told, current, coming
        more = {"approximate": self.approximate, "precision": self.precision, "fake_tensor": fake_tensor}
        described = summary(trace, ends, model, self.optimiser, sequence, **more)
        return {**described, "generated": self.generated} if self.generated else described

    def batch_of(self, item, batch):
        made = tuple(torch.empty((batch, *part.shape[1:]), dtype=part.dtype) for part in item)
        for tensor in made:
            self.trace.see(tensor, INPUT)
        return made

    def fake_tensor_peak(self, batch):
        """What the FakeTensor estimator of the literature would see: a forward pass, and the way back from its sum.

        In fp32, without loss and optimiser, but with a gradient of the input: itu-rad/CARMA, `workloads/resnet50.py`,
        `fn`. Empty where the model does not put out one tensor, which that estimator cannot do either, or where nothing
        says what the model takes.
        """
        if self.example is None:
            return []
        self.trace.__exit__(None, None, None)
        try:
            with LiveTensors(batch) as seen:
                seen.parameter_sizes = {parameter.numel() for parameter in self.model.parameters()}
                inputs = [torch.empty((batch, *part.shape[1:]), dtype=part.dtype) for part in self.example]
                for index, tensor in enumerate(inputs):
                    if tensor.is_floating_point():  # a leaf on the host, and its copy
                        inputs[index] = tensor.requires_grad_().clone()
                tensor = None
                self.model(*inputs).sum().backward()
            lines = upper_envelope(seen.lines)
        except Exception:
            lines = []
        inputs = tensor = seen = None
        self.model.zero_grad(set_to_none=True)
        self.trace.__enter__()
        return lines


def watched(model, seen):
    """Hooks by which the layers are seen in the order of the forward pass."""
    hooks = [layer.register_forward_pre_hook(seen.enter) for layer in layers_of(model)]
    return hooks + [layer.register_forward_hook(seen.leave) for layer in layers_of(model)]


def watched_optimisers(trace):
    """Hooks by which the trace knows what an optimiser does: it reads how many steps it has made."""

    def set_in_optimiser(value):
        return lambda *_: setattr(trace, "in_optimiser", value)

    before, after = optimisers.register_optimizer_step_pre_hook, optimisers.register_optimizer_step_post_hook
    return [before(set_in_optimiser(True)), after(set_in_optimiser(False))]


def remove(hooks):
    for hook in hooks:
        hook.remove()


def prime_for(model, item):
    sizes = {size for tensor in (*model.parameters(), *model.buffers()) for size in tensor.shape}
    sizes |= {size for part in item for size in part.shape[1:]}
    return next((prime for prime in PRIMES if all(size % prime for size in sizes)), PRIMES[0])


@contextlib.contextmanager
def in_time(limit_s):
    """Whoever does not come to the step in time says where it is instead."""

    def too_late(_, frame):
        place = frame.f_code
        where = f"`{place.co_name}` ({pathlib.Path(place.co_filename).name}, line {frame.f_lineno})"
        way_out = "a loop that ends when numbers are small enough never does without numbers; leave such a model out"
        raise SettingError(f"no step was described within {limit_s:g} s, it was in {where}: {way_out}")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    gc.disable()  # what lies in a circle would be freed at an accidental moment
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


OURS = ("collo_as_gpu.py", "collo_describe.py", "collo_features.py", "collo_trace.py")  # through which a step goes


def cannot(error):
    """Why a step cannot be described, in a line."""
    frames = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if "/torch/" not in frame.filename and not frame.filename.endswith(OURS)]
    where = f" ({pathlib.Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    kind, said = type(error).__name__, (str(error).strip().splitlines() or [""])[0]
    if kind in ("DynamicOutputShapeException", "DataDependentOutputException", "UnsupportedOperatorException"):
        said = f"what it computes depends on the numbers in its tensors ({said})"
    else:
        said = f"on tensors that have no numbers it fails, {kind}{said and f': {said}'}"
    return SettingError(f"this training step cannot be described: {said}{where}")


# --- a script that describes itself ---

describing = Describing()  # of this process


def begin(settings):
    """From here on no tensor of this script has numbers. What its memory would depend on beyond the step is noted."""
    collo.expect_description()
    describing.precision = getattr(settings, "precision", "fp32")
    settings.read_loss = "epoch"  # reading a loss after a step needs no memory
    settings.workers = 0  # nothing is loaded
    if settings.compile:
        settings.compile = False
        describing.approximate.append("torch.compile joins kernels, so that less is kept than described here")
    if settings.cuda_graphs:
        settings.cuda_graphs = False
        describing.approximate.append("a CUDA graph keeps memory of its own")
    if settings.allocator != "native":
        describing.approximate.append(f"the allocator {settings.allocator} reserves otherwise than torch's own")
    describing.begin()


def learn(model=None, optimiser=None, example=None, generated=None):
    """What the script says of itself on its way: each is kept once it is known."""
    for name, value in (("model", model), ("optimiser", optimiser), ("example", example), ("generated", generated)):
        if value is not None:
            setattr(describing, name, value)


def leave_described(step, loader):
    """Write the description of the step to where COLLO_DESCRIPTION says, and leave."""
    with _disable_current_modes():
        item = loader.collate_fn(loader.dataset.__getitems__([0]))
    leave(step, item)


def leave_described_by_library(model, optimiser, batch, precision, step_of):
    """The same where a library has made model, optimiser and a batch before it says so: they are made fake here.

    `step_of(batch)` is the library's step. Of the batch those tensors grow that have as many items as its first one.
    """
    leaves, form = tree_flatten(batch)
    items = next((len(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.ndim), None)
    growing = [
        place
        for place, leaf in enumerate(leaves)
        if isinstance(leaf, torch.Tensor) and leaf.ndim and len(leaf) == items
    ]
    if not growing:
        raise SettingError("this training step cannot be described: its batches have no tensor, so nothing to count in")
    describing.precision = precision
    describing.model, describing.optimiser = model, optimiser
    item = [leaves[place][:1] for place in growing]
    describing.begin()
    with _disable_current_modes():
        made_fake(describing.fake, model, optimiser)

    def step(*tensors):
        given = list(leaves)
        for place, tensor in zip(growing, tensors):
            given[place] = tensor
        return step_of(tree_unflatten(given, form))

    leave(step, item, ahead=False)


def made_fake(fake, model, optimiser):
    """The weights of a model that is there already, for the model and for its optimiser."""
    twins = {}  # by the identity of the weight: one may be in two modules
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is not None and id(weight) not in twins:
                twins[id(weight)] = torch.nn.Parameter(fake.from_tensor(weight.detach()), weight.requires_grad)
            module._parameters[name] = None if weight is None else twins[id(weight)]
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else fake.from_tensor(buffer)
    for group in optimiser.param_groups:
        group["params"] = [twins.get(id(weight), weight) for weight in group["params"]]


def leave(step, item, ahead=True):
    try:
        description = describing.described(step, item, ahead)
    except SettingError:
        raise
    except Exception as error:
        raise cannot(error) from error
    finally:
        describing.end()
    write(description, os.environ.get("COLLO_DESCRIPTION"))
    sys.stdout.flush()
    os._exit(0)  # taking apart an interpreter with torch in it lasts half a second


def write(description, path):
    text = json.dumps(description, separators=(",", ":"), allow_nan=False) + "\n"
    if not path:
        sys.stdout.write(text)
        return
    aside = f"{path}.part"
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(aside, path)


# --- a model without a script ---


def describe_model(name, shape, classes, optimiser, precision="fp32", limit_s=LIMIT_S):
    """A classifier of timm or torchvision by its name, trained on batches of fp32 values by cross-entropy."""
    collo_eager.begin()
    make = maker(name, classes)
    with Describing(limit_s) as describing:
        describing.precision = precision
        describing.model = model = build(name, make)
        shape = shape or made_for(name)
        if shape is None:
            raise SettingError(f"the library of `{name}` has no shape of its items: give one, as 3x224x224")
        describing.optimiser = update = OPTIMISERS[optimiser](model.parameters())
        with _disable_current_modes():
            item = torch.zeros(1, *shape), torch.zeros(1, dtype=torch.int64)
        describing.example = item[:1]

        def step(images, labels):
            update.zero_grad(set_to_none=True)
            with torch.autocast("cpu", PRECISIONS[precision], enabled=PRECISIONS[precision] is not None):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            update.step()
            return loss.detach()

        try:
            return describing.described(step, item, ahead=False)
        except SettingError:
            raise
        except Exception as error:
            fitting = made_for(name)
            hint = f"; this model was made for {'x'.join(map(str, fitting))}" if fitting not in (None, shape) else ""
            raise SettingError(f"{cannot(error)}{hint}") from error


def shape(text):
    try:
        sizes = tuple(int(size) for size in text.split("x"))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no shape of an item: write it as 3x224x224")
    return sizes


def main(words=None):
    parser = argparse.ArgumentParser(prog="collo_describe", description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, metavar="LIBRARY:NAME", help="timm:resnet50, torchvision:vgg16 …")
    parser.add_argument("--input", type=shape, metavar="SHAPE", help="of an item: 3x224x224; else the library's own")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--optimizer", default="adam", choices=OPTIMISERS)
    parser.add_argument("--precision", default="fp32", choices=PRECISIONS)
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="give up after so many seconds")
    parser.add_argument("--to", metavar="FILE", help="else to standard output")
    asked = parser.parse_args(words)
    try:
        described = describe_model(
            asked.model, asked.input, asked.classes, asked.optimizer, asked.precision, asked.limit_s
        )
    except SettingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write(described, asked.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
