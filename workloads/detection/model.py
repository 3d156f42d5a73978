"""torchvision's Mask R-CNN, and a batch as it takes it: pictures of different sizes, each with what is in it."""

import torch
import torchvision

PROPOSALS = 2000  # torchvision's own, of a picture
JUDGED = 512  # of them, in a training step


def build(side, classes, proposals):
    """Pictures are scaled until their shorter side has `side` pixels and the longer at most five thirds as many."""
    return torchvision.models.detection.maskrcnn_resnet50_fpn(
        weights=None,
        weights_backbone=None,  # else it would be downloaded
        num_classes=classes,
        min_size=side,
        max_size=side * 5 // 3,
        rpn_pre_nms_top_n_train=proposals,
        rpn_post_nms_top_n_train=proposals,
        box_batch_size_per_image=min(JUDGED, proposals),
    )


def as_it_takes_them(pixels, sizes, counts, boxes, labels):
    """(pictures, targets). How large and how many is asked of the GPU in each step: that is part of this workload."""
    pictures, targets = [], []
    for picture, (height, width), count, around, which in zip(pixels, sizes.tolist(), counts.tolist(), boxes, labels):
        pictures.append(picture[:, :height, :width].float() / 255)
        around = around[:count]
        targets.append({"boxes": around, "labels": which[:count], "masks": ellipses(around, height, width)})
    return pictures, targets


def ellipses(boxes, height, width):
    """A mask for each box: the ellipse that fills it."""
    left, top, right, bottom = boxes[:, :, None, None].unbind(1)
    row = torch.arange(height, device=boxes.device).view(1, -1, 1) + 0.5
    column = torch.arange(width, device=boxes.device).view(1, 1, -1) + 0.5
    away = ((column - (left + right) / 2) / (right - left)) ** 2
    return (away + ((row - (top + bottom) / 2) / (bottom - top)) ** 2 <= 0.25).to(torch.uint8)
