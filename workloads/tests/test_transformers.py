"""Hugging Face's Trainer as a member of a group, with the real library on the CPU."""

import os
import re

import pytest
from forked import Forked, by_hand, times
from harness import WORKLOADS, Started

pytest.importorskip("accelerate", reason="accelerate is not installed, without which transformers has no Trainer")
pytest.importorskip("transformers.trainer", reason="transformers is not installed")

NET = """
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

torch.manual_seed(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, x, labels):
        scores = self.layer(x)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        if self.training:
            seen.append((loss.item(), len(x)))
        return {"loss": loss, "logits": scores}


class Seen(TrainerCallback):
    def on_epoch_begin(self, args, state, control, **others):
        print("trains at", time.monotonic_ns())

    def on_epoch_end(self, args, state, control, **others):
        print("ends at", time.monotonic_ns())
        print("loss", sum(loss for loss, _ in seen) / len(seen), "items", sum(items for _, items in seen))
        seen.clear()


seen, data = [], [{"x": torch.randn(8), "labels": index % 2} for index in range(50)]
quiet = dict(use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True, per_device_train_batch_size=8)
model, args = Net(), TrainingArguments("out", num_train_epochs=2, **quiet)
"""
THREE_LINES = """
import collo_transformers

trainer = Trainer(model, args, train_dataset=data, eval_dataset=data, callbacks=[collo_transformers.Collo()])
trainer.train()
"""
SCRIPT = NET + THREE_LINES.replace("callbacks=[", "callbacks=[Seen(), ")


def asking_for(settings):
    return SCRIPT.replace("num_train_epochs=2", settings)


def printed(stdout):
    """What the script itself saw of its epochs: (mean loss, items) of each."""
    return [(float(loss), int(items)) for loss, items in re.findall(r"^loss (\S+) items (\d+)$", stdout, re.M)]


def test_the_guide_shows_the_lines_that_are_tested_here():
    assert f"```python{THREE_LINES}```" in (WORKLOADS.parent / "docs/guide/workloads.md").read_text()


def test_a_training_says_what_a_member_says_and_trains_on_until_stop():
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
    assert (hello["device"], hello["threads"]) == ("cpu", 1)
    assert hello["versions"].keys() >= {"python", "torch", "transformers", "accelerate"}
    assert [epoch["measured"] for epoch in epochs] == [False, True, True, False, False]
    assert [epoch["items"] for epoch in epochs] == [50] * 5
    times = [time for epoch in epochs for time in (epoch["start_ns"], epoch["end_ns"])]
    assert times == sorted(times)
    assert [epoch["loss"] for epoch in epochs] == pytest.approx([loss for loss, _ in printed(stdout)][:5], rel=1e-3)


def test_an_epoch_has_nothing_in_it_that_comes_between_two():
    program = NET.replace("=2, **", "=2, eval_strategy='epoch', **") + THREE_LINES.replace("Collo()", "Collo(), Seen()")
    with Forked(program) as member:
        member.start(epochs=2, after_measured="exit")
        epochs = member.hear_epochs(2)
        member.hear_all()
        stdout = member.end()[1]
    for epoch, trains, ends in zip(epochs, times(stdout, "trains"), times(stdout, "ends"), strict=True):
        assert epoch["start_ns"] < trains < epoch["end_ns"] < ends
    assert times(stdout, "ends")[0] < epochs[1]["start_ns"]


def test_nothing_is_trained_before_go():
    with Forked(SCRIPT) as member:
        assert member.hear()["event"] == "hello"
        member.tell("warm_up")
        assert member.hear() == {"event": "ready"}
        member.tell("stop")
        assert member.hear_all() == []
        status, stdout, stderr = member.end()
    assert (status, stderr) == (0, "") and "loss" not in stdout


@pytest.mark.parametrize(
    "settings, items, own_steps",
    [
        ("num_train_epochs=9", 50, 63),
        ("num_train_epochs=1", 50, 7),
        ("num_train_epochs=0.5", 50, 4),
        ("num_train_epochs=2, gradient_accumulation_steps=7", 50, 2),
        ("num_train_epochs=2, dataloader_drop_last=True", 48, 12),
        ("num_train_epochs=2, eval_strategy='epoch'", 50, 14),
        ("num_train_epochs=2, eval_strategy='steps', eval_steps=3", 50, 14),
        ("num_train_epochs=2, logging_steps=3", 50, 14),
        ("num_train_epochs=2, logging_strategy='epoch'", 50, 14),
        ("num_train_epochs=2, disable_tqdm=False", 50, 14),
    ],
)
def test_under_release_it_trains_as_many_epochs_as_collo_says_and_the_script_goes_on(settings, items, own_steps):
    program = asking_for(settings).replace("disable_tqdm=True, ", "" if "tqdm" in settings else "disable_tqdm=True, ")
    with Forked(program + "print('after', args.num_train_epochs, trainer.state.max_steps)") as member:
        member.start(epochs=3, after_measured="exit")
        epochs = member.hear_epochs(3)
        assert member.hear_all() == [{"event": "done"}]
        status, stdout, _ = member.end()
    own_epochs = settings.split(",")[0].split("=")[1]
    assert (status, stdout.splitlines()[-1]) == (0, f"after {own_epochs} {own_steps}")
    assert [epoch["items"] for epoch in epochs] == [count for _, count in printed(stdout)] == [items] * 3
    assert [epoch["loss"] for epoch in epochs] == pytest.approx([loss for loss, _ in printed(stdout)], rel=1e-3)


def test_the_learning_rate_follows_the_schedule_of_the_script():
    program = asking_for("num_train_epochs=2, logging_strategy='epoch'")
    program += "print([log.get('learning_rate') for log in trainer.state.log_history])"
    by_itself = by_hand(program.replace("callbacks=[Seen(), collo_transformers.Collo()]", "callbacks=[Seen()]"))[1]
    with Forked(program) as member:
        member.start(epochs=4, after_measured="exit")
        member.hear_epochs(4)
        stdout = member.hear_all() and member.end()[1]
    own, under_collo = (eval(text.splitlines()[-1])[:-1] for text in (by_itself, stdout))  # the last is the training's
    assert len(own) == 2 and under_collo == [*own, 0, 0]  # beyond its end


def test_beyond_its_own_epochs_the_script_evaluates_as_often_as_before():
    says = "    def on_evaluate(self, args, state, control, **others):\n        print('evaluated')\n"
    program = asking_for("num_train_epochs=1, eval_strategy='steps', eval_steps=3")
    with Forked(program.replace("class Seen(TrainerCallback):\n", f"class Seen(TrainerCallback):\n{says}\n")) as member:
        member.start(epochs=3, after_measured="exit")
        member.hear_epochs(3)
        stdout = member.hear_all() and member.end()[1]
    assert stdout.splitlines().count("evaluated") == 3 * 7 // 3


STOP = "def stop(self, args, state, control, **others):\n    control.should_training_stop = True\n\n\n"


def stops(*events):
    return f"type('Stops', (TrainerCallback,), dict.fromkeys({events}, stop))()"


def test_a_callback_that_stops_early_stops_nothing():
    early = stops("on_step_end", "on_evaluate", "on_epoch_end")
    program = STOP + asking_for("num_train_epochs=2, eval_strategy='epoch'").replace("Seen(), ", f"{early}, ")
    with Forked(program) as member:
        member.start(epochs=3, after_measured="exit")
        assert [epoch["items"] for epoch in member.hear_epochs(3)] == [50] * 3
        assert member.hear_all() == [{"event": "done"}]
        assert member.end()[0] == 0


@pytest.mark.parametrize(
    "settings, callbacks, what",
    [
        ("num_train_epochs=2", f"[Collo(), {stops('on_step_end')}])", "epoch 0 was cut to 1 of 7 batches"),
        ("eval_strategy='epoch'", f"[Collo(), {stops('on_evaluate')}])", "the training ended before epoch 1"),
        ("num_train_epochs=2", "[])\ntrainer.add_callback(Collo())", "the training ended before epoch 2"),  # too late
    ],
)
def test_a_training_that_ends_before_collo_wants_it_to_is_an_error(settings, callbacks, what):
    callbacks = callbacks.replace("Collo()", "collo_transformers.Collo()")
    program = asking_for(settings).replace("[Seen(), collo_transformers.Collo()])", callbacks)
    with Forked(STOP + program) as member:
        member.start(epochs=3, after_measured="keep-running")
        error = member.hear_all()[-1]
        status, _, stderr = member.end()
    way_out = "make `Collo()` the last of the `callbacks=[…]` that the Trainer is given"
    message = f"{what}, for another callback stopped it: {way_out}"
    assert (error["event"], error["kind"], error["message"]) == ("error", "setting", message)
    assert (status, stderr) == (1, f"error: {message}\n")


SEEN_LEAVING = """
try:
    trainer.train()
except SystemExit:
    print("leaves by itself")
    raise
"""
ENDLESS = """
class Endless(Trainer):
    def {loop}(self, *_):
        def batches():
            for index in range(10**9):
                if index == 3:
                    print("in the midst", flush=True)
                yield {{"x": torch.randn(8, 8), "labels": torch.zeros(8, dtype=torch.long)}}
        loops = {{"__iter__": lambda self: batches(), "__len__": lambda self: 10**9, "dataset": data}}
        return type("Loader", (), loops)()

    def num_examples(self, loader):
        return 10**9


"""


@pytest.mark.parametrize("loop", ["get_train_dataloader", "get_eval_dataloader"])
def test_stop_ends_it_between_any_two_batches(loop):
    read, write = os.pipe()
    program = asking_for("num_train_epochs=2, eval_strategy='epoch'").replace("= Trainer(", "= Endless(")
    program = program.replace("\nimport collo_transformers", ENDLESS.format(loop=loop) + "\nimport collo_transformers")
    program = program.replace("trainer.train()", SEEN_LEAVING)
    with os.fdopen(read) as output, os.fdopen(write, "w") as theirs, Forked(program, output=theirs) as member:
        member.start(epochs=2, after_measured="keep-running")
        while "in the midst" not in output.readline():
            pass
        member.tell("stop")
        assert [message["index"] for message in member.hear_all()] == ([] if "train" in loop else [0])
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


@pytest.mark.parametrize(
    "settings, what",
    [
        ("max_steps=5", "counts no epochs: leave it out and set `num_train_epochs`"),
        ("auto_find_batch_size=True", "would measure another batch size than asked for: leave it out"),
    ],
)
def test_what_cannot_be_measured_is_refused(settings, what):
    message = f"`{settings.split('=')[0]}` {what}"
    with Forked(asking_for(settings)) as member:
        [error] = member.hear_all()
        assert (error["event"], error["kind"], error["message"]) == ("error", "setting", message)
        status, _, stderr = member.end()
    assert (status, stderr) == (1, f"error: {message}\n")


def test_a_second_training_is_the_scripts_own_affair():
    with Forked(SCRIPT + "trainer.train()") as member:
        member.start(epochs=3, after_measured="exit")
        assert [message["event"] for message in member.hear_all()] == ["epoch"] * 3 + ["done"]
        status, stdout, _ = member.end()
    assert (status, len(printed(stdout))) == (0, 3 + 2)


def test_the_gpu_is_told_as_torch_sees_it_and_the_rest_as_the_script_says():
    seen = "uuid='5a1f', multi_processor_count=108, total_memory=85 * 10**9"
    as_if = f"import types, collo_torch\ncollo_torch.gpu = lambda device: types.SimpleNamespace({seen})\n"
    told = "name='bert-base', dataset={'name': 'mine', 'synthetic': False, 'items': 50}"
    with Forked(as_if + SCRIPT.replace("Collo()", f"Collo({told})")) as member:
        hello = member.start(epochs=1, after_measured="exit")
    assert (hello["device"], hello["sm_count"], hello["memory_bytes"]) == ("GPU-5a1f", 108, 85_000_000_000)
    assert hello["model"]["name"] == "bert-base" and hello["dataset"] == {"name": "mine", "synthetic": False, "items": 50}


def test_a_gpu_that_was_given_and_cannot_be_used_is_an_error_and_not_the_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-2f6e")
    with Forked(SCRIPT) as member:
        [error] = member.hear_all()
        assert member.end()[0] == 1
    assert error["kind"] == "setting" and "gives this process GPU-2f6e, and CUDA cannot be used" in error["message"]


def test_by_hand_the_script_trains_its_own_epochs():
    status, stdout, stderr = by_hand(SCRIPT)
    assert (status, stderr) == (0, "")
    hello, *epochs = [line for line in stdout.splitlines() if line.startswith(("Net", "epoch"))]
    assert hello == "Net, 18 parameters; device cpu, 1 thread"
    assert [line.split(" took ")[0] for line in epochs] == ["epoch 0", "epoch 1"]


@pytest.mark.parametrize("absent", ["transformers", "accelerate"])
def test_without_the_library_the_way_out_is_said(absent):
    status, _, stderr = by_hand(f"import sys\nsys.modules['{absent}'] = None\nimport collo_transformers")
    assert status == 1
    way_out = f"`{absent}` is not installed here: install it, or name an environment that has it"
    assert stderr.splitlines()[-1] == f"ModuleNotFoundError: {way_out}"


def test_items_that_cannot_be_known_are_absent():
    import torch
    from collo_transformers import items_in

    data = torch.utils.data.TensorDataset(torch.zeros(10, 1))
    assert items_in(torch.utils.data.DataLoader(data, 4), batches=3) == 10
    assert items_in(torch.utils.data.DataLoader(data, 4), batches=2) == 8  # cut short
    assert items_in(torch.utils.data.DataLoader(data, 4, drop_last=True), batches=2) == 8
    assert items_in(torch.utils.data.DataLoader(data, batch_sampler=[[0, 1], [2]]), batches=2) is None
    assert items_in(iter(()), batches=2) is None


def test_in_a_process_of_its_own_it_is_a_member_too():
    path = os.pathsep.join([str(WORKLOADS), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = "import sys; sys.dont_write_bytecode = True" + SCRIPT
    with Started("sleep", program=program, PYTHONPATH=path) as member:
        member.start(epochs=2, after_measured="keep-running")
        assert [member.hear()["event"] for _ in range(3)] == ["epoch", "epoch", "done"]
        member.tell("stop")
        member.hear_all()
        assert member.end()[0] == 0
