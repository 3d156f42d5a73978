"""Training and its splits: a table goes in, predicted bins of rows that were kept aside come out.

Adam, cross-entropy, at most 600 epochs, ended when the loss on the validation rows has not fallen for 30 epochs. Each
training has one thread and seeds of its own, so that the same rows give the same numbers, however many run at once.
"""

import copy
import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from .ensembles import MEMBERS, MEMBERS_FOR_CNN, MlpEnsemble, TransformerEnsemble

SEED = 42
LEARNING_RATE, BATCH, MOST_EPOCHS, PATIENCE = 1e-3, 128, 600, 30
FOLDS = 3
ENSEMBLES = ("mlp", "transformer")


@dataclass
class Split:
    """Rows by their places in the table."""

    name: str
    train: torch.Tensor
    validation: torch.Tensor
    test: torch.Tensor


def random_split(rows):
    """70 % to learn from, 20 % to stop by, 10 % to be judged by."""
    order = shuffled(rows)
    train, test = round(0.7 * rows), round(0.1 * rows)
    return Split("70/20/10", order[:train], order[train : rows - test], order[rows - test :])


def folds(rows):
    """Each third once apart; of it 70 % are predicted, and the end of the training is found on the rest."""
    thirds = shuffled(rows).tensor_split(FOLDS)
    found = []
    for place, third in enumerate(thirds):
        others = torch.cat([other for at, other in enumerate(thirds) if at != place])
        test = int(0.7 * len(third))
        found.append(Split(f"fold {place + 1}", others, third[test:], third[:test]))
    return found


def by_family(families):
    """Each family once apart, all of it to be predicted."""
    found = []
    for family in sorted(set(families)):
        test = torch.tensor([place for place, one in enumerate(families) if one == family])
        others = torch.tensor([place for place, one in enumerate(families) if one != family])
        others = others[shuffled(len(others))]
        train = round(len(others) * 7 / 9)  # 70 to 20
        found.append(Split(family, others[:train], others[train:], test))
    return found


def shuffled(count):
    return torch.randperm(count, generator=torch.Generator().manual_seed(SEED))


def inputs_of(name, table, train, scaled):
    """What an ensemble takes: raw values, or in deviations from the mean of the training rows."""
    parts = (table.features,) if name == "mlp" else (table.sequences, table.more)
    if scaled:
        parts = tuple(like(part, part[train]) for part in parts)
    return parts if name == "mlp" else (*parts, table.lengths)


def like(values, known):
    flat = known.flatten(0, -2)
    deviation = flat.std(0, correction=0)
    return (values - flat.mean(0)) / torch.where(deviation > 0, deviation, 1)


def new_model(name, table):
    torch.manual_seed(SEED)
    if name == "mlp":
        members = MEMBERS_FOR_CNN if table.kind == "cnn" else MEMBERS
        return MlpEnsemble(table.features.shape[1], table.classes, members)
    _, longest, codes = table.sequences.shape
    return TransformerEnsemble(codes, longest, table.more.shape[1], table.classes)


def fit(model, inputs, bins, split, most_epochs=MOST_EPOCHS):
    """Train on; (the state with the least loss on the validation rows, the epochs that it took). `model` has the last."""
    optimiser = torch.optim.Adam(model.parameters(), LEARNING_RATE, fused=True)
    order = torch.Generator().manual_seed(SEED)
    best, least, since, epoch = copy.deepcopy(model.state_dict()), math.inf, 0, 0
    while epoch < most_epochs and since < PATIENCE:
        model.train()
        for rows in split.train[torch.randperm(len(split.train), generator=order)].split(BATCH):
            if len(rows) == 1:
                continue  # one row has no variance
            optimiser.zero_grad(set_to_none=True)
            F.cross_entropy(model(*(part[rows] for part in inputs)), bins[rows]).backward()
            optimiser.step()
        epoch += 1
        loss = F.cross_entropy(logits(model, inputs, split.validation), bins[split.validation]).item()
        if loss < least:
            best, least, since = copy.deepcopy(model.state_dict()), loss, 0
        else:
            since += 1
    return best, epoch


@torch.no_grad()
def logits(model, inputs, rows):
    model.eval()
    return torch.cat([model(*(part[some] for part in inputs)) for some in rows.split(4 * BATCH)])


def predicted(model, inputs, rows):
    return logits(model, inputs, rows).argmax(1)


def anew(name, table, split, scaled, most_epochs):
    """A training from the beginning: (bins by the best state, bins by the last, the model, its epochs)."""
    inputs = inputs_of(name, table, split.train, scaled)
    model = new_model(name, table)
    best, epochs = fit(model, inputs, table.bins, split, most_epochs)
    by_last = predicted(model, inputs, split.test)
    last = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    by_best = predicted(model, inputs, split.test)
    model.load_state_dict(last)
    return by_best, by_last, model, epochs


def on_and_on(name, table, splits, scaled, most_epochs):
    """As the public code has its folds: one model, trained on from fold to fold, judged as the last epoch left it.

    [(bins, epochs)] of each. From the second on it has learned from rows that it is judged by. The first is also that
    of a training anew: (…, its bins by the best state).
    """
    first = splits[0]
    by_best, by_last, model, epochs = anew(name, table, first, scaled, most_epochs)
    found = [(by_last, epochs)]
    for split in splits[1:]:
        inputs = inputs_of(name, table, split.train, scaled)
        _, epochs = fit(model, inputs, table.bins, split, most_epochs)
        found.append((predicted(model, inputs, split.test), epochs))
    return found, by_best
