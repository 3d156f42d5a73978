"""The sequence of layers, which estimators of memory read: in order, with what is called without a layer."""

import collo_features
import pytest
import torch
from collo_features import features
from torch import nn
from torch.nn import functional as F


def sequence(model, *example):
    return features(model, example)["sequence"]


def test_layers_come_in_the_order_of_the_forward_pass_and_not_of_their_making():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2)
            self.first = nn.Conv2d(3, 4, 3, bias=False)
            self.never = nn.Linear(9, 9)

        def forward(self, x):
            x = self.first(x)
            return self.last(x.mean((2, 3)))

    assert sequence(Net(), torch.zeros(1, 3, 8, 8)) == [["Conv2d", 4 * 36, 108], ["Linear", 2, 10]]


def test_a_layer_that_is_used_twice_is_there_twice_and_identity_is_nothing():
    layer = nn.Linear(3, 3)
    model = nn.Sequential(layer, nn.Identity(), nn.ReLU(), layer)
    assert sequence(model, torch.zeros(1, 3)) == [["Linear", 3, 12], ["ReLU", 3, 0], ["Linear", 3, 12]]


class Functional(nn.Module):
    """A model with a function in it. What has no layer in it would be a layer itself, and told by its class."""

    def __init__(self, activate):
        super().__init__()
        self.nothing = nn.Identity()
        self.activate = activate

    def forward(self, x):
        return self.activate(x)


@pytest.mark.parametrize(
    "activate, name",
    [(F.relu, "relu"), (torch.relu_, "relu"), (torch.tanh, "tanh"), (F.gelu, "gelu"), (F.silu, "silu"),
     (torch.Tensor.sigmoid, "sigmoid"), (lambda x: F.softmax(x, dim=1), "softmax"), (lambda x: x.softmax(1), "softmax"),
     (lambda x: F.dropout(x, training=False), "dropout"), (lambda x: F.layer_norm(x, (6,)), "layer_norm")],
)  # fmt: skip
def test_a_function_without_a_layer_is_told_once_by_its_small_name(activate, name):
    assert sequence(Functional(activate), torch.zeros(1, 6)) == [[name, 6, 0]]


def test_what_only_lays_out_or_is_an_operator_is_not_told():
    """What is not seen, said in the catalogue."""
    assert sequence(Functional(lambda x: F.pad(x.view(2, 3), (0, 1)) + 1), torch.zeros(1, 6)) == []


def test_what_a_layer_calls_inside_itself_belongs_to_it():
    gelu = [["GELU", 6, 0]]
    assert sequence(nn.Sequential(nn.GELU()), torch.zeros(1, 6)) == gelu


def test_an_attention_has_its_parameters_although_its_last_layer_is_never_called():
    attention = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    told = sequence(attention, torch.zeros(1, 5, 8))
    assert told[0] == ["multi_head_attention_forward", 40, 3 * 8 * 9 + 8 * 9]
    assert [entry[0] for entry in told[1:]] == "Dropout LayerNorm Linear relu Dropout Linear Dropout LayerNorm".split()
    assert sum(entry[2] for entry in told) == sum(p.numel() for p in attention.parameters())


def test_layers_without_a_form_on_the_meta_device_leave_no_sequence():
    told = features(Functional(lambda x: x[x > 0]), (torch.zeros(1, 6),))
    assert told["sequence"] is None and told["flops_per_item"] is None and told["parameters"] == 0


def test_a_sequence_too_long_for_a_message_is_left_out(monkeypatch):
    model = nn.Sequential(*(nn.ReLU() for _ in range(11)))
    assert len(sequence(model, torch.zeros(1, 2))) == 11
    monkeypatch.setattr(collo_features, "MOST_LAYERS", 10)
    told = features(model, (torch.zeros(1, 2),))
    assert told["sequence"] is None and told["activations_per_item"] == 22
