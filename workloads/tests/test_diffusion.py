"""The diffusion model: its published sizes, where its patches lie, and that it learns."""

import numpy as np
import pytest
import torch
from harness import written
from scripts import flags, module, script, trained

model, latents = module("diffusion", "model"), module("diffusion", "latents")
PRESETS = written("diffusion")["presets"]


def parameters(built):
    return sum(parameter.numel() for parameter in built.parameters())


@pytest.mark.parametrize(
    "layers, width, heads, millions, preset",
    [  # of the paper, table 1; it counts the places of the patches, which are not trained
        (12, 384, 6, 33, "dit-s"),
        (12, 768, 12, 130, "dit-b"),
        (24, 1024, 16, 458, None),
        (28, 1152, 16, 675, None),
    ],
)
def test_it_is_as_large_as_in_the_paper(layers, width, heads, millions, preset):
    with torch.device("meta"):
        built = model.DiT(layers, width, heads, 32, 1000)
    assert (parameters(built) + built.places.numel()) / 1e6 == pytest.approx(millions, abs=0.52)
    if preset:
        settings = PRESETS[preset]["settings"]
        sizes = [settings[name] for name in ("layers", "width", "heads", "side", "classes")]
        assert sizes == [layers, width, heads, 32, 1000]
        assert f"({parameters(built) / 1e6:.1f} M parameters)" in PRESETS[preset]["description"]


def test_what_comes_out_of_a_patch_lies_where_it_went_in():
    """At first the blocks do nothing, so that a patch is seen by itself alone."""
    torch.manual_seed(1)
    built = model.DiT(2, 16, 2, 8, 3)
    torch.nn.init.normal_(built.out.weight)
    one, about = torch.randn(1, 4, 8, 8), (torch.tensor([7]), torch.tensor([2]))
    other = one.clone()
    other[0, 1, 5, 2] += 1  # in the patch of rows 4 and 5, columns 2 and 3
    changed = (built(one, *about) != built(other, *about)).any(1)[0]
    expected = torch.zeros(8, 8, dtype=torch.bool)
    expected[4:6, 2:4] = True
    assert (changed == expected).all() and built(one, *about).shape == (1, 8, 8, 8)


def test_noise_covers_the_latents_little_by_little():
    left = model.left_of(torch.arange(model.STEPS)).flatten()
    assert left[0] > 0.999 and left[-1] < 0.001 and (left.diff() < 0).all()


def test_latents_come_from_their_seed_and_classes_differ():
    one, same, other = (latents.Latents(200, 4, 16, 3, seed) for seed in (1, 1, 2))
    assert (one.latents == same.latents).all() and (one.latents != other.latents).any()
    assert one.latents.dtype == np.float32 and 0.5 < one.latents.std() < 1.5
    means = [one.latents[one.labels == kind].mean(0) for kind in range(3)]
    assert all(np.abs(a - b).mean() > 0.5 for a, b in zip(means, means[1:]))


def test_it_learns_and_says_what_it_is():
    said, ended = trained("diffusion", *flags("diffusion", items=128))
    assert ended == (0, "", "")
    (hello,), (told,), epochs = said["hello"], said["features"], said["epoch"]
    assert hello["model"] == {"name": "DiT of 2 layers, width 64", "parameters": 182_176}
    assert hello["dataset"] == {"name": "latents", "synthetic": True, "items": 128} and hello["side"] == 16
    assert told["sequence"][0] == ["Conv2d", 64 * 64, 64 * 17]
    assert [entry[0] for entry in told["sequence"]].count("scaled_dot_product_attention") == 2
    assert epochs[1]["loss"] < 0.9 * epochs[0]["loss"], epochs


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"side": 30}, "`side` is 30: it is 4 to 512 values a side and a multiple of 4"),
        ({"heads": 5}, "`heads` is 5 and `width` 64: the width is even, and the heads share it evenly"),
        ({"layers": 0}, "`layers` is 0: it is 1 to 1000"),
        ({"layers": 1000, "width": 100_000}, "the weights and AdamW take at least 2880 TB, the "),
        ({"items": 10**8, "side": 512}, "100000000 latents take 838.9 TB, the "),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, message):
    with script("diffusion", *flags("diffusion", **settings)) as member:
        error = member.hear()
        assert member.end() == (1, "", f"error: {error['message']}\n")
    assert error["kind"] == "setting" and error["message"].startswith(message)
