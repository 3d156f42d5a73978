"""A small GPT that guesses each token from those before it. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch.nn import functional as F

import collo
import collo_memory
import collo_tokens
import collo_torch
from model import GPT

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--layers", type=int, default=4)
settings.add_argument("--heads", type=int, default=4, help="of the attention; they share the width")
settings.add_argument("--width", type=int, default=96, help="channels of a token")
settings.add_argument("--length", type=int, default=64, help="tokens that the model sees")
settings.add_argument("--vocabulary", type=int, default=512)
settings.add_argument("--dataset", default="tokens", help="wikitext-2, or tokens: sequences made up in memory")
settings.add_argument("--items", type=int, default=512, help="sequences, the first of the text; 0 for all")
collo_torch.add_settings(settings, batch_size=16, learning_rate=3e-3)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
collo_tokens.within("layers", settings.layers, 1, 1000)
collo_tokens.within("heads", settings.heads, 1, 1000)
collo_tokens.within("width", settings.width, 1, 100_000)
collo_tokens.within("length", settings.length, 1, 100_000)
collo_tokens.within("vocabulary", settings.vocabulary, 3, 1_000_000)
if settings.width % settings.heads:
    raise collo.SettingError(f"`heads` is {settings.heads} and `width` {settings.width}: the heads share it evenly")
weights = settings.vocabulary * settings.width + 12 * settings.layers * settings.width**2  # and a few more
least_bytes = 16 * weights  # with gradients and AdamW's two moments
collo_memory.check_fits(least_bytes, device, "the weights and AdamW take at least", "lower `width` or `layers`")

# One token more than the model sees: the last is only guessed.
data = collo_tokens.load(settings.dataset, settings.items, settings.length + 1, settings.vocabulary, settings.seed)
loader = collo_torch.loader(data, settings)
with device:  # the weights are drawn where they will lie
    model = GPT(settings.layers, settings.heads, settings.width, settings.length, settings.vocabulary)
optimiser = torch.optim.AdamW(
    model.parameters(), settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.1, capturable=settings.cuda_graphs
)


def loss_of(text):
    """Every position guesses its successor."""
    scores = model(text[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


name = f"GPT of {settings.layers} layers, width {settings.width}"
collo_torch.say_hello(member, settings, device, name, model, data, length=settings.length)
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
