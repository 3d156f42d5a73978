"""The optimiser and its learning rate, as the settings say. Knows no model and no data."""

import torch

import collo_torch
from collo import SettingError

MOMENTUM = 0.9
BASE_RATE, BASE_BATCH = 0.1, 256  # timm/train.py, `--lr-base` and `--lr-base-size`
OPTIMISERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "cosine")


def add_settings(parser):
    add = parser.add_argument
    add("--optimiser", default="sgd", help=", ".join(OPTIMISERS))
    add("--nesterov", type=collo_torch.flag, default=False, help="momentum that looks ahead, of sgd")
    add("--weight-decay", type=float, default=5e-4)
    add("--label-smoothing", type=float, default=0.0, help="0 to 1")
    add("--schedule", default="constant", help="of the learning rate: constant; cosine: once an epoch, down to 0")
    add("--schedule-epochs", type=int, default=300, help="in which a cosine comes down")


def check(settings):
    """A learning rate of 0 becomes timm's."""
    collo_torch.one_of("optimiser", settings.optimiser, OPTIMISERS)
    collo_torch.one_of("schedule", settings.schedule, SCHEDULES)
    if settings.learning_rate == 0:
        settings.learning_rate = BASE_RATE * settings.batch_size / BASE_BATCH
    collo_torch.at_least("weight_decay", settings.weight_decay, 0)
    if not 0 <= settings.label_smoothing < 1:
        raise SettingError(f"`label_smoothing` is {settings.label_smoothing}: it is 0 or more, and below 1")
    collo_torch.at_least("schedule_epochs", settings.schedule_epochs, 1)
    if settings.schedule == "cosine" and settings.cuda_graphs:
        why = "a captured step keeps the learning rate that it was captured with"
        raise SettingError(f"`schedule` cannot be cosine with `cuda_graphs`, {why}: set `schedule` to constant")


def optimiser(parameters, settings):
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimiser == "sgd":
        return torch.optim.SGD(parameters, rate, momentum=MOMENTUM, nesterov=settings.nesterov, weight_decay=decay)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[settings.optimiser]
    return kind(parameters, rate, weight_decay=decay, capturable=settings.cuda_graphs)


def schedule(optimiser, settings):
    """What is called at the end of each epoch."""
    if settings.schedule == "constant":
        return lambda: None
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.schedule_epochs).step


def in_force(settings):
    """As the hello says it; what has no meaning with this optimiser is none."""
    return {
        "optimiser": settings.optimiser,
        "nesterov": settings.nesterov if settings.optimiser == "sgd" else None,
        "weight_decay": settings.weight_decay,
        "label_smoothing": settings.label_smoothing,
        "schedule": settings.schedule,
        "schedule_epochs": settings.schedule_epochs if settings.schedule == "cosine" else None,
    }
