"""A step that is traced without a GPU chooses as it would on one: a table of what torch does otherwise there.

Nothing goes in. Inside `as_on_a_gpu()` fake CPU tensors take the ways of CUDA tensors: the same kernels, and so the
same memory. Each entry of `SUBSTITUTIONS` names the line of torch that decides. What a GPU decides by itself while it runs,
cuDNN's algorithms and their workspace, is not here.
"""

import contextlib
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_map_only

# What CUDA's autocast computes in fp32 and a CPU's does not (ATen/autocast_mode.h, `AT_FORALL_FP32`), as networks use.
IN_FP32 = (
    "exp", "log", "log1p", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "reciprocal", "rsqrt", "softplus",
    "layer_norm", "rms_norm", "group_norm", "cosine_similarity", "nll_loss", "nll_loss2d", "kl_div", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss", "binary_cross_entropy_with_logits", "logsumexp", "upsample_nearest2d",
    "upsample_bilinear2d", "upsample_bicubic2d",
)  # fmt: skip
# And what it puts out in fp32 (`AT_FORALL_FP32_SET_OPT_DTYPE`).
TO_FP32 = ("softmax.int", "log_softmax.int", "sum", "sum.dim_IntList", "cumsum", "linalg_vector_norm")
HALVES = (torch.float16, torch.bfloat16)
MOST_OF_A_HEAD = 256  # values, of flash attention (transformers/cuda/sdp_utils.cpp, `check_head_dim_size_flash`)
WIDEST_LOAD = 8  # values: flash attention fills heads up to a multiple of it (attention.cpp, `pad_last_dim`)


def dropout(x, p, train):
    """ATen/native/Dropout.cpp, `is_fused_kernel_acceptable`: a mask of one byte a value, not the values' own type."""
    if train and 0 < p < 1 and x.numel():
        return torch.ops.aten.native_dropout(x, p, True)[0]
    if not train or p == 0:
        return x
    return x * torch.zeros((), dtype=x.dtype) if p == 1 else x


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """ATen/native/transformers/cuda/sdp_utils.cpp, `priority_order`: flash, then memory-efficient, then plain."""
    fits = all(tensor.dim() == 4 for tensor in (query, key, value))
    head = query.shape[-1]
    if fits and query.dtype in HALVES and attn_mask is None and head <= MOST_OF_A_HEAD and value.shape[-1] == head:
        scale = head**-0.5 if scale is None else scale
        if over := -head % WIDEST_LOAD:
            query, key, value = (torch.nn.functional.pad(tensor, (0, over)) for tensor in (query, key, value))
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        return flash(query, key, value, dropout_p, is_causal, False, scale=scale)[0][..., :head]
    if not fits or enable_gqa or query.dtype == torch.float64:
        plain = torch.ops.aten._scaled_dot_product_attention_math
        return plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:  # attention.cpp, `convert_boolean_attn_mask`
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, -torch.inf)
        attn_mask = attn_mask.expand(*query.shape[:2], query.shape[2], key.shape[2])
    kept = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, attn_mask, kept, dropout_p, is_causal, scale=scale)[0]


def in_fp32(operation):
    def cast(*args, **kwargs):
        with without_autocast():
            args, kwargs = tree_map_only(torch.Tensor, widened, (args, kwargs))
            return operation(*args, **kwargs)

    return cast


def to_fp32(operation):
    def cast(x, *args, dtype=None, **kwargs):
        with without_autocast():
            return operation(x, *args, dtype=torch.float32 if dtype is None and x.dtype in HALVES else dtype, **kwargs)

    return cast


def to_fp32_softmax(operation):
    """The type stands third here, not among the named."""

    def cast(x, dim, dtype=None):
        with without_autocast():
            return operation(x, dim, torch.float32 if dtype is None and x.dtype in HALVES else dtype)

    return cast


def widened(tensor):
    return tensor.float() if tensor.dtype in HALVES else tensor


def without_autocast():
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    return torch._C._ExcludeDispatchKeyGuard(key)


def kernels():
    """(name, what takes its place, at which key of the dispatcher)."""
    yield "dropout", dropout, "AutogradCPU"
    yield "scaled_dot_product_attention", attention, "AutogradCPU"
    for names, way in ((IN_FP32, in_fp32), (TO_FP32, to_fp32)):
        for name in names:
            packet, _, overload = name.partition(".")
            operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
            yield name, (to_fp32_softmax if "softmax" in name else way)(operation), "AutocastCPU"


@contextlib.contextmanager
def foreach_optimisers():
    """torch/optim/optimizer.py, `_default_to_fused_or_foreach`: on a GPU they work on all weights at once."""
    from torch.optim import optimizer

    own = optimizer._get_foreach_kernels_supported_devices
    optimizer._get_foreach_kernels_supported_devices = lambda: [*own(), "cpu"]
    optimizer._foreach_supported_types.append(FakeTensor)
    try:
        yield
    finally:
        optimizer._get_foreach_kernels_supported_devices = own
        optimizer._foreach_supported_types.remove(FakeTensor)


@contextlib.contextmanager
def no_step_skipped():
    """torch/amp/grad_scaler.py, `_maybe_opt_step`: it reads whether a gradient overflowed, which here none does."""
    scaler = torch.amp.GradScaler
    own = scaler._maybe_opt_step
    scaler._maybe_opt_step = lambda self, optimiser, state, *args, **kwargs: optimiser.step(*args, **kwargs)
    try:
        yield
    finally:
        scaler._maybe_opt_step = own


@contextlib.contextmanager
def other_kernels():
    with torch.library._scoped_library("aten", "IMPL") as library:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is replaced is the purpose
            for name, kernel, key in kernels():
                library.impl(name, kernel, key)
        yield


@contextlib.contextmanager
def weights_not_drawn():
    """torch/nn/init.py: to draw numbers that are not kept takes time, and `trunc_normal_` draws until they fit."""
    from torch.nn import init

    own = {name: getattr(init, name) for name in vars(init) if name.startswith("_no_grad_")}
    for name in own:
        setattr(init, name, lambda tensor, *args, **kwargs: tensor)
    try:
        yield
    finally:
        for name, function in own.items():
            setattr(init, name, function)


@contextlib.contextmanager
def modules_moved_in_place():
    """torch/nn/modules/module.py, `_apply`: fake weights would be swapped, which references to them forbid; and CUDA's
    are not swapped but given other data.
    """
    module = torch.nn.Module
    own = module._apply

    def apply(self, function, recurse=True):
        for child in self.children() if recurse else ():
            child._apply(function)
        with torch.no_grad():
            for name, weight in self._parameters.items():
                moved = weight if weight is None else function(weight)
                if moved is not weight and moved.device == weight.device:
                    weight.data = moved
                elif moved is not weight:  # from the meta device
                    self._parameters[name] = torch.nn.Parameter(moved, weight.requires_grad)
            for name, buffer in self._buffers.items():
                self._buffers[name] = buffer if buffer is None else function(buffer)
        return self

    module._apply = apply
    try:
        yield
    finally:
        module._apply = own


@contextlib.contextmanager
def one_mode_for_copies():
    """torch/nn/modules/transformer.py, `_get_clones`: a copied layer's weights would be fake by a copy of the mode."""
    FakeTensorMode.__deepcopy__ = lambda self, memo: self
    try:
        yield
    finally:
        del FakeTensorMode.__deepcopy__


SUBSTITUTIONS = (
    other_kernels, foreach_optimisers, no_step_skipped, weights_not_drawn, modules_moved_in_place, one_mode_for_copies
)  # fmt: skip


@contextlib.contextmanager
def as_on_a_gpu():
    with contextlib.ExitStack() as stack:
        for substitution in SUBSTITUTIONS:
            stack.enter_context(substitution())
        yield
