"""Problems of a data file: collected, and raised once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from skillc.errors import SkillcError
from skillc.text import counted, cut, listed

SHOWN = 5
LINES = 3


# Where in the program: kind, name, setting.
Where = tuple[str, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a file, with its fix.

    Attributes:
        lines: the first few lines that have it; 0 is the file as a whole.
        rows: how many lines have it.
        at: the declaration in the program that the data does not fit; None where there is none.
    """

    file: str
    lines: tuple[int, ...]
    message: str
    hint: str | None = None
    rows: int = 1
    at: Where | None = None

    def __str__(self) -> str:
        if self.rows == 1:
            return f"{location_text(self.file, self.lines[0])}: {self.message}"
        first = "first " if self.rows > len(self.lines) else ""
        where = f"{counted(self.rows, 'row')}, {first}{', '.join(str(line) for line in self.lines)}"
        return f"`{self.file}` ({where}): {self.message}"


class DataError(SkillcError):
    """Data that can't be used; `problems` are the first few kinds, `more` how many problems there are besides.

    `count` is the number of all problems.
    """

    def __init__(self, message: str, problems: Sequence[Problem], count: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)
        self.count = count
        self.more = count - sum(problem.rows for problem in problems)


class Problems:
    """Collect problems: one entry for each kind. Keep the first few kinds and count the rest."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], Problem] = {}
        self._count = 0

    @property
    def any(self) -> bool:
        """Whether there is a problem."""
        return self._count > 0

    def add(
        self,
        file: str,
        line: int,
        message: str,
        hint: str | None = None,
        *,
        at: Where | None = None,
        kind: str | None = None,
    ) -> None:
        """Note a problem.

        Args:
            file: the data file.
            line: where it is.
            message: what is wrong. Rows with the same message are one problem.
            hint: the fix.
            at: the declaration that it is about.
            kind: the message for rows whose values differ and that have the same fault; None keeps them apart.
        """
        self._count += 1
        key = (file, kind or message)
        known = self._first.get(key)
        if known is not None:
            lines = known.lines if len(known.lines) == LINES else (*known.lines, line)
            told = message if message == known.message else kind or message
            self._first[key] = replace(known, lines=lines, message=told, rows=known.rows + 1)
        elif len(self._first) < SHOWN:
            self._first[key] = Problem(file, (line,), message, hint, at=at)

    def fatal(self, file: str, line: int, message: str, hint: str | None = None) -> SkillcError:
        """Return the error for a file that cannot be read further; earlier problems come first."""
        self._count += 1
        self._first = {
            **dict(list(self._first.items())[: SHOWN - 1]),
            (file, ""): Problem(file, (line,), message, hint),
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
        """Raise what was found.

        Raises:
            SkillcError: there is a problem.
        """
        if self._count:
            raise self.error()


def location_text(file: str, line: int) -> str:
    """Return a place in a data file: its line, or its row where the file has no lines; 0 is the whole file."""
    if not line:
        return f"`{file}`"
    name = file.rpartition("/")[2]
    has_lines = "." in name and not name.lower().endswith(".parquet")
    return f"`{file}` {'line' if has_lines else 'row'} {line}"


def name_list(names: Iterable[str]) -> str:
    """Return names from a data file, the first 12 of them, each cut where it is long."""
    return listed((cut(name, 40) for name in names), most=12)


def closest_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that was probably meant: equal but for case, spaces and signs, else close in spelling."""
    bare = {_bare(k): k for k in reversed(known)}
    if _bare(name) in bare:
        return bare[_bare(name)]
    close = difflib.get_close_matches(_bare(name)[:100], [k[:100] for k in bare], n=1, cutoff=0.75)
    return bare.get(close[0]) if close else None


def _bare(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
