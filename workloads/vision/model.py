"""An image classifier by its name, and the size of the pictures that it takes. Knows no data set.

A name is timm's, or `torchvision:NAME`, or `collo:NAME` for those that neither has (`nets.py`). Weights are random:
nothing is downloaded.
"""

import difflib
import warnings

import timm
import torch
import torchvision

from collo import SettingError
from collo_features import on_meta
from nets import NETS

LARGEST = 2048  # pixels a side: more is a slip
# Classifiers that also judge from their middle put out more than one score a class unless told otherwise.
SINGLE = {"googlenet": {"aux_logits": False}, "inception_v3": {"aux_logits": False}}


def side_of(name, asked, own):
    """Pixels a side of the pictures to train on: as asked, or with 0 what the model demands, or else the data's own."""
    library, model = checked(name)
    if not 0 <= asked <= LARGEST:
        way_out = f"it is up to {LARGEST} pixels a side, or 0 for the model's or the data's own"
        raise SettingError(f"`image_size` is {asked}: {way_out}")
    made_for = timm.get_pretrained_cfg(model) if library == "timm" else None
    if made_for and made_for.fixed_input_size:
        only = made_for.input_size[-1]
        if asked not in (0, only):
            raise SettingError(f"`image_size` is {asked}, and `{name}` takes {only} only: set it to {only}, or to 0")
        return only
    least = made_for.min_input_size[-1] if made_for and made_for.min_input_size else 0  # few say; `check` tries all
    return asked or max(own, least)


def checked(name):
    """(library, the library's own name); an unknown one is told the nearest that are known."""
    library, _, model = name.rpartition(":")
    if library == "torchvision":
        known, version = classifiers_of_torchvision(), torchvision.__version__.split("+")[0]
        which, names_all = f"classifier of torchvision {version}", "`torchvision.models.list_models()`"
    elif library == "collo":
        known, which, names_all = list(NETS), "model of collo", "`vision/nets.py`"
    else:
        library, model = "timm", name
        if timm.is_model(name) and "." not in name:  # what follows a point names weights
            return library, model
        known, which, names_all = timm.list_models(), f"model of timm {timm.__version__}", "`timm.list_models()`"
    if library != "timm" and model in known:
        return library, model
    prefix = "" if library == "timm" else f"{library}:"
    near = [f"`{prefix}{found}`" for found in difflib.get_close_matches(model, known, n=3)]
    way_out = f"near it are {', '.join(near)}" if near else f"{names_all} names them all"
    raise SettingError(f"`{name}` is no {which}: {way_out}")


def classifiers_of_torchvision():
    """Neither its detectors, nor what is segmented, quantised or filmed."""
    return torchvision.models.list_models(module=torchvision.models)


def build(name, classes):
    library, model = checked(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that timm has changed, and how torchvision draws first weights
        if library == "collo":
            return NETS[model](classes)
        if library == "torchvision":
            return torchvision.models.get_model(model, weights=None, num_classes=classes, **SINGLE.get(model, {}))
        return timm.create_model(model, pretrained=False, num_classes=classes)


def made_for(name):
    """Pixels a side that the model was made for."""
    library, model = checked(name)
    if library == "collo":
        return 32
    if library == "torchvision":
        return torchvision.models.get_model_weights(model).DEFAULT.transforms.keywords["crop_size"]
    return timm.get_pretrained_cfg(model).input_size[-1]


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
        way_out = f"raise `image_size`, `{name}` is made for {made_for(name)}"
        way_out += "; or raise `batch_size`" if batch_size == 1 else ""
        raise SettingError(f"`{name}` cannot train on {pictures} ({reason}): {way_out}") from error
    if not isinstance(scores, torch.Tensor) or scores.shape != (batch_size, classes):
        raise SettingError(f"`{name}` does not put out one score for each of {classes} classes: take a classifier")
