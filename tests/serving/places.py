"""A folder with a program whose target skillc serves itself, by a `vllm` that is not vLLM."""

import contextlib
import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest
from conftest_cli import PROGRAM, rows

FAKE = Path(__file__).resolve().parent / "fake"
ROOT = FAKE.parents[2]
SERVED = PROGRAM.replace("epochs = 2", "epochs = 1").replace(
    'model target    = "rulebook/v1"',
    'model target = "hosted_vllm/./models/tiny" { serve = vllm { max_len = 4096; SETTINGS } }',
)


class Place:
    """The folder, and what its servers did."""

    def __init__(self, folder):
        self.folder = folder
        self.python = folder / ".venv-vllm" / "bin" / "python"
        self.variables = {"FAKE_STARTS": str(folder / "starts.jsonl"), "SKILLC_VLLM_PYTHON": ""}

    def program(self, settings="", text=SERVED):
        path = self.folder / "things.skill"
        path.write_text(text.replace("SETTINGS", settings))
        return path

    @property
    def starts(self):
        """One object for each start of a server."""
        path = self.folder / "starts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for_starts(self, count):
        wait(lambda: len(self.starts) >= count)
        return self.starts

    def running(self):
        """Processes of its servers that still run."""
        return [start["pid"] for start in self.starts if runs(start["pid"])]

    def log(self):
        """The newest log."""
        return max((self.folder / ".skillc" / "serve").glob("*.log"), key=lambda path: path.stat().st_mtime_ns)


def runs(pid):
    """Whether a process runs; one of which only its status is left does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait(until, seconds=600):
    """Waits until something is so."""
    last = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < last, "it did not come about"
        time.sleep(0.02)


def laid_out(folder):
    """A place without a program yet."""
    place = Place(folder)
    model = folder / "models" / "tiny"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"weights")
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in list(rows())[:75]))
    # An environment of its own: skillc's has no `vllm`.
    place.python.parent.mkdir(parents=True)
    place.python.write_text(f'#!/bin/sh\nPYTHONPATH={FAKE}:{ROOT} exec {sys.executable} "$@"\n')
    place.python.chmod(place.python.stat().st_mode | stat.S_IXUSR)
    return place


@pytest.fixture
def place(tmp_path, monkeypatch):
    place = laid_out(tmp_path)
    for name, value in place.variables.items():
        monkeypatch.setenv(name, value)
    yield place
    for start in place.starts:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(start["group"], 9)
