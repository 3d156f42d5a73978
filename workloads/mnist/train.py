"""The profiling study's small CNN on MNIST. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch.nn import functional as F

import collo
import collo_data
import collo_torch
from model import CNN
from pictures import OneByOne

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--decay", type=float, default=0.7, help="of the learning rate, after each epoch; 1 for none")
settings.add_argument("--one-by-one", type=collo_torch.flag, default=True, help="the loader prepares each picture")
collo_torch.add_settings(settings, batch_size=64, learning_rate=1.0)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
if not 0 < settings.decay <= 1:
    raise collo.SettingError(f"`decay` is {settings.decay}: it is greater than 0 and at most 1, which leaves the rate")

data = collo_data.load("mnist")
(mean,), (std,) = data.mean, data.std
data = OneByOne(data) if settings.one_by_one else data
loader = collo_torch.loader(data, settings)
model = CNN(data.classes).to(device)
rate = settings.learning_rate
if settings.cuda_graphs:  # a captured step reads its rate from memory; as a plain number it would stay the first
    rate = torch.tensor(rate, device=device)
optimiser = torch.optim.Adadelta(model.parameters(), rate, capturable=settings.cuda_graphs)
schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=1, gamma=settings.decay)


def loss_of(pictures, labels):
    if not settings.one_by_one:  # then they come as they lie on disk
        pictures = (pictures.float() - mean) / std
    return F.cross_entropy(model(pictures), labels)


collo_torch.say_hello(member, settings, device, name="CNN of MNIST", model=model, data=data)
collo_torch.tell_features(member, model, (torch.empty(1, *data.shape, device="meta"),), settings)
step = collo_torch.training_step(loss_of, model, optimiser, settings)

member.wait_for_warm_up()
collo_torch.warm_up(step, loader, device)
member.ready()
for epoch in member.epochs(settings.epochs):
    loss = torch.zeros((), device=device)
    for batch in epoch.batches(collo_torch.on(device, loader)):
        loss += step(*batch)
    schedule.step()
    epoch.finish(items=len(loader) * settings.batch_size, loss=loss.item() / len(loader))  # item() waits for the GPU
    collo_torch.tell_memory(member, device)
