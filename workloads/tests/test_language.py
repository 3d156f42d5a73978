"""The language models: all five are what they say they are, learn at a small size, and touch no network."""

import importlib.metadata
import math
import pathlib
import re
import threading
from types import SimpleNamespace

import pytest
import torch
from collo import SettingError
from harness import WORKLOADS, Started, written
from test_gpt import forked, imported, parameters, refusal, text, trained, words  # noqa: F401  (text is a fixture)

transformers = pytest.importorskip("transformers")
models = imported("language", "models")
parallel = imported("language", "parallel")

PRESETS = written("language")["presets"]
TINY = {
    "layers": 2, "width": 32, "heads": 2, "vocabulary": 24, "length": 16, "dataset": "tokens", "items": 512,
    "batch_size": 16, "learning_rate": 0.003,
}  # fmt: skip

# Of the published weights with the head for what they learn, in transformers' layout. Its documentation (2.2) says 110,
# 340, 110, 340, 774 and 1558 M. Both BERTs are cased, with 28,996 words, as in the scripts: uncased ones, with 30,522,
# have 109,514,298 and 335,174,458. XLNet's two classes and what summarises a text for them add 1 and 2 M.
PUBLISHED = {
    "bert-base": 109_514_298 - (30_522 - 28_996) * (768 + 1),
    "bert-large": 335_174_458 - (30_522 - 28_996) * (1024 + 1),
    "xlnet-base": 116_718_336 + 768 * (768 + 1) + 2 * (768 + 1),
    "xlnet-large": 360_268_800 + 1024 * (1024 + 1) + 2 * (1024 + 1),
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
}
# Thesis, table 6.2, and 4 where DataParallel splits 8 to two cards; that of GPT-2 XL is its script's.
BATCH_SIZES = {"bert-base": 32, "bert-large": 8, "xlnet-base": 8, "xlnet-large": 4, "gpt2-large": 4, "gpt2-xl": 2}
# itu-rad/CARMA, workloads/BERT_base_on_wiki.py and its like: the settings that its lines mean.
CARMA = {
    "precision": "torch", "pin_memory": "false", "keep_cache": True, "read_loss": "step", "packing": "lines",
    "length": 512, "zero_grad": "before-forward", "keep_outputs": True, "learning_rate": 1e-4,
}  # fmt: skip


def tiny(name, **sizes):
    """A small module of an architecture, in process."""
    asked = {"layers": 2, "width": 16, "heads": 2, "vocabulary": 24, **sizes}
    _, build, sizes = models.find(name, 16, **asked)
    torch.manual_seed(1)
    return build(sizes)


# --- the five ---


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_the_published_parameters_and_batch_size(name):
    settings = PRESETS[name]["settings"]
    build, sizes = models.ARCHITECTURES[settings["model"]]
    with torch.device("meta"):
        count = parameters(build(sizes))
    assert count == PUBLISHED[name]
    assert f"({count / 1e6:.1f} M parameters)" in PRESETS[name]["description"]
    # transformers' TrainingArguments, which XLNet's scripts leave as they are.
    trainers = {"learning_rate": 5e-5, "keep_outputs": False, "pin_memory": "auto"}
    own = trainers if name.startswith("xlnet") else {}
    assert settings == {"model": name, "batch_size": BATCH_SIZES[name], "recipe": "carma", **own}


def test_the_recipe_is_what_the_scripts_of_table_6_2_do():
    assert written("language")["recipes"] == {"carma": CARMA}


@pytest.mark.parametrize("name, gib", [("xlnet-base", 9.3), ("xlnet-large", 15.4)])
def test_xlnet_keeps_about_as_much_as_was_measured(name, gib):
    """Weights, gradients, AdamW's moments and what a step keeps for its backward pass, at 512 tokens.

    The thesis has 9.7 and 14.5 GB, its authors later 9.2 and 19.3. Two streams with a head of 32,000 words would be
    13.2 and 20.8 GiB.
    """
    build, sizes = models.ARCHITECTURES[name]
    with torch.device("meta"):
        learner, text = build(sizes).to("meta"), torch.zeros(BATCH_SIZES[name], 512, dtype=torch.int64)
    kept = {}

    def keep(tensor):
        if not isinstance(tensor, torch.nn.Parameter):
            kept[id(tensor.untyped_storage())] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), torch.device("meta"):
        learner(text, torch.ones_like(text, dtype=torch.bool))
    found = sum({storage._cdata: storage.nbytes() for storage in kept.values()}.values()) + 16 * parameters(learner)
    assert found / 2**30 == pytest.approx(gib, rel=0.05)


def test_those_of_the_study_are_there():
    assert PRESETS.keys() == models.ARCHITECTURES.keys() == PUBLISHED.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_architecture_learns(name):
    with forked("language", words("language", name, **TINY)) as member:
        hello, features, epochs = trained(member)
    assert hello["model"]["name"] == f"{name}, layers 2, width 32, heads 2, vocabulary 24"
    assert hello["model"]["parameters"] == features["parameters"] < 60_000
    assert hello["dataset"] == {"name": "tokens", "synthetic": True, "items": 512} and hello["length"] == 16
    assert features["flops_per_item"] > 2 * 16 * 2 * 12 * 32**2  # the large weights alone, each token
    assert [epoch["items"] for epoch in epochs] == [512, 512]
    assert epochs[1]["loss"] < 0.97 * epochs[0]["loss"], epochs
    assert hello["regime"] == {
        "recipe": "carma", "precision": "torch", "read_loss": "step", "workers": 0, "keep_cache": True,
        "learning_rate": 0.003, "optimiser": "adamw", "packing": "lines",
    }  # fmt: skip


def test_the_script_as_it_is_started_touches_no_network():
    guard = """
import runpy, socket, sys
def refuse(*_): raise AssertionError("the network was touched")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
sys.argv = ["train.py", *ARGUMENTS]
runpy.run_path("train.py", run_name="__main__")
""".replace("ARGUMENTS", repr(words("language", "bert-base", **TINY, limit_batches=2)))
    found_in = pathlib.Path(transformers.__file__).parents[1]
    offline = written("language")["variables"]["HF_HUB_OFFLINE"]
    variables = {"PYTHONPATH": f"{WORKLOADS}:{found_in}", "HF_HUB_OFFLINE": offline}
    with Started("language", program=guard, **variables) as member:
        hello, _, epochs = trained(member)
    assert hello["versions"].keys() >= {"python", "torch", "transformers"}
    assert hello["limit_batches"] == 2 and [epoch["items"] for epoch in epochs] == [32, 32]


@pytest.mark.parametrize("packing", ["blocks", "lines"])
def test_it_learns_from_text(text, packing):  # noqa: F811
    settings = {**TINY, "dataset": "wikitext-2", "vocabulary": 99, "items": 512, "packing": packing}
    with forked("language", words("language", "gpt2-large", **settings), text) as member:
        hello, _, epochs = trained(member)
    assert hello["dataset"] == {"name": "WikiText-2", "synthetic": True, "items": 512}
    assert epochs[1]["loss"] < 0.97 * epochs[0]["loss"], epochs


@pytest.mark.parametrize("name", ["bert-base", "xlnet-base", "gpt2-large"])
def test_two_at_once_have_the_very_same_losses_also_in_mixed_precision(name):
    few = words("language", name, **{**TINY, "items": 32}, precision="bf16")
    with forked("language", few) as one, forked("language", few) as other:
        assert losses(one) == losses(other)


def losses(member):
    return [epoch["loss"] for epoch in trained(member)[2]]


# --- what they learn ---


class Notes(torch.nn.Module):
    """Stands for a model and keeps what it was given."""

    def __init__(self, vocabulary):
        super().__init__()
        self.config = SimpleNamespace(vocab_size=vocabulary)

    def forward(self, ids, **given):
        self.ids, self.given = ids, given
        return SimpleNamespace(loss=torch.zeros(()))


def test_bert_guesses_15_percent_of_each_sequence_most_of_them_hidden():
    notes, ids = Notes(vocabulary=1000), torch.randint(999, (200, 40))
    torch.manual_seed(1)
    models.Masked(notes)(ids)
    guessed = notes.given["labels"] != -100
    assert (guessed.sum(1) == 6).all()
    assert (notes.given["labels"][guessed] == ids[guessed]).all()
    assert (notes.ids[~guessed] == ids[~guessed]).all()
    shown, right = notes.ids[guessed], ids[guessed]
    shares = [(shown == 999).float().mean(), (shown == right).float().mean()]
    assert shares == [pytest.approx(0.8, abs=0.03), pytest.approx(0.1, abs=0.03)]
    replaced = shown[(shown != 999) & (shown != right)]
    assert len(replaced.unique()) > 80  # of 1200 guessed


def test_of_a_line_bert_guesses_none_of_what_fills_it_up_and_always_its_first():
    notes, ids = Notes(vocabulary=1000), torch.randint(999, (300, 40))
    seen = torch.arange(40) < torch.randint(1, 41, (300, 1))
    torch.manual_seed(1)
    models.Masked(notes)(ids, seen)
    guessed = notes.given["labels"] != -100
    assert guessed[:, 0].all() and not guessed[~seen].any()
    assert guessed[:, 1:][seen[:, 1:]].float().mean() == pytest.approx(0.15, abs=0.02)
    assert (notes.ids[~guessed] == ids[~guessed]).all() and (notes.given["labels"][guessed] == ids[guessed]).all()


def test_xlnet_is_told_of_every_text_that_it_is_of_the_second_kind():
    learner, ids = tiny("xlnet-base").eval(), torch.randint(24, (3, 16))
    with torch.no_grad():
        scores, loss = learner.model(ids).logits, learner(ids)
    assert scores.shape == (3, 2) and type(learner.model).__name__ == "XLNetForSequenceClassification"
    expected = torch.nn.functional.cross_entropy(scores, torch.tensor([1, 1, 1]))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("name", ["bert-base", "xlnet-base", "gpt2-large"])
def test_what_fills_a_line_up_changes_nothing_for_the_line(name):
    model, ids = tiny(name).model.eval(), torch.randint(24, (2, 16))
    seen = torch.arange(16) < torch.tensor([[5], [16]])
    other = torch.where(seen, ids, (ids + 7) % 24)
    masks = []

    def shown(_, args, given):
        masks.append(given["attention_mask"])

    model.register_forward_pre_hook(shown, with_kwargs=True)
    learner = {"bert": models.Masked, "xlne": models.Classified, "gpt2": models.Causal}[name[:4]](model)
    torch.manual_seed(1)
    learner(ids, seen)
    with torch.no_grad():
        one, two = (model(text, attention_mask=masks[0]).logits for text in (ids, other))
        model.set_attn_implementation("eager") if name != "xlnet-base" else None
        theirs = model(ids, attention_mask=seen.long() if name != "xlnet-base" else seen.float()).logits
    if name == "xlnet-base":  # its one answer comes from the last place, which is filled up here
        assert torch.allclose(one[1], two[1], atol=1e-5)
        return
    assert torch.allclose(one[seen], two[seen], atol=1e-5)
    assert torch.allclose(one[seen], theirs[seen], atol=1e-5)


def test_gpt2_guesses_each_token_from_those_before():
    learner, ids = tiny("gpt2-large").eval(), torch.randint(24, (3, 16))
    with torch.no_grad():
        scores, loss = learner.model(ids).logits, learner(ids)
    expected = torch.nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("name", ["bert-base", "gpt2-large"])
def test_without_a_mask_attention_is_what_transformers_computes_with_one(name):
    model, ids = tiny(name).model.eval(), torch.randint(24, (3, 16))
    with torch.no_grad():
        ours = model(ids).logits
        model.set_attn_implementation("eager")
        theirs = model(ids, attention_mask=torch.ones_like(ids)).logits
    assert model.config._attn_implementation == "eager"
    assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("name", ["bert-base", "xlnet-base", "gpt2-large"])
def test_the_shortest_text_has_something_to_guess(name):
    assert math.isfinite(tiny(name)(torch.tensor([[3, 4]])).item())


# --- what cannot be ---

ONE_OF = f"it is one of {', '.join(PUBLISHED)}"


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"model": "bert-bse"}, f"`model` is `bert-bse`, nearest to it is `bert-base`: {ONE_OF}"),
        ({"model": "gpt3", "length": 9999}, f"`model` is `gpt3`, nearest to it is `gpt2-xl`: {ONE_OF}"),
        ({"heads": 5}, "`heads` is 5 and `width` 768: each head has an even number of channels"),
        ({"width": 36}, "`heads` is 12 and `width` 36: each head has an even number of channels"),
        ({"length": 513}, "`length` is 513: bert-base has 512 positions, take fewer"),
        ({"model": "gpt2-large", "length": 1025}, "`length` is 1025: gpt2-large has 1024 positions, take fewer"),
        ({"model": "xlnet-base", "length": 1}, "`length` is 1: it is 2 to 100000"),
        ({"vocabulary": 3}, "`vocabulary` is 3: it is 4 to 1000000"),
        ({"vocabulary": 10**12}, "`vocabulary` is 1000000000000: it is 4 to 1000000"),
        ({"layers": -1}, "`layers` is -1: it is 1 to 1000"),
    ],
)
def test_sizes_that_cannot_be_are_refused(settings, message):
    asked = {"model": "bert-base", "length": 16, "layers": 0, "width": 0, "heads": 0, "vocabulary": 0, **settings}
    name, length = asked.pop("model"), asked.pop("length")
    with pytest.raises(SettingError) as error:
        models.find(name, length, **asked)
    assert str(error.value) == message


def test_the_script_passes_refusals_on_in_one_line():
    kind, message = refusal("language", **{**TINY, "model": "bret-base"})
    assert kind == "setting" and message.startswith("`model` is `bret-base`, nearest to it is `bert-base`")
    kind, message = refusal("language", **{**TINY, "width": 100_000, "layers": 1000})
    assert kind == "setting" and message.startswith("the weights and AdamW take at least 1920 TB, the machine has")


def test_text_that_is_not_there_is_named_with_the_way_out(tmp_path):
    kind, message = refusal("language", data=tmp_path, **{**TINY, "dataset": "wikitext-2", "items": 0})
    assert kind == "data" and f"`{tmp_path}/wikitext-2` is missing" in message
    assert "collo data synthesize wikitext-2 --scale" in message


# --- the packages ---


def pinned(path):
    """The packages of a requirements file: [(name, version, hashes)]."""
    one = r"^([a-z0-9-]+)==(\S+)[^\n]*\n((?:    --hash=sha256:[0-9a-f]{64}[ \\]*\n)+)"
    found = re.findall(one, path.read_text(), re.M)
    return [(name, version, hashes.count("--hash")) for name, version, hashes in found]


def test_what_is_laid_over_is_pinned_and_not_in_the_environment_already():
    over, under = (WORKLOADS / "language" / "requirements.txt", WORKLOADS / "requirements-cpu.txt")
    pins = pinned(over)
    assert len(pins) == len(re.findall(r"==", over.read_text())) > 10 and all(hashes for *_, hashes in pins)
    assert not {name for name, *_ in pins} & {name for name, *_ in pinned(under)}
    assert "transformers" in {name for name, *_ in pins}
    assert not re.search(r"https?:|index-url|find-links", over.read_text())


def test_every_need_of_what_is_laid_over_is_met_by_it_or_by_the_environment():
    from packaging.requirements import Requirement

    over, under = (pinned(WORKLOADS / path) for path in ("language/requirements.txt", "requirements-cpu.txt"))
    there = {name for name, *_ in over + under}
    missing = set()
    for name, *_ in over:
        for need in map(Requirement, importlib.metadata.requires(name) or []):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                if re.sub(r"[-_.]+", "-", need.name).lower() not in there:
                    missing.add((name, str(need)))
    assert missing == set()


# --- several GPUs ---


def asked(**more):
    return SimpleNamespace(**{"data_parallel": "auto", "compile": False, "cuda_graphs": False, **more})


def test_each_step_is_spread_to_all_gpus_that_are_visible_and_to_one_elsewhere(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert parallel.cards(asked(), gpu) == 2
    assert [parallel.cards(asked(data_parallel="off"), gpu), parallel.cards(asked(), cpu)] == [1, 1]
    with pytest.raises(SettingError, match="`compile` cannot be true on 2 GPUs, .*: set `data_parallel` to off"):
        parallel.cards(asked(compile=True), gpu)
    with pytest.raises(SettingError, match="`data_parallel` is `all`: it is one of auto, off"):
        parallel.cards(asked(data_parallel="all"), cpu)


@pytest.mark.parametrize("name", ["bert-base", "gpt2-large"])
def test_with_its_outputs_gpt2_keeps_keys_and_values_as_in_the_public_scripts(name):
    learner, texts = tiny(name).eval(), torch.randint(0, 23, (3, 16))
    torch.manual_seed(1)  # which words BERT guesses is drawn
    alone = learner(texts)
    assert learner.outputs is None and getattr(learner.model(texts), "past_key_values", None) is None
    learner.keep_outputs()
    torch.manual_seed(1)
    assert learner(texts).item() == pytest.approx(alone.item(), rel=1e-6)
    kept = getattr(learner.outputs, "past_key_values", None)
    shapes = [tuple(tensor.shape) for layer in (kept.layers if kept else ()) for tensor in (layer.keys, layer.values)]
    assert shapes == ([(3, 2, 16, 8)] * 4 if name == "gpt2-large" else []), "two layers with two heads of 8 channels"
    assert learner.outputs.logits.shape == (3, 16, 24)


def in_halves(module):
    """What DataParallel does on two GPUs: half of the batch each, and everything gathered on the first."""

    def spread(*batch):
        told = [module(*(part.chunk(2)[half] for part in batch)) for half in (0, 1)]
        return {name: torch.cat([half[name] for half in told]) for name in told[0]}

    return spread


def in_a_thread(module):
    """What DataParallel's threads are told of mixed precision: that it is on. Their type is bf16 on a CPU, fp16 on a GPU."""

    def spread(*batch):
        told, on = [], torch.is_autocast_enabled("cpu")

        def work():
            with torch.amp.autocast("cpu", enabled=on):
                told.append(module(*batch))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return told[0]

    return spread


@pytest.mark.parametrize("low_precision", [torch.float16, torch.bfloat16, None])
def test_several_gpus_compute_in_the_precision_that_was_asked_for(low_precision):
    learner, texts = tiny("gpt2-large"), torch.randint(0, 23, (4, 16))
    learner.keep_outputs()
    spread = parallel.Parallel(learner, in_a_thread, low_precision)
    with torch.autocast("cpu", low_precision, enabled=low_precision is not None):
        spread(texts)
    assert learner.outputs["logits"].dtype == (low_precision or torch.float32)


@pytest.mark.parametrize("name", ["xlnet-base", "gpt2-large"])
@pytest.mark.parametrize("spread", [in_halves, torch.nn.DataParallel])  # the second has no GPU here to spread to
def test_several_gpus_learn_what_one_learns_and_keep_the_outputs_of_all(name, spread):
    learner, texts = tiny(name).eval(), torch.randint(0, 23, (8, 16))
    alone = learner(texts)
    alone.backward()
    before = {key: weight.grad.clone() for key, weight in learner.named_parameters() if weight.grad is not None}
    learner.zero_grad()
    learner.keep_outputs()
    spread = parallel.Parallel(learner, spread)
    loss = spread(texts)
    loss.backward()
    torch.testing.assert_close(loss, alone)
    after = {key: weight.grad for key, weight in learner.named_parameters() if weight.grad is not None}
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-6)
    assert len(learner.outputs["logits"]) == 8
    kept = [tensor for name, tensor in learner.outputs.items() if name.startswith(("keys", "values"))]
    assert [len(tensor) for tensor in kept] == ([8] * 4 if name == "gpt2-large" else [])
