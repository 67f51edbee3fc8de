"""Tasks in the format of Harbor: folders with `task.toml`, `instruction.md`, `environment/`, `tests/` and `solution/`.

The format is that of Harbor 0.25 (schema 1.4), with the names that earlier versions had. A folder of such folders is a
data file, one row for each task.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.text import joined, listed

SETTINGS, INSTRUCTION = "task.toml", "instruction.md"
ENVIRONMENT, TESTS, SOLUTION = "environment", "tests", "solution"
DOCKERFILE, TEST_SCRIPT, SOLUTION_SCRIPT = "Dockerfile", "test.sh", "solve.sh"
_COMPOSE = ("docker-compose.yaml", "docker-compose.yml")
_AGENT_SECONDS = _TESTS_SECONDS = _BUILD_SECONDS = 600.0
_MEGABYTE = 2**20
_SIZE = re.compile(r"\s*([\d.]+)\s*([KMGT])i?B?\s*", re.IGNORECASE)
_SIZES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# Lines by which crawlers recognise a benchmark; they are no part of the instruction.
_CANARY = re.compile(r"\s*(?:<!--.*canary.*-->|#.*canary.*)\s*", re.IGNORECASE)
Fail = Callable[[int, str, str | None], NoReturn]


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """A task.

    Attributes:
        path: its folder.
        instruction: what the agent is told.
        metadata: the section `metadata` of its settings.
        image: a container image that is already built; None if the environment is a Dockerfile.
        workdir: the declared working folder; None is that of the image.
        agent_seconds, tests_seconds, build_seconds: limits of time.
        memory, disk: bytes; None without a limit of the task.
        variables: of all commands; values may be `${NAME}` or `${NAME:-default}`.
        test_variables, solution_variables: further ones, of the tests and of the solution.
    """

    path: Path
    instruction: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    image: str | None = None
    workdir: str | None = None
    agent_seconds: float = _AGENT_SECONDS
    tests_seconds: float = _TESTS_SECONDS
    build_seconds: float = _BUILD_SECONDS
    memory: int | None = None
    disk: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    test_variables: Mapping[str, str] = field(default_factory=dict)
    solution_variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.name

    @property
    def environment(self) -> Path:
        """The folder from which the container image is built."""
        return self.path / ENVIRONMENT

    @property
    def dockerfile(self) -> Path:
        """The recipe of the container image, which need not exist."""
        return self.environment / DOCKERFILE

    @property
    def tests(self) -> Path:
        """The folder of the tests, which the agent never sees."""
        return self.path / TESTS

    @property
    def solution(self) -> Path | None:
        """The folder with the reference solution, which the agent never sees; None without one."""
        folder = self.path / SOLUTION
        return folder if (folder / SOLUTION_SCRIPT).is_file() else None


def is_task(path: Path) -> bool:
    """Return whether a folder is a task."""
    return (path / SETTINGS).is_file()


def tasks_in(path: Path) -> list[Path]:
    """Return the tasks in a folder by name; a folder that is itself a task has none."""
    if is_task(path) or not path.is_dir():
        return []
    return sorted(folder for folder in path.iterdir() if is_task(folder) and not folder.name.startswith("."))


def read_task(path: Path) -> TaskFolder:
    """Read a task.

    Raises:
        SkillcError: a part is missing or damaged, or the task needs what skillc does not have.
    """
    name = path.name
    for part in (SETTINGS, INSTRUCTION, f"{TESTS}/{TEST_SCRIPT}"):
        if not (path / part).is_file() and not (part == INSTRUCTION and (path / "steps").is_dir()):
            raise SkillcError(f"the task `{name}` has no `{part}`", hint=f"a task of Harbor is a folder with {_PARTS}")
    try:
        settings = tomllib.loads((path / SETTINGS).read_text(encoding="utf-8"))
        _refuse(name, path, settings)
        instruction = (path / INSTRUCTION).read_text(encoding="utf-8")
        return _task(path, settings, instruction)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise SkillcError(f"the task `{name}` cannot be read: {problem}") from None
    except (TypeError, ValueError) as problem:
        raise SkillcError(f"`{SETTINGS}` of the task `{name}` is wrong: {problem}") from None


_PARTS = listed((SETTINGS, INSTRUCTION, f"{ENVIRONMENT}/", f"{TESTS}/{TEST_SCRIPT}"), "and")


def task_rows(path: Path, name: str, fail: Fail) -> Iterator[tuple[int, dict[str, JsonValue]]]:
    """Yield number and values of each task of a folder: `id`, `task`, `instruction`, and its metadata.

    `task` is the path below the folder that `name` is relative to.
    """
    for number, folder in enumerate(tasks_in(path), 1):
        try:
            task = read_task(folder)
        except SkillcError as problem:
            fail(number, problem.message, problem.hint)
        metadata = {key: value for key, value in task.metadata.items() if isinstance(value, str | int | float | list)}
        own = {"id": task.name, "task": f"{name.rstrip('/')}/{task.name}", "instruction": task.instruction}
        yield number, {**metadata, **own}


def _task(path: Path, settings: Mapping[str, Any], instruction: str) -> TaskFolder:
    agent, tests, inside = (_section(settings, name) for name in ("agent", "verifier", "environment"))
    return TaskFolder(
        path,
        _without_canary(instruction).strip(),
        dict(_section(settings, "metadata")),
        image=_text(inside, "docker_image"),
        workdir=_text(inside, "workdir"),
        agent_seconds=_seconds(agent, "timeout_sec", _AGENT_SECONDS),
        tests_seconds=_seconds(tests, "timeout_sec", _TESTS_SECONDS),
        build_seconds=_seconds(inside, "build_timeout_sec", _BUILD_SECONDS),
        memory=_bytes(inside, "memory"),
        disk=_bytes(inside, "storage"),
        variables=_variables(inside),
        test_variables=_variables(tests),
        solution_variables=_variables(_section(settings, "solution")),
    )


def _refuse(name: str, path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a task that one container without services cannot run."""
    tests, inside = _section(settings, "verifier"), _section(settings, "environment")
    separate = "environment" in tests or str(tests.get("environment_mode", "shared")) != "shared"
    compose = next((each for each in _COMPOSE if (path / ENVIRONMENT / each).is_file()), None)
    needs = {
        "several steps": bool(settings.get("steps")) or (path / "steps").is_dir(),
        f"services, in `{compose}`": compose is not None,
        "a container of its own for the tests": separate,
        "MCP servers": bool(inside.get("mcp_servers")),
        "Windows": str(inside.get("os", "linux")).lower() != "linux",
    }
    found = [need for need, is_needed in needs.items() if is_needed]
    if found:
        raise SkillcError(
            f"the task `{name}` needs {joined(found, 'and')}, which skillc does not have", hint="leave the task out"
        )


def _section(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = settings.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` is no section")
    return value


def _text(section: Mapping[str, Any], name: str) -> str | None:
    value = section.get(name)
    return None if value is None else str(value)


def _seconds(section: Mapping[str, Any], name: str, default: float) -> float:
    value = section.get(name)
    found = default if value is None else float(value)
    if not 0 < found < float("inf"):
        raise ValueError(f"`{name}` is {found:g}, not a number of seconds above 0")
    return found


def _bytes(section: Mapping[str, Any], name: str) -> int | None:
    """Return `memory_mb`, or the older `memory` as in `2G`."""
    if (megabytes := section.get(f"{name}_mb")) is not None:
        return int(megabytes) * _MEGABYTE
    written = section.get(name)
    if written is None:
        return None
    found = _SIZE.fullmatch(str(written))
    if found is None:
        raise ValueError(f"`{name}` is `{written}`, not a size such as `2G`")
    return int(float(found[1]) * _SIZES[found[2].upper()])


def _variables(section: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in _section(section, "env").items()}


def _without_canary(text: str) -> str:
    lines = text.splitlines()
    while lines and (not lines[0].strip() or _CANARY.fullmatch(lines[0])):
        del lines[0]
    return "\n".join(lines)
