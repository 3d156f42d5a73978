"""A network drawn at random, on random items: what estimators of memory and utilisation are trained on.

What it is made of is fixed by settings or drawn from `seed`; the hello says what was drawn. The batch size is always a
setting: cells are named by it. By hand: PYTHONPATH=.. python train.py
"""

import argparse
import math

import torch
from torch.nn import functional as F

import collo
import collo_memory
import collo_torch
from collo_features import features
from draw import DRAWN, KINDS, drawn
from nets import Random, build, least_bytes, shape, shown

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--kind", default="mlp", help=", ".join(KINDS))
settings.add_argument("--shape", default=DRAWN, help="pyramid, uniform, bottleneck, gradual, hourglass (cnn); or drawn")
settings.add_argument("--depth", type=int, default=0, help="hidden layers, convolutions, encoder layers; 0: drawn")
settings.add_argument("--width", type=int, default=0, help="what the shape begins with; 0: drawn")
settings.add_argument("--normalisation", default=DRAWN, help="none, batch; layer (transformer); or drawn")
settings.add_argument("--dropout", type=float, default=-1, help="0 for none; -1: drawn")
settings.add_argument("--activation", default=DRAWN, help="relu, gelu, tanh …; or drawn")
settings.add_argument("--inputs", type=int, default=0, help="features, pixels a side, tokens known; 0: drawn")
settings.add_argument("--outputs", type=int, default=0, help="classes; 0: drawn")
settings.add_argument("--channels", type=int, default=0, help="colours of a picture (cnn); 0: drawn")
settings.add_argument("--length", type=int, default=0, help="tokens of a text (transformer); 0: drawn")
settings.add_argument("--heads", type=int, default=0, help="of the attention (transformer); 0: drawn")
settings.add_argument("--inner", type=int, default=0, help="of an encoder layer, between its two linear ones; 0: drawn")
settings.add_argument("--pooled-every", type=int, default=-1, help="convolutions (cnn); 0: never, -1: drawn")
settings.add_argument("--items", type=int, default=0, help="of an epoch; 0: eight batches")
collo_torch.add_settings(settings, batch_size=32, learning_rate=1e-3)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
collo_torch.one_of("kind", settings.kind, KINDS)
net = drawn(settings.kind, settings.seed, vars(settings))
collo_torch.at_least("items", settings.items, 0, "0 for eight batches")
items = settings.items or 8 * settings.batch_size
if settings.kind == "mlp" and net["normalisation"] == "batch" and settings.batch_size == 1:
    said = f"`batch_size` is 1 and this mlp of seed {settings.seed} normalises each batch"
    raise collo.SettingError(f'{said}, one item has no variance: raise `batch_size`, or set normalisation = "none"')

with torch.device("meta"):  # where it costs nothing
    example = (shown(net, torch.zeros(1, *shape(net), dtype=torch.int64)),)
    sequence = features(build(net), example)["sequence"]
value_bytes = 2 if collo_torch.PRECISIONS[settings.precision] else 4
what = f"this {settings.kind} of seed {settings.seed} at batch size {settings.batch_size} takes at least"
way_out = "lower `batch_size`, `depth` or `width`, or take another `seed`"
collo_memory.check_fits(least_bytes(sequence, settings.batch_size, value_bytes), device, what, way_out)
bytes_of_items = items * math.prod(shape(net)) * (4 if settings.kind == "transformer" else 1)
way_out = "lower `items`, or what `inputs`, `length` or `batch_size` make of them"
collo_memory.check_fits(bytes_of_items, torch.device("cpu"), f"{items} random items take", way_out)

data = Random(net, items, settings.seed)
loader = collo_torch.loader(data, settings)
with device:  # the weights are drawn where they will lie
    model = build(net)
optimiser = torch.optim.Adam(model.parameters(), settings.learning_rate, capturable=settings.cuda_graphs)


def loss_of(items, labels):
    scores = model(shown(net, items))
    if net["outputs"] == 1:
        return F.binary_cross_entropy_with_logits(scores.squeeze(1).float(), labels.float())
    return F.cross_entropy(scores, labels)


name = f"{settings.kind} of seed {settings.seed}"
collo_torch.say_hello(member, settings, device, name, model, data, generated=net)
collo_torch.tell_features(member, model, example, settings)
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
