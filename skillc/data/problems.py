"""Problems of a data file, collected and raised together."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.text import counted, cut, listed

_MOST_KINDS = 5
_MOST_LINES = 3

Declared = tuple[str, str | None, str | None]
"""A declaration of the program: kind, name, setting."""


@dataclass(frozen=True, slots=True)
class DataProblem:
    """One kind of problem in a file, with its fix.

    Attributes:
        lines: the first lines that have it; 0 is the whole file.
        rows: the number of lines that have it.
        at: the declaration of the program that the data contradicts.
    """

    file: str
    lines: tuple[int, ...]
    message: str
    hint: str | None = None
    rows: int = 1
    at: Declared | None = None

    def __str__(self) -> str:
        if self.rows == 1:
            return f"{location_text(self.file, self.lines[0])}: {self.message}"
        first = "first " if self.rows > len(self.lines) else ""
        where = f"{counted(self.rows, 'row')}, {first}{', '.join(str(line) for line in self.lines)}"
        return f"`{self.file}` ({where}): {self.message}"


class DataError(SkillcError):
    """Unusable data: the first few kinds of problems, the number of all (`count`) and of those not shown (`more`)."""

    def __init__(self, message: str, problems: Sequence[DataProblem], count: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)
        self.count = count
        self.more = count - sum(problem.rows for problem in problems)


class Problems:
    """Collect the first few kinds of problems and count the rest."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], DataProblem] = {}
        self._count = 0

    @property
    def any(self) -> bool:
        """Whether a problem was added."""
        return self._count > 0

    def add(
        self,
        file: str,
        line: int,
        message: str,
        hint: str | None = None,
        *,
        at: Declared | None = None,
        kind: str | None = None,
    ) -> None:
        """Add a problem of a line; `at` is the declaration that it contradicts.

        Rows with the same message count as one kind. `kind` is the message for several rows whose values differ; None
        keeps them apart.
        """
        self._count += 1
        key = (file, kind or message)
        known = self._first.get(key)
        if known is not None:
            lines = known.lines if len(known.lines) == _MOST_LINES else (*known.lines, line)
            message = message if message == known.message else kind or message
            self._first[key] = replace(known, lines=lines, message=message, rows=known.rows + 1)
        elif len(self._first) < _MOST_KINDS:
            self._first[key] = DataProblem(file, (line,), message, hint, at=at)

    def fatal(self, file: str, line: int, message: str, hint: str | None = None) -> SkillcError:
        """Return the error of a file that cannot be read further, after earlier problems."""
        self._count += 1
        self._first = {
            **dict(list(self._first.items())[: _MOST_KINDS - 1]),
            (file, ""): DataProblem(file, (line,), message, hint),
        }
        return self.error()

    def error(self) -> SkillcError:
        """Return all problems as one error."""
        first = list(self._first.values())
        rest = self._count - sum(problem.rows for problem in first)
        if len(first) == 1 and not rest:
            return DataError(str(first[0]), first, self._count, hint=first[0].hint)
        lines = [f"{p}; {p.hint}" if p.hint else str(p) for p in first]
        if rest:
            lines.append(f"and {rest:,} more")
        message = "\n".join([f"the data has {self._count:,} problems", *(f"  {line}" for line in lines)])
        return DataError(message, first, self._count)

    def check(self) -> None:
        """Raise the problems, if any.

        Raises:
            SkillcError: a problem was added.
        """
        if self._count:
            raise self.error()


def location_text(file: str, line: int) -> str:
    """Describe a place in a data file: a line, or a row if the file has no lines; 0 is the whole file."""
    if not line:
        return f"`{file}`"
    name = file.rpartition("/")[2]
    has_lines = "." in name and not name.lower().endswith(".parquet")
    return f"`{file}` {'line' if has_lines else 'row'} {line}"


def name_list(names: Iterable[str]) -> str:
    """List the first 12 names from a data file, each shortened."""
    return listed((cut(name, 40) for name in names), most=12)


def closest_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that was probably meant: equal except for case and punctuation, else close in spelling."""
    bare = {_bare(k): k for k in reversed(known)}
    if _bare(name) in bare:
        return bare[_bare(name)]
    close = difflib.get_close_matches(_bare(name)[:100], [k[:100] for k in bare], n=1, cutoff=0.75)
    return bare.get(close[0]) if close else None


def _bare(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
