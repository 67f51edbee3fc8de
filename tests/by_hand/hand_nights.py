"""Nights of the trials: a project, an `evolve` of it with models from folders or recordings."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from served import served

from benchmarks.by_hand.night.project import NAME, TASK, make_project
from benchmarks.by_hand.recording import Recording
from benchmarks.by_hand.server import Folder
from skillc.cli import skillc
from skillc.publish.staging import adopt, staged

ROLES = ("target", "optimizer")
Sources = dict[str, Folder | Recording]


def run_night(program: Path, sources: Sources) -> str:
    """Run a night with models from these sources, in place of those at the program's addresses; return its output."""
    with served(program, dict(zip((9141, 9142), (sources[role] for role in ROLES), strict=True))):
        done = CliRunner().invoke(skillc, ["evolve", str(program), "--again"], env={"FAKE_KEY": "by-hand-no-key"})
    assert done.exit_code in (0, 1), done.output
    return done.output


def two_nights(folder: Path, sources: Sources) -> tuple[Path, list[str]]:
    """Run both nights, with an adoption between them if something is staged; return the program and the outputs."""
    program = make_project(folder)
    first = run_night(program, sources)
    if staged(folder, NAME) is not None:
        adopt(folder, NAME, by="ida", why="the three exceptions")
    (folder / "transcripts" / "night2.jsonl").write_bytes((TASK / "night2.jsonl").read_bytes())
    return program, [first, run_night(program, sources)]
