"""Mask R-CNN finds and cuts out what is in made-up pictures. By hand: PYTHONPATH=.. python train.py

No two steps are alike: pictures differ in size, and what is computed depends on what is found in them.
"""

import argparse

import torch

import collo
import collo_memory
import collo_torch
from model import PROPOSALS, as_it_takes_them, build
from scenes import Scenes

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--image-size", type=int, default=64, help="pixels of the shorter side, as the network sees it")
settings.add_argument("--classes", type=int, default=5, help="of things, the ground among them")
settings.add_argument("--proposals", type=int, default=50, help=f"of a picture; torchvision's own are {PROPOSALS}")
settings.add_argument("--items", type=int, default=8, help="pictures, made up in memory")
collo_torch.add_settings(settings, batch_size=2, learning_rate=1e-4)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
if not 32 <= settings.image_size <= 2048:
    raise collo.SettingError(f"`image_size` is {settings.image_size}: it is 32 to 2048 pixels")
if not 2 <= settings.classes <= 10_000:
    raise collo.SettingError(f"`classes` is {settings.classes}: it is 2 to 10000, with the ground")
if not 1 <= settings.proposals <= 10_000:
    raise collo.SettingError(f"`proposals` is {settings.proposals}: it is 1 to 10000")
if settings.cuda_graphs:
    raise collo.SettingError("`cuda_graphs` cannot be true here: no two steps are alike, and a graph repeats one")
collo_torch.at_least("items", settings.items, 1)
bytes_of_items = 3 * settings.items * settings.image_size**2
what = f"{settings.items} pictures of {settings.image_size} pixels a side take"
collo_memory.check_fits(bytes_of_items, torch.device("cpu"), what, "lower `items` or `image_size`")

data = Scenes(settings.items, settings.image_size, settings.classes, settings.seed)
loader = collo_torch.loader(data, settings)
model = build(settings.image_size, settings.classes, settings.proposals).to(device)
optimiser = torch.optim.AdamW(model.parameters(), settings.learning_rate)


def loss_of(*batch):
    """The sum of five: is there anything, where about, what is it, where exactly, and which pixels are it?"""
    return sum(model(*as_it_takes_them(*batch)).values())


side = settings.image_size
collo_torch.say_hello(member, settings, device, "Mask R-CNN on ResNet50", model, data, image_size=side)
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
