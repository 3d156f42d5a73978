"""A U-Net that says of each pixel what it shows, on made-up pictures. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch.nn import functional as F

import collo
import collo_memory
import collo_torch
from model import UNet
from scenes import Scenes

ENCODERS = ("resnet18", "resnet34", "resnet50")

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--encoder", default="resnet18", help=", ".join(ENCODERS) + ", of timm")
settings.add_argument("--image-size", type=int, default=64, help="pixels a side, a multiple of 32")
settings.add_argument("--classes", type=int, default=5, help="of pixels, the ground among them")
settings.add_argument("--items", type=int, default=64, help="pictures, made up in memory")
settings.add_argument("--channels-last", type=collo_torch.flag, default=False, help="colours innermost in memory")
collo_torch.add_settings(settings, batch_size=8, learning_rate=1e-3)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
collo_torch.one_of("encoder", settings.encoder, ENCODERS)
if not 32 <= settings.image_size <= 4096 or settings.image_size % 32:
    said = f"`image_size` is {settings.image_size}"
    raise collo.SettingError(f"{said}: it is 32 to 4096 pixels a side and a multiple of 32, so often is it halved")
if not 2 <= settings.classes <= 256:
    raise collo.SettingError(f"`classes` is {settings.classes}: it is 2 to 256, with the ground")
collo_torch.at_least("items", settings.items, 1)
bytes_of_items = 5 * settings.items * settings.image_size**2  # three colours, their classes, and room to make them
what = f"{settings.items} pictures of {settings.image_size} pixels a side take"
collo_memory.check_fits(bytes_of_items, torch.device("cpu"), what, "lower `items` or `image_size`")
layout = torch.channels_last if settings.channels_last else torch.contiguous_format

data = Scenes(settings.items, settings.image_size, settings.classes, settings.seed)
loader = collo_torch.loader(data, settings)
model = UNet(settings.encoder, settings.classes).to(device, memory_format=layout)
optimiser = torch.optim.AdamW(model.parameters(), settings.learning_rate, capturable=settings.cuda_graphs)


def loss_of(pixels, classes):
    pictures = pixels.contiguous(memory_format=layout).float() / 127.5 - 1
    return F.cross_entropy(model(pictures).float(), classes.long())


side = settings.image_size
name = f"U-Net on {settings.encoder}"
collo_torch.say_hello(member, settings, device, name, model, data, image_size=side)
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
