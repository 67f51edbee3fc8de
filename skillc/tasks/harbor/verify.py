"""Run the tests of a task, and read the reward that they write.

Before the first rollout of a task its own solution must get the full reward, and an untouched environment less: else
the tests cannot be trusted here, as where they download what they need, and no rollout of the task is measured.
"""

from __future__ import annotations

import json
import math
import shutil
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from skillc.data.task_folders import SOLUTION, SOLUTION_SCRIPT, TEST_SCRIPT, TESTS
from skillc.dataclass import dataclass
from skillc.models.calls import well_formed
from skillc.processes.command import CommandResult, last_line, temporary_folder
from skillc.sandbox.policy import Mount
from skillc.tasks.harbor.places import Box, Place
from skillc.tasks.kind import RolloutFailed
from skillc.tasks.programs import SandboxFailed
from skillc.text import listed
from skillc.tokens import trim

_LOGS = ("verifier", "agent", "artifacts")
_REWARDS = ("reward.json", "reward.txt")
_NAME = "reward"
_LARGEST = 1_000_000
_PRINTED = 500
_FULL = 1.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reward of a rollout, 0 to 1, and what the tests printed."""

    reward: float
    printed: str


async def verify(place: Place, box: Box, folder: Path, variables: Mapping[str, str]) -> Verdict:
    """Run the tests on the files of a rollout.

    Args:
        place: the task's environment.
        box: the files.
        folder: a new one, for the tests and what they write.
        variables: those of the tests.

    Raises:
        RolloutFailed: the tests did not end, or wrote no reward; this is no score.
    """
    logs, tests = folder / "logs", folder / "tests"
    for name in _LOGS:
        (logs / name).mkdir(parents=True)
    shutil.copytree(place.task.tests, tests, symlinks=True)
    _make_executable(tests / TEST_SCRIPT)
    inside = replace(box, further=(Mount(logs, "/logs", writable=True), Mount(tests, f"/{TESTS}", writable=True)))
    result = await _run(place, inside, f"/{TESTS}/{TEST_SCRIPT}", place.task.tests_seconds, variables)
    printed = well_formed((result.stdout + result.stderr).decode(errors="replace")).strip()
    if result.why != "ended":
        raise _failed(place, f"its tests were stopped: {place.limits(place.task.tests_seconds).exceeded(result.why)}")
    return Verdict(_reward(place, logs / "verifier", result), trim(printed, _PRINTED))


async def check_task(place: Place, test_variables: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Return why the tests of a task cannot be trusted here; empty if they can, or if the task has no solution.

    Raises:
        RolloutFailed: a command could not be run.
    """
    solution = place.task.solution
    if solution is None:
        return ""
    async with temporary_folder() as folder:
        box = await place.copied(folder / "untouched")
        if await _is_full(place, box, folder / "first", test_variables):
            return "its tests give the full reward to an untouched environment"
        box = await place.copied(folder / "solved")
        copied = folder / SOLUTION
        shutil.copytree(solution, copied, symlinks=True)
        _make_executable(copied / SOLUTION_SCRIPT)
        inside = replace(box, further=(Mount(copied, f"/{SOLUTION}"),))
        result = await _run(place, inside, f"/{SOLUTION}/{SOLUTION_SCRIPT}", place.task.agent_seconds, variables)
        solved = await verify(place, box, folder / "second", test_variables)
    if solved.reward >= _FULL:
        return ""
    said = last_line(result.stderr) or " ".join(solved.printed.splitlines()[-1:])
    return f"its own solution gets the reward {solved.reward:g} here" + (f": {said}" if said else "")


async def _is_full(place: Place, box: Box, folder: Path, variables: Mapping[str, str]) -> bool:
    """Return whether the tests give the full reward; tests that write none do not."""
    try:
        return (await verify(place, box, folder, variables)).reward >= _FULL
    except RolloutFailed:
        return False


async def _run(place: Place, box: Box, script: str, seconds: float, variables: Mapping[str, str]) -> CommandResult:
    try:
        return await place.run(box, [script], seconds, variables)
    except SandboxFailed as problem:
        raise _failed(place, problem.detail) from None


def _make_executable(script: Path) -> None:
    script.chmod(script.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _reward(place: Place, folder: Path, result: CommandResult) -> float:
    """Read the reward as Harbor does: `reward.json` comes first.

    Of several rewards it is the one named `reward`.
    """
    name = next((each for each in _REWARDS if (folder / each).exists() or (folder / each).is_symlink()), None)
    if name is None:
        said = last_line(result.stderr) or f"they ended with status {result.status}"
        raise _failed(place, f"its tests wrote no reward: {said}")
    try:
        status = (folder / name).lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise ValueError("it is no small file")
        text = (folder / name).read_text(encoding="utf-8")
        value = float(text) if name.endswith(".txt") else _of_json(json.loads(text))
    except (OSError, ValueError, RecursionError) as problem:
        raise _failed(place, f"the reward that its tests wrote cannot be read: {problem}") from None
    if not 0 <= value <= _FULL or not math.isfinite(value):
        raise _failed(place, f"its tests wrote the reward {value:g}, which is not between 0 and 1")
    return value


def _of_json(value: object) -> float:
    if isinstance(value, dict):
        if len(value) != 1 and _NAME not in value:
            raise ValueError(f"none of {listed(map(str, value), 'and') or 'no rewards'} is named `{_NAME}`")
        value = value.get(_NAME, next(iter(value.values())))
    if not isinstance(value, int | float):
        raise ValueError("it is no number")
    return float(value)


def _failed(place: Place, why: str) -> RolloutFailed:
    return RolloutFailed("environment", f"the task `{place.task.name}`: {why}")
