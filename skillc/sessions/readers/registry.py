"""Registry of formats: find the reader of a file, and the folders in which agents keep their sessions."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.sessions.readers.records import Head, Problem, head_of
from skillc.sessions.session import Session
from skillc.text import listed

Reader: TypeAlias = Callable[[Path], Iterator[Session | Problem]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of sessions.

    Attributes:
        module: of `skillc.sessions.readers`, with `read` and `recognises`.
        about: whose sessions it is, in words.
        places: where they are by default, with `~` and environment variables.
        names: patterns of the files in a folder.
    """

    module: str
    about: str
    places: tuple[str, ...] = ()
    names: tuple[str, ...] = ("*.jsonl",)

    @property
    def read(self) -> Reader:
        """Return the reader."""
        reader: Reader = importlib.import_module(f"skillc.sessions.readers.{self.module}").read
        return reader

    def recognises(self, head: Head) -> bool:
        """Return whether a file that begins so has this format."""
        found: bool = importlib.import_module(f"skillc.sessions.readers.{self.module}").recognises(head)
        return found


# In the order in which they are tried: the plain format last, since others contain its keys too.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "claude-code": Format("claude_code", "Claude Code", ("$CLAUDE_CONFIG_DIR/projects", "~/.claude/projects")),
        "codex": Format("codex", "Codex", ("$CODEX_HOME/sessions", "~/.codex/sessions")),
        "opencode": Format(
            "opencode",
            "opencode",
            ("$XDG_DATA_HOME/opencode/opencode.db", "~/.local/share/opencode/opencode.db"),
            ("opencode*.db", "*.json"),
        ),
        "hermes": Format("hermes", "Hermes Agent", ("$HERMES_HOME/state.db", "~/.hermes/state.db"), ("state.db",)),
        "recorded": Format("recorded", "calls that `skillc sessions record` wrote"),
        "tapes": Format("tapes", "tapes", ("~/.tapes/tapes.sqlite",), ("*.sqlite", "*.db", "*.jsonl", "*.jsonl.gz")),
        "opentelemetry": Format("opentelemetry", "OpenTelemetry GenAI spans", (), ("*.jsonl", "*.json")),
        "langfuse": Format("langfuse", "Langfuse observations", (), ("*.jsonl", "*.json")),
        "langsmith": Format("langsmith", "LangSmith runs", (), ("*.parquet", "*.jsonl")),
        "openai": Format("openai", "messages in OpenAI's form", (), ("*.jsonl", "*.jsonl.gz")),
    }
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file and its format."""

    path: Path
    format: str


def default_places(name: str) -> list[Path]:
    """Return the existing places where an agent keeps its sessions on this machine."""
    expanded = [os.path.expandvars(place) for place in FORMATS[name].places]
    paths = [Path(place).expanduser() for place in expanded if "$" not in place]
    return [path for path in dict.fromkeys(paths) if path.exists()]


def find_sources(paths: Sequence[Path], name: str | None = None) -> Iterator[Source | Problem]:
    """Yield the files with sessions below the paths, sorted, and a problem for each file that was named and is none.

    Args:
        paths: files, which must have a known format, and folders, whose other files are ignored.
        name: of the format, if it is known.

    Raises:
        SkillcError: a path does not exist.
    """
    for path in paths:
        if not path.exists():
            raise SkillcError(f"no such file or folder: `{path}`")
        if path.is_file():
            found = name or recognise(path)
            yield Source(path, found) if found else Problem(str(path), 0, "its format is not known")
            continue
        patterns = FORMATS[name].names if name else tuple(dict.fromkeys(n for f in FORMATS.values() for n in f.names))
        for each in sorted({file for pattern in patterns for file in path.rglob(pattern) if file.is_file()}):
            found = name or recognise(each)
            if found:
                yield Source(each, found)


def recognise(path: Path) -> str | None:
    """Return the name of a file's format, by its beginning; None if it has none of them."""
    head = head_of(path)
    return next((name for name, each in FORMATS.items() if head is not None and each.recognises(head)), None)


def format_named(name: str) -> str:
    """Return the name if it is a format.

    Raises:
        SkillcError: it is not.
    """
    if name not in FORMATS:
        raise SkillcError(f"no format of sessions is called `{name}`", hint=f"valid formats: {listed(FORMATS)}")
    return name
