"""A workload's script, run in a fork of the testing process with its settings; and its modules, to be tested alone."""

import importlib.util
import sys

from forked import Forked
from harness import WORKLOADS, written

PYTHON_FILES = {path.stem for path in WORKLOADS.glob("*/*.py")}


def flags(workload, **settings):
    """All settings of the workload as its command has them, with these, and those of their recipe, for its own."""
    toml = written(workload)
    recipe = toml.get("recipes", {}).get(settings.get("recipe"), {})
    settings = {**toml["settings"], **recipe, **settings}
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}
    return [word for name, text in texts.items() for word in (f"--{name.replace('_', '-')}", text)]


def script(workload, *arguments, by_hand=False, data="", before=""):
    """`before` is run in its place and for its modules, just before it."""
    folder, name = WORKLOADS / workload, written(workload)["command"][1]
    program = f"""
import os, sys
sys.argv = {[name, *map(str, arguments)]!r}
sys.path[0] = {str(folder)!r}
os.chdir(sys.path[0])
os.environ["COLLO_DATA"] = {str(data)!r}
for name in {sorted(PYTHON_FILES)!r}:
    sys.modules.pop(name, None)
{before}
exec(compile(open({name!r}).read(), {name!r}, "exec"))
"""
    return Forked(program, channel=not by_hand)


def trained(workload, *arguments, epochs=2, data=""):
    """(messages by event, how it ended) of a member that trains to its end."""
    with script(workload, *arguments, data=data) as member:
        member.tell("warm_up")
        member.tell("go", epochs=epochs, after_measured="exit")
        messages = member.hear_all()
        ended = member.end()
    return {event: [m for m in messages if m["event"] == event] for event in {m["event"] for m in messages}}, ended


def by_hand(workload, *arguments):
    """(exit status, stdout, stderr)."""
    with script(workload, *arguments, by_hand=True) as member:
        return member.end()


def module(workload, name):
    """One of its modules under a name of its own: several workloads have a `model.py`."""
    spec = importlib.util.spec_from_file_location(f"{workload}_{name}", WORKLOADS / workload / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    folder = WORKLOADS / workload
    sys.path.insert(0, str(folder))  # for the modules beside it, which keep their own names only while it is read
    try:
        spec.loader.exec_module(found)
    finally:
        sys.path.remove(str(folder))
        for beside in folder.glob("*.py"):
            sys.modules.pop(beside.stem, None)
    return found
