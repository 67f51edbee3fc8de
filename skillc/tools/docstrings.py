"""The texts of a tool in a docstring: what it does, and what each argument means.

It reads the sections of Google (`Args:`) and NumPy (`Parameters` underlined), and the fields of Sphinx (`:param x:`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import field

from skillc.dataclass import dataclass
from skillc.text import listed

_ARGUMENTS = frozenset({"args", "arguments", "parameters", "params"})
# Sections that do not help an agent to choose a tool, or repeat the schema.
_SECTIONS = _ARGUMENTS | {"returns", "return", "yields", "raises", "example", "examples", "note", "notes", "attributes"}
_GOOGLE = re.compile(r"^(\w+):\s*$")
_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+|$)(.*)$")
_NUMPY_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?::.*)?$")
_SPHINX = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+):\s*(.*)$")
_SPHINX_FIELD = re.compile(r"^:\w+[^:]*:")


@dataclass(frozen=True, slots=True)
class ToolTexts:
    """The text before the sections of a docstring, and the text of each argument."""

    about: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


def read_docstring(docstring: str | None) -> ToolTexts:
    """Read a docstring; its examples, results and errors are left out."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    about: list[str] = []
    arguments: dict[str, str] = {}
    section, body = "", list[str]()
    for i, line in enumerate(lines):
        name = _section(lines, i)
        if name:
            arguments |= _items(section, body)
            section, body = name, []
        elif section:
            body.append(line)
        else:
            about.append(line)
    arguments |= _items(section, body)
    sphinx, rest = _fields(about)
    paragraphs = (" ".join(each.split()) for each in "\n".join(rest).split("\n\n"))
    return ToolTexts("\n".join(filter(None, paragraphs)), {**sphinx, **arguments})


def _section(lines: Sequence[str], i: int) -> str:
    """Return the name of the section that begins at a line, else an empty text."""
    found = _GOOGLE.match(lines[i])
    name = found[1].lower() if found else ""
    if not name and i + 1 < len(lines) and lines[i].strip() and _underlines(lines[i + 1]):
        name = lines[i].strip().lower()
    return name if name in _SECTIONS else ""


def _underlines(line: str) -> bool:
    return set(line.strip()) == {"-"}


def _items(section: str, body: Sequence[str]) -> dict[str, str]:
    """Return the text of each argument in a section."""
    if section not in _ARGUMENTS:
        return {}
    written = [line for line in body if line.strip()]
    lines = [line for line in written if not _underlines(line)]
    underlined = len(lines) < len(written)
    indent = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        head = (_NUMPY_ITEM if underlined else _ITEM).match(line[indent:])
        if head:
            name = head[1]
            found[name] = [] if underlined else [head[2]]
        elif name:
            found[name].append(line.strip())
    return {name: " ".join(" ".join(texts).split()) for name, texts in found.items()}


def _fields(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the arguments that Sphinx fields describe, and the lines before the first field."""
    arguments: dict[str, str] = {}
    rest: list[str] = []
    name, within = "", False
    for line in lines:
        found = _SPHINX.match(line)
        if found:
            name, within = found[1], True
            arguments[name] = found[2]
        elif _SPHINX_FIELD.match(line):
            name, within = "", True
        elif not within:
            rest.append(line)
        elif name and line.strip():
            arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return arguments, rest


# ---- what a function lacks as a tool, each with its fix ------------------------------------------------


def lacks_docstring(tool: str) -> tuple[str, str]:
    """Describe a function without a docstring."""
    message = f"the tool `{tool}` has no docstring, which an agent chooses it by"
    return message, "describe in its docstring what it does and when to use it"


def lacks_name(tool: str, parameter: object) -> tuple[str, str]:
    """Describe a parameter that has no name to pass it by."""
    message = f"the tool `{tool}` takes `{parameter}`, which an agent cannot pass by name"
    return message, "give it a parameter with a name and a type for each argument"


def lacks_type(tool: str, parameter: str) -> tuple[str, str]:
    """Describe a parameter without an annotation."""
    message = f"the parameter `{parameter}` of the tool `{tool}` has no type"
    return message, f"annotate it, as in `{parameter}: str`"


def lacks_texts(tool: str, parameters: Sequence[str]) -> tuple[str, str]:
    """Describe parameters that the docstring leaves out."""
    message = f"the tool `{tool}` does not describe {listed(parameters)}"
    return message, "add a section `Args:` to its docstring, with a line `name: what it is` for each parameter"
