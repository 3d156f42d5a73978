"""FLOPs of the utilisation paper's thirteen architectures (Yeung et al., HotCloud'20, table 1) against what others publish.

Publications count multiply-adds, two FLOPs each. They are of pictures of 224 × 224 pixels; the paper trained on 32 × 32.
"""

import math

import collo_describe
import pytest
import timm
import torch
import torchvision
from collo_features import features
from scripts import module
from test_describe import in_a_fork
from torch import nn

PICTURE = 3, 224, 224
# In 10⁹ multiply-adds: `_ops` of each model's weights in torchvision (torchvision/models/*.py), measured by its authors.
TORCHVISION = {
    "mobilenet_v2": 0.301,
    "resnet18": 1.814,
    "resnet34": 3.664,
    "resnet50": 4.089,
    "googlenet": 1.498,
    "vgg19": 19.632,
    "resnext50_32x4d": 4.23,  # the paper's own has 11 layers, and no publication
    "squeezenet1_0": 0.819,
    "densenet121": 2.834,
    "densenet161": 7.728,
    "densenet169": 3.36,
    "shufflenet_v2_x0_5": 0.04,
    "shufflenet_v2_x1_0": 0.145,
    "shufflenet_v2_x2_0": 0.583,
    "mnasnet0_5": 0.104,
    "mnasnet1_0": 0.314,
    "mnasnet1_3": 0.526,
}
TIMM = {
    "dpn92": 6.54,  # results/model_metadata-in1k.csv and benchmark tables of huggingface/pytorch-image-models
    "mobilenetv2_050": 0.097,  # tensorflow/models, research/slim/nets/mobilenet: mobilenet_v2_0.5_224
}
NEAR = 0.03


def forward_flops(make, *shape):
    with torch.device("meta"):
        return features(make(), (torch.zeros(1, *shape),))["flops_per_item"]


def off(flops, published):
    return abs(flops / (2e9 * published) - 1)


def test_flops_are_within_three_percent_of_every_published_figure():
    one_head = {"googlenet": {"aux_logits": False}}
    worst = {}
    for name, published in TORCHVISION.items():
        flops = forward_flops(lambda: torchvision.models.get_model(name, weights=None, **one_head.get(name, {})), *PICTURE)
        worst[name] = off(flops, published)
    for name, published in TIMM.items():
        worst[name] = off(forward_flops(lambda: timm.create_model(name), *PICTURE), published)
    name = max(worst, key=worst.get)
    print(f"worst of {len(worst)}: {name}, {worst[name]:.2%}")
    assert worst[name] < NEAR, worst


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "densenet121"])
@in_a_fork
def test_a_description_has_the_published_flops(name):
    described = collo_describe.describe_model(f"torchvision:{name}", PICTURE, 1000, "adam")
    assert off(described["forward_flops_per_item"], TORCHVISION[name]) < NEAR


def by_shapes(model, *shape):
    """Of convolutions and linear layers, each from its own sizes: two for each multiply-add."""
    flops = []

    def count(layer, inputs, output):
        weights = layer.weight.numel() / layer.weight.shape[0]  # multiply-adds for each value put out
        flops.append(2 * weights * math.prod(output.shape))

    for layer in model.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            layer.register_forward_hook(count)
    model.eval()(torch.zeros(1, *shape, device="meta"))
    return sum(flops)


@pytest.mark.parametrize(
    "name", ["resnext11_2x16d", "pyramidnet48_a66", "pyramidnet48_a110", "pyramidnet84_a66", "pyramidnet84_a110"]
)
def test_what_nobody_published_has_the_flops_of_its_layers_sizes(name):
    make = module("vision", "nets").NETS[name]
    with torch.device("meta"):
        assert forward_flops(lambda: make(10), 3, 32, 32) == pytest.approx(by_shapes(make(10), 3, 32, 32), rel=1e-9)


LENGTH, WORDS = 200, 10_000


def multiply_adds_of_text(model, width, layers):
    head = LENGTH * WORDS * (2 * width if model == "lstm" else width)
    if model == "lstm":  # four gates, each of the input and of the state; from both ends
        inputs = [width] + [2 * width] * (layers - 1)
        return head + sum(2 * LENGTH * 4 * width * (given + width) for given in inputs)
    projections, inner = 4 * width * width, 2 * width * 4 * width
    attention = 2 * LENGTH * width  # of a token: to all others, and from them
    return head + layers * LENGTH * (projections + inner + attention)


@pytest.mark.parametrize("model, width, layers", [("lstm", 64, 1), ("lstm", 128, 2), ("transformer", 64, 2), ("transformer", 128, 2)])
@in_a_fork
def test_text_models_have_the_flops_of_their_sizes(model, width, layers):
    nets = module("text", "model")
    with collo_describe.Describing() as describing:
        net = nets.LSTM(WORDS, width, layers, True) if model == "lstm" else nets.Transformer(WORDS, width, layers, 4, LENGTH)
        describing.model = net
        describing.optimiser = torch.optim.Adam(net.parameters())
        item = (torch.zeros(1, LENGTH, dtype=torch.int64),)

        def step(ids):
            loss = net(ids).sum()
            loss.backward()
            describing.optimiser.step()
            return loss.detach()

        described = describing.described(step, item, ahead=False)
    assert off(described["forward_flops_per_item"], multiply_adds_of_text(model, width, layers) / 1e9) < NEAR
