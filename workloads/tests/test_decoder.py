"""The decoder of today, against transformers' own; LoRA; gradient checkpointing; and that it trains."""

import pytest
import torch
from harness import written
from scripts import flags, module, script, trained

model = module("decoder", "model")
PRESETS = written("decoder")["presets"]
TINY = {"layers": 2, "width": 32, "inner": 48, "heads": 4, "kv_heads": 2, "vocabulary": 24, "length": 16, "items": 128}

# Parameters of the published weights, as transformers counts the models of their configurations (5.23).
PUBLISHED = {"qwen2-5-0-5b": 494_032_768, "qwen2-5-1-5b": 1_543_714_304, "llama3-2-1b": 1_235_814_400}
# What peft says that it trains with rank 16 beside all linear layers; Unsloth's notebooks show the first two.
LEARNT = {"qwen2-5-0-5b-lora": 8_798_208, "llama3-2-1b-lora": 11_272_192, "qwen2-5-1-5b-lora": 18_464_768}


def sizes(**settings):
    settings = {**written("decoder")["settings"], **settings}
    return model.Sizes(**{name: settings[name] for name in model.Sizes._fields})


def parameters(built, learnt=False):
    return sum(parameter.numel() for parameter in built.parameters() if parameter.requires_grad or not learnt)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_published_parameters_and_trains_as_many_as_it_says(name):
    settings = PRESETS[name]["settings"]
    with torch.device("meta"):
        built = model.Decoder(sizes(**settings))
        count = parameters(built)
        if settings.get("lora_rank"):
            model.add_lora(built, settings["lora_rank"])
    assert count == PUBLISHED[name.removesuffix("-lora")]
    assert parameters(built, learnt=True) == LEARNT.get(name, count)
    assert f"({count / 1e6:.1f} M parameters)" in PRESETS[name]["description"]
    if name in LEARNT:
        assert f"({LEARNT[name] / 1e6:.1f} M)" in PRESETS[name]["description"]


OURS_IN_THEIRS = {
    "tokens.": "model.embed_tokens.", "blocks.": "model.layers.", "norm1.": "input_layernorm.",
    "norm2.": "post_attention_layernorm.", "attention.queries": "self_attn.q_proj",
    "attention.keys": "self_attn.k_proj", "attention.values": "self_attn.v_proj", "attention.out": "self_attn.o_proj",
    "mlp.gate": "mlp.gate_proj", "mlp.up": "mlp.up_proj", "mlp.down": "mlp.down_proj", "head.": "lm_head.",
}  # fmt: skip


@pytest.mark.parametrize("family, bias", [("Qwen2", True), ("Llama", False)])
def test_it_says_what_transformers_own_model_with_the_same_weights_says(family, bias):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    of = sizes(**TINY, qkv_bias=bias, rotary_base=500.0)
    config = getattr(transformers, f"{family}Config")(
        hidden_size=of.width, intermediate_size=of.inner, num_hidden_layers=of.layers, num_attention_heads=of.heads,
        num_key_value_heads=of.kv_heads, vocab_size=of.vocabulary, tie_word_embeddings=True, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": of.rotary_base}, pad_token_id=None,
    )  # fmt: skip
    theirs = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    torch.manual_seed(1)
    ours = model.Decoder(of)
    for parameter in ours.parameters():  # biases, too
        torch.nn.init.normal_(parameter, std=0.2)
    named = {}
    for name, weight in ours.state_dict().items():
        for own, their in OURS_IN_THEIRS.items():
            name = name.replace(own, their)
        named["model.norm.weight" if name == "norm.weight" else name] = weight
    theirs.load_state_dict(named)
    ids = torch.randint(of.vocabulary, (3, of.length))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)


def tiny(**more):
    torch.manual_seed(1)
    return model.Decoder(sizes(**TINY), **more)


def test_checkpointing_changes_what_is_kept_and_nothing_else():
    ids, gradients, kept = torch.arange(32).view(2, 16) % 24, [], []
    for checkpointing in (False, True):
        built, saved = tiny(checkpointing=checkpointing), []

        def keep(tensor, saved=saved):
            saved.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = built(ids).square().mean()
        kept.append(sum(saved))
        loss.backward()
        gradients.append([parameter.grad for parameter in built.parameters()])
    torch.testing.assert_close(*gradients)
    assert kept[1] < kept[0] / 2


def test_lora_changes_nothing_at_first_and_then_only_itself():
    ids, built = torch.arange(32).view(2, 16) % 24, tiny()
    before, names = built(ids), dict(built.named_parameters()).keys()
    model.add_lora(built, rank=2)
    torch.testing.assert_close(built(ids), before)
    built(ids).square().mean().backward()
    learnt = {name for name, parameter in built.named_parameters() if parameter.grad is not None}
    assert len(names) == 1 + 2 * 9 + 1 and len(learnt) == 2 * 7 * 2 and names.isdisjoint(learnt)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.01},
        {"learning_rate": 0.05, "lora_rank": 4, "weights": "bf16", "precision": "bf16", "checkpointing": True},
    ],
)
def test_it_learns_and_says_what_it_is(settings):
    said, ended = trained("decoder", *flags("decoder", **{**TINY, **settings}))
    assert ended == (0, "", "")
    (hello,), (features,), epochs = said["hello"], said["features"], said["epoch"]
    assert hello["model"]["name"] == "decoder of 2 layers, width 32"
    assert (hello["weights"], hello["lora_rank"]) == (settings.get("weights", "fp32"), settings.get("lora_rank"))
    assert hello["trained"] == hello["model"]["parameters"] or settings.get("lora_rank")
    assert features["layers"]["RMSNorm"] == 5 and features["sequence"][0][0] == "Embedding"
    assert [entry[0] for entry in features["sequence"]].count("scaled_dot_product_attention") == 2
    assert [epoch["items"] for epoch in epochs] == [128, 128]
    slower = 1 if settings.get("lora_rank") else 0.97  # what is frozen is random
    assert epochs[1]["loss"] < slower * epochs[0]["loss"], epochs


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"heads": 5}, "`heads` is 5 and `width` 64: the heads share it evenly, and each has an even part to turn"),
        ({"kv_heads": 3}, "`kv_heads` is 3 and `heads` 4: each of keys and values serves as many of queries"),
        ({"weights": "fp16"}, "`weights` is `fp16`: it is one of fp32, bf16"),
        (
            {"weights": "bf16"},
            "`precision` is `fp32` and `weights` bf16: set both to bf16, beside weights in bf16 all else",
        ),
        ({"lora_rank": 100}, "`lora_rank` is 100: it is 0 to 64"),
        ({"width": 100_000, "inner": 500_000}, "360051700000 weights in fp32 take at least 5.761 TB, "),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, message):
    with script("decoder", *flags("decoder", **settings)) as member:
        error = member.hear()
        assert member.end() == (1, "", f"error: {error['message']}\n")
    assert error["kind"] == "setting" and error["message"].startswith(message)
    if "inner" in settings:
        assert error["message"].endswith(": lower `width` or `layers`, or set `lora_rank`")
