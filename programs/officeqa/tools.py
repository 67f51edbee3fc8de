"""The tools of the agent: find, search and read the source files of a question."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path

from convert import text_of

ROOT = Path(__file__).resolve().parent
DATA = ROOT / "data"
_MOST_FOUND, _MOST_LINES, _MOST_FILES = 40, 200, 100
_LONGEST = 400


def find_files(pattern: str) -> str:
    """List the names of files that fit a pattern.

    Args:
        pattern: such as `*1944*`
    """
    names = sorted(path.relative_to(ROOT).as_posix() for path in DATA.rglob("*") if path.is_file())
    # Questions and answers are data too.
    found = [name for name in names if fnmatch(name, f"*{pattern}*") and not name.endswith(".jsonl")]
    more = f"\nand {len(found) - _MOST_FILES} more" if len(found) > _MOST_FILES else ""
    return "\n".join(found[:_MOST_FILES]) + more or "no file fits"


def search_file(file: str, pattern: str) -> str:
    """Return the lines of a file that fit a regular expression, with their numbers; case makes no difference.

    Args:
        file: its path, as the question has it
        pattern: a regular expression, such as `public debt|interest`
    """
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as problem:
        raise ValueError(f"the pattern is no regular expression: {problem}") from None
    lines = _lines(file)
    found = [f"{number}: {line[:_LONGEST]}" for number, line in enumerate(lines, 1) if wanted.search(line[:10_000])]
    more = f"\nand {len(found) - _MOST_FOUND} more" if len(found) > _MOST_FOUND else ""
    return "\n".join(found[:_MOST_FOUND]) + more or "no line fits"


def read_file(file: str, first: int = 1, count: int = 60) -> str:
    """Return lines of a file, with their numbers.

    Args:
        file: its path, as the question has it
        first: the number of the first line
        count: how many lines, at most 200
    """
    lines = _lines(file)
    start = max(1, int(first))
    chosen = lines[start - 1 : start - 1 + min(int(count), _MOST_LINES)]
    shown = "\n".join(f"{number}: {line[:_LONGEST]}" for number, line in enumerate(chosen, start))
    return f"{shown}\n({len(lines)} lines in all)" if chosen else f"the file has {len(lines)} lines"


def _lines(file: str) -> list[str]:
    path = (ROOT / file).resolve()
    if not path.is_file() or not path.is_relative_to(DATA.resolve()) or path.suffix == ".jsonl":
        raise FileNotFoundError(f"there is no file `{file}`; take a path of the question")
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read(path: Path, _modified: int) -> list[str]:
    return text_of(path).splitlines()
