"""PyTorch's first example on MNIST, which the profiling study trained: pictures of one colour in, ten scores out."""

from torch import nn


class CNN(nn.Sequential):
    """Two convolutions, one pooling, two dropouts and two linear layers: 1,199,882 parameters."""

    def __init__(self, classes=10):
        super().__init__(
            nn.Conv2d(1, 32, 3),  # [B, 32, 26, 26]
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),  # [B, 64, 24, 24]
            nn.ReLU(),
            nn.MaxPool2d(2),  # [B, 64, 12, 12]
            nn.Dropout(0.25),
            nn.Flatten(),  # [B, 9216]
            nn.Linear(9216, 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, classes),
        )
