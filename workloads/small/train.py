"""timm's resnet26 on CIFAR-10. By hand: PYTHONPATH=.. python train.py"""

import argparse

import timm
import torch
from torch.nn import functional as F

import cifar
import collo

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--epochs", type=int, default=2, help="when run by hand")
settings.add_argument("--model", default="resnet26", help="any image model of timm that takes 32 × 32 pixels")
settings.add_argument("--batch-size", type=int, default=32)
settings.add_argument("--images", type=int, default=512, help="the first of the training set; 0 for all")
settings.add_argument("--learning-rate", type=float, default=0.02)
settings.add_argument("--seed", type=int, default=1)
settings = settings.parse_args()
warm_up_batches = 3

member = collo.connect()
torch.set_num_threads(collo.threads())
torch.set_num_interop_threads(1)
torch.manual_seed(settings.seed)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gpu = torch.cuda.get_device_properties(0) if device.type == "cuda" else None

data = cifar.load(settings.images)
pixels, labels = torch.from_numpy(data.pixels).to(device), torch.from_numpy(data.labels).to(device)
mean, std = (torch.tensor(values, device=device).view(3, 1, 1) for values in (cifar.MEAN, cifar.STD))

model = timm.create_model(settings.model, num_classes=10).to(device)
optimiser = torch.optim.SGD(model.parameters(), settings.learning_rate, momentum=0.9, weight_decay=5e-4)
shuffle = torch.Generator().manual_seed(settings.seed)


def batches():
    """A new order of the images, cut into batches."""
    return torch.randperm(len(labels), generator=shuffle).to(device).split(settings.batch_size)


def train(batch):
    """One step; returns the loss summed over the batch."""
    images = (pixels[batch].float() - mean) / std
    loss = F.cross_entropy(model(images), labels[batch])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.detach() * len(batch)


member.hello(
    device=f"GPU-{gpu.uuid}" if gpu else "cpu",
    sm_count=gpu.multi_processor_count if gpu else None,
    threads=torch.get_num_threads(),
    model=(settings.model, sum(p.numel() for p in model.parameters())),
    dataset=data.describe(),
)
member.wait_for_warm_up()
for batch in batches()[:warm_up_batches]:
    train(batch).item()
member.ready()

for epoch in member.epochs(settings.epochs):
    loss = torch.zeros((), device=device)
    for batch in epoch.batches(batches()):
        loss += train(batch)
    epoch.finish(items=len(labels), loss=loss.item() / len(labels))  # item() waits for the GPU
    if gpu:
        member.memory(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
