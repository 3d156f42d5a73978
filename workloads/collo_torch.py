"""What the training scripts share on top of torch: common settings, device, data loader, step and what a member tells.

Functions only: the script keeps its model, its loop and its order of events. Knows no model and no data set. Every
setting is checked and, where torch can tell, read back: what cannot be had as asked is an error, never something else.
"""

import argparse
import math
import os

import torch

import collo
import collo_compiler
from collo import SettingError
from collo_features import tell_features  # noqa: F401  (scripts take it from here)
from collo_loader import PINNING, batches_left, loader, on, pins  # noqa: F401  (and these)
from collo_peaks import peaks

if collo.describing():
    import collo_eager

    collo_eager.begin()  # before models are imported, which import the compiler

# `torch` is what it does unasked: TF32 in convolutions, fp32 in matrix products (its notes on CUDA semantics).
PRECISIONS = {"fp32": None, "tf32": None, "torch": None, "bf16": torch.bfloat16, "fp16": torch.float16}
READ_LOSS = ("epoch", "step")
ZERO_GRAD = ("after-forward", "before-forward")  # the first is that of scripts that do not have the setting
REGIME = ("precision", "read_loss", "workers", "keep_cache", "learning_rate")  # of every script, for the hello
ALLOCATORS = ("native", "cudaMallocAsync")
WARM_UP_BATCHES = 3


def flag(text):
    """A setting that is `true` or `false`."""
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"`{text}` is neither true nor false")
    return text == "true"


def batches_or_share(text):
    """`limit_batches`: a number of batches, or a share of the epoch, as Lightning's `limit_train_batches` is either."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def add_settings(parser, batch_size, learning_rate):
    """The settings that every training script has, with this script's defaults."""
    add = parser.add_argument
    add("--epochs", type=int, default=2, help="when run by hand")
    add("--batch-size", type=int, default=batch_size)
    add("--learning-rate", type=float, default=learning_rate)
    cut = "end an epoch after so many batches, or below 1 after that share of them; 0 for all"
    add("--limit-batches", type=batches_or_share, default=0, help=cut)
    add("--workers", type=int, default=0, help="data-loader processes; with 0 the training process loads")
    add("--pin-memory", default="auto", help="load into page-locked memory: true, false, or auto, on a GPU alone")
    add("--precision", default="fp32", help="fp32, tf32 (GPU), torch: its default; or mixed precision in bf16 or fp16")
    add("--read-loss", default="epoch", help="epoch: the host runs ahead of the GPU; step: it waits for each loss")
    add("--compile", type=flag, default=False, help="torch.compile")
    add("--cuda-graphs", type=flag, default=False, help="capture the training step once, then replay it (GPU)")
    add("--allocator", default="native", help="the GPU's: native or cudaMallocAsync; asserted, see `allocator` below")
    add("--tune", type=flag, default=True, help="have cuDNN try its algorithms in the warm-up (GPU)")
    add("--keep-cache", type=flag, default=False, help="keep what the warm-up alone has needed, as timm does (GPU)")
    add("--seed", type=int, default=1)


def set_up(settings):
    """Check the common settings, put them in force, and return the device."""
    device = given_device()
    check_settings(settings, device)
    if collo.describing():
        import collo_describe

        collo_describe.begin(settings)
    if settings.compile:
        collo_compiler.set_up(device)
    torch.set_num_threads(collo.threads())
    torch.set_num_interop_threads(1)
    torch.manual_seed(settings.seed)
    allow_tf32(settings.precision)
    torch.backends.cudnn.benchmark = settings.tune  # in the warm-up, which members do one at a time
    peaks.keep_cache = settings.keep_cache
    return device


def describe_by_library():
    """Where a library has the loop: it sees no GPU while it is described, and knows that it can be."""
    if collo.describing():
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        collo.expect_description()


def allow_tf32(precision):
    """TF32 where the precision has it. torch lets convolutions use it unless told otherwise: then fp32 were not fp32."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision in ("tf32", "torch")


def given_device():
    """The GPU that this process was given, else the CPU.

    torch goes on without CUDA where it cannot be initialised (no fabric manager, driver and library that differ, no
    device files) and trains on the CPU, for hours perhaps. Whoever was given a GPU is not to do that.
    """
    if collo.describing():  # without a GPU even where there is one, so that descriptions do not depend on the machine
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if given in ("", "-1", "NoDevFiles"):  # nothing is given; the last is Slurm's word for it
        return torch.device("cpu")
    try:
        torch.cuda.init()
        reason = "torch sees no GPU"
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
    raise SettingError(
        f"`CUDA_VISIBLE_DEVICES` gives this process {given}, and CUDA cannot be used: {reason}; "
        "`nvidia-smi` and `collo doctor` look at the driver, an empty `CUDA_VISIBLE_DEVICES` means the CPU"
    )


def check_settings(settings, device):
    at_least("batch_size", settings.batch_size, 1)
    limit = settings.limit_batches
    at_least("limit_batches", limit, 0, "0 for the whole epoch")
    if isinstance(limit, float) and not 0 < limit < 1:
        share = "a share of the epoch lies between 0 and 1, a number of batches is whole, 0 is the whole epoch"
        raise SettingError(f"`limit_batches` is {limit}: {share}")
    at_least("workers", settings.workers, 0, "0 to load in the training process")
    if settings.workers > 256:
        raise SettingError(f"`workers` is {settings.workers}: more than 256 data-loader processes a member are a slip")
    if not 0 <= settings.seed < 2**63:
        raise SettingError(f"`seed` is {settings.seed}: it is a whole number from 0 to 2^63 - 1")
    if not (math.isfinite(settings.learning_rate) and settings.learning_rate > 0):
        raise SettingError(f"`learning_rate` is {settings.learning_rate}: it is greater than 0")
    one_of("precision", settings.precision, PRECISIONS)
    one_of("read_loss", settings.read_loss, READ_LOSS)
    one_of("zero_grad", getattr(settings, "zero_grad", ZERO_GRAD[0]), ZERO_GRAD)
    one_of("allocator", settings.allocator, ALLOCATORS)
    one_of("pin_memory", settings.pin_memory, PINNING)
    if collo.describing():
        pass  # it is described as on a GPU
    elif device.type == "cpu":
        only_gpu = {"precision": "tf32", "cuda_graphs": True, "pin_memory": "true", "allocator": "cudaMallocAsync"}
        for name, value in only_gpu.items():
            if getattr(settings, name) == value:
                raise SettingError(f"`{name}` cannot be {shown(value)} on a CPU: it is a property of NVIDIA GPUs")
    elif allocator() != settings.allocator:
        set_it = f"set PYTORCH_CUDA_ALLOC_CONF=backend:{settings.allocator} before Python starts"
        raise SettingError(f"the allocator is `{allocator()}`, not `{settings.allocator}` as asked: {set_it}")
    if settings.cuda_graphs and settings.precision == "fp16":
        why = "its loss scaling looks at each step"
        raise SettingError(f"`cuda_graphs` cannot be true with `precision` fp16, {why}: take bf16")


def at_least(name, value, least, remark=""):
    if value < least:
        raise SettingError(f"`{name}` is {value}: it is {least} or more" + (f", {remark}" if remark else ""))


def one_of(name, value, known):
    if value not in known:
        raise SettingError(f"`{name}` is `{value}`: it is one of {', '.join(known)}")


def shown(value):
    return str(value).lower() if isinstance(value, bool) else f"`{value}`"


def allocator():
    """The GPU allocator in force. It is chosen by the environment when torch is loaded, so it can only be read here."""
    return torch.cuda.get_allocator_backend()


# --- the step ---


def training_step(loss_of, model, optimiser, settings):
    """One step as a function of a batch: forward, backward, update. It returns the detached mean loss of the batch.

    `loss_of(*batch)` runs the model; precision, loss scaling, compilation and CUDA graphs are added here.
    """
    if collo.describing():
        import collo_describe

        collo_describe.learn(model=model, optimiser=optimiser)
    device_type = next(model.parameters()).device.type
    low_precision = PRECISIONS[settings.precision]
    scaler = torch.amp.GradScaler(device_type, enabled=settings.precision == "fp16")
    if settings.compile:
        loss_of = torch.compile(loss_of)

    before = getattr(settings, "zero_grad", ZERO_GRAD[0]) == "before-forward"

    def step(*batch):
        if before:
            optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device_type, low_precision, enabled=low_precision is not None):
            loss = loss_of(*batch)
        if not before:
            optimiser.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        return loss.detach()

    if settings.cuda_graphs:
        # Gradients of the step before lie outside the graph's memory, and would be allocated twice during the capture.
        step = graphed(step, before_capture=lambda: optimiser.zero_grad(set_to_none=True))
    return read_each(step) if settings.read_loss == "step" else step


def read_each(step):
    """The step, and then its loss as a number, as timm's script and many others do it: the host waits for the GPU.

    Between two steps a GPU then idles for as long as the host needs to start the next one, which neighbours can use.
    """

    def and_read(*batch):
        loss = step(*batch)
        loss.item()
        return loss

    return and_read


def graphed(step, before_capture=lambda: None):
    """The step as a CUDA graph: the first ones as they are, the next one captured, which is replayed ever after.

    Every call is one step on its batch, so that a model learns the same with a graph and without one.
    """
    graph, aside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    inputs, loss, plain = None, None, WARM_UP_BATCHES - 1  # so that the capture is the end of the warm-up

    def replay(*batch):
        nonlocal inputs, loss, plain
        if inputs is None:
            inputs = tuple(tensor.clone() for tensor in batch)
        for kept, new in zip(inputs, batch):
            kept.copy_(new)
        if plain:  # what is tuned and allocated at first must not be captured
            plain -= 1
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                first = step(*inputs)
            torch.cuda.current_stream().wait_stream(aside)
            return first
        if loss is None:
            # In torch's own mode, `global`, the thread that page-locks batches could end the capture by an allocation
            # (pytorch/pytorch#175425).
            before_capture()
            try:
                with peaks.of_a_capture(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    loss = step(*inputs)
            except RuntimeError as error:
                # The end of a capture that has failed says only that it has; what was in it says why.
                raise (error.__context__ if isinstance(error.__context__, torch.OutOfMemoryError) else error) from None
        graph.replay()
        return loss.clone()  # the next replay writes over it

    return replay


def warm_up(step, loader, device, batches=WARM_UP_BATCHES):
    """A few steps that nobody measures: context, tuning, compilation, the workers' start. Waits for the GPU.

    What the workers load beyond them is the beginning of the first epoch.
    """
    if collo.describing():
        import collo_describe

        collo_describe.leave_described(step, loader)
    for batch in on(device, loader.first(batches)):
        step(*batch).item()
    peaks.end_warm_up(device)


# --- what a member tells ---


def gpu(device):
    return torch.cuda.get_device_properties(device) if device.type == "cuda" else None


def as_seen(device):
    """What a hello says of the device, as CUDA shows it.

    CUDA gives the digits of a UUID alone. Inside a MIG instance they are the instance's, and the prefix `GPU-` stands
    there all the same: nothing here tells the two apart, and collo compares the digits. Where the digits are those of the
    whole card, `sm_count` tells, which is always that of the part that the member computes on.
    """
    seen = gpu(device)
    return {
        "device": f"GPU-{seen.uuid}" if seen else "cpu",
        "sm_count": seen.multi_processor_count if seen else None,
        "memory_bytes": seen.total_memory if seen else None,
    }


def say_hello(member, settings, device, name, model, data=None, **more):
    """The hello of a training script: the device as CUDA shows it, and what is in force; `more` is added as it is.

    In a `regime` of its own stands what figures are only comparable under; a script adds to it what it has beyond this.
    """
    if collo.describing():
        import collo_describe

        collo_describe.learn(generated=more.get("generated"))
    regime = {name: getattr(settings, name) for name in REGIME}
    regime = {"recipe": getattr(settings, "recipe", None), **regime, **more.pop("regime", {})}
    member.hello(
        **as_seen(device),
        threads=torch.get_num_threads(),
        model=(name, sum(parameter.numel() for parameter in model.parameters())),
        dataset=data.describe() if data is not None else None,
        **{"limit_batches": limit_in_force(settings, data), **more},
        regime=regime,
        precision=settings.precision,
        allocator=allocator() if device.type == "cuda" else None,
        pin_memory=pins(settings),
        tune=settings.tune if device.type == "cuda" else None,
        keep_cache=settings.keep_cache if device.type == "cuda" else None,
    )


def limit_in_force(settings, data):
    """How many batches an epoch is cut to; None when it is whole, also because the limit lies beyond its end.

    A share is told as the number in force. Without a data set nobody knows what it is a share of.
    """
    if data is None:
        return int(settings.limit_batches) or None
    whole = len(data) // settings.batch_size
    count = batches_left(settings.limit_batches, whole)
    return count if count < whole else None


def tell_memory(member, device):
    """The allocator's own peaks, of the training and of the warm-up; a CPU has none to tell."""
    peaks.tell(member, device)


def tell_memory_of(epoch, member, device):
    """The same where a library has the loop: its first epoch is the warm-up, unless it is the only one."""
    if collo.hosted():
        return  # the peaks are those of all, who train by now
    if epoch.index == 0 and not epoch.measured:
        peaks.keep_cache = True  # the script's own affair
        peaks.end_warm_up(device)
    else:
        peaks.tell(member, device)
