"""The model of `examples/local_model`, a folder with a program that serves it, and one server for most of the tests."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from conftest_cli import PROGRAM, rows

HERE = Path(__file__).resolve().parent
PYTHON = Path(os.environ.get("SKILLC_VLLM_PYTHON") or HERE.parent / ".venv-vllm" / "bin" / "python")
# Seconds after which something hangs; a busy machine may be slow, and no test measures time.
HANGS = 4 * 3600
FILES = ("sort-things/SKILL.md", "sort-things.lock", "sort-things.history.jsonl", "sort_things.py")

MODEL = HERE.parent / "examples" / "local_model" / "model"
TARGET = """model target = "hosted_vllm/NAME" {
  temperature = 0
  max_tokens  = 40
  serve = vllm {
    model   = "models/rule-follower"
    max_len = 4096
    dtype   = float32
    lora    { poet = "models/poet" }
    args    = ["--enforce-eager", "--block-size", "32"]
    env {
      VLLM_CPU_KVCACHE_SPACE = 1
      HF_HUB_OFFLINE = 1
      # One thread, bound to no core: threads that wait by spinning slow each other down where cores are shared.
      VLLM_CPU_OMP_THREADS_BIND = "nobind"
      OMP_NUM_THREADS = 1
    }
  }
}
"""


def program(name="rule-follower", *changes):
    """The program, its target the base model or the adapter, with texts changed: pairs of old and new."""
    text = PROGRAM.replace('model target    = "rulebook/v1"\n', TARGET.replace("NAME", name))
    text = text.replace("epochs = 2", "epochs = 1")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


class Shop:
    """A folder with a program, its data, and its model."""

    def __init__(self, folder, models):
        self.folder = folder
        (folder / "things.skill").write_text(program())
        (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
        (folder / "models").symlink_to(models)

    def start(self, *arguments, **options):
        """`skillc`, under way."""
        environ = {**os.environ, "SKILLC_VLLM_PYTHON": str(PYTHON)}
        out, said = (self.folder / "stdout.txt").open("w"), (self.folder / "stderr.txt").open("w")
        command = [sys.executable, "-m", "skillc", *arguments]
        with out, said:
            return subprocess.Popen(command, cwd=self.folder, env=environ, stdout=out, stderr=said, **options)

    def run(self, *arguments, status=0):
        """`skillc`, whole; what it printed, as JSON."""
        done = self.start(*arguments).wait(timeout=HANGS)
        assert done == status, self.said
        return json.loads((self.folder / "stdout.txt").read_text())

    @property
    def said(self):
        return (self.folder / "stderr.txt").read_text()

    @property
    def compiled(self):
        """The bytes of all that a compile writes for git."""
        return {name: (self.folder / "skills" / name).read_bytes() for name in FILES}

    @property
    def measured(self):
        """Bytes in the run's store so far."""
        return sum(path.stat().st_size for path in self.folder.glob(".skillc/runs/*/run.db*"))


def processes(folder, name=""):
    """Running processes that work in a folder and whose command line holds a text."""
    found = {}
    for about in Path("/proc").glob("[0-9]*"):
        try:
            at, line = os.readlink(about / "cwd"), (about / "cmdline").read_bytes()
        except OSError:
            continue
        told = line.replace(b"\0", b" ").decode(errors="replace").strip()
        if at == str(folder.resolve()) and told and name in told:
            found[int(about.name)] = told
    return found


def wait(until, seconds=HANGS):
    """Waits until something is so."""
    last = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < last, "it did not come about"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """The folder of the model and an adapter for it."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "rule-follower").symlink_to(MODEL)
    subprocess.run([PYTHON, HERE / "make_adapter.py", MODEL, folder / "poet"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def shop(tmp_path_factory, models):
    """A folder whose server runs all the time, under `skillc serve`."""
    made = Shop(tmp_path_factory.mktemp("shop"), models)
    serving = made.start("serve", "things.skill", "--json")
    answers = made.folder / "stdout.txt"
    wait(lambda: answers.read_text().endswith("\n") or serving.poll() is not None)
    assert serving.poll() is None, made.said
    made.served = json.loads(answers.read_text())["servers"][0]
    yield made
    serving.send_signal(signal.SIGINT)
    assert serving.wait(timeout=HANGS) == 0
    assert not processes(made.folder)


@pytest.fixture(scope="session")
def undisturbed(shop):
    """What a compile said to which nothing happened, and its bytes."""
    summary = shop.run("compile", "things.skill", "--json")
    return summary, shop.compiled
