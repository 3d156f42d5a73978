"""The two that find things in pictures: a U-Net says of each pixel what it shows, Mask R-CNN finds and cuts out."""

import numpy as np
import pytest
import torch
import torchvision
from collo_features import features
from harness import written
from scripts import flags, module, script, trained

unet, mask_rcnn = module("segmentation", "model"), module("detection", "model")
surfaces, things = module("segmentation", "scenes"), module("detection", "scenes")


def parameters(built):
    return sum(parameter.numel() for parameter in built.parameters())


# --- the pictures ---


def test_pixels_of_one_class_look_alike_and_others_do_not():
    data, same, other = (surfaces.Scenes(20, 64, 4, seed) for seed in (1, 1, 2))
    assert (data.pixels == same.pixels).all() and (data.masks != other.masks).any()
    pixels, masks = data.__getitems__([3, 0, 4])
    assert pixels.shape == (3, 3, 64, 64) and masks.shape == (3, 64, 64) and masks.dtype == np.uint8
    assert set(np.unique(data.masks)) == {0, 1, 2, 3}
    colours = data.pixels.transpose(0, 2, 3, 1)
    for kind in range(4):
        assert np.ptp(colours[data.masks == kind].astype(int), axis=0).max() <= 63


def test_things_lie_in_their_boxes_and_boxes_in_their_pictures():
    data = things.Scenes(40, 64, 4, seed=1)
    assert len(set(map(tuple, data.sizes))) > 20  # of different sizes
    for size, count, boxes, picture in zip(data.sizes, data.counts, data.boxes, data.pixels):
        left, top, right, bottom = boxes[:count].T
        assert (left >= 0).all() and (right - left >= 0.1 * size[1]).all() and (right <= size[1]).all()
        assert (top >= 0).all() and (bottom - top >= 0.1 * size[0]).all() and (bottom <= size[0]).all()
        assert 1 <= count <= things.MOST
        masks = mask_rcnn.ellipses(torch.from_numpy(boxes[:count]), *size).bool().numpy()
        assert (picture[:, : size[0], : size[1]][:, masks[-1]].max() >= 64) and masks.any((1, 2)).all()


def test_a_batch_is_a_list_of_pictures_and_what_is_in_each():
    data = things.Scenes(5, 64, 4, seed=1)
    pictures, targets = mask_rcnn.as_it_takes_them(*map(torch.from_numpy, data.__getitems__([2, 0])))
    assert [tuple(picture.shape) for picture in pictures] == [(3, *data.sizes[index]) for index in (2, 0)]
    assert [len(target["boxes"]) for target in targets] == data.counts[[2, 0]].tolist()
    assert all(target["masks"].shape[1:] == picture.shape[1:] for picture, target in zip(pictures, targets))


# --- the models ---


def test_the_unet_is_that_of_segmentation_models_pytorch():
    with torch.device("meta"):
        one_class, voc = unet.UNet("resnet34", 1), unet.UNet("resnet34", 21)
    assert parameters(one_class) == 24_436_369  # smp.Unet("resnet34"), as its users print it
    assert parameters(voc) == 24_436_369 + 20 * (16 * 9 + 1)
    assert f"({parameters(voc) / 1e6:.1f} M parameters)" in written("segmentation")["presets"]["unet"]["description"]
    told = features(voc, (torch.empty(1, 3, 512, 512),))
    assert told["layers"]["Conv2d"] == 36 + 10 + 1
    assert [entry[0] for entry in told["sequence"]].count("interpolate") == 5
    assert told["sequence"][-1] == ["Conv2d", 21 * 512 * 512, 21 * (16 * 9 + 1)]


def test_mask_rcnn_is_torchvisions_with_normalisation_that_learns():
    with torch.device("meta"):
        built = mask_rcnn.build(800, 91, 2000)
    published = torchvision.models.detection.MaskRCNN_ResNet50_FPN_Weights.DEFAULT.meta["num_params"]
    learns = sum(2 * layer.num_features for layer in built.modules() if isinstance(layer, torch.nn.BatchNorm2d))
    assert parameters(built) == published + learns  # published weights come with normalisation that is frozen
    description = written("detection")["presets"]["mask-rcnn"]["description"]
    assert f"({parameters(built) / 1e6:.1f} M parameters)" in description
    assert (built.rpn.pre_nms_top_n(), built.rpn.post_nms_top_n()) == (2000, 2000)
    assert built.roi_heads.fg_bg_sampler.batch_size_per_image == 512


# --- the training ---

TINY = {
    "segmentation": {"image_size": 32, "items": 16, "classes": 3},
    "detection": {"image_size": 32, "items": 2, "proposals": 10, "learning_rate": 0.0005},
}


@pytest.mark.parametrize("workload, items", [("segmentation", 16), ("detection", 2)])
def test_it_learns_and_says_what_it_is(workload, items):
    said, ended = trained(workload, *flags(workload, **TINY[workload]))
    assert ended == (0, "", "")
    (hello,), (told,), epochs = said["hello"], said["features"], said["epoch"]
    assert hello["dataset"] == {"name": "scenes", "synthetic": True, "items": items} and hello["image_size"] == 32
    # what Mask R-CNN computes depends on what it finds, which cannot be known without numbers
    assert (told["sequence"] is None) == (workload == "detection") and told["layers"]["Conv2d"] > 20
    assert [epoch["items"] for epoch in epochs] == [items, items]
    assert epochs[1]["loss"] < epochs[0]["loss"], epochs


@pytest.mark.parametrize(
    "workload, settings, message",
    [
        ("segmentation", {"image_size": 100}, "`image_size` is 100: it is 32 to 4096 pixels a side and a multiple of 32"),
        ("segmentation", {"classes": 1}, "`classes` is 1: it is 2 to 256, with the ground"),
        ("segmentation", {"encoder": "vgg16"}, "`encoder` is `vgg16`: it is one of resnet18, resnet34, resnet50"),
        ("segmentation", {"items": 10**9}, "1000000000 pictures of 64 pixels a side take 20.48 TB, the machine has "),
        ("detection", {"proposals": 0}, "`proposals` is 0: it is 1 to 10000"),
        ("detection", {"image_size": 16}, "`image_size` is 16: it is 32 to 2048 pixels"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(workload, settings, message):
    with script(workload, *flags(workload, **settings)) as member:
        error = member.hear()
        assert member.end() == (1, "", f"error: {error['message']}\n")
    assert error["kind"] == "setting" and error["message"].startswith(message)
