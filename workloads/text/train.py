"""An LSTM or a small Transformer that guesses hidden words of a text. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch.nn import functional as F

import collo
import collo_memory
import collo_tokens
import collo_torch
from model import LSTM, Transformer

HIDDEN = 0.15  # of the words

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--model", default="lstm", help="lstm or transformer")
settings.add_argument("--layers", type=int, default=1)
settings.add_argument("--width", type=int, default=64, help="channels of a token, inside and out")
settings.add_argument("--bidirectional", type=collo_torch.flag, default=True, help="the LSTM reads from both ends")
settings.add_argument("--heads", type=int, default=4, help="of the Transformer's attention; they share the width")
settings.add_argument("--length", type=int, default=200, help="tokens that the model sees")
settings.add_argument("--vocabulary", type=int, default=10000)
settings.add_argument("--dataset", default="tokens", help="wikitext-2, or tokens: sequences made up in memory")
settings.add_argument("--items", type=int, default=512, help="sequences, the first of the text; 0 for all")
collo_torch.add_settings(settings, batch_size=16, learning_rate=1e-3)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
collo_torch.one_of("model", settings.model, ("lstm", "transformer"))
collo_tokens.within("layers", settings.layers, 1, 100)
collo_tokens.within("width", settings.width, 1, 10_000)
collo_tokens.within("heads", settings.heads, 1, 1000)
collo_tokens.within("length", settings.length, 1, 100_000)
collo_tokens.within("vocabulary", settings.vocabulary, 3, 1_000_000)
if settings.model == "transformer" and settings.width % settings.heads:
    raise collo.SettingError(f"`heads` is {settings.heads} and `width` {settings.width}: the heads share it evenly")
weights = 2 * settings.vocabulary * settings.width + 8 * settings.layers * settings.width**2  # and a few more
way_out = "lower `vocabulary`, `width` or `layers`"
collo_memory.check_fits(16 * weights, device, "the weights and Adam take at least", way_out)

data = collo_tokens.load(settings.dataset, settings.items, settings.length, settings.vocabulary, settings.seed)
loader = collo_torch.loader(data, settings)
with device:  # the weights are drawn where they will lie
    if settings.model == "lstm":
        model = LSTM(settings.vocabulary, settings.width, settings.layers, settings.bidirectional)
        both = ", from both ends" if settings.bidirectional else ""
        name = f"LSTM of {settings.layers} layer{'s' if settings.layers > 1 else ''}, width {settings.width}{both}"
    else:
        model = Transformer(settings.vocabulary, settings.width, settings.layers, settings.heads, settings.length)
        name = f"Transformer of {settings.layers} layer{'s' if settings.layers > 1 else ''}, width {settings.width}"
optimiser = torch.optim.Adam(model.parameters(), settings.learning_rate, capturable=settings.cuda_graphs)


def loss_of(text):
    """Hidden words are guessed, the others count nothing. Whatever is hidden, a step does the same work."""
    hidden = torch.rand(text.shape, device=device) < HIDDEN
    scores = model(text.masked_fill(hidden, settings.vocabulary))
    wanted = text.masked_fill(~hidden, -100)
    return F.cross_entropy(scores.flatten(0, 1), wanted.flatten(), ignore_index=-100)


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
