"""A whole compile in environments, killed and resumed: the same skill and decisions as in one go."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skillc.processes.guard import MARK

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guides" / "environments.md"
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def written(folder):
    """The program of the guide."""
    folder.mkdir()
    for title, text in BLOCK.findall(PAGE.read_text()):
        (folder / title).write_text(text)
    return folder


def start(folder):
    command = [sys.executable, "-m", "skillc", "compile", "fetch.skill"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def made(folder):
    home = folder / "skills" / "fetch-things"
    lines = (home.with_name("fetch-things.history.jsonl")).read_text().splitlines()
    history = [{**json.loads(line), "run": ""} for line in lines]
    return (home / "SKILL.md").read_text(), history


def workers(folder):
    """The processes of environments that run for a folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            # That of a check before the run has no mark.
            own = "environments/worker.py" in (each / "cmdline").read_text() and MARK in (each / "environ").read_text()
            if own and (each / "cwd").resolve() == folder:
                found.append(int(each.name))
        except OSError:
            continue
    return found


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_run_whose_workers_and_which_itself_are_killed_ends_with_the_same_bytes(tmp_path) -> None:
    want, faulty = written(tmp_path / "sound"), written(tmp_path / "faulty")
    sound = start(want)
    assert "perfect" in sound.communicate(timeout=300)[0]
    run, killed = start(faulty), 0
    while run.poll() is None and not killed:
        for pid in workers(faulty)[:1]:
            try:
                os.kill(pid, signal.SIGKILL)
                killed = pid
            except ProcessLookupError:
                continue
        time.sleep(0.02)
    # Another worker takes over before the run itself is killed.
    while run.poll() is None and not set(workers(faulty)) - {killed}:
        time.sleep(0.02)
    time.sleep(0.2)
    run.kill()
    run.communicate()
    for _ in range(100):
        if not workers(faulty):
            break
        time.sleep(0.1)
    assert workers(faulty) == []
    assert killed
    resumed = start(faulty)
    assert "perfect" in resumed.communicate(timeout=300)[0]
    assert made(faulty) == made(want)
