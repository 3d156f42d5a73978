"""The protocol for scripts that train with Lightning 2: a callback.

    trainer = Trainer(max_epochs=3, callbacks=[collo_lightning.Collo()])

In: one `fit`, of the Lightning that the script imported before, by either of its names. Out: what every member tells,
see `collo.py`. By hand the script trains as ever and prints a line per epoch. Under collo it trains collo's number of
epochs and, under `keep-running`, more of them until stop: `max_epochs`, `max_steps` and early stopping end nothing then. Where
the script's own training would be over, the learning rate stays as it is.

An epoch is a training epoch of Lightning, from `on_train_epoch_start` to `on_train_epoch_end`, with the GPU idle at
both ends. The validation that Lightning runs within it is part of it; what it does between two of them is in neither:
writing checkpoints, loading data anew. Items are those that the data loader puts into the training batches; where that is
unknown, they are counted along the first dimension of the first tensor. The loss is the mean over the training batches.

The turn to warm up is over at once, for Lightning takes no training step that would not count, and its sanity check
came before. The first steps, with their tuning and compilation, are in epoch 0; collo measures it only if there is no
other. Where it does not, the peaks of that epoch are told as those of the warm-up. The allocator's cache is left alone.
"""

import importlib
import math
import sys
import time
from collections.abc import Mapping

import torch

import collo
import collo_torch


def _lightning():
    """The Lightning of the script, which imported it by one of its two names: each name has a `Callback` of its own."""
    for name in sorted(("lightning.pytorch", "pytorch_lightning"), key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(error.name):  # it is there, and something that it needs is not
                raise
    way_out = "install it, or name an environment that has it"
    raise ModuleNotFoundError(f"`lightning` is not installed here: {way_out}", name="lightning")


lightning = _lightning()


class Collo(lightning.Callback):
    """Makes a member of the process. `name` is the model's, `dataset` a dict of name, synthetic and items."""

    def __init__(self, name=None, dataset=None):
        self.member = collo.connect()
        collo_torch.describe_by_library()
        collo_torch.given_device()  # the library would train on the CPU where the GPU that was given cannot be used
        self.name, self.dataset = name, dataset
        self.epochs = self.epoch = None  # there is an epoch from the start of the first to the end of the last

    def on_train_start(self, trainer, module):
        if self.epochs:
            return  # a second fit is the script's own affair
        self._check(trainer)
        self.own_epochs, self.own_steps = no_limit_is_inf(trainer.max_epochs), no_limit_is_inf(trainer.max_steps)
        self.member.hello(
            **collo_torch.as_seen(module.device),
            threads=torch.get_num_threads(),
            model=(self.name or type(module).__name__, sum(parameter.numel() for parameter in module.parameters())),
            dataset=self.dataset,
            versions={lightning.__name__.split(".")[0]: lightning.__version__},
            limit_batches=limit_in_force(trainer),
            precision=trainer.precision,
        )
        self.member.wait_for_warm_up()

    def on_train_epoch_start(self, trainer, module):
        if self.epochs is None:
            self.member.ready()
            self.epochs = self.member.epochs(by_hand=math.inf)
            self.epoch = next(self.epochs)
        if self.epoch:
            self._train_on(trainer)
            self.items, self.loss, self.losses = 0, 0.0, 0
            collo.synchronise(module.device)
            self.epoch.start_ns = time.monotonic_ns()

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if collo.describing():
            describe(trainer, module, batch)
        self.member.leave_if_stopped()
        over = trainer.current_epoch >= self.own_epochs or trainer.global_step >= self.own_steps
        if over and self.member.channel and module.automatic_optimization:
            trainer.strategy.lr_scheduler_configs = []  # some schedules raise when they are asked beyond their end

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if self.epoch:
            items = items_of(trainer.train_dataloader, batch_idx) or items_in(batch)
            self.items = None if items is None or self.items is None else self.items + items
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            if loss is not None:  # a training step may skip its batch
                self.loss += loss.detach() * trainer.accumulate_grad_batches  # by which Lightning has divided it
                self.losses += 1

    def on_validation_batch_start(self, trainer, module, batch, batch_idx, dataloader_idx=0):
        self.member.leave_if_stopped()

    def on_train_epoch_end(self, trainer, module):
        if self.epoch:
            collo.synchronise(module.device)
            self.epoch.finish(self.items, float(self.loss) / self.losses if self.losses else None)
            collo_torch.tell_memory_of(self.epoch, self.member, module.device)
            self.epoch = next(self.epochs, None)
            if self.epoch is None:
                trainer.fit_loop.min_epochs, trainer.should_stop = 0, True

    def _check(self, trainer):
        """Under collo an epoch must have an end of its own, and nothing but collo may want the training to stop."""
        if not self.member.channel:
            return
        if trainer.max_steps != -1 and trainer.num_training_batches == math.inf:
            reason = "`max_steps` is all that ends an epoch of this data"
            raise collo.SettingError(f"{reason}: set `limit_train_batches` as well")
        if any(isinstance(callback, lightning.callbacks.Timer) for callback in trainer.callbacks):
            raise collo.SettingError("`max_time` ends no epoch and makes every later batch slower: leave it out")

    def _train_on(self, trainer):
        """Whatever the script has asked for, there is one more epoch to come after this one."""
        if self.member.channel:
            loop, next_one = trainer.fit_loop, trainer.current_epoch + 2
            loop.min_epochs, trainer.should_stop = next_one, False
            loop.max_epochs = -1 if loop.max_epochs == -1 else max(loop.max_epochs, next_one)
            loop.epoch_loop.max_steps = -1


def describe(trainer, module, batch):
    """Instead of the first step. Its order is Lightning's: forward, then the old gradients go, then backward."""
    import collo_describe

    if not module.automatic_optimization or len(trainer.optimizers) != 1:
        reason = "a module with several optimisers, or that steps by itself, cannot be described"
        raise collo.SettingError(f"{reason}: measure it instead")
    (optimiser,) = trainer.optimizers
    optimiser = getattr(optimiser, "optimizer", optimiser)
    module.log = module.log_dict = lambda *args, **kwargs: None  # there is nothing to log

    def step_of(batch):
        with trainer.precision_plugin.forward_context():
            output = module.training_step(batch, 0)
            loss = output["loss"] if isinstance(output, Mapping) else output
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.detach()

    collo_describe.leave_described_by_library(module, optimiser, batch, str(trainer.precision), step_of)


def no_limit_is_inf(limit):
    return math.inf if limit == -1 else limit


def limit_in_force(trainer):
    """How many batches an epoch is cut to; None when it is whole."""
    asked, batches = trainer.limit_train_batches, trainer.num_training_batches
    if isinstance(asked, float) and asked == 1.0:  # 1 would be a single batch
        return None
    try:
        whole = len(trainer.train_dataloader) if hasattr(trainer.train_dataloader, "dataset") else math.inf
    except TypeError:  # of an iterable data set
        whole = math.inf
    return batches if batches < whole else None


def items_of(loader, index):
    """How many items a data loader puts into its batch of this index: a batch may be a list of pictures, whose tensors do not
    show how many there are. None where batches are not made by a plain `BatchSampler`.
    """
    batches = getattr(loader, "batch_sampler", None)
    if type(batches) is not torch.utils.data.BatchSampler:  # others may make batches of any size
        return None
    try:
        left = len(batches.sampler) - index * batches.batch_size
    except TypeError:  # of an iterable data set
        return None
    return min(batches.batch_size, left) if left > 0 else None


def items_in(batch):
    """How many items a batch has: the first dimension of its first tensor. None if it has no tensor."""
    if isinstance(batch, torch.Tensor):
        return len(batch) if batch.ndim else 1
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return next((items for part in parts if (items := items_in(part)) is not None), None)
