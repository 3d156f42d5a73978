"""An image model of timm on CIFAR, ImageNet64 or ImageNet. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch.nn import functional as F

import collo
import collo_data
import collo_torch
from model import build, check, side_of

own_side = {"cifar-10": 32, "cifar-100": 32, "imagenet64": 64, "imagenet": 224}  # pixels; ImageNet's differ and are cut

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--model", default="resnet26", help="any of timm, torchvision:NAME, or collo:NAME")
settings.add_argument("--dataset", default="cifar-10", help=", ".join(own_side))
settings.add_argument("--image-size", type=int, default=0, help="pixels a side; 0: the model's or the data's own")
settings.add_argument("--channels-last", type=collo_torch.flag, default=False, help="colours innermost in memory")
collo_torch.add_settings(settings, batch_size=32, learning_rate=0.005)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
collo_torch.one_of("dataset", settings.dataset, own_side)
side = side_of(settings.model, settings.image_size, own_side[settings.dataset])
layout = torch.channels_last if settings.channels_last else torch.contiguous_format

# ImageNet is decoded to the model's size by whoever loads; the small pictures come as they are and grow on the device.
decoding = {"size": side, "seed": settings.seed} if settings.dataset == "imagenet" else {}
data = collo_data.load(settings.dataset, **decoding)
loader = collo_torch.loader(data, settings)
mean, std = (torch.tensor(values, device=device).view(3, 1, 1) for values in (data.mean, data.std))

model = build(settings.model, data.classes)
check(model, settings.model, data.classes, settings.batch_size, side)
model.to(device, memory_format=layout)
optimiser = torch.optim.SGD(model.parameters(), settings.learning_rate, momentum=0.9, weight_decay=5e-4)


def loss_of(pixels, labels):
    images = (pixels.contiguous(memory_format=layout).float() - mean) / std
    if images.shape[-1] != side:
        images = F.interpolate(images, size=(side, side), mode="bilinear")
    return F.cross_entropy(model(images), labels)


collo_torch.say_hello(member, settings, device, name=settings.model, model=model, data=data, image_size=side)
collo_torch.tell_features(member, model, (torch.empty(1, 3, side, side, device="meta"),), settings)
step = collo_torch.training_step(loss_of, model, optimiser, settings)
member.wait_for_warm_up()
collo_torch.warm_up(step, loader, device)
member.ready()

for epoch in member.epochs(settings.epochs):
    loss = torch.zeros((), device=device)
    for batch in epoch.batches(collo_torch.on(device, loader)):
        loss += step(*batch)
    epoch.finish(items=len(loader) * settings.batch_size, loss=loss.item() / len(loader))  # item() waits for the GPU
    collo_torch.tell_memory(member, device)
