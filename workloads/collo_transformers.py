"""The protocol for scripts that train with the Trainer of Hugging Face's transformers: a callback.

    trainer = Trainer(model, args, train_dataset=data, callbacks=[collo_transformers.Collo()])

In: one `train`. Out: what every member tells, see `collo.py`. By hand the script trains as ever and prints a line per
epoch. Under collo it trains collo's number of epochs and, under `keep-running`, more of them until stop, whatever
`num_train_epochs` says; the learning rate follows the script's own schedule. `Collo()` stands last in the list, so that
no other callback stops the training.

An epoch is the Trainer's, from `on_epoch_begin` to `on_epoch_end`, with the GPU idle at both ends. What the Trainer
does every so many steps is part of it, evaluation and checkpoints as well; what it does after each epoch is in none.
Items are those of the batches seen. The loss is what the Trainer logs, for which it is asked to log once more, at the
last step of each epoch.

The turn to warm up is over at once, for the Trainer takes no training step that would not count. The first steps, with
their tuning and compilation, are in epoch 0; collo measures it only if there is no other. Where it does not, the peaks
of that epoch are told as those of the warm-up. The allocator's cache is left alone.
"""

import math
import sys
import time

import torch

import collo
import collo_torch

try:
    import accelerate
    import transformers
except ModuleNotFoundError as error:
    way_out = "install it, or name an environment that has it"
    raise ModuleNotFoundError(f"`{error.name}` is not installed here: {way_out}", name=error.name) from None


class Unending(float):
    """The script's own number of epochs wherever it is calculated with; in whole epochs, a number without an end."""

    def __ceil__(self):
        return sys.maxsize


class Collo(transformers.TrainerCallback):
    """Makes a member of the process. `name` is the model's, `dataset` a dict of name, synthetic and items."""

    def __init__(self, name=None, dataset=None):
        self.member = collo.connect()
        collo_torch.describe_by_library()
        collo_torch.given_device()  # the library would train on the CPU where the GPU that was given cannot be used
        self.name, self.dataset = name, dataset
        self.epochs = self.epoch = None  # there is an epoch from the start of the first to the end of the last

    def on_init_end(self, args, state, control, **others):
        if self.member.channel:
            check(args)
            self.own_epochs = args.num_train_epochs
            args.num_train_epochs = Unending(self.own_epochs)  # the range of its loop is fixed before it asks us again

    def on_train_begin(self, args, state, control, model=None, **others):
        if self.epochs:
            return  # a second training is the script's own affair
        if isinstance(args.num_train_epochs, Unending):
            args.num_train_epochs, state.num_train_epochs = self.own_epochs, math.ceil(self.own_epochs)
        self.own_steps = state.max_steps
        self.member.hello(
            **collo_torch.as_seen(args.device),
            threads=torch.get_num_threads(),
            model=(self.name or type(model).__name__, sum(parameter.numel() for parameter in model.parameters())),
            dataset=self.dataset,
            versions={library.__name__: library.__version__ for library in (transformers, accelerate)},
        )
        self.member.wait_for_warm_up()

    def on_epoch_begin(self, args, state, control, model=None, optimizer=None, train_dataloader=None, **others):
        if collo.describing():
            describe(args, model, optimizer, next(iter(train_dataloader)))
        if self.epochs is None:
            self.member.ready()
            self.epochs = self.member.epochs(by_hand=math.inf)
            self.epoch = next(self.epochs)
        if self.epoch:
            if self.member.channel:
                state.max_steps = sys.maxsize  # else the Trainer's own callback would end it there
            self.batches, self.loss = 0, 0.0
            self.first_step = self.logged_step = state.global_step
            collo.synchronise(args.device)
            self.epoch.start_ns = time.monotonic_ns()

    def on_step_begin(self, args, state, control, **others):
        self.member.leave_if_stopped()

    def on_substep_end(self, args, state, control, **others):  # of a batch whose gradients wait for more
        self.batches += 1
        self.member.leave_if_stopped()

    def on_step_end(self, args, state, control, **others):
        if self.epoch:
            self.batches += 1
            control.should_log |= state.epoch == round(state.epoch)
            return self._train_on(control)

    def on_log(self, args, state, control, logs=None, **others):
        if self.epoch and "loss" in logs:  # the mean over the steps since the last time
            self.loss += logs["loss"] * (state.global_step - self.logged_step)
            self.logged_step = state.global_step

    def on_prediction_step(self, args, state, control, **others):
        self.member.leave_if_stopped()

    def on_evaluate(self, args, state, control, **others):
        if self.epoch:
            return self._train_on(control)

    def on_epoch_end(self, args, state, control, train_dataloader=None, **others):
        if not (self.epoch and self.batches):
            return
        if self.member.channel and (control.should_epoch_stop or control.should_training_stop):
            if self.batches < len(train_dataloader):
                raise stopped(f"epoch {self.epoch.index} was cut to {self.batches} of {len(train_dataloader)} batches")
        collo.synchronise(args.device)
        steps = state.global_step - self.first_step
        all_logged = self.logged_step == state.global_step
        self.epoch.finish(items_in(train_dataloader, self.batches), self.loss / steps if steps and all_logged else None)
        collo_torch.tell_memory_of(self.epoch, self.member, args.device)
        self.epoch = next(self.epochs, None)
        if self.epoch is None:
            state.max_steps, control.should_training_stop = self.own_steps, True
            return control
        return self._train_on(control)

    def on_train_end(self, args, state, control, **others):
        if self.epoch and self.member.channel:
            raise stopped(f"the training ended before epoch {self.epoch.index}")

    def _train_on(self, control):
        if self.member.channel:
            control.should_training_stop = control.should_epoch_stop = False
        return control


def describe(args, model, optimiser, batch):
    """Instead of the first step. Its order is the Trainer's: forward, backward, clipping, and the gradients go."""
    import collo_describe

    optimiser = getattr(optimiser, "optimizer", optimiser)
    low_precision = torch.bfloat16 if args.bf16 else torch.float16 if args.fp16 else None

    def step_of(batch):
        with torch.autocast("cpu", low_precision, enabled=low_precision is not None):
            output = model(**batch)
            loss = output["loss"] if isinstance(output, dict) else output[0]
        loss.backward()
        if args.max_grad_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
        optimiser.step()
        loss = loss.detach()
        model.zero_grad()
        return loss

    precision = "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
    collo_describe.leave_described_by_library(model, optimiser, batch, precision, step_of)


def check(args):
    """Under collo epochs are counted, and nothing may change the batch size."""
    if args.max_steps > 0:
        raise collo.SettingError("`max_steps` counts no epochs: leave it out and set `num_train_epochs`")
    if args.auto_find_batch_size:
        raise collo.SettingError("`auto_find_batch_size` would measure another batch size than asked for: leave it out")


def stopped(what):
    way_out = "make `Collo()` the last of the `callbacks=[…]` that the Trainer is given"
    return collo.SettingError(f"{what}, for another callback stopped it: {way_out}")


def items_in(loader, batches):
    """How many items so many batches of an epoch had: whole ones, but for the last of the data. None if not known."""
    sampler = getattr(loader, "batch_sampler", None)
    try:
        if batches < len(loader) or sampler.drop_last:
            return batches * sampler.batch_size
        return len(sampler.sampler)
    except (AttributeError, TypeError):  # an iterable data set, or batches of the script's own making
        return None
