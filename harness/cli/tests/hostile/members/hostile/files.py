"""The run's own folder, the workload's, and the log: a member can write there, as anybody can who runs as the same user."""

import os
import shutil
import time


def _run_folder():
    return os.path.dirname(os.readlink("/proc/self/fd/1"))


def _finish(wire):
    wire.epoch()
    wire.epoch()
    wire.done()


def writes_beside_its_script(wire):
    wire.start()
    with open("checkpoint.pt", "wb") as file:
        file.write(os.urandom(1000))
    os.makedirs("lightning_logs/version_0", exist_ok=True)
    with open("lightning_logs/version_0/hparams.yaml", "w") as file:
        file.write(f"{time.time()}\n")
    _finish(wire)


def leaves_links_beside_its_script(wire):
    wire.start()
    for target, name in [("nowhere", "latest-run"), ("itself", "itself"), ("/dev/zero", "zero")]:
        if not os.path.lexists(name):
            os.symlink(target, name)
    _finish(wire)


def leaves_a_fifo_beside_its_script(wire):
    wire.start()
    if not os.path.exists("pipe"):
        os.mkfifo("pipe")
    _finish(wire)


def leaves_a_name_that_is_no_text(wire):
    wire.start()
    with open(b"checkpoint-\xff\xfe", "w") as file:
        file.write("x")
    _finish(wire)


def removes_its_run_folder(wire):
    wire.start()
    shutil.rmtree(_run_folder())
    _finish(wire)


def puts_a_link_in_place_of_its_run_folder(wire):
    wire.start()
    folder = _run_folder()
    wire.epoch()
    os.rename(folder, folder + "-moved")
    os.symlink(os.path.join(os.environ["ASIDE"], "victim"), folder)
    wire.epoch()
    wire.done()


def moves_its_run_folder(wire):
    wire.start()
    os.rename(_run_folder(), _run_folder() + "-moved")
    _finish(wire)


def removes_the_events(wire):
    wire.start()
    wire.epoch()
    for name in os.listdir(_run_folder()):
        os.unlink(os.path.join(_run_folder(), name))
    wire.epoch()
    wire.done()


def writes_a_result_of_its_own(wire):
    wire.start()
    with open(os.path.join(_run_folder(), "run.json"), "w") as file:
        file.write('{"schema": 1, "outcome": {"kind": "completed"}}')
    _finish(wire)


def puts_a_folder_where_the_result_goes(wire):
    wire.start()
    for name in ("run.json", "epochs.parquet", "samples.parquet"):
        os.makedirs(os.path.join(_run_folder(), name, "x"), exist_ok=True)
    _finish(wire)


def links_its_folder_to_itself(wire):
    wire.start()
    for name in ("a", "b"):
        os.symlink(".", os.path.join(_run_folder(), name))
    _finish(wire)


def fifo_in_the_run_folder(wire):
    wire.start()
    os.mkfifo(os.path.join(_run_folder(), "pipe"))
    _finish(wire)


def names_in_the_run_folder_that_are_no_text(wire):
    wire.start()
    with open(os.path.join(_run_folder().encode(), b"\xff\xfe\n"), "w") as file:
        file.write("x")
    _finish(wire)


def replaces_its_log_by_a_link(wire):
    wire.start()
    log = os.readlink("/proc/self/fd/1")
    os.unlink(log)
    os.symlink("/dev/zero", log)
    _finish(wire)


def writes_into_what_is_stored(wire):
    """The journal of its own campaign gets a line that is none."""
    wire.start()
    folder = _run_folder()
    while not os.path.exists(os.path.join(folder, "journal.jsonl")):
        folder = os.path.dirname(folder)
    with open(os.path.join(folder, "journal.jsonl"), "ab") as journal:
        journal.write(b'{"entry":"recorded","folder":"../../..\n')
    _finish(wire)
