"""Many questions to one process: each answered as a process of its own would, whatever becomes of the others."""

import json
import os
import subprocess
import sys

import pytest
from harness import WORKLOADS

NET = ["--kind", "mlp", "--inputs", "20", "--outputs", "3", "--depth", "2", "--dropout", "0.2", "--normalisation", "batch"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """(lines that were told by question, what is in each file)"""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "fails.py").write_text("import sys\nprint('no')\nsys.exit('error: it fails')")
    (folder / "falls.py").write_text("print(1 / 0)")
    (folder / "hangs.py").write_text("import time\nimport subprocess\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)")
    (folder / "kills.py").write_text("import os\nos.kill(os.getpid(), 9)")
    (folder / "beside.py").write_text("NAME = 'beside'")
    (folder / "asks.py").write_text(
        "import os, sys, beside\nprint(__name__, sys.argv, beside.NAME, os.getcwd(), os.environ.get('HOME'),"
        " os.environ['GIVEN'], file=open('asked', 'w'))"
    )

    def question(number, words, where, limit_s=60, **environment):
        return {"words": words, "folder": str(where), "environment": environment, "limit_s": limit_s,
                "errors_to": str(folder / f"{number}.txt")}  # fmt: skip

    to = str(folder / "net.json")
    questions = [
        question(0, ["train.py", *NET], WORKLOADS / "generated", COLLO_DESCRIBE="1", COLLO_DESCRIPTION=to, COLLO_THREADS="1"),
        question(1, ["fails.py"], folder),
        question(2, ["falls.py"], folder),
        question(3, ["hangs.py"], folder, limit_s=1),
        question(4, ["kills.py"], folder),
        question(5, ["asks.py", "--a", "b"], folder, HOME=None, GIVEN="yes"),
        question(6, ["-m", "collo_describe", "--model", "none:such", "--input", "3x8x8", "--to", str(folder / "no")], WORKLOADS),
    ]
    (folder / "questions.json").write_text(json.dumps(questions))
    words = [sys.executable, "-m", "collo_describers", str(folder / "questions.json")]
    ran = subprocess.run(words, cwd=WORKLOADS, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    told = {line["question"]: line["status"] for line in map(json.loads, ran.stdout.splitlines())}
    return told, folder


def test_each_question_has_its_own_end(answers):
    told, folder = answers
    assert told == {0: 0, 1: 1, 2: 1, 3: None, 4: -9, 5: 0, 6: 1}
    assert (folder / "1.txt").read_text() == "error: it fails\n"
    assert (folder / "2.txt").read_text().endswith("ZeroDivisionError: division by zero\n")
    assert (folder / "6.txt").read_text().startswith("error: `none:such` is no model")


def test_a_script_finds_what_it_would_find_alone(answers):
    _, folder = answers
    expected = f"__main__ ['asks.py', '--a', 'b'] beside {os.path.realpath(folder)} None yes\n"
    assert (folder / "asked").read_text() == expected


def test_a_description_is_the_same_as_alone(answers, tmp_path):
    _, folder = answers
    alone = tmp_path / "alone.json"
    asked = {"COLLO_DESCRIBE": "1", "COLLO_DESCRIPTION": str(alone), "COLLO_THREADS": "1"}
    words = [sys.executable, "train.py", *NET]
    subprocess.run(words, cwd=WORKLOADS / "generated", env={**os.environ, **asked, "PYTHONPATH": str(WORKLOADS)}, check=True)
    together = json.loads((folder / "net.json").read_text())
    assert json.loads(alone.read_text()) == together
    assert together["generated"]["shape"] in ("pyramid", "uniform", "bottleneck", "gradual") and together["parameters"] > 100
