"""Training steps described without a GPU: against direct traces, published figures, and what torch does on a GPU."""

import copy
import functools
import json
import os
import traceback

import collo_as_gpu
import collo_describe
import pytest
import torch
import torch._dynamo  # noqa: F401  (which fake tensors import: once for all forks)
import torchvision  # noqa: F401
from collo import SettingError
from collo_classifiers import made_for
from collo_description import upper_envelope
from collo_describe import Describing, describe_model, in_time, watched_optimisers
from collo_trace import KINDS, Trace
from forked import Forked
from scripts import flags, script
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

MIB = 2**20
RESNET50 = ("torchvision:resnet50", (3, 224, 224), 1000, "adam")


def peak_bytes(described, batch, kinds=KINDS):
    """The most that is allocated at any moment, of these kinds."""
    wanted = [described["kinds"].index(kind) for kind in kinds]
    sizes = [size * (batch if grows else 1) * (kind in wanted) for size, grows, kind in described["allocations"]]
    alive = most = 0
    for event in described["events"]:
        alive += sizes[event - 1] if event > 0 else -sizes[-event - 1]
        most = max(most, alive)
    return most


def in_a_fork(test):
    """The test in a process of its own: autograd starts threads, after which nothing that is forked can use it."""

    @functools.wraps(test)
    def forked(**given):
        pid = os.fork()
        if pid == 0:
            try:
                test(**given)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, "see its standard error"

    return forked


# --- one description for every batch size ---


@pytest.mark.parametrize(
    "model, side", [("timm:resnet18", 64), ("torchvision:mobilenet_v2", 64), ("timm:vit_tiny_patch16_224", 224)]
)
@in_a_fork
def test_a_description_says_what_a_direct_trace_of_another_batch_size_says(model, side, monkeypatch):
    described = describe_model(model, (3, side, side), 10, "adam")
    assert described["traced_batch"] == 13
    for batch in (8, 32):
        monkeypatch.setattr(collo_describe, "prime_for", lambda *_: batch)
        direct = describe_model(model, (3, side, side), 10, "adam")
        assert direct["traced_batch"] == batch
        assert direct["events"] == described["events"]
        assert peak_bytes(direct, batch) == peak_bytes(described, batch)
        assert direct["forward_flops_per_item"] == described["forward_flops_per_item"]


@in_a_fork
def test_numbers_that_decide_about_a_model_are_there_while_it_is_made():
    regnet = describe_model("torchvision:regnet_y_400mf", (3, 64, 64), 1000, "adam")
    assert regnet["parameters"] == 4_344_144  # torchvision's documentation
    assert regnet["approximate"] == []


class Sized(torch.nn.Module):
    """As wide as a number in a tensor says."""

    def __init__(self, number):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1 + number)

    def forward(self, x):
        return self.layer(x)


def overwritten(change):
    """A number of a tensor that was known, once a view of it is changed to what is not known."""
    numbers = torch.full((4,), 5)
    change(numbers[:2])
    return int(numbers[0])


@pytest.mark.parametrize(
    "number, outputs, approximate",
    [(lambda: int(torch.linspace(0, 4, 2)[1]), 5, []),
     (lambda: int(torch.rand(1)), 2, ["set-up"]),
     (lambda: overwritten(lambda part: part.random_(3)), 2, ["set-up"]),
     (lambda: overwritten(lambda part: part.copy_(torch.randint(3, (2,)))), 2, ["set-up"]),
     (lambda: overwritten(lambda part: torch.empty(2).copy_(part)), 6, [])],
)  # fmt: skip
@in_a_fork
def test_a_model_made_by_a_number_that_is_not_there_is_called_a_guess(number, outputs, approximate):
    found = described(lambda: Sized(number()))
    assert found["parameters"] == 9 * outputs
    assert [said.split()[1] for said in found["approximate"]] == approximate


def test_a_prime_that_divides_a_size_of_the_model_is_not_taken():
    thirteen, fine = torch.nn.Linear(26, 4), torch.nn.Linear(20, 4)
    assert collo_describe.prime_for(fine, [torch.zeros(1, 20)]) == 13
    assert collo_describe.prime_for(thirteen, [torch.zeros(1, 26)]) == 17
    assert collo_describe.prime_for(fine, [torch.zeros(1, 13 * 17)]) == 19


@in_a_fork
def test_what_is_made_is_freed_once_and_only_then():
    resnet50 = describe_model(*RESNET50)
    alive = set()
    for event in resnet50["events"]:
        if event > 0:
            assert event not in alive
            alive.add(event)
        else:
            alive.remove(-event)
    made = [event for event in resnet50["events"] if event > 0]
    assert sorted(made) == list(range(1, len(resnet50["allocations"]) + 1))
    set_up, first, second = resnet50["steps"]
    assert set_up < first < second == len(resnet50["events"])


# --- figures of others ---


@in_a_fork
def test_resnet50_takes_what_arithmetic_and_the_published_summaries_say():
    resnet50 = describe_model(*RESNET50)
    assert resnet50["parameters"] == 25_557_032  # torchvision's documentation
    assert resnet50["parameter_bytes"] == 4 * 25_557_032 == resnet50["trainable_parameter_bytes"]
    assert resnet50["forward_flops_per_item"] == pytest.approx(2 * 4.09e9, rel=0.01)  # the same, multiply-adds
    assert resnet50["features"] == {
        "convolutions": 53, "linear": 1, "activations": 49, "other": 56, "model_mb": pytest.approx(102.44, abs=0.01)
    }  # fmt: skip
    of_kind = {kind: sum(a[0] for a in resnet50["allocations"] if a[2] == number) for number, kind in enumerate(KINDS)}
    assert of_kind["weights"] == resnet50["parameter_bytes"]
    assert of_kind["gradients"] == 2 * of_kind["weights"]  # of two steps
    assert of_kind["optimizer"] == 2 * of_kind["weights"]  # Adam's two moments
    assert of_kind["buffers"] == resnet50["buffer_bytes"]
    # The widest 3 × 3 convolution but the first layer: 128 channels of 56 × 56 go in, 128 of 28 × 28 come out.
    assert resnet50["workspace"] == {"item_bytes": 4 * 128 * (56**2 + 28**2), "fixed_bytes": 0}


@in_a_fork
def test_the_peaks_of_resnet50_at_batch_size_32():
    """The gradients go before the forward pass, as in the published scripts; kept through it they would add 90 MiB,
    which makes the 3041 and 1821 MiB of a first prototype.
    """
    for precision, peak in (("fp32", 2947), ("bf16", 1711)):
        assert peak_bytes(describe_model(*RESNET50, precision), 32) / MIB == pytest.approx(peak, abs=1)


# itu-rad/CARMA's columns, the numbers behind thesis figures 5.11 to 5.13, in MiB at batch sizes 32, 64 and 128.
@pytest.mark.parametrize(
    "model, fake_tensor, horus",
    [("torchvision:resnet50", (2673, 5337, 10666), (7904, 14910, 28923)),
     ("torchvision:vgg16", (3121, 5379, 9894), (21526, None, 82120)),
     ("torchvision:mobilenet_v2", (2425, 4846, 9686), (3617, 6421, 12028)),
     ("timm:legacy_xception", (4166, 8325, 16642), (8532, 16176, 31465))],
)  # fmt: skip
@in_a_fork
def test_peers_are_what_their_authors_published(model, fake_tensor, horus):
    described = describe_model(model, (3, 224, 224), 1000, "adam")
    for batch, of_fake_tensor, of_horus in zip((32, 64, 128), fake_tensor, horus):
        peak = max(fixed + item * batch for fixed, item in described["fake_tensor"])
        assert peak / MIB == pytest.approx(of_fake_tensor, abs=1.5)
        parameters = described["parameters"]
        estimate = 4 * (batch * described["horus_activations"] + parameters + batch * parameters) / MIB + 800
        assert of_horus is None or estimate == pytest.approx(of_horus, rel=0.0005)


def test_an_envelope_keeps_the_lines_that_are_highest_somewhere():
    assert upper_envelope([(10, 1), (8, 1), (0, 2), (9, 0)]) == [[10, 1], [0, 2]]
    assert upper_envelope([(5, 0), (5, 1)]) == [[5, 1]]
    lines = [(100, 0), (60, 3), (50, 5), (0, 9), (59, 3)]
    kept = upper_envelope(lines)
    for batch in range(1, 200):
        assert max(f + i * batch for f, i in kept) == max(f + i * batch for f, i in lines)


# --- as a GPU chooses ---


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.add(function._overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def names(run, substituted=True):
    """The operations of `run`, on fake tensors."""
    with FakeTensorMode(), Names() as names:
        if substituted:
            with collo_as_gpu.as_on_a_gpu():
                run()
        else:
            run()
    return names.seen


def test_dropout_keeps_a_mask_of_bytes():
    def run():
        F.dropout(torch.empty(13, 8, requires_grad=True), 0.5, True)

    assert "native_dropout" in names(run) and "native_dropout" not in names(run, substituted=False)
    with FakeTensorMode(), collo_as_gpu.as_on_a_gpu(), Trace(13) as trace:
        x = torch.empty(13, 8)
        kept = torch.ops.aten.dropout(x, 0.5, True), torch.ops.aten.dropout(x, 0.5, False)
    assert sorted(trace.sizes) == [13 * 8, 4 * 13 * 8, 4 * 13 * 8]  # mask, input, output; in an evaluation nothing
    assert kept[1] is not None


def attended(dtype=torch.float32, mask=None, head=16):
    def run():
        query, key, value = (torch.empty(2, 4, 32, head, dtype=dtype, requires_grad=True) for _ in range(3))
        made = None if mask is None else torch.ones(2, 1, 32, 32, dtype=mask)
        F.scaled_dot_product_attention(query, key, value, made).sum().backward()

    return run


@in_a_fork
def test_attention_takes_the_kernels_of_a_gpu():
    flash, efficient = "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"
    seen = names(attended(torch.bfloat16))
    assert flash in seen and f"{flash}_backward" in seen
    seen = names(attended())
    assert efficient in seen and f"{efficient}_backward" in seen and flash not in seen
    assert efficient in names(attended(torch.float16, mask=torch.bool)) & names(attended(mask=torch.float32))
    assert not {flash, efficient} & names(attended(torch.float64))
    assert efficient in names(attended(torch.bfloat16, head=512))  # too wide for flash
    assert "constant_pad_nd" in names(attended(torch.bfloat16, head=20))  # filled up to 24
    assert not {flash, efficient} & names(attended(), substituted=False)


def optimised():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    for parameter in model.parameters():
        parameter.grad = torch.empty_like(parameter)
    torch.optim.Adam(model.parameters()).step()


def test_optimisers_work_on_all_weights_at_once():
    one_by_one, at_once = names(optimised, substituted=False), names(optimised)
    assert "sqrt" in one_by_one and "_foreach_sqrt" not in one_by_one
    assert "_foreach_sqrt" in at_once and "sqrt" not in at_once


def test_autocast_computes_in_fp32_what_a_gpu_computes_so():
    with Describing(), torch.autocast("cpu", torch.bfloat16):
        x = torch.empty(13, 8)
        half = F.linear(x, torch.empty(8, 8))
        assert half.dtype is torch.bfloat16
        assert F.layer_norm(half, (8,)).dtype is torch.float32
        assert F.softmax(half, 1).dtype is F.log_softmax(half, 1).dtype is torch.float32
        assert half.sum().dtype is half.exp().dtype is torch.float32
        assert F.cross_entropy(half, torch.empty(13, dtype=torch.int64)).dtype is torch.float32
        assert F.relu(half).dtype is torch.bfloat16
    with FakeTensorMode(), torch.autocast("cpu", torch.bfloat16):
        assert F.softmax(torch.empty(13, 8, dtype=torch.bfloat16), 1).dtype is torch.bfloat16


@in_a_fork
def test_no_step_of_half_precision_is_skipped():
    with Describing() as describing:
        model = torch.nn.Linear(8, 2)
        optimiser = torch.optim.Adam(model.parameters())
        watched_optimisers(describing.trace)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(model(torch.empty(13, 8)).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
        assert len(optimiser.state) == 2
    assert describing.trace.reads == 0


def test_weights_are_not_drawn_however_they_would_be():
    with Describing(limit_s=20):
        weight = torch.nn.Parameter(torch.empty(8, 8))
        assert torch.nn.init.trunc_normal_(weight) is weight  # else it draws until every number fits
        assert torch.nn.init.kaiming_uniform_(weight) is weight


def test_a_model_that_is_moved_keeps_its_weights_and_what_is_shared():
    with Describing():
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        model[1].weight = model[0].weight
        weight = model[0].weight
        model.to("cpu").to(torch.bfloat16)
        assert model[0].weight is weight is model[1].weight and weight.dtype is torch.bfloat16
        table = torch.nn.utils.skip_init(torch.nn.EmbeddingBag, 10, 4, device="cpu")
        assert table.weight.device.type == "cpu"


def test_a_layer_that_is_copied_is_weights_of_its_own():
    with Describing() as describing:
        layer = torch.nn.Linear(8, 8, bias=False)
        twin = copy.deepcopy(layer)
        assert twin.weight.fake_mode is layer.weight.fake_mode is describing.fake
        twin(layer(torch.empty(13, 8)))
        describing.trace.forget_what_is_gone()
    assert describing.trace.sizes == [4 * 64, 4 * 64]


@in_a_fork
def test_torch_is_itself_again_afterwards():
    with Describing():
        pass
    optimised()
    drawn = torch.nn.init.uniform_(torch.zeros(8))
    assert drawn.abs().sum() > 0 and "native_dropout" not in names(lambda: F.dropout(torch.empty(8)), False)


# --- what cannot be known, or not in time ---


class Peeking(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, x):
        scores = self.layer(x)
        return scores * 2 if scores.mean().item() > 0.5 else scores


class Choosing(Peeking):
    def forward(self, x):
        return self.layer(x[x.mean(1) > 0])


def described(model_class):
    with Describing() as describing:
        describing.model = model = model_class()
        describing.optimiser = torch.optim.SGD(model.parameters(), 0.1)

        def step(x):
            loss = model(x).sum()
            loss.backward()
            describing.optimiser.step()
            return loss.detach()

        try:
            return describing.described(step, (torch.zeros(1, 8),))
        except Exception as error:
            raise collo_describe.cannot(error) from error


@in_a_fork
def test_a_value_that_is_read_back_is_one_and_makes_the_description_approximate():
    (reason,) = described(Peeking)["approximate"]
    assert reason == "the step reads a value back 2 times: what depends on it is a guess"


@in_a_fork
def test_a_step_that_depends_on_numbers_says_so_and_where():
    with pytest.raises(SettingError, match=r"depends on the numbers in its tensors \(.*\) \(test_describe.py, line \d+\)"):
        described(Choosing)


def test_whoever_is_not_described_in_time_says_where_it_was():
    def circling():
        while True:
            pass

    with pytest.raises(SettingError, match=r"within 0.1 s, it was in `circling` \(test_describe.py, line"):
        with in_time(0.1):
            circling()


@pytest.mark.parametrize(
    "words, said",
    [(["--model", "timm:no_such", "--input", "3x32x32"], "error: `timm:no_such` cannot be built (Unknown model"),
     (["--model", "resnet50", "--input", "3x32x32"], "error: `resnet50` is no model: write timm:NAME"),
     (["--model", "torchvision:inception_v3", "--input", "3x32x32"], "error: this training step cannot be described:")],
)  # fmt: skip
@in_a_fork
def test_a_model_that_cannot_be_described_is_an_error_of_one_line(words, said, capsys):
    assert collo_describe.main(words) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(said)


@pytest.mark.parametrize(
    "model, shape, made_for",
    [("torchvision:inception_v3", (3, 32, 32), "3x299x299"), ("timm:bat_resnext26ts", (3, 224, 224), "3x256x256")],
)
@in_a_fork
def test_a_model_that_fails_on_a_shape_says_which_one_it_was_made_for(model, shape, made_for):
    with pytest.raises(SettingError, match=f"cannot be described: .* this model was made for {made_for}$"):
        describe_model(model, shape, 1000, "adam")


@pytest.mark.parametrize("model, shape", [("timm:tf_efficientnetv2_s", [3, 300, 300]), ("torchvision:inception_v3", [3, 299, 299])])
@in_a_fork
def test_without_a_shape_a_model_is_described_with_its_librarys(model, shape):
    assert made_for(model) == tuple(shape)
    given = describe_model(model, tuple(shape), 10, "sgd")
    assert describe_model(model, None, 10, "sgd") == given


@in_a_fork
def test_a_model_whose_library_has_no_shape_needs_one():
    with pytest.raises(SettingError, match="has no shape of its items: give one, as 3x224x224"):
        describe_model("torchvision:r3d_18", None, 10, "sgd")


# --- scripts ---


def of_script(workload, tmp_path, monkeypatch, **settings):
    """(the description or None, exit status, stderr): of a script with no data on disk."""
    path = tmp_path / "description.json"
    monkeypatch.setenv("COLLO_DESCRIBE", "1")
    monkeypatch.setenv("COLLO_DESCRIPTION", str(path))
    with script(workload, *flags(workload, **settings), by_hand=True, data=tmp_path / "nowhere") as member:
        status, _, said = member.end()
    return json.loads(path.read_text()) if path.exists() else None, status, said


# Parameters, and MiB at most allocated at batch size 32: what changes here changes predictions.
PRESETS = [
    ("vision", {"model": "resnet26", "dataset": "cifar-10"}, 13_966_666, 213),
    ("vision", {"model": "resnet50", "dataset": "imagenet", "recipe": "carma"}, 25_557_032, 2956),
    ("vision", {"model": "cait_xxs24_224", "dataset": "imagenet64"}, 11_956_264, 3991),
    ("generated", {}, 6_781_769, 130),
    ("generated", {"kind": "cnn"}, 8_580_584, 1195),
    ("tiny", {}, 175_258, 36),
    ("gpt", {}, 502_848, 68),
    ("dlrm", {}, 8_475_953, 35),
    ("mnist", {}, 1_199_882, 35),
    ("decoder", {"lora_rank": 4}, 134_592, 32),
    ("language", {"model": "bert-base", "dataset": "wikitext-2"}, 108_340_804, 16445),
    ("language", {"model": "bert-base", "recipe": "carma"}, 108_340_804, 18258),  # the logits stay
]


@pytest.mark.parametrize("workload, settings, parameters, peak_mib", PRESETS)
def test_a_script_describes_itself_without_data(workload, settings, parameters, peak_mib, tmp_path, monkeypatch):
    if workload == "language":
        pytest.importorskip("transformers", reason="transformers is not installed")
    found, status, said = of_script(workload, tmp_path, monkeypatch, **settings)
    assert status == 0, said
    assert (found["parameters"], round(peak_bytes(found, 32) / MIB)) == (parameters, peak_mib)
    assert found["approximate"] == []
    assert not (tmp_path / "nowhere").exists()


def test_what_a_gpu_alone_can_do_is_described_all_the_same(tmp_path, monkeypatch):
    asked = {"precision": "tf32", "cuda_graphs": True, "allocator": "cudaMallocAsync", "compile": True}
    found, status, said = of_script("gpt", tmp_path, monkeypatch, **asked)
    assert status == 0, said
    assert len(found["approximate"]) == 3 and found["precision"] == "tf32"


def test_a_weight_that_is_not_trained_has_no_gradient(tmp_path, monkeypatch):
    found, _, _ = of_script("decoder", tmp_path, monkeypatch, lora_rank=4)
    gradients = sum(size for size, _, kind in found["allocations"] if KINDS[kind] == "gradients")
    assert 0 < 2 * found["trainable_parameter_bytes"] == gradients < found["parameter_bytes"]


def test_a_model_that_never_fitted_this_machine_is_described(tmp_path, monkeypatch):
    found, status, said = of_script("gpt", tmp_path, monkeypatch, layers=48, width=12288, heads=96)
    assert status == 0, said
    assert found["parameters"] > 80e9


def test_a_script_without_a_step_of_ours_says_that_it_cannot(tmp_path, monkeypatch):
    found, status, said = of_script("stress", tmp_path, monkeypatch)
    assert (found, status) == (None, 1)
    assert said.startswith("error: this script has no training step of `collo_torch`")


def test_a_step_that_fails_leaves_no_description(tmp_path, monkeypatch):
    found, status, said = of_script("detection", tmp_path, monkeypatch)
    assert found is None and status == 1
    reason = "error: this training step cannot be described: on tensors that have no numbers it fails, IndexError: "
    assert said.splitlines()[-1].startswith(reason)


LIBRARIES = {
    "lightning": """
import lightning.pytorch as pl, torch, collo_lightning
from torch.utils.data import DataLoader, TensorDataset
class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
    def training_step(self, batch, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("loss", loss)
        return loss
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
data = DataLoader(TensorDataset(torch.randn(50, 8), torch.randint(0, 2, (50,))), batch_size=4)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
pl.Trainer(max_epochs=1, callbacks=[collo_lightning.Collo()], **quiet).fit(Net(), data)
""",
    "transformers": """
import torch, collo_transformers
from transformers import Trainer, TrainingArguments
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
    def forward(self, x, labels):
        scores = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}
data = [{"x": torch.randn(8), "labels": index % 2} for index in range(50)]
args = TrainingArguments("out", use_cpu=True, report_to="none", save_strategy="no", optim="adamw_torch")
Trainer(Net(), args, train_dataset=data, callbacks=[collo_transformers.Collo()]).train()
""",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_describes_its_first_step(library, tmp_path, monkeypatch):
    pytest.importorskip({"lightning": "lightning.pytorch", "transformers": "accelerate"}[library])
    path = tmp_path / "description.json"
    monkeypatch.setenv("COLLO_DESCRIBE", "1")
    monkeypatch.setenv("COLLO_DESCRIPTION", str(path))
    with Forked(LIBRARIES[library], channel=False) as member:
        status, _, said = member.end()
    assert status == 0, said
    found = json.loads(path.read_text())
    assert (found["parameters"], found["optimizer"]) == (18, {"lightning": "Adam", "transformers": "AdamW"}[library])
    inputs = [allocation for allocation in found["allocations"] if KINDS[allocation[2]] == "input"]
    assert inputs[:2] == [[32, 1, 4], [8, 1, 4]]  # eight values and a label an item
    assert sum(size for size, _, kind in found["allocations"] if KINDS[kind] == "optimizer") == 2 * 4 * 18
