"""A language model of the study, from transformers, with random weights.

By hand: pip install --target PACKAGES --no-deps -r requirements.txt; PYTHONPATH=..:PACKAGES python train.py
"""

import argparse
import sys

import torch

import collo
import collo_memory
import collo_recipe
import collo_tokens
import collo_torch
import models
import parallel

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--model", default="bert-base", help=", ".join(models.ARCHITECTURES))
settings.add_argument("--layers", type=int, default=0, help="0, here and below: the architecture's own")
settings.add_argument("--width", type=int, default=0, help="channels of a token")
settings.add_argument("--heads", type=int, default=0, help="of the attention; they share the width")
settings.add_argument("--vocabulary", type=int, default=0)
settings.add_argument("--length", type=int, default=512, help="tokens of a sequence")
settings.add_argument("--dataset", default="wikitext-2", help="wikitext-2, or tokens: sequences made up in memory")
settings.add_argument("--items", type=int, default=0, help="sequences, the first of the text; 0 for all")
settings.add_argument("--packing", default="blocks", help="blocks: text without a gap; lines: each alone, filled up")
settings.add_argument("--recipe", default="collo", help="many of these at once, see workload.toml; what is given wins")
settings.add_argument("--zero-grad", default="after-forward", help=", ".join(collo_torch.ZERO_GRAD))
settings.add_argument("--keep-outputs", type=collo_torch.flag, default=False, help="until the next step has its own")
settings.add_argument("--data-parallel", default="auto", help="auto: on all GPUs that are visible; off: on the first")
collo_torch.add_settings(settings, batch_size=32, learning_rate=5e-5)

member = collo.connect()
settings = collo_recipe.settings_of(settings, sys.path[0])
device = collo_torch.set_up(settings)
asked = {size: getattr(settings, size) for size in ("layers", "width", "heads", "vocabulary")}
name, build, sizes = models.find(settings.model, settings.length, **asked)
least_bytes = 16 * (sizes.vocabulary * sizes.width + 12 * sizes.layers * sizes.width**2)  # weights, gradients, moments
collo_memory.check_fits(least_bytes, device, "the weights and AdamW take at least", "lower `width` or `layers`")
vocabulary = sizes.vocabulary - 1
data = collo_tokens.load(
    settings.dataset, settings.items, settings.length, vocabulary, settings.seed, settings.packing
)
cards = parallel.cards(settings, device)
spread = argparse.Namespace(**{**vars(settings), "batch_size": cards * settings.batch_size})  # a batch on each
loader = collo_torch.loader(data, spread)

with device:  # the weights are drawn where they will lie: on a GPU seconds instead of a minute
    learner = build(sizes)
learner.to(device)  # the few that transformers draws elsewhere
if settings.keep_outputs:
    learner.keep_outputs()
optimiser = torch.optim.AdamW(learner.parameters(), settings.learning_rate, capturable=settings.cuda_graphs)

more = {"length": settings.length, "regime": {"optimiser": "adamw", "packing": settings.packing}}
if cards > 1:
    more.update(data_parallel=cards, limit_batches=collo_torch.limit_in_force(spread, data))
collo_torch.say_hello(member, settings, device, name, learner, data, **more)
collo_torch.tell_features(member, learner, (torch.zeros(1, settings.length, dtype=torch.int64),), settings)
low_precision = collo_torch.PRECISIONS[settings.precision]
loss_of = parallel.Parallel(learner, low_precision=low_precision) if cards > 1 else learner  # the module is its own loss
step = collo_torch.training_step(loss_of, learner, optimiser, settings)

member.wait_for_warm_up()
collo_torch.warm_up(step, loader, device)
member.ready()
for epoch in member.epochs(settings.epochs):
    loss = torch.zeros((), device=device)
    for batch in epoch.batches(collo_torch.on(device, loader)):
        loss += step(*batch)
    epoch.finish(items=len(loader) * spread.batch_size, loss=loss.item() / len(loader))  # item() waits for the GPU
    collo_torch.tell_memory(member, device)
