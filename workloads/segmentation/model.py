"""A U-Net: pictures in, the scores of every class for every pixel out.

The encoder is a ResNet of timm; the decoder is shaped like that of `segmentation_models_pytorch`, which the study's
traces use: five steps, each of which doubles the picture, joins what the encoder saw at that size, and convolves twice.
"""

import timm
import torch
from torch import nn
from torch.nn import functional as F

WIDTHS = (256, 128, 64, 32, 16)  # channels of each step of the decoder


class Step(nn.Module):
    def __init__(self, inputs, joined, width):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(inputs + joined, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        )  # fmt: skip

    def forward(self, x, seen=None):
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.convolutions(x if seen is None else torch.cat([x, seen], dim=1))


class UNet(nn.Module):
    def __init__(self, encoder, classes):
        super().__init__()
        self.encoder = timm.create_model(encoder, pretrained=False, features_only=True)
        *joined, inputs = self.encoder.feature_info.channels()  # at a half, a quarter … a 32nd of the picture
        self.steps = nn.ModuleList()
        for other, width in zip([*reversed(joined), 0], WIDTHS):
            self.steps.append(Step(inputs, other, width))
            inputs = width
        self.head = nn.Conv2d(inputs, classes, 3, padding=1)

    def forward(self, pictures):
        *seen, x = self.encoder(pictures)
        for step, other in zip(self.steps, [*reversed(seen), None]):
            x = step(x, other)
        return self.head(x)
