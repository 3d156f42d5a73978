"""An image model of timm on CIFAR, ImageNet64 or ImageNet. By hand: PYTHONPATH=.. python train.py

With `validate` an epoch's time is that of the training and of the validation after it, as in the published scripts; its
items and its loss are those of training.
"""

import argparse
import sys

import torch
from torch.nn import functional as F

import collo
import collo_recipe
import collo_torch
import learning
import pictures
from model import build, check, side_of

own_side = {"cifar-10": 32, "cifar-100": 32, "imagenet64": 64, "imagenet": 224}  # pixels; ImageNet's differ and are cut

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--model", default="resnet26", help="any of timm, torchvision:NAME, or collo:NAME")
settings.add_argument("--dataset", default="cifar-10", help=", ".join(own_side))
settings.add_argument("--image-size", type=int, default=0, help="pixels a side; 0: the model's or the data's own")
settings.add_argument("--channels-last", type=collo_torch.flag, default=False, help="colours innermost in memory")
settings.add_argument("--recipe", default="collo", help="many of these at once, see workload.toml; what is given wins")
settings.add_argument("--augmentation", default="none", help=", ".join(pictures.AUGMENTATIONS))
settings.add_argument("--crop", default="random", help="of ImageNet's pictures, where not timm cuts: random, centre")
settings.add_argument("--resize", type=int, default=0, help="shorter side of a picture when its centre is cut out, in pixels; 0: 256/224 of the size")
settings.add_argument("--validate", type=collo_torch.flag, default=False, help="on the test data, in each epoch's time")
settings.add_argument("--zero-grad", default="after-forward", help=", ".join(collo_torch.ZERO_GRAD))
learning.add_settings(settings)
collo_torch.add_settings(settings, batch_size=32, learning_rate=0.005)

member = collo.connect()
settings = collo_recipe.settings_of(settings, sys.path[0])
learning.check(settings)
device = collo_torch.set_up(settings)
collo_torch.one_of("dataset", settings.dataset, own_side)
collo_torch.one_of("augmentation", settings.augmentation, pictures.AUGMENTATIONS)
collo_torch.one_of("crop", settings.crop, pictures.CROPS)
pictures.seed(settings)
side = side_of(settings.model, settings.image_size, own_side[settings.dataset])
layout = torch.channels_last if settings.channels_last else torch.contiguous_format

# ImageNet is decoded to the model's size by whoever loads; the small pictures come as they are and grow on the device.
data = pictures.load(settings.dataset, settings, side)
loader = collo_torch.loader(data, settings)
validation = []
if settings.validate:
    test_data = pictures.load(settings.dataset, settings, side, training=False)
    validation = collo_torch.loader(test_data, settings, shuffle=False)
mean, std = (torch.tensor(values, device=device).view(3, 1, 1) for values in (data.mean, data.std))

model = build(settings.model, data.classes)
check(model, settings.model, data.classes, settings.batch_size, side)
model.to(device, memory_format=layout)
optimiser = learning.optimiser(model.parameters(), settings)
end_of_epoch = learning.schedule(optimiser, settings)


def scores(pixels):
    images = (pixels.contiguous(memory_format=layout).float() - mean) / std
    if images.shape[-1] != side:
        images = F.interpolate(images, size=(side, side), mode="bilinear")
    return model(images)


def loss_of(pixels, labels):
    return F.cross_entropy(scores(pixels), labels, label_smoothing=settings.label_smoothing)


def right_and_loss(pixels, labels):
    """How many pictures of a batch of the validation the model has right, and its loss."""
    low_precision = collo_torch.PRECISIONS[settings.precision]
    with torch.no_grad(), torch.autocast(device.type, low_precision, enabled=low_precision is not None):
        found = scores(pixels).float()
    told = torch.stack([(found.argmax(1) == labels).sum(), F.cross_entropy(found, labels)])
    if settings.read_loss == "step":  # the published scripts read each here, too
        told.tolist()
    return told


regime = {"augmentation": settings.augmentation, "crop": pictures.cut(settings), "validate": settings.validate}
more = {"image_size": side, "regime": {**learning.in_force(settings), **regime}}
collo_torch.say_hello(member, settings, device, name=settings.model, model=model, data=data, **more)
collo_torch.tell_features(member, model, (torch.empty(1, 3, side, side, device="meta"),), settings)
step = collo_torch.training_step(loss_of, model, optimiser, settings)
member.wait_for_warm_up()
collo_torch.warm_up(step, loader, device)
if validation:
    model.eval()
    collo_torch.warm_up(lambda *batch: right_and_loss(*batch)[1], validation, device)
    model.train()
member.ready()

for epoch in member.epochs(settings.epochs):
    loss = torch.zeros((), device=device)
    for batch in epoch.batches(collo_torch.on(device, loader)):
        loss += step(*batch)
    if validation:
        validated = torch.zeros(2, device=device)
        model.eval()
        for batch in epoch.batches(collo_torch.on(device, validation)):
            validated += right_and_loss(*batch)
        model.train()
        right, validation_loss = validated.tolist()  # waits for the GPU
    end_of_epoch()
    epoch.finish(items=len(loader) * settings.batch_size, loss=loss.item() / len(loader))  # item() waits for the GPU
    collo_torch.tell_memory(member, device)
    if validation and not member.channel:
        share = right / (len(validation) * settings.batch_size)
        print(f"validation loss {validation_loss / len(validation):.4f}, {share:.1%} right", flush=True)
