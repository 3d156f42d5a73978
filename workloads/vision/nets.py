"""Classifiers of small pictures that neither timm nor torchvision has, after their papers: sizes in, a model out."""

from torch import nn
from torch.nn import functional as F


class ResNeXtBlock(nn.Module):
    """A bottleneck whose middle is a grouped convolution (Xie et al., arXiv 1611.05431, fig. 3c)."""

    def __init__(self, inputs, groups, group_width, outputs, stride):
        super().__init__()
        inner = groups * group_width
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=groups, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.past = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.past = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.last = nn.ReLU()

    def forward(self, x):
        return self.last(self.branch(x) + self.past(x))


class ResNeXt(nn.Sequential):
    """Three stages, each half as large as the one before, with groups twice as wide; 9 layers for each block a stage."""

    def __init__(self, blocks, groups, group_width, classes):
        layers, inputs = [nn.Conv2d(3, 64, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
        for stage in range(3):
            width = group_width << stage
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(ResNeXtBlock(inputs, groups, width, 2 * groups * width, stride))
                inputs = 2 * groups * width
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class PyramidBlock(nn.Module):
    """Two convolutions; normalised before, between and after, rectified only between (Han et al., fig. 6d)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.past = nn.Identity() if stride == 1 else nn.AvgPool2d(2, ceil_mode=True)

    def forward(self, x):
        found = self.branch(x)
        past = self.past(x)
        missing = found.shape[1] - past.shape[1]  # what grew has no past: zeros stand for it
        return found + F.pad(past, (0, 0, 0, 0, 0, missing))


class PyramidNet(nn.Sequential):
    """Each block is alpha / blocks wider than the one before (Han et al., arXiv 1610.02915, equation 2).

    A depth has 6 layers for each block a stage and 2 more; what is over is dropped, as the authors' own scripts do.
    """

    def __init__(self, depth, alpha, classes):
        blocks = (depth - 2) // 6
        layers, inputs = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)], 16
        for index in range(3 * blocks):
            outputs = round(16 + alpha * (index + 1) / (3 * blocks))
            stride = 2 if index in (blocks, 2 * blocks) else 1
            layers.append(PyramidBlock(inputs, outputs, stride))
            inputs = outputs
        layers += [nn.BatchNorm2d(inputs), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        super().__init__(*layers, nn.Linear(inputs, classes))


# Those of the utilisation paper (Yeung et al., HotCloud'20, table 1), which says: ResNeXt 11, cardinality 2, width 16;
# PyramidNet of depth 48 and 84, alpha 66 and 110.
NETS = {
    "resnext11_2x16d": lambda classes: ResNeXt(1, 2, 16, classes),
    "pyramidnet48_a66": lambda classes: PyramidNet(48, 66, classes),
    "pyramidnet48_a110": lambda classes: PyramidNet(48, 110, classes),
    "pyramidnet84_a66": lambda classes: PyramidNet(84, 66, classes),
    "pyramidnet84_a110": lambda classes: PyramidNet(84, 110, classes),
}
