"""What a text environment provides, and how a program names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.text import listed


class TextEnvironment(Protocol):
    """The methods of an environment, as Gymnasium's of text have them. A class need not derive from this one.

    It is constructed once in each process, with the settings of the program's block that skillc does not read, and
    reset for each rollout. `close()` is called at the end if there is one.
    """

    def reset(self, example: Mapping[str, Any]) -> str | tuple[str, Mapping[str, Any]]:
        """Begin a rollout; return the first observation, or the observation and `info`.

        Args:
            example: the inputs and data fields by name, the right answers under `gold`, and `id`. With a parameter
                `seed`, a number for this example and sample is passed too.
        """

    def step(self, action: Any) -> tuple[str, float, bool, Mapping[str, Any]]:
        """Act; return observation, reward, whether the rollout is done, and `info`.

        Gymnasium's five values, with `terminated` and `truncated`, are read too. `info["admissible_actions"]`, a list
        of texts, is shown to the target. An action is a text, or the output's JSON value; with several outputs, value
        by output.

        Raises:
            InadmissibleAction: the action is not possible here; the target reads the message. So it does for any
                exception on an action that is not among the admissible ones.
        """

    def score(self) -> float:
        """Return the score of the rollout so far, 0 to 1."""


class InadmissibleAction(Exception):  # noqa: N818
    """An action that is not possible. An environment in another interpreter may define a class of the same name."""


@dataclass(frozen=True, slots=True)
class EnvironmentClass:
    """Where a class is found: in an importable module, or in a file that an interpreter with its packages loads.

    Attributes:
        name: as written in the program.
        target: `module:Class`; with a file `Class` alone.
        file: the file, for environments that run in another interpreter.
        find_python: finds that interpreter, from the declared one and the program's folder.
    """

    name: str
    target: str
    file: Path | None = None
    find_python: Callable[[str | None, Path], Path] | None = None


ALFWORLD = "alfworld"
ENTRY_POINTS = "skillc.environments"
"""Packages register classes in this group: `house = "my_package.house:House"`."""

Class = TypeVar("Class", bound=type[Any])
_REGISTERED: dict[str, str] = {}


def register_environment(name: str) -> Callable[[Class], Class]:
    """Register a class under a name, for programs that run after its module was imported."""

    def register(cls: Class) -> Class:
        _REGISTERED[name] = f"{cls.__module__}:{cls.__qualname__}"
        return cls

    return register


def find_environment(name: str) -> EnvironmentClass:
    """Return the class that a program names: `module:Class`, or a registered name.

    Raises:
        SkillcError: no class is registered under the name.
    """
    if ":" in name:
        return EnvironmentClass(name, name)
    if name == ALFWORLD:
        from skillc.tasks.environments.household import ENGINE, find_interpreter

        return EnvironmentClass(name, "Household", ENGINE, find_interpreter)
    if name in _REGISTERED:
        return EnvironmentClass(name, _REGISTERED[name])
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return EnvironmentClass(name, entry.value)
    known = sorted({ALFWORLD, *_REGISTERED, *(entry.name for entry in entry_points(group=ENTRY_POINTS))})
    raise SkillcError(
        f"no installed package provides the environment `{name}`",
        hint='name a class, `environment("module:Class")`' + f", or one of {listed(known)}",
    )
