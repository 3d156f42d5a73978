"""How pictures are shown to the training: what is drawn anew for each, by whoever loads them. Knows no model.

`load` gives one split of a data set. Its pictures, uint8 [B, 3, side, side], are as `augmentation` and `crop` say:
none       as they lie; ImageNet's are cut out, by `crop`: at random (the same cut each epoch), or from the centre
crop-flip  moved by up to 4 pixels over a black edge, and mirrored half of the time: CIFAR's usual
timm       what timm's train script does by default: a random part of the picture, resized, mirrored half of the time,
           brightness, contrast and saturation changed by up to 40 %; by timm's own transforms
"""

import random

import numpy as np
from PIL import Image

import collo_data
from collo import SettingError

AUGMENTATIONS = ("none", "crop-flip", "timm")
CROPS = ("random", "centre")
CUT = "imagenet"  # the one whose pictures have sizes of their own
EDGE = 4  # pixels
COLOUR_JITTER = 0.4  # timm/train.py, `--color-jitter`


def load(name, settings, side, training=True):
    """What is trained on, or validated on, which is never augmented. `side`, in pixels, is that of ImageNet's."""
    cut = name == CUT
    options = {"size": side, "seed": settings.seed, "resize": settings.resize} if cut else {}
    if not training:
        return collo_data.load(name, "val" if name.startswith("imagenet") else "test", **options)
    if cut and settings.augmentation == "timm":
        if settings.crop != "random":
            why = "which cuts at random: leave one out"
            raise SettingError(f"`crop` cannot be `centre` with `augmentation` timm, {why}")
        return collo_data.load(name, transform=of_timm(side), **options)
    data = collo_data.load(name, **options, **({"crop": settings.crop} if cut else {}))
    if settings.augmentation == "none":
        return data
    size = data.shape[-1]
    return Augmented(data, of_timm(size) if settings.augmentation == "timm" else cropped_and_flipped(size))


def cut(settings):
    """How pictures are cut out, as the hello says it; none where they are not."""
    if settings.dataset != CUT:
        return None
    return settings.crop


def seed(settings):
    """timm draws with Python's own generator, too; data-loader workers have theirs seeded by torch."""
    random.seed(settings.seed)


def of_timm(side):
    from timm.data import create_transform

    # With its prefetcher timm leaves turning bytes into numbers to the GPU, as we do.
    given = {"color_jitter": COLOUR_JITTER, "auto_augment": None, "interpolation": "random"}
    return create_transform(side, is_training=True, use_prefetcher=True, **given)


def cropped_and_flipped(side):
    from torchvision import transforms

    whole = transforms.Compose([transforms.RandomCrop(side, padding=EDGE), transforms.RandomHorizontalFlip()])
    return lambda image: np.asarray(whole(image)).transpose(2, 0, 1)


class Augmented:
    """A data set with its pictures drawn anew, one by one, as the published scripts' loaders do."""

    def __init__(self, data, transform):
        self.data, self.transform = data, transform

    def __getattr__(self, name):
        return getattr(self.__dict__["data"], name)

    def __len__(self):
        return len(self.data)

    def __getitems__(self, indices):
        pixels, labels = self.data.__getitems__(indices)
        images = (Image.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0))) for picture in pixels)
        return np.stack([self.transform(image) for image in images]), labels
