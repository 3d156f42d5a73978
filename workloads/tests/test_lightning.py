"""Lightning's trainer as a member of a group, with the real library on the CPU."""

import os
import re

import pytest
from forked import Forked, by_hand, times
from harness import WORKLOADS, Started

pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

NET = """
import functools
import time

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
        self.losses = []

    def training_step(self, batch, batch_idx):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.layer(images), labels)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("right", 0.5, batch_size=len(batch[1]))

    def on_train_epoch_start(self):
        print("trains at", time.monotonic_ns())

    def on_validation_epoch_end(self):
        print("validated at", time.monotonic_ns())

    def on_train_epoch_end(self):
        print("ends at", time.monotonic_ns())
        print("loss", sum(self.losses) / len(self.losses), "batches", len(self.losses))
        self.losses.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


data = TensorDataset(torch.randn(50, 8), torch.randint(0, 2, (50,)))
loader, validation = DataLoader(data, batch_size=8), DataLoader(data, batch_size=25)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
net, Trainer = Net(), functools.partial(pl.Trainer, **quiet)
"""
THREE_LINES = """
import collo_lightning

trainer = Trainer(max_epochs=2, callbacks=[collo_lightning.Collo()])
trainer.fit(net, loader, validation)
"""
SCRIPT = NET + THREE_LINES


def asking_for(settings, net=NET):
    return net + THREE_LINES.replace("max_epochs=2", settings)


def printed(stdout):
    """What the script itself saw of its epochs: (mean loss, batches) of each."""
    return [(float(loss), int(batches)) for loss, batches in re.findall(r"^loss (\S+) batches (\d+)$", stdout, re.M)]


def test_the_guide_shows_the_lines_that_are_tested_here():
    assert f"```python{THREE_LINES}```" in (WORKLOADS.parent / "docs/guide/workloads.md").read_text()


def test_a_fit_says_what_a_member_says_and_trains_on_until_stop():
    with Forked(SCRIPT) as member:
        hello = member.start(epochs=3, after_measured="keep-running")
        epochs = member.hear_epochs(3)
        assert member.hear() == {"event": "done"}
        epochs += [member.hear() for _ in range(2)]
        member.tell("stop")
        member.hear_all()
        status, stdout, stderr = member.end()
    assert (status, stderr) == (0, "")
    assert hello["model"] == {"name": "Net", "parameters": 18}
    assert (hello["device"], hello["threads"], hello["limit_batches"]) == ("cpu", 1, None)
    assert hello["versions"].keys() >= {"python", "torch", "lightning"}
    assert [epoch["measured"] for epoch in epochs] == [False, True, True, False, False]
    assert [epoch["items"] for epoch in epochs] == [50] * 5  # neither the sanity check's nor the validation's
    times = [time for epoch in epochs for time in (epoch["start_ns"], epoch["end_ns"])]
    assert times == sorted(times)
    assert [epoch["loss"] for epoch in epochs] == pytest.approx([loss for loss, _ in printed(stdout)][:5])


def test_an_epoch_has_the_validation_in_it_but_not_what_comes_between_two():
    with Forked(SCRIPT) as member:
        member.start(epochs=2, after_measured="exit")
        epochs = member.hear_epochs(2)
        member.hear_all()
        stdout = member.end()[1]
    told = [[epoch["start_ns"], epoch["end_ns"]] for epoch in epochs]
    validated = times(stdout, "validated")[1:]  # the first is the sanity check's
    seen = zip(told, times(stdout, "trains"), validated, times(stdout, "ends"), strict=True)
    for (start, end), trains, validates, ends in seen:
        assert start < trains < validates < end < ends
    assert times(stdout, "ends")[0] < told[1][0]


def test_nothing_is_trained_before_go():
    with Forked(SCRIPT) as member:
        assert member.hear()["event"] == "hello"
        member.tell("warm_up")
        assert member.hear() == {"event": "ready"}
        member.tell("stop")
        assert member.hear_all() == []
        status, stdout, stderr = member.end()
    assert (status, stderr) == (0, "")
    assert [line.split(" at ")[0] for line in stdout.splitlines()] == ["validated"]  # the sanity check


@pytest.mark.parametrize(
    "settings, batches",
    [
        ("max_epochs=9", 7),
        ("max_epochs=1", 7),
        ("max_epochs=-1", 7),
        ("max_steps=3", 7),
        ("max_epochs=2, accumulate_grad_batches=3", 7),
        ("max_epochs=2, limit_train_batches=3", 3),
        ("max_epochs=2, limit_train_batches=0.5", 3),  # as of 7 batches ours are at limit_batches = 0.5
        ("max_epochs=2, limit_train_batches=100", 7),
    ],
)
def test_under_release_it_trains_as_many_epochs_as_collo_says_and_the_script_goes_on(settings, batches):
    with Forked(asking_for(settings) + "print('after')") as member:
        hello = member.start(epochs=3, after_measured="exit")
        epochs = member.hear_epochs(3)
        assert member.hear_all() == [{"event": "done"}]
        status, stdout, _ = member.end()
    assert (status, stdout.splitlines()[-1]) == (0, "after")
    assert [count for _, count in printed(stdout)] == [batches] * 3
    assert [epoch["loss"] for epoch in epochs] == pytest.approx([loss for loss, _ in printed(stdout)])
    assert [epoch["items"] for epoch in epochs] == [50 if batches == 7 else 24] * 3
    assert hello["limit_batches"] == (None if batches == 7 else batches)


STOPS_EARLY = "pl.callbacks.EarlyStopping('right', patience=0)"
ONE_CYCLE = """        optimiser = torch.optim.SGD(self.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, self.trainer.estimated_stepping_batches)
        return [optimiser], [{"scheduler": schedule, "interval": "step"}]
"""


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_callback_that_stops_early_stops_nothing(where):
    callbacks = [STOPS_EARLY, "collo_lightning.Collo()"][:: 1 if where == "before" else -1]
    with Forked(SCRIPT.replace("collo_lightning.Collo()", ", ".join(callbacks))) as member:
        member.start(epochs=4, after_measured="exit")
        member.hear_epochs(4)
        assert member.hear_all() == [{"event": "done"}]
        assert member.end()[0] == 0


@pytest.mark.parametrize("settings", ["max_epochs=2", "max_steps=4"])
def test_a_schedule_that_has_an_end_is_not_asked_beyond_it(settings):
    net = NET.replace("        return torch.optim.SGD(self.parameters(), 0.1)\n", ONE_CYCLE)
    with Forked(asking_for(settings, net)) as member:
        member.start(epochs=4, after_measured="exit")
        member.hear_epochs(4)
        assert member.hear_all() == [{"event": "done"}]
        assert member.end()[0] == 0


SEEN_LEAVING = """
try:
    trainer.fit(net, loader, validation)
except SystemExit:
    print("leaves by itself")
    raise
"""
ENDLESS = """
class Endless:
    def __iter__(self):
        yield from [data[:8]] * 3
        print("in the midst", flush=True)
        while True:
            yield data[:8]


{loop} = Endless()
"""


@pytest.mark.parametrize("loop", ["loader", "validation"])
def test_stop_ends_it_between_any_two_batches(loop):
    read, write = os.pipe()
    program = NET + ENDLESS.format(loop=loop) + THREE_LINES.replace("max_epochs=2", "num_sanity_val_steps=0")
    program = program.replace("trainer.fit(net, loader, validation)", SEEN_LEAVING)
    with os.fdopen(read) as output, os.fdopen(write, "w") as theirs, Forked(program, output=theirs) as member:
        member.start(epochs=2, after_measured="keep-running")
        while "in the midst" not in output.readline():
            pass
        member.tell("stop")
        assert member.hear_all() == []  # an unfinished epoch is not told
        assert member.ended() == 0
        theirs.close()
        assert "leaves by itself" in output.read()


def test_an_exception_in_training_is_told_before_the_traceback():
    with Forked(SCRIPT.replace("torch.nn.Linear(8, 2)", "torch.nn.Linear(9, 2)")) as member:
        member.start(epochs=2, after_measured="exit")
        (error,) = member.hear_all()
        status, _, stderr = member.end()
    assert (error["event"], error["kind"]) == ("error", "other")
    assert "mat1 and mat2 shapes cannot be multiplied" in error["message"]
    assert status == 1 and "Traceback" in stderr


def test_running_out_of_memory_is_told_as_such():
    program = SCRIPT.replace("images, labels = batch", "raise torch.OutOfMemoryError('CUDA out of memory')")
    with Forked(program) as member:
        member.start(epochs=2, after_measured="exit")
        assert [(message["event"], message["kind"]) for message in member.hear_all()] == [("error", "out_of_memory")]


@pytest.mark.parametrize(
    "settings, message",
    [
        ("max_time='00:00:10:00'", "`max_time` ends no epoch and makes every later batch slower: leave it out"),
        ("max_steps=5", "`max_steps` is all that ends an epoch of this data: set `limit_train_batches` as well"),
    ],
)
def test_what_cannot_be_measured_is_refused(settings, message):
    endless = "loader = type('Endless', (), {'__iter__': lambda self: iter(lambda: data[:8], None)})()\n"
    program = asking_for(settings).replace("trainer =", (endless if "steps" in settings else "") + "trainer =")
    with Forked(program) as member:
        [error] = member.hear_all()
        assert (error["event"], error["kind"], error["message"]) == ("error", "setting", message)
        status, _, stderr = member.end()
    assert (status, stderr) == (1, f"error: {message}\n")


def test_a_second_fit_is_the_scripts_own_affair():
    with Forked(SCRIPT + "Trainer(max_epochs=1, callbacks=trainer.callbacks[:1]).fit(Net(), loader)") as member:
        member.start(epochs=2, after_measured="exit")
        assert [message["event"] for message in member.hear_all()] == ["epoch", "epoch", "done"]
        status, stdout, _ = member.end()
    assert (status, len(printed(stdout))) == (0, 3)


def test_the_gpu_is_told_as_torch_sees_it_and_the_rest_as_the_script_says():
    seen = "uuid='5a1f', multi_processor_count=108, total_memory=85 * 10**9"
    as_if = f"import types, collo_torch\ncollo_torch.gpu = lambda device: types.SimpleNamespace({seen})\n"
    told = "name='resnet26', dataset={'name': 'mine', 'synthetic': False, 'items': 50}"
    with Forked(as_if + SCRIPT.replace("Collo()", f"Collo({told})")) as member:
        hello = member.start(epochs=1, after_measured="exit")
    assert (hello["device"], hello["sm_count"], hello["memory_bytes"]) == ("GPU-5a1f", 108, 85_000_000_000)
    assert hello["model"]["name"] == "resnet26" and hello["dataset"] == {"name": "mine", "synthetic": False, "items": 50}


def test_a_gpu_that_was_given_and_cannot_be_used_is_an_error_and_not_the_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-2f6e")
    with Forked(SCRIPT) as member:
        [error] = member.hear_all()
        assert member.end()[0] == 1
    assert error["kind"] == "setting" and "gives this process GPU-2f6e, and CUDA cannot be used" in error["message"]


def test_by_hand_the_script_trains_its_own_epochs():
    status, stdout, stderr = by_hand(SCRIPT.replace("Collo()]", f"Collo(), {STOPS_EARLY}]"))
    assert (status, stderr) == (0, "")
    hello, *epochs = [line for line in stdout.splitlines() if line.startswith(("Net", "epoch"))]
    assert hello == "Net, 18 parameters; device cpu, 1 thread"
    assert [line.split(" took ")[0] for line in epochs] == ["epoch 0", "epoch 1"]


def test_without_lightning_the_way_out_is_said():
    absent = "sys.modules.update({'lightning.pytorch': None, 'pytorch_lightning': None})"
    status, _, stderr = by_hand(f"import sys\n{absent}\nimport collo_lightning")
    assert status == 1
    way_out = "`lightning` is not installed here: install it, or name an environment that has it"
    assert stderr.splitlines()[-1] == f"ModuleNotFoundError: {way_out}"


def test_items_are_the_first_dimension_of_the_first_tensor():
    import torch
    from collo_lightning import items_in

    tensor = torch.zeros(4, 2)
    batches = [tensor, (tensor, tensor[:1]), {"text": ["a"], "x": tensor}, [{"x": tensor}], torch.zeros(())]
    assert [items_in(batch) for batch in batches] == [4, 4, 4, 4, 1]
    assert items_in(["a"]) is None and items_in("abc") is None


PICTURES = """
class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.randn(3, 8, 8 + index), {"boxes": torch.rand(5, 4)}


class Net(Net):
    def training_step(self, batch, batch_idx):
        pictures, _ = batch
        return sum(self.layer(picture.transpose(1, 2)).mean() for picture in pictures)


net, loader = Net(), DataLoader(Pictures(), batch_size=4, collate_fn=lambda items: tuple(zip(*items)), drop_last=DROP)
validation = None
"""


@pytest.mark.parametrize("drop, items", [(False, 10), (True, 8)])
def test_pictures_in_a_list_are_counted_by_the_loader_and_not_by_their_colours(drop, items):
    program = NET.replace("self.losses.append(loss.item())", "")
    program = program.replace('print("loss", sum(self.losses) / len(self.losses), "batches", len(self.losses))', "")
    with Forked(program + PICTURES.replace("DROP", str(drop)) + THREE_LINES) as member:
        member.start(epochs=2, after_measured="exit")
        assert [epoch["items"] for epoch in member.hear_epochs(2)] == [items, items]
        member.hear_all()
        assert member.end()[0] == 0


def test_a_loader_tells_its_items_only_where_it_cuts_batches_by_their_number():
    import torch
    from collo_lightning import items_of
    from torch.utils.data import BatchSampler, DataLoader, IterableDataset

    class Endless(IterableDataset):
        def __iter__(self):
            return iter(range(9))

    class Uneven(BatchSampler):
        pass

    numbers = list(range(10))
    assert [items_of(DataLoader(numbers, batch_size=4), index) for index in range(4)] == [4, 4, 2, None]
    assert items_of(DataLoader(numbers, batch_size=4, drop_last=True), 1) == 4
    assert items_of(DataLoader(Endless(), batch_size=4), 0) is None and items_of(DataLoader(numbers, batch_size=None), 0) is None
    assert items_of(DataLoader(numbers, batch_sampler=Uneven(numbers, 4, False)), 0) is None
    assert items_of({"one": DataLoader(numbers)}, 0) is None and items_of(torch.zeros(3), 0) is None


def test_by_its_other_name_and_in_a_process_of_its_own_it_is_a_member_too():
    pytest.importorskip("pytorch_lightning")
    program = SCRIPT.replace("lightning.pytorch", "pytorch_lightning").replace("max_epochs=2", "max_epochs=1")
    path = os.pathsep.join([str(WORKLOADS), *filter(None, [os.environ.get("PYTHONPATH")])])
    with Started("sleep", program="import sys; sys.dont_write_bytecode = True" + program, PYTHONPATH=path) as member:
        hello = member.start(epochs=2, after_measured="keep-running")
        assert [member.hear()["event"] for _ in range(3)] == ["epoch", "epoch", "done"]
        member.tell("stop")
        member.hear_all()
        assert member.end()[0] == 0
    assert hello["versions"].keys() >= {"pytorch_lightning"} and "lightning" not in hello["versions"]
