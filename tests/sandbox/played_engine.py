"""An engine of containers that a program plays."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from skillc.sandbox.container import is_rootless
from skillc.sandbox.policy import IMAGE, Limits
from skillc.sandbox.run import problem_of

LIMITS = Limits(time=30, memory=300_000_000, processes=20, file_size=1_000_000, disk=60_000_000)


@pytest.fixture(params=["docker", pytest.param("podman", marks=pytest.mark.thorough)])
def engine(request, tmp_path, monkeypatch):
    """An engine on `PATH` that is played, and what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / request.param
    program.write_text(f"#!{sys.executable} -IS\n" + (Path(__file__).parent / "fake_engine.py").read_text())
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    state = {"rootless": True, "images": [IMAGE], "limits": True}

    def play(**changes):
        (folder / "engine.json").write_text(json.dumps({**state, **changes}))
        problem_of.cache_clear()
        is_rootless.cache_clear()

    def asked(verb="run"):
        lines = (folder / "asked.jsonl").read_text().splitlines()
        return [each for each in map(json.loads, lines) if each["words"][0] == verb]

    play()
    yield SimpleNamespace(name=request.param, play=play, asked=asked, folder=folder)
    problem_of.cache_clear()
    is_rootless.cache_clear()


def values(words, option):
    return [after for word, after in pairwise(words) if word == option]
