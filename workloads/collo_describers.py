"""Many descriptions by one process: torch is loaded once, and each question is answered by a fork of its own.

    python -m collo_describers QUESTIONS.json

The file has a list of questions, each with the `words` of a command without its Python, the `folder` that it is started
in, its `environment` (null takes a variable out), the file that its `errors_to` go to, and `limit_s`. Each is
answered as if `python WORDS` were started. For each that has ended, in any order, a line says {"question": its number,
"status": its exit status; null: it took too long}. A fork has one thread and nothing of the others.
"""

import json
import os
import runpy
import signal
import sys
import time

LOOK_S = 0.01  # between two looks at the forks
EACH_BYTES = 2 << 30  # of memory, at most: the largest network of the catalogue


def load():
    """What most scripts load, so that their forks have it. A script without torch needs none of it."""
    try:
        import torch._dynamo  # noqa: F401  (fake tensors do, at their first operation)

        import collo_describe  # noqa: F401
        import collo_loader  # noqa: F401
        import collo_torch  # noqa: F401
    except ImportError:
        pass


def answer(questions, told, most):
    """Every question, so many at a time; `told(number, status)` hears of each."""
    waiting, running = list(enumerate(questions))[::-1], {}
    try:
        while waiting or running:
            while waiting and len(running) < most:
                number, question = waiting.pop()
                running[fork(question)] = number, time.monotonic() + question["limit_s"]
            for pid, (number, until) in list(running.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del running[pid]
                    told(number, os.waitstatus_to_exitcode(status))
                elif time.monotonic() > until:
                    del running[pid]
                    end(pid)
                    told(number, None)
            time.sleep(LOOK_S)
    finally:
        for pid in running:
            end(pid)


def at_once():
    """As many as have a core and memory each."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        kib = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), EACH_BYTES >> 10)
    return max(1, min(len(os.sched_getaffinity(0)), (kib << 10) // EACH_BYTES))


def end(pid):
    """A fork leads a group of its own, so that what it has started ends with it."""
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def fork(question):
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        try:
            os.setpgid(pid, pid)  # both do it: whoever comes first
        except OSError:
            pass
        return pid
    status = 1
    try:
        os.setpgid(0, 0)
        status = run(question)
    finally:
        os._exit(status)


def run(question):
    """In the fork: what the interpreter does with these words. The exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(question["errors_to"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    for name, value in question["environment"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    os.chdir(question["folder"])
    words = question["words"]
    as_module = words[0] == "-m"
    sys.argv = words[1:] if as_module else words
    sys.path[0] = question["folder"]
    try:
        if as_module:
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
            runpy.run_path(words[0], run_name="__main__")
        status = 0
    except SystemExit as asked:
        status = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
        if not (asked.code is None or isinstance(asked.code, int)):
            print(asked.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def main(path):
    with open(path, encoding="utf-8") as file:
        questions = json.load(file)
    load()

    def told(number, status):
        print(json.dumps({"question": number, "status": status}), flush=True)

    answer(questions, told, at_once())


if __name__ == "__main__":
    main(sys.argv[1])
