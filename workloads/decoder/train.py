"""Fine-tuning of a small decoder of today, all of it or by LoRA. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch.nn import functional as F

import collo
import collo_memory
import collo_tokens
import collo_torch
from model import Decoder, Sizes, add_lora

WEIGHTS = {"fp32": torch.float32, "bf16": torch.bfloat16}

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--layers", type=int, default=2)
settings.add_argument("--width", type=int, default=64, help="channels of a token")
settings.add_argument("--inner", type=int, default=176, help="channels within the MLP")
settings.add_argument("--heads", type=int, default=4, help="of queries; they share the width")
settings.add_argument("--kv-heads", type=int, default=2, help="of keys and values; each serves several of queries")
settings.add_argument("--vocabulary", type=int, default=512)
settings.add_argument("--rotary-base", type=float, default=10000.0)
settings.add_argument("--qkv-bias", type=collo_torch.flag, default=False, help="queries, keys and values have biases")
settings.add_argument("--length", type=int, default=64, help="tokens that the model sees")
settings.add_argument("--weights", default="fp32", help="what the weights are kept in: fp32 or bf16")
settings.add_argument("--lora-rank", type=int, default=0, help="0: all weights are trained")
settings.add_argument("--checkpointing", type=collo_torch.flag, default=False, help="keep less, compute it again")
settings.add_argument("--dataset", default="tokens", help="wikitext-2, or tokens: sequences made up in memory")
settings.add_argument("--items", type=int, default=512, help="sequences, the first of the text; 0 for all")
collo_torch.add_settings(settings, batch_size=4, learning_rate=2e-4)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
for name, most in (("layers", 1000), ("width", 100_000), ("inner", 1_000_000), ("heads", 1000), ("kv_heads", 1000)):
    collo_tokens.within(name, getattr(settings, name), 1, most)
collo_tokens.within("vocabulary", settings.vocabulary, 3, 1_000_000)
collo_tokens.within("length", settings.length, 1, 1_000_000)
collo_tokens.within("rotary_base", settings.rotary_base, 1, 1e9)
collo_tokens.within("lora_rank", settings.lora_rank, 0, min(settings.width, settings.inner))
collo_torch.one_of("weights", settings.weights, WEIGHTS)
if settings.width % settings.heads or settings.width // settings.heads % 2:
    said = f"`heads` is {settings.heads} and `width` {settings.width}"
    raise collo.SettingError(f"{said}: the heads share it evenly, and each has an even part to turn")
if settings.heads % settings.kv_heads:
    said = f"`kv_heads` is {settings.kv_heads} and `heads` {settings.heads}"
    raise collo.SettingError(f"{said}: each of keys and values serves as many of queries")
if settings.weights == "bf16" and settings.precision != "bf16":
    why = "beside weights in bf16 all else is computed in it"
    raise collo.SettingError(f"`precision` is `{settings.precision}` and `weights` bf16: set both to bf16, {why}")

of_sizes = {name: getattr(settings, name) for name in Sizes._fields}
with torch.device("meta"):  # what it takes, before it takes it
    count = sum(parameter.numel() for parameter in Decoder(Sizes(**of_sizes)).parameters())
value_bytes = WEIGHTS[settings.weights].itemsize
least_bytes = count * value_bytes * (1 if settings.lora_rank else 4)  # with gradients and AdamW's two moments
way_out = "lower `width` or `layers`" + ("" if settings.lora_rank else ", or set `lora_rank`")
collo_memory.check_fits(least_bytes, device, f"{count} weights in {settings.weights} take at least", way_out)

# One token more than the model sees: the last is only guessed.
data = collo_tokens.load(settings.dataset, settings.items, settings.length + 1, settings.vocabulary, settings.seed)
loader = collo_torch.loader(data, settings)
torch.set_default_dtype(WEIGHTS[settings.weights])
with device:  # the weights are drawn where they will lie, as they will be kept
    model = Decoder(Sizes(**of_sizes), settings.checkpointing)
torch.set_default_dtype(torch.float32)
if settings.lora_rank:
    add_lora(model, settings.lora_rank)
trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
optimiser = torch.optim.AdamW(trained, settings.learning_rate, weight_decay=0.0, capturable=settings.cuda_graphs)


def loss_of(text):
    """Every position guesses its successor."""
    scores = model(text[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1).float(), text[:, 1:].flatten())


name = f"decoder of {settings.layers} layers, width {settings.width}"
how = {"length": settings.length, "weights": settings.weights, "checkpointing": settings.checkpointing}
how |= {"lora_rank": settings.lora_rank or None, "trained": sum(parameter.numel() for parameter in trained)}
collo_torch.say_hello(member, settings, device, name, model, data, **how)
collo_torch.tell_features(member, model, (torch.zeros(1, settings.length, dtype=torch.int64),), settings)
step = collo_torch.training_step(loss_of, model, optimiser, settings)

member.wait_for_warm_up()
collo_torch.warm_up(step, loader, device)
member.ready()
for epoch in member.epochs(settings.epochs):
    loss = torch.zeros((), device=device)
    for batch in epoch.batches(collo_torch.on(device, loader)):
        loss += step(*batch)
    epoch.finish(items=len(loader) * settings.batch_size, loss=loss.item() / len(loader))  # item() waits for the GPU
    collo_torch.tell_memory(member, device)
