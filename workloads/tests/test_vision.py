"""The image models: every preset is what it says it is, and a small model trains on each of the four data sets."""

import argparse
import functools
import json
import math
import os
import pathlib
import re
import select

import collo_data
import collo_recipe
import numpy as np
import pytest
import timm
import torch
import torchvision
from collo import SettingError
from collo_data.imagenet import IMAGENET
from collo_features import features
from harness import WORKLOADS, Started, written
from scripts import flags, module, script

BASE = written("vision")["settings"]
PRESETS = written("vision")["presets"]
CLASSES = {"cifar-10": 10, "cifar-100": 100, "imagenet64": 1000, "imagenet": 1000}
OWN_SIDE = {"cifar-10": 32, "cifar-100": 32, "imagenet64": 64, "imagenet": 224}

# Published parameters with 1000 classes, exact in torchvision's documentation; Inception v3 without its auxiliary
# classifier, which adds 3.3 M; Xception as in its paper (table 3).
PUBLISHED = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet152": 60_192_808,
    "efficientnet_b0": 5_288_548,
    "efficientnetv2_s": 21_458_488,
    "mobilenetv2_100": 3_504_872,
    "mobilenetv3_small_100": 2_542_856,
    "vgg16": 138_357_544,
    "inception_v3": 23_834_568,
    "legacy_xception": 22_855_952,
    "cait_xxs24_224": 11_956_264,  # 12.0 M in its paper
    "resnet26": 15_995_176,  # 16.0 M in timm's results; the study says 17 M
    "mobilenetv2_050": 1_968_680,  # 1.97 M in timm's results
    "dpn92": 37_668_392,  # 37.67 M in timm's results
}
OF_TORCHVISION = {"vgg19", "densenet121", "densenet161", "densenet169"}  # timm's have as many
# What the collocation study says, in millions (thesis, table 4.1).
OF_THE_STUDY = {"small": 17, "medium": 24, "large": 59, "efficientnet-v2-s-imagenet64": 22, "cait-xxs24": 12}
PUBLISHED_GMACS = {  # torchvision's documentation; Inception v3 at 299 pixels, CaiT of its paper
    "resnet50": 4.09,
    "large": 11.51,
    "vgg16": 15.47,
    "mobilenet-v2": 0.30,
    "efficientnet-b0": 0.39,
    "inception-v3": 5.71,
    "cait-xxs24": 2.53,
}


model, nets = module("vision", "model"), module("vision", "nets")


@functools.cache
def of_preset(name):
    """(model on the meta device, settings, classes, pixels a side)."""
    settings = {**BASE, **PRESETS[name]["settings"]}
    side = model.side_of(settings["model"], settings["image_size"], OWN_SIDE[settings["dataset"]])
    classes = CLASSES[settings["dataset"]]
    with torch.device("meta"):
        return model.build(settings["model"], classes), settings, classes, side


def parameters(built):
    return sum(parameter.numel() for parameter in built.parameters())


def published(name):
    """Parameters with 1000 classes; torchvision carries its documentation's with its weights."""
    library, _, model = name.rpartition(":")
    if library == "torchvision" or name in OF_TORCHVISION:
        return torchvision.models.get_model_weights(model).DEFAULT.meta["num_params"]
    return PUBLISHED[name]


def inputs_of_classifier(built):
    last = [layer for layer in built.modules() if isinstance(layer, (torch.nn.Linear, torch.nn.Conv2d))][-1]
    last = built.get_classifier() if hasattr(built, "get_classifier") else last
    return last.in_features if isinstance(last, torch.nn.Linear) else last.in_channels


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with small stand-ins of all four."""
    root = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IMAGENET, "longer_side", 48)  # pixels; as large as real ones they take ten seconds
        for name in CLASSES:
            collo_data.synthesize(name, 0.01 if name == "cifar-10" else 1e-6, root / "synthetic" / name)
    return root


def words(preset=None, **settings):
    """A preset's command line, but for these settings."""
    return flags("vision", **{**(PRESETS[preset]["settings"] if preset else {}), **settings})


@pytest.fixture
def shown(monkeypatch):
    """Scripts print what they show to their model, by way of timm as the fork has it."""

    def print_shown(_, inputs):
        if inputs[0].device.type != "meta":
            in_another_order = inputs[0].is_contiguous(memory_format=torch.channels_last)
            print(tuple(inputs[0].shape), *["channels last"] * in_another_order)

    def with_print(*args, create_model=timm.create_model, **kwargs):
        created = create_model(*args, **kwargs)
        created.register_forward_pre_hook(print_shown)
        return created

    monkeypatch.setattr(timm, "create_model", with_print)


def trained(member, epochs, after_measured="exit"):
    """(hello, epochs) of a member that trains until it is done."""
    hello, features = member.hear(), member.hear()
    assert [hello["event"], features["event"]] == ["hello", "features"], (hello, features)
    member.tell("warm_up")
    assert member.hear() == {"event": "ready"}
    member.tell("go", epochs=epochs, after_measured=after_measured)
    epochs = [member.hear() for _ in range(epochs)]
    assert member.hear() == {"event": "done"}
    return hello, epochs


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


UNAIDED_S = 5  # how often a worker of torch looks for its parent
FEW = {"model": "test_resnet", "batch_size": 16, "limit_batches": 12, "learning_rate": 0.05}


@pytest.fixture(scope="module")
def run(data):
    """All that a whole run says: three epochs of timm's smallest ResNet on CIFAR-10."""
    with Started("vision", *words(**FEW), COLLO_DATA=data) as member:
        said = [member.hear(), member.hear()]
        member.tell("warm_up")
        said.append(member.hear())
        member.tell("go", epochs=3, after_measured="exit")
        said += member.hear_all()
        assert member.end() == (0, "", "")
    return said


# --- the presets ---


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_trained_and_has_the_published_parameters(name):
    built, settings, classes, side = of_preset(name)
    model.check(built, settings["model"], classes, settings["batch_size"], side)
    count = parameters(built)
    if not settings["model"].startswith("collo:"):  # their counts are held against their authors' below
        assert count == published(settings["model"]) - (1000 - classes) * (inputs_of_classifier(built) + 1)
    assert f"({count / 1e6:.1f} M parameters)" in PRESETS[name]["description"]
    assert settings.keys() == BASE.keys()


def test_where_the_study_counts_differently_the_difference_is_known():
    counted = {name: round(parameters(of_preset(name)[0]) / 1e6, 1) for name in OF_THE_STUDY}
    assert counted == {
        "small": 14.0, "medium": 25.6, "large": 60.2, "efficientnet-v2-s-imagenet64": 21.5, "cait-xxs24": 12.0
    }  # fmt: skip
    beyond_rounding = {name for name, count in counted.items() if abs(count - OF_THE_STUDY[name]) > 0.5}
    assert beyond_rounding == {"small", "medium", "large"}


def test_a_preset_is_named_after_its_model_and_its_data():
    endings = {"cifar-10": "-cifar10", "cifar-100": "-cifar100", "imagenet64": "-imagenet64", "imagenet": ""}
    of_the_study = {"small": "resnet26-cifar10", "medium": "resnet50-imagenet64", "large": "resnet152"}
    for name, preset in PRESETS.items():
        if preset["settings"].get("precision") == "bf16":
            name = name.removesuffix("-bf16")
        name = of_the_study.get(name, name)
        ending = endings[preset["settings"]["dataset"]]
        stem = name.removesuffix(ending)
        assert name == stem + ending and not re.search("cifar|imagenet", stem), name
        squeezed = re.sub("^.*:|legacy|_100$|_224$|[-_]", "", preset["settings"]["model"])
        assert squeezed == stem.replace("-", ""), name


@pytest.mark.parametrize("name, gmacs", PUBLISHED_GMACS.items())
def test_features_agree_with_published_operations(name, gmacs):
    built, _, _, side = of_preset(name)
    found = features(built, (torch.empty(1, 3, side, side),))
    assert found["flops_per_item"] / 2e9 == pytest.approx(gmacs, rel=0.03)
    assert found["parameters"] == parameters(built)
    assert found["model_mb"] == pytest.approx(4 * found["parameters"] / 1e6, rel=0.02)
    assert found["activations_per_item"] > 1e6 and "Identity" not in found["layers"]


@pytest.mark.parametrize(
    "build, count",
    [
        # kuangliu/pytorch-cifar's ResNeXt-29, 2x64d and 32x4d, from which the paper has its ResNeXt
        (lambda: nets.ResNeXt(3, 2, 64, 10), 9_128_778),
        (lambda: nets.ResNeXt(3, 32, 4, 10), 4_774_218),
        # the paper of PyramidNet, table 4, with 110 layers: 1.7 M and 3.8 M, cut off and not rounded
        (lambda: nets.PyramidNet(110, 48, 10), 1_772_706),
        (lambda: nets.PyramidNet(110, 84, 10), 3_904_446),
    ],
)
def test_our_own_networks_have_their_authors_parameters_at_their_authors_sizes(build, count):
    with torch.device("meta"):
        assert parameters(build()) == count


@pytest.mark.parametrize("name, layers", [("resnext11_2x16d", 11), ("pyramidnet48_a66", 44), ("pyramidnet84_a110", 80)])
def test_our_own_networks_are_as_deep_as_they_are_called(name, layers):
    """PyramidNet's depth is 2 and 6 for each block: what is over of 48 and 84 is dropped, by its authors' scripts too."""
    with torch.device("meta"):
        built = nets.NETS[name](10)
    on_the_way = [
        where for where, layer in built.named_modules()
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)) and ".past" not in where
    ]  # fmt: skip
    assert len(on_the_way) == layers


# --- the pictures ---


@pytest.mark.parametrize(
    "name, asked, own, side",
    [
        ("resnet26", 0, 32, 32),
        ("resnet26", 96, 32, 96),
        ("cait_xxs24_224", 0, 32, 224),
        ("cait_xxs24_224", 224, 64, 224),
        ("halonet26t", 0, 64, 256),  # one of the few whose least size timm knows
        ("halonet26t", 0, 300, 300),
        ("inception_v3", 0, 224, 224),
        ("torchvision:googlenet", 0, 32, 32),
        ("torchvision:googlenet", 96, 32, 96),
    ],
)
def test_pictures_are_as_large_as_asked_or_as_the_model_demands_or_as_they_are(name, asked, own, side):
    assert model.side_of(name, asked, own) == side


def test_presets_of_the_study_have_the_sizes_of_its_script():
    """`resolve_data_config` of its `timm/timm/data/config.py`; with 32 or 64 pixels CaiT, which takes 224 only, fails."""
    for experiment in ("study-uniform", "study-mixed"):
        names = set(re.findall('"([^"]+)"', (WORKLOADS.parent / f"experiments/{experiment}.toml").read_text())) & PRESETS.keys()
        assert names >= {"small", "medium", "large"}
        for name in names:
            _, settings, _, side = of_preset(name)
            made_for = timm.get_pretrained_cfg(settings["model"])
            of_script = {"cifar-10": 32, "imagenet64": 64}.get(settings["dataset"], made_for.input_size[-1])
            assert side == (made_for.input_size[-1] if made_for.fixed_input_size else of_script), name


@pytest.mark.parametrize(
    "name, asked, said",
    [
        ("resnet62", 0, r"`resnet62` is no model of timm [\d.]+: near it are `resnet26`"),
        ("resnet50.a1_in1k", 0, r"`resnet50.a1_in1k` is no model of timm"),
        ("hf-hub:timm/resnet50", 0, r"`hf-hub:timm/resnet50` is no model of timm"),
        ("torchvision:resnet19", 0, r"`torchvision:resnet19` is no classifier of torchvision .*near it are `torchvision:"),
        ("torchvision:maskrcnn_resnet50_fpn", 0, "`torchvision:maskrcnn_resnet50_fpn` is no classifier of torchvision"),
        ("collo:pyramidnet", 0, "`collo:pyramidnet` is no model of collo: near it are `collo:pyramidnet"),
        ("collo:xyz", 0, "`collo:xyz` is no model of collo: `vision/nets.py` names them all"),
        ("§", 0, r"`§` is no model of timm [\d.]+: `timm.list_models\(\)` names them all"),
        ("resnet26", -1, "`image_size` is -1: it is up to 2048 pixels a side, or 0"),
        ("resnet26", 100_000, "`image_size` is 100000: it is up to 2048 pixels a side, or 0"),
        ("cait_xxs24_224", 32, "`image_size` is 32, and `cait_xxs24_224` takes 224 only: set it to 224, or to 0"),
    ],
)
def test_a_model_or_a_size_that_cannot_be_says_so(name, asked, said):
    with pytest.raises(SettingError, match=said):
        model.side_of(name, asked, own=32)


@pytest.mark.parametrize(
    "name, batch_size, side, said",
    [
        ("inception_v3", 8, 32, r"`inception_v3` cannot train on 8 pictures of 32 × 32 \(.*[Kk]ernel.*made for 299$"),
        ("resnet26", 1, 32, "on 1 picture of 32 × 32 .*more than 1 value.*; or raise `batch_size`$"),
        ("torchvision:vit_b_32", 8, 32, "Wrong image height.*raise `image_size`, `torchvision:vit_b_32` is made for 224$"),
        ("inception_v3", 8, 75, None),
        ("torchvision:googlenet", 8, 32, None),
        ("torchvision:inception_v3", 8, 75, None),
        ("resnet26", 1, 64, None),
    ],
)
def test_pictures_too_small_for_a_model_are_found_before_the_training(name, batch_size, side, said):
    with torch.device("meta"):
        built = model.build(name, 10)
    if said is None:
        model.check(built, name, 10, batch_size, side)
        return
    with pytest.raises(SettingError, match=said):
        model.check(built, name, 10, batch_size, side)


def test_a_model_that_is_no_classifier_says_so():
    with torch.device("meta"):
        built = model.build("test_resnet", 0)
    with pytest.raises(SettingError, match="`test_resnet` does not put out one score for each of 10 classes"):
        model.check(built, "test_resnet", 10, 8, 32)


# --- the training ---


def test_a_run_says_hello_features_ready_and_epochs_in_this_order(run):
    assert [message["event"] for message in run] == ["hello", "features", "ready", *3 * ["epoch"], "done"]
    hello, features = run[:2]
    assert hello["model"] == {"name": "test_resnet", "parameters": 373_658}
    assert hello["dataset"] == {"name": "CIFAR-10", "synthetic": True, "items": 500}
    assert (hello["limit_batches"], hello["precision"], hello["image_size"]) == (12, "fp32", 32)
    assert (hello["device"], hello["threads"], hello["allocator"]) == ("cpu", 1, None)
    assert hello["versions"].keys() >= {"python", "torch", "timm", "numpy"}
    assert (features["batch_size"], features["parameters"]) == (16, 373_658)
    assert {message["items"] for message in run if message["event"] == "epoch"} == {12 * 16}


def test_the_loss_falls(run):
    losses = [message["loss"] for message in run if message["event"] == "epoch"]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.7 * losses[0], losses


def test_channels_last_is_another_order_in_memory_and_nearly_the_same_loss(run, shown, data):
    with script("vision", *words(**FEW, channels_last=True), data=data) as member:
        _, epochs = trained(member, epochs=1)
        seen = member.end()[1].splitlines()
    assert set(seen) == {"(16, 3, 32, 32) channels last"}
    assert epochs[0]["loss"] == pytest.approx(run[3]["loss"], rel=0.01)


@pytest.mark.parametrize(
    "preset, more, name, side",
    [
        ("small", {"precision": "bf16"}, "CIFAR-10", 32),
        ("mobilenet-v3-small-cifar100", {"precision": "fp16", "image_size": 40, "limit_batches": 1}, "CIFAR-100", 40),
        ("medium", {"limit_batches": 1}, "ImageNet64", 64),
        ("resnet50", {"model": "test_resnet", "image_size": 48, "workers": 1}, "ImageNet", 48),
    ],
)
def test_each_data_set_trains_two_tiny_epochs(shown, data, preset, more, name, side):
    with script("vision", *words(preset, **{"batch_size": 8, "limit_batches": 2, **more}), data=data) as member:
        hello, epochs = trained(member, epochs=2)
        status, seen, stderr = member.end()
    assert (status, stderr) == (0, "")
    assert hello["dataset"]["name"] == name and hello["dataset"]["synthetic"]
    own = "torch" if "recipe" in PRESETS[preset]["settings"] else "fp32"
    assert (hello["image_size"], hello["precision"]) == (side, more.get("precision", own))
    assert hello["model"]["name"] == {**PRESETS[preset]["settings"], **more}["model"]
    assert set(seen.splitlines()) == {f"(8, 3, {side}, {side})"}  # what the model was shown
    assert [epoch["items"] for epoch in epochs] == 2 * [8 * hello["limit_batches"]]
    assert all(0 < epoch["loss"] < 20 for epoch in epochs), epochs


@pytest.mark.parametrize("preset", ["resnext11-2x16d-cifar10", "shufflenet-v2-x0-5-cifar10"])
def test_a_network_of_ours_and_one_of_torchvision_train_like_those_of_timm(data, preset):
    with script("vision", *words(preset, batch_size=16, limit_batches=8, learning_rate=0.002), data=data) as member:
        hello, epochs = trained(member, epochs=2)
        assert member.end() == (0, "", "")
    assert hello["model"]["name"] == PRESETS[preset]["settings"]["model"]
    assert [epoch["items"] for epoch in epochs] == [128, 128]
    assert epochs[1]["loss"] < epochs[0]["loss"] or "shufflenet" in preset, epochs  # which learns slowly at first


def test_data_loader_workers_end_with_their_member(data):
    with script("vision", *words(**FEW, workers=2), data=data) as member:
        trained(member, epochs=1, after_measured="keep-running")
        workers = children(member.pid)
        assert len(workers) == 2
        ends = [os.pidfd_open(worker) for worker in workers]
        member.tell("stop")
        assert member.end() == (0, "", "")
    ended = [select.select([end], [], [], UNAIDED_S / 2)[0] for end in ends]
    assert ended == [[end] for end in ends]
    for end in ends:
        os.close(end)


def test_a_whole_epoch_leaves_the_odd_images_out(data):
    with script("vision", *words(model="test_resnet", batch_size=150, limit_batches=99), data=data) as member:
        hello, epochs = trained(member, epochs=1)
    assert hello["limit_batches"] is None  # it cuts nothing off
    assert epochs[0]["items"] == 450 and hello["dataset"]["items"] == 500


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"model": "resnet62"}, "`resnet62` is no model of timm"),
        ({"dataset": "criteo"}, "`dataset` is `criteo`: it is one of cifar-10, cifar-100, imagenet64, imagenet"),
        ({"batch_size": 501}, "`batch_size` 501 is larger than the data set of 500: make it smaller"),
        ({"precision": "tf32"}, "`precision` cannot be `tf32` on a CPU: it is a property of NVIDIA GPUs"),
    ],
)
def test_what_cannot_be_had_is_an_error_of_kind_setting_in_one_line(data, settings, said):
    with script("vision", *words(**{**FEW, **settings}), data=data) as member:
        error = member.hear()
        status, stdout, stderr = member.end()
    assert (error["event"], error["kind"]) == ("error", "setting") and said in error["message"]
    assert (status, stdout, stderr) == (1, "", f"error: {error['message']}\n")


def test_by_hand_it_simply_trains(data):
    with script("vision", "--model=test_resnet", "--limit-batches=2", by_hand=True, data=data) as by_hand:
        status, stdout, stderr = by_hand.end()
    assert (status, stderr) == (0, "")
    first, *epochs = stdout.splitlines()
    assert first == "test_resnet, 373658 parameters; CIFAR-10, a synthetic stand-in; device cpu, 1 thread"
    assert [line.split(" took ")[0] for line in epochs] == ["epoch 0", "epoch 1"]


# --- the regime ---

RECIPES = written("vision")["recipes"]
COLLO = {
    "recipe": "collo", "precision": "fp32", "read_loss": "epoch", "workers": 0, "learning_rate": 0.05,
    "optimiser": "sgd", "nesterov": False, "weight_decay": 5e-4, "label_smoothing": 0.0, "schedule": "constant",
    "schedule_epochs": None, "keep_cache": False, "augmentation": "none", "crop": None, "validate": False,
}  # fmt: skip
# What the sources say, word for word: timm/train.py of the study's artefacts with its defaults; CARMA's resnet50.py and
# resnet18_cifar100.py.
OF_THE_SOURCES = {
    "timm": {
        "precision": "tf32", "workers": 4, "pin_memory": "false", "keep_cache": True, "read_loss": "step",
        "zero_grad": "before-forward", "augmentation": "timm", "validate": True, "optimiser": "sgd", "nesterov": True, "weight_decay": 2e-5,
        "label_smoothing": 0.1, "learning_rate": 0, "schedule": "cosine", "schedule_epochs": 300,
    },
    "carma": {
        "precision": "torch", "workers": 4, "pin_memory": "false", "tune": False, "keep_cache": True,
        "read_loss": "step", "zero_grad": "before-forward",
        "augmentation": "none", "crop": "centre", "validate": True, "optimiser": "adam", "weight_decay": 0.0,
        "learning_rate": 1e-3,
    },
    "carma-cifar": {
        "precision": "torch", "workers": 4, "pin_memory": "false", "tune": False, "keep_cache": True,
        "read_loss": "step", "zero_grad": "before-forward",
        "augmentation": "crop-flip", "validate": True, "optimiser": "adamw", "weight_decay": 1e-4,
        "learning_rate": 1e-3, "schedule": "cosine", "schedule_epochs": 10,
    },
}  # fmt: skip


def test_a_recipe_sets_exactly_what_its_source_does():
    assert RECIPES == OF_THE_SOURCES


def test_the_conditions_of_published_figures_are_those_of_the_recipes():
    published = json.loads((WORKLOADS.parent / "reports/published/study.json").read_text())["regimes"]
    for name, recipe in RECIPES.items():
        own = {**BASE, **recipe}
        assert published[name] == {condition: own[condition] for condition in published[name]}, name
        assert published[name].keys() >= {"precision", "workers", "read_loss", "validate", "optimiser", "augmentation"}


def test_the_presets_of_table_6_2_are_in_the_regime_of_its_scripts():
    of_the_study = {name for name in PRESETS if "recipe" not in PRESETS[name]["settings"]}
    assert {name for name in of_the_study if "cait" not in name and "v2-s" not in name} >= {"small", "medium", "large"}
    table = {name: preset["settings"] for name, preset in PRESETS.items() if "recipe" in preset["settings"]}
    assert {"resnet50", "vgg16", "xception", "resnet18-cifar100", "resnet50-cifar100"} <= table.keys()
    assert [table["inception-v3"][name] for name in ("image_size", "resize")] == [299, 299]  # Resize(299), CenterCrop(299)
    for name, settings in table.items():
        assert settings["recipe"] == {"imagenet": "carma", "cifar-100": "carma-cifar"}[settings["dataset"]], name


def test_the_hello_says_the_regime_in_force(run):
    assert run[0]["regime"] == COLLO


def test_a_recipe_trains_and_validates_and_says_what_it_was(data):
    """All of timm's but TF32, which a CPU has not, and with one worker."""
    asked = words(**{**FEW, "limit_batches": 2, "learning_rate": 0}, recipe="timm", precision="fp32", workers=1)
    with script("vision", *asked, data=data) as member:
        hello, epochs = trained(member, epochs=2)
        assert member.end() == (0, "", "")
    assert hello["regime"] == {
        "recipe": "timm", "precision": "fp32", "read_loss": "step", "workers": 1, "learning_rate": 0.1 * 16 / 256,
        "optimiser": "sgd", "nesterov": True, "weight_decay": 2e-5, "label_smoothing": 0.1,
        "schedule": "cosine", "schedule_epochs": 300, "keep_cache": True, "augmentation": "timm", "crop": None,
        "validate": True,
    }  # fmt: skip
    assert [epoch["items"] for epoch in epochs] == [32, 32]  # those of training
    assert all(0 < epoch["loss"] < 5 for epoch in epochs)


@pytest.mark.parametrize("given, workers", [([], 4), (["--workers", "0"], 0)])
def test_by_hand_the_script_looks_its_recipe_up_and_what_is_given_wins(data, given, workers):
    asked = ["--model=test_resnet", "--batch-size=16", "--limit-batches=1", "--recipe=carma-cifar", *given]
    with script("vision", *asked, by_hand=True, data=data) as by_hand:
        status, stdout, stderr = by_hand.end()
    assert (status, stderr) == (0, "")
    assert [line.split()[0] for line in stdout.splitlines()[1:]] == 2 * ["epoch", "validation"]
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", default="collo")
    parser.add_argument("--workers", type=int, default=0)
    found = collo_recipe.settings_of(parser, WORKLOADS / "vision", ["--recipe=carma-cifar", *given])
    assert (found.workers, found.precision) == (workers, "torch")


class Picked:
    """Stands for the settings."""

    seed, crop, resize, augmentation, dataset = 1, "random", 0, "none", "cifar-10"

    def __init__(self, **given):
        self.__dict__.update(given)


pictures = module("vision", "pictures")


@pytest.mark.parametrize(
    "name, augmentation",
    [("cifar-10", "crop-flip"), ("cifar-10", "timm"), ("imagenet64", "timm"), ("imagenet", "timm")],
)
def test_augmentation_changes_pixels_anew_each_time_and_neither_shape_nor_label(data, monkeypatch, name, augmentation):
    monkeypatch.setenv("COLLO_DATA", str(data))
    plain = pictures.load(name, Picked(), 48)
    drawn = pictures.load(name, Picked(augmentation=augmentation), 48)
    indices = list(range(6))
    (before, labels), (first, same), (second, _) = (d.__getitems__(indices) for d in (plain, drawn, drawn))
    assert first.shape == before.shape and first.dtype == before.dtype == np.uint8 and (labels == same).all()
    assert (first != before).any() and (first != second).any()
    assert len(drawn) == len(plain) and drawn.describe() == plain.describe() and (drawn.classes, drawn.std) == (
        plain.classes, plain.std
    )  # fmt: skip


def test_crop_flip_moves_by_at_most_four_pixels(data, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(data))
    plain, drawn = (pictures.load("cifar-10", Picked(augmentation=a), 32) for a in ("none", "crop-flip"))
    before = np.pad(plain.__getitems__([3])[0][0], ((0, 0), (4, 4), (4, 4)))
    places = {(top, left, mirrored) for top in range(9) for left in range(9) for mirrored in (1, -1)}
    for _ in range(20):
        found = drawn.__getitems__([3])[0][0]
        assert any((before[:, top : top + 32, left : left + 32][:, :, ::m] == found).all() for top, left, m in places)


def test_the_centre_of_a_training_picture_is_what_validation_sees(data, monkeypatch):
    monkeypatch.setenv("COLLO_DATA", str(data))
    centre, random = (pictures.load("imagenet", Picked(crop=crop), 32) for crop in ("centre", "random"))
    images = [d.__getitems__([5])[0] for d in (centre, random)]
    assert (images[0][0] == centre.middle(centre.decoded(5)).transpose(2, 0, 1)).all()
    assert (images[0] != images[1]).any()


@pytest.mark.parametrize("augmentation", ["timm", "none"])
def test_validation_is_never_augmented(data, monkeypatch, augmentation):
    monkeypatch.setenv("COLLO_DATA", str(data))
    test = pictures.load("cifar-10", Picked(augmentation=augmentation), 32, training=False)
    stored = collo_data.load("cifar-10", "test")
    assert (test.__getitems__([1, 2])[0] == stored.__getitems__([1, 2])[0]).all()


learning = module("vision", "learning")


def chosen(**given):
    parser = argparse.ArgumentParser()
    learning.add_settings(parser)
    parser.set_defaults(learning_rate=0.1, batch_size=32, cuda_graphs=False)
    parser.set_defaults(**given)
    return parser.parse_args([])


@pytest.mark.parametrize(
    "name, kind", [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_the_optimiser_is_the_one_that_is_named_with_its_parameters(name, kind):
    weight = torch.nn.Parameter(torch.ones(2))
    made = learning.optimiser([weight], chosen(optimiser=name, weight_decay=0.25, nesterov=True))
    assert type(made) is kind
    group = made.param_groups[0]
    assert (group["lr"], group["weight_decay"]) == (0.1, 0.25)
    assert group.get("nesterov", True) is True and group.get("momentum", 0.9) == 0.9


def test_a_learning_rate_of_0_is_timms_for_the_batch_size():
    settings = chosen(learning_rate=0, batch_size=128)
    learning.check(settings)
    assert settings.learning_rate == 0.05  # timm/train.py: lr_base * global_batch_size / lr_base_size


def test_a_cosine_comes_down_once_an_epoch():
    settings = chosen(schedule="cosine", schedule_epochs=10)
    made = learning.optimiser([torch.nn.Parameter(torch.ones(2))], settings)
    step, rates = learning.schedule(made, settings), []
    for _ in range(11):
        made.step()
        rates.append(made.param_groups[0]["lr"])
        step()
    expected = [0.05 * (1 + math.cos(math.pi * epoch / 10)) for epoch in range(11)]
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"recipe": "tim"}, "`recipe` is `tim`, nearest to it is `timm`: it is one of collo, timm, carma, carma-cifar"),
        ({"optimiser": "adma"}, "`optimiser` is `adma`: it is one of sgd, adam, adamw"),
        ({"schedule": "step"}, "`schedule` is `step`: it is one of constant, cosine"),
        ({"augmentation": "mixup"}, "`augmentation` is `mixup`: it is one of none, crop-flip, timm"),
        ({"crop": "center"}, "`crop` is `center`: it is one of random, centre"),
        ({"dataset": "imagenet", "crop": "centre", "augmentation": "timm"}, "`crop` cannot be `centre` with"),
        ({"schedule": "cosine", "cuda_graphs": True}, "`schedule` cannot be cosine with `cuda_graphs`"),
        ({"label_smoothing": 1.0}, "`label_smoothing` is 1.0: it is 0 or more, and below 1"),
        ({"weight_decay": -1.0}, "`weight_decay` is -1.0: it is 0 or more"),
        ({"schedule_epochs": 0}, "`schedule_epochs` is 0: it is 1 or more"),
        ({"read_loss": "never"}, "`read_loss` is `never`: it is one of epoch, step"),
    ],
)
def test_a_regime_that_cannot_be_is_refused(data, settings, said):
    with script("vision", *words(**{**FEW, **settings}), data=data) as member:
        error = member.hear()
        assert member.end()[0] == 1
    assert (error["event"], error["kind"]) == ("error", "setting") and said in error["message"]
