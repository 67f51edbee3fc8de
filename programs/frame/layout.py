"""The folder of a benchmark, and the module in it that reads the benchmark's own format."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.text import listed

PROGRAMS = Path(__file__).resolve().parents[1]
PROTOCOLS = ("ours", "paper")
"""The programs of a benchmark: the protocol of skillc, and that of SkillOpt's paper."""
READER = "rows.py"


class Reader(Protocol):
    """What `rows.py` of a benchmark offers.

    Attributes:
        SIZES: published numbers of train, validation and test examples.
        FILES: columns that name files, which are copied beside the data.
    """

    SIZES: tuple[int, int, int]
    FILES: tuple[str, ...]

    def items(self, source: Path) -> list[JsonObject]:
        """Read the benchmark's own files; each item has what `row` needs."""

    def row(self, item: JsonObject, folder: Path) -> JsonObject | None:
        """Return the columns of the program, with `id`; None for an item that is an id alone.

        `folder` is where paths in the item start. Paths in the row are absolute.
        """


def benchmarks() -> list[str]:
    """Return the names of all benchmarks, in alphabetical order."""
    return sorted(path.parent.name for path in PROGRAMS.glob(f"*/{READER}"))


def reader(name: str) -> Reader:
    """Load `rows.py` of a benchmark.

    Raises:
        SkillcError: there is no such benchmark.
    """
    if name not in benchmarks():
        raise SkillcError(f"there is no benchmark `{name}`", hint=f"benchmarks: {listed(benchmarks())}")
    return cast(Reader, module(name, "rows"))


def module(name: str, file: str) -> ModuleType:
    """Load a module of a benchmark's folder under a name that no other benchmark has."""
    path = PROGRAMS / name / f"{file}.py"
    found = importlib.util.spec_from_file_location(f"programs.{name}.{file}", path)
    assert found is not None and found.loader is not None
    made = importlib.util.module_from_spec(found)
    # Dataclasses look their module up.
    sys.modules[found.name] = made
    found.loader.exec_module(made)
    return made


def variables(name: str) -> dict[str, str]:
    """Return the variables with which a benchmark is compiled here, by `variables()` of its `rows.py`."""
    ask = getattr(reader(name), "variables", None)
    return dict(ask()) if ask is not None else {}


def missing(name: str) -> str:
    """Return why a benchmark cannot run here, by `missing()` of its `rows.py`; empty if it can."""
    ask = getattr(reader(name), "missing", None)
    return str(ask()) if ask is not None else ""
