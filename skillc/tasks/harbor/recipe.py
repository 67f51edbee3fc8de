"""Read the part of a Dockerfile that says which files an environment has: `WORKDIR`, `COPY`, `ADD`, `RUN`, `ENV`.

Where a task runs without a container, the programs of this machine stand in for those of the image.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})")
# What says nothing about files, or only how a container starts.
_LEFT_OUT = frozenset(
    {
        *("ARG", "CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "LABEL", "MAINTAINER"),
        *("ONBUILD", "SHELL", "STOPSIGNAL", "USER", "VOLUME"),
    }
)


@dataclass(frozen=True, slots=True)
class Copying:
    """`COPY` or `ADD`: paths in the folder of the Dockerfile, with patterns, and an absolute path in the environment.

    `folder` is whether the target is a folder, as its slash says, or several sources.
    """

    line: int
    sources: tuple[str, ...]
    target: str
    folder: bool


@dataclass(frozen=True, slots=True)
class Making:
    """`WORKDIR`: a folder that exists from here on."""

    line: int
    folder: str


@dataclass(frozen=True, slots=True)
class Running:
    """`RUN`: a command of the shell, the folder that it runs in, and the variables that it has."""

    line: int
    command: str
    workdir: str
    variables: Mapping[str, str]


Step = Copying | Making | Running


@dataclass(frozen=True, slots=True)
class Recipe:
    """The files of an environment.

    Attributes:
        steps: in order.
        workdir: the last working folder; `/` if none is set.
        variables: those of every command.
        problem: what needs a container, with its line; empty if nothing does.
    """

    steps: tuple[Step, ...] = ()
    workdir: str = "/"
    variables: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def folders(self) -> tuple[str, ...]:
        """The absolute paths of folders that it fills: working folders, and the folders of targets."""
        found = []
        for step in self.steps:
            if isinstance(step, Making):
                found.append(step.folder)
            elif isinstance(step, Copying):
                found.append(step.target if step.folder else posixpath.dirname(step.target))
        return tuple(dict.fromkeys(found))


def read_recipe(path: Path) -> Recipe:
    """Read a Dockerfile.

    Raises:
        SkillcError: it cannot be read, or has an instruction that no Dockerfile has.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as raised:
        raise SkillcError(f"`{path.parent.parent.name}/environment/{path.name}` cannot be read: {raised}") from None
    steps: list[Step] = []
    variables: dict[str, str] = {}
    arguments: dict[str, str] = {}
    workdir, images, problem = "/", 0, ""
    for line, name, rest in instructions(text):
        known = {**arguments, **variables}
        match name:
            case "FROM":
                images += 1
            case "WORKDIR":
                workdir = posixpath.normpath(posixpath.join(workdir, _filled(rest, known)))
                steps.append(Making(line, workdir))
            case "ENV":
                variables |= _pairs(_filled(rest, known))
            case "ARG":
                argument, _, value = rest.partition("=")
                arguments[argument.strip()] = value.strip().strip("\"'")
            case "COPY" | "ADD":
                copying = _copying(line, _filled(rest, known), workdir, unpacks=name == "ADD")
                if copying is None:
                    problem = problem or f"line {line}: `{name} {rest}`"
                else:
                    steps.append(copying)
            case "RUN":
                steps.append(Running(line, _command(rest), workdir, dict(variables)))
            case _ if name not in _LEFT_OUT:
                raise SkillcError(f"`{path}` line {line}: `{name}` is no instruction of a Dockerfile")
    if images > 1:
        problem = f"{images} stages"
    return Recipe(tuple(steps), workdir, variables, problem)


def instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and rest of each instruction; a here-document is a part of its instruction."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        first, at = at, at + 1
        written = lines[first].strip()
        if not written or written.startswith("#"):
            continue
        while written.endswith("\\") and at < len(lines):
            following, at = lines[at].strip(), at + 1
            # Comments between continued lines are left out, as Docker does.
            written = written[:-1].rstrip() + (" " + following if not following.startswith("#") else " \\")
        name, _, rest = written.partition(" ")
        ends = _HEREDOC.findall(rest) if name.upper() in ("RUN", "COPY", "ADD") else []
        for end in ends:
            body = []
            while at < len(lines) and lines[at].strip() != end:
                body.append(lines[at])
                at += 1
            at += 1
            rest = "\n".join([rest, *body, end])
        yield first + 1, name.upper(), rest.strip()


def _copying(line: int, rest: str, workdir: str, *, unpacks: bool) -> Copying | None:
    """Return what is copied; None for other stages, addresses, here-documents and archives, which need Docker."""
    flags: list[str] = []
    words: list[str] = []
    for word in _words(rest):
        (flags if word.startswith("--") and not words else words).append(word)
    *sources, target = words or [""]
    beyond = any(flag.startswith("--from") for flag in flags) or _HEREDOC.search(rest) is not None
    beyond = beyond or any("://" in source or (unpacks and ".t" in source) for source in sources)
    if beyond or not sources:
        return None
    absolute = posixpath.normpath(posixpath.join(workdir, target))
    is_folder = target.endswith(("/", "/.")) or target == "." or len(sources) > 1 or absolute == workdir
    return Copying(line, tuple(sources), absolute, is_folder)


def _words(rest: str) -> list[str]:
    """Return the words of an instruction, which may be a JSON list."""
    if rest.startswith("["):
        try:
            return [str(each) for each in json.loads(rest)]
        except ValueError:
            pass
    try:
        return shlex.split(rest)
    except ValueError:
        return rest.split()


def _command(rest: str) -> str:
    """Return a `RUN` as the text of a shell: its options left out, a list of words quoted."""
    while rest.startswith("--"):
        rest = rest.partition(" ")[2].lstrip()
    heredoc = _HEREDOC.match(rest)
    if heredoc is not None and "\n" in rest:
        return rest.partition("\n")[2].rpartition("\n")[0]
    return shlex.join(_words(rest)) if rest.startswith("[") else rest


def _pairs(rest: str) -> dict[str, str]:
    """Return variables: `A=1 B="two words"`, or the old form `A one value`."""
    words = _words(rest)
    if words and "=" not in words[0]:
        name, _, value = rest.partition(" ")
        return {name: value.strip()}
    return dict(word.partition("=")[::2] for word in words if "=" in word)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[3] or ""), text)
