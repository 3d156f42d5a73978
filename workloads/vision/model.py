"""An image classifier of timm by its name, and the size of the pictures that it takes. Knows no data set.

Weights are random: nothing is downloaded.
"""

import difflib
import warnings

import timm
import torch

from collo import SettingError
from collo_features import on_meta

LARGEST = 2048  # pixels a side: more is a slip


def side_of(name, asked, own):
    """Pixels a side of the pictures to train on: as asked, or with 0 what the model demands, or else the data's own."""
    if not timm.is_model(name) or "." in name:  # what follows a point names weights
        near = [f"`{known}`" for known in difflib.get_close_matches(name, timm.list_models(), n=3)]
        way_out = f"near it are {', '.join(near)}" if near else "`timm.list_models()` names them all"
        raise SettingError(f"`{name}` is no model of timm {timm.__version__}: {way_out}")
    if not 0 <= asked <= LARGEST:
        way_out = f"it is up to {LARGEST} pixels a side, or 0 for the model's or the data's own"
        raise SettingError(f"`image_size` is {asked}: {way_out}")
    made_for = timm.get_pretrained_cfg(name)
    if made_for and made_for.fixed_input_size:
        only = made_for.input_size[-1]
        if asked not in (0, only):
            raise SettingError(f"`image_size` is {asked}, and `{name}` takes {only} only: set it to {only}, or to 0")
        return only
    least = made_for.min_input_size[-1] if made_for and made_for.min_input_size else 0  # few say; `check` tries all
    return asked or max(own, least)


def build(name, classes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that timm has changed
        return timm.create_model(name, pretrained=False, num_classes=classes)


def check(model, name, classes, batch_size, side):
    """Try one training pass on the meta device, where it costs nothing: too small a picture breaks in the middle."""
    try:
        scores = on_meta(model).train()(torch.empty(batch_size, 3, side, side, device="meta"))
    except NotImplementedError:
        return  # not every operation has a meta form: then the warm-up will show
    except (RuntimeError, ValueError, AssertionError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        if "meta" in reason:
            return
        pictures = f"{batch_size} picture{'s' if batch_size != 1 else ''} of {side} × {side}"
        way_out = f"raise `image_size`, `{name}` is made for {model.pretrained_cfg['input_size'][-1]}"
        way_out += "; or raise `batch_size`" if batch_size == 1 else ""
        raise SettingError(f"`{name}` cannot train on {pictures} ({reason}): {way_out}") from error
    if not isinstance(scores, torch.Tensor) or scores.shape != (batch_size, classes):
        raise SettingError(f"`{name}` does not put out one score for each of {classes} classes: take a classifier")
