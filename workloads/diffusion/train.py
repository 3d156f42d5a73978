"""A diffusion model learns to tell noise from made-up latents. By hand: PYTHONPATH=.. python train.py"""

import argparse

import torch
from torch.nn import functional as F

import collo
import collo_memory
import collo_torch
from latents import Latents
from model import CHANNELS, STEPS, DiT, left_of

settings = argparse.ArgumentParser(description=__doc__)
settings.add_argument("--layers", type=int, default=2)
settings.add_argument("--width", type=int, default=64, help="channels of a patch")
settings.add_argument("--heads", type=int, default=4, help="of the attention; they share the width")
settings.add_argument("--side", type=int, default=16, help="values a side of a latent, a multiple of 4")
settings.add_argument("--classes", type=int, default=10)
settings.add_argument("--items", type=int, default=256, help="latents, made up in memory")
collo_torch.add_settings(settings, batch_size=16, learning_rate=1e-3)
settings = settings.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)
for name, most in (("layers", 1000), ("width", 100_000), ("heads", 1000), ("classes", 10**6), ("items", 10**8)):
    if not 1 <= getattr(settings, name) <= most:
        raise collo.SettingError(f"`{name}` is {getattr(settings, name)}: it is 1 to {most}")
if not 4 <= settings.side <= 512 or settings.side % 4:
    raise collo.SettingError(f"`side` is {settings.side}: it is 4 to 512 values a side and a multiple of 4")
if settings.width % settings.heads or settings.width % 2:
    said = f"`heads` is {settings.heads} and `width` {settings.width}"
    raise collo.SettingError(f"{said}: the width is even, and the heads share it evenly")
bytes_of_items = 8 * CHANNELS * settings.items * settings.side**2  # once more while they are made
way_out = "lower `items` or `side`"
collo_memory.check_fits(bytes_of_items, torch.device("cpu"), f"{settings.items} latents take", way_out)
weights = 18 * settings.layers * settings.width**2  # and a few more
way_out = "lower `width` or `layers`"
collo_memory.check_fits(16 * weights, device, "the weights and AdamW take at least", way_out)

data = Latents(settings.items, CHANNELS, settings.side, settings.classes, settings.seed)
loader = collo_torch.loader(data, settings)
with device:  # the weights are drawn where they will lie
    model = DiT(settings.layers, settings.width, settings.heads, settings.side, settings.classes)
optimiser = torch.optim.AdamW(
    model.parameters(), settings.learning_rate, weight_decay=0.0, capturable=settings.cuda_graphs
)


def loss_of(latents, classes):
    """Noise is laid over the latents, more or less of it, and guessed."""
    steps = torch.randint(STEPS, classes.shape, device=device)
    own, noise = left_of(steps), torch.randn_like(latents)
    guessed = model(own.sqrt() * latents + (1 - own).sqrt() * noise, steps, classes)
    return F.mse_loss(guessed[:, :CHANNELS].float(), noise)


name = f"DiT of {settings.layers} layers, width {settings.width}"
collo_torch.say_hello(member, settings, device, name, model, data, side=settings.side)
example = (torch.empty(1, CHANNELS, settings.side, settings.side), torch.zeros(1), torch.zeros(1, dtype=torch.int64))
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
