"""A small ResNet on CIFAR-10, in plain PyTorch. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

import collo
import collo_data
import collo_torch
from collo_features import tell_features

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--epochs", type=int, default=2, help="when run by hand")
settings.add_argument("--batch-size", type=int, default=32)
settings.add_argument("--images", type=int, default=512, help="the first of the training set; 0 for all")
settings.add_argument("--learning-rate", type=float, default=0.05)
settings.add_argument("--width", type=int, default=16, help="channels of the first stage; 32 and 64 follow")
settings.add_argument("--seed", type=int, default=1)
settings = settings.parse_args()
warm_up_batches = 3


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.around = nn.Identity()
        if stride != 1:
            self.around = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.around(x))


def resnet(width):
    """Three stages of two blocks; each stage halves the picture and doubles the channels."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        Block(width, width, 1), Block(width, width, 1),
        Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1),
        Block(2 * width, 4 * width, 2), Block(4 * width, 4 * width, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10),
    )  # fmt: skip


member = collo.connect()
torch.set_num_threads(collo.threads())
torch.set_num_interop_threads(1)
torch.manual_seed(settings.seed)
device = collo_torch.given_device()
collo_torch.describe_by_library()
# torch lets convolutions use TF32 unless told otherwise: then fp32 were not fp32.
collo_torch.allow_tf32("fp32")

data = collo_data.load("cifar-10", images=settings.images)
pixels, labels = torch.from_numpy(data.pixels).to(device), torch.from_numpy(data.labels).to(device)
mean, std = (torch.tensor(values, device=device).view(3, 1, 1) for values in (data.mean, data.std))

model = resnet(settings.width).to(device, memory_format=torch.channels_last)  # half the time on a CPU
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
    **collo_torch.as_seen(device),
    threads=torch.get_num_threads(),
    model=("resnet-14", sum(p.numel() for p in model.parameters())),
    dataset=data.describe(),
    precision="fp32",
)
tell_features(member, model, (torch.zeros(1, 3, 32, 32),), settings)
if collo.describing():
    import collo_describe

    one = batches()[0]
    collo_describe.leave_described_by_library(model, optimiser, one, "fp32", train)
member.wait_for_warm_up()
for batch in batches()[:warm_up_batches]:
    train(batch).item()
collo_torch.peaks.end_warm_up(device)
member.ready()

for epoch in member.epochs(settings.epochs):
    loss = torch.zeros((), device=device)
    for batch in epoch.batches(batches()):
        loss += train(batch)
    epoch.finish(items=len(labels), loss=loss.item() / len(labels))  # item() waits for the GPU
    collo_torch.tell_memory(member, device)
