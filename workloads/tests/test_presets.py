"""The patterns of collo's `[epochs]` presets, on what real scripts print that have never heard of collo."""

import os
import re

import pytest
from forked import Forked
from harness import WORKLOADS

SOURCE = WORKLOADS.parent / "harness/plan/src/workload/adapters.rs"

LIGHTNING = """
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1]), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


loader = DataLoader(TensorDataset(torch.randn(500, 8), torch.randint(0, 2, (500,))), batch_size=2)
trainer = pl.Trainer(max_epochs=3, callbacks=[pl.callbacks.TQDMProgressBar()], logger=False, enable_checkpointing=False)
trainer.fit(Net(), loader, loader)
"""

HUGGINGFACE = """
import torch
from transformers import Trainer, TrainingArguments


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, x, labels):
        scores = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


data = [{"x": torch.randn(8), "labels": index % 2} for index in range(50)]
quiet = dict(use_cpu=True, report_to="none", save_strategy="no")
args = TrainingArguments("out", num_train_epochs=3, logging_strategy="epoch", eval_strategy="epoch", **quiet)
Trainer(Net(), args, train_dataset=data, eval_dataset=data).train()
"""


def pattern(preset):
    return re.search(rf'name: "{preset}",\s+pattern: r"(.*)",\n', SOURCE.read_text())[1]


def epochs(preset, output):
    """The epochs in a script's output, as collo reads them: in lines that name a new one."""
    found, pending = [], b""
    while piece := os.read(output.fileno(), 1 << 14):
        *lines, pending = re.split(rb"[\r\n]", pending + piece)
        for line in lines:
            match = re.search(pattern(preset), line.decode().rstrip())
            if match and match["epoch"] not in found[-1:]:
                found.append(match["epoch"])
    return found


@pytest.mark.parametrize(
    "preset, library, program",
    [("lightning", "lightning.pytorch", LIGHTNING), ("huggingface", "transformers.trainer", HUGGINGFACE)],
)
def test_every_epoch_is_read_once_in_order(preset, library, program):
    if preset == "huggingface":
        pytest.importorskip("accelerate", reason="accelerate is not installed, without which there is no Trainer")
    pytest.importorskip(library, reason=f"{library.split('.')[0]} is not installed")
    read, write = os.pipe()
    with os.fdopen(read) as output, os.fdopen(write, "w") as theirs:
        with Forked(program, channel=False, output=theirs) as script:
            theirs.close()
            found = epochs(preset, output)
            assert script.ended() == 0
    assert found == {"lightning": ["0", "1", "2"], "huggingface": ["1", "2", "3"]}[preset]
