"""DLRM, the recommender, on Criteo's click logs. By hand: PYTHONPATH=.. python train.py

An epoch is one training block and the validation after it: the first rows of the data in their order, then those that
follow. Its time is that of both; its items and its loss are those of training. Every epoch takes the same rows.
"""

import argparse

import torch
from torch.nn import functional as F
from torch.utils.data import Subset

import clicks
import collo
import collo_data
import collo_memory
import collo_torch
import tables
from model import DLRM, NUMBERS, bottom_widths, top_widths

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--dataset", default="random", help="criteo, or random: seeded clicks made in memory")
parser.add_argument("--tables", default="kaggle", help="kaggle, terabyte, terabyte-40m, or the rows of every table")
parser.add_argument("--max-table", type=int, default=0, help="the most rows of a table; 0 for no limit")
parser.add_argument("--table-bytes", default="32MB", help="cut or grow the tables to so many bytes; or unscaled")
parser.add_argument("--embedding-width", type=int, default=16)
parser.add_argument("--bottom", default="512-256-64-16", help="widths of the bottom MLP, without the 13 inputs")
parser.add_argument("--top", default="512-256-1", help="widths of the top MLP, the logit included")
parser.add_argument("--sparse", type=collo_torch.flag, default=True, help="gradients only of the rows in the batch")
parser.add_argument("--block-rows", type=int, default=16384, help="to train on, per epoch")
parser.add_argument("--validation-rows", type=int, default=4096, help="after each block; 0 for none")
collo_torch.add_settings(parser, batch_size=128, learning_rate=0.1)
settings = parser.parse_args()

member = collo.connect()
device = collo_torch.set_up(settings)

collo_torch.one_of("dataset", settings.dataset, ("criteo", "random"))
collo_torch.at_least("embedding_width", settings.embedding_width, 1)
collo_torch.at_least("block_rows", settings.block_rows, settings.batch_size, "a whole batch")
if settings.validation_rows:
    remark = "a whole batch, or 0 for none"
    collo_torch.at_least("validation_rows", settings.validation_rows, settings.batch_size, remark)
collo_torch.at_least("seed", settings.seed, 0)
rows = tables.rows(settings.tables, settings.max_table, settings.table_bytes, settings.embedding_width)
bottom, top = bottom_widths(settings.bottom, settings.embedding_width), top_widths(settings.top)
table_bytes = sum(rows) * settings.embedding_width * tables.VALUE_BYTES
what = "the embedding tables take" if settings.sparse else "the embedding tables and their gradients take"
way_out = "lower `max_table`, `table_bytes` or `tables`" + ("" if settings.sparse else ", or set `sparse` to true")
collo_memory.check_fits(table_bytes if settings.sparse else 2 * table_bytes, device, what, way_out)

used = settings.block_rows + settings.validation_rows
if settings.dataset == "random" and not collo.describing():  # the shapes are Criteo's
    way_out = "lower `block_rows` or `validation_rows`"
    collo_memory.check_fits(used * clicks.ROW_BYTES, torch.device("cpu"), f"{used} random clicks take", way_out)
    data = clicks.Clicks(used, rows, settings.seed)
else:
    data = collo_data.load("criteo", rows=used, table_sizes=rows)
block = collo_torch.loader(Subset(data, range(settings.block_rows)), settings, shuffle=False)
validation = []
if settings.validation_rows:
    validation = collo_torch.loader(Subset(data, range(settings.block_rows, used)), settings, shuffle=False)

model = DLRM(rows, settings.embedding_width, bottom, top, settings.sparse, device)
optimiser = torch.optim.SGD(
    # in two groups: the MLPs' updates can be joined into one kernel, sparse ones cannot
    [{"params": [*model.bottom.parameters(), *model.top.parameters()]}, {"params": model.tables.parameters()}],
    settings.learning_rate,
)


def loss_of(numbers, categories, labels):
    return F.binary_cross_entropy_with_logits(model(numbers, categories).float(), labels)


def right_and_loss(numbers, categories, labels):
    """How many clicks a batch of the validation has right, and its loss."""
    low_precision = collo_torch.PRECISIONS[settings.precision]
    with torch.no_grad(), torch.autocast(device.type, low_precision, enabled=low_precision is not None):
        logits = model(numbers, categories).float()
    right = ((logits > 0) == (labels > 0.5)).sum()
    return torch.stack([right, F.binary_cross_entropy_with_logits(logits, labels)])


example = torch.zeros(1, NUMBERS), torch.zeros(1, len(rows), dtype=torch.int64)
# The limit holds for the block and for the validation, each by itself.
limits = [collo_torch.limit_in_force(settings, part.dataset) for part in (block, validation) if part]
limit = next((limit for limit in limits if limit), None)
collo_torch.say_hello(member, settings, device, name="dlrm", model=model, data=data, limit_batches=limit)
collo_torch.tell_features(member, model, example, settings)
step = collo_torch.training_step(loss_of, model, optimiser, settings)
member.wait_for_warm_up()
collo_torch.warm_up(step, block, device)
if validation:
    collo_torch.warm_up(lambda *batch: right_and_loss(*batch)[1], validation, device)
member.ready()

for epoch in member.epochs(settings.epochs):
    loss, validated = torch.zeros((), device=device), torch.zeros(2, device=device)
    for batch in epoch.batches(collo_torch.on(device, block)):
        loss += step(*batch)
    for batch in epoch.batches(collo_torch.on(device, validation)):
        validated += right_and_loss(*batch)
    right, validation_loss = validated.tolist()  # waits for the GPU
    epoch.finish(items=len(block) * settings.batch_size, loss=loss.item() / len(block))
    collo_torch.tell_memory(member, device)
    if validation and not member.channel:
        share = right / (len(validation) * settings.batch_size)
        print(f"validation loss {validation_loss / len(validation):.4f}, {share:.1%} right", flush=True)
