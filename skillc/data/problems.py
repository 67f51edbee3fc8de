"""What is wrong with a data file, in the user's words: collected, and raised once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillc.errors import SkillcError

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding at a line of a file (0: the file as a whole), with its fix."""

    file: str
    line: int
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{located(self.file, self.line)}: {self.message}"


class DataError(SkillcError):
    """Data that can't be used; `problems` are the first few findings, `more` how many there are besides."""

    def __init__(self, message: str, problems: Sequence[Problem], more: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)
        self.more = more


class Problems:
    """Collects problems; keeps the first few and counts the rest."""

    def __init__(self) -> None:
        self._first: list[Problem] = []
        self._count = 0

    @property
    def any(self) -> bool:
        """Whether there is a problem."""
        return self._count > 0

    def add(self, file: str, line: int, message: str, hint: str | None = None) -> None:
        """Notes a problem."""
        self._count += 1
        if len(self._first) < SHOWN:
            self._first.append(Problem(file, line, message, hint))

    def fatal(self, file: str, line: int, message: str, hint: str | None = None) -> SkillcError:
        """The error for a file that cannot be read on; what was found before comes first."""
        self._count += 1
        self._first = [*self._first[: SHOWN - 1], Problem(file, line, message, hint)]
        return self.error()

    def error(self) -> SkillcError:
        """All problems as one error."""
        if self._count == 1:
            return DataError(str(self._first[0]), self._first, 0, hint=self._first[0].hint)
        lines = [f"{p}; {p.hint}" if p.hint else str(p) for p in self._first]
        rest = self._count - len(lines)
        if rest:
            lines.append(f"and {rest:,} more")
        message = "\n".join([f"the data has {self._count:,} problems", *(f"  {line}" for line in lines)])
        return DataError(message, self._first, rest)

    def check(self) -> None:
        """Raises what was found.

        Raises:
            SkillcError: there is a problem.
        """
        if self._count:
            raise self.error()


def located(file: str, line: int) -> str:
    """A place in a data file: its line, or its row where the file has no lines; 0 is the whole file."""
    if not line:
        return f"`{file}`"
    name = file.rpartition("/")[2]
    has_lines = "." in name and not name.lower().endswith(".parquet")
    return f"`{file}` {'line' if has_lines else 'row'} {line}"


def shown(text: str, length: int = 60) -> str:
    """A value in backticks, cut where it is long."""
    line = " ".join(text.split())
    return f"`{line[: length - 1]}…`" if len(line) > length else f"`{line}`"


def counted(number: int, noun: str) -> str:
    """`1 row`, `1,200 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names in backticks, `and 5 more` where there are many."""
    every = list(names)
    text = ", ".join(shown(name, 40) for name in every[:most])
    return text + f" and {len(every) - most} more" if len(every) > most else text


def alike(name: str, known: Sequence[str]) -> str | None:
    """The known name that was probably meant: equal but for case, spaces and signs, else close in spelling."""
    bare = {_bare(k): k for k in reversed(known)}
    if _bare(name) in bare:
        return bare[_bare(name)]
    close = difflib.get_close_matches(_bare(name)[:100], [k[:100] for k in bare], n=1, cutoff=0.75)
    return bare.get(close[0]) if close else None


def _bare(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
