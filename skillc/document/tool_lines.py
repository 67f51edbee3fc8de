"""The section `tools` of a skill: what an agent reads of its tools, a line for each text.

    - find_order: Use it before any answer about a delivery.
    - find_order.number: the number that begins with `A-`, never the invoice's.
    - find_order -> look_up_order: Use it before any answer about a delivery.

A line replaces the text of a tool, or of one of its arguments. With `rename = on`, an arrow gives a tool another name,
alone or with a text, and further lines may use either name. The section is part of SKILL.md like any other, so an agent
elsewhere that has the same tools reads it there, and the owner of a server can copy it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.document.skill import Document, Section

SECTION = "tools"
RESERVED_NAMES = frozenset({"act", "finish", "submit", "open_skill"})
"""Names of the tools by which an agent acts in an environment, ends its work and opens a skill."""
HOW_TO_RENAME = (
    "In the section `tools`, a line `name: text` replaces what the agent reads of a tool, `name.argument: text` of an "
    "argument, and `name -> new_name` renames the tool for the agent, alone or with `: text` behind it. A name has "
    "letters, digits, `_` and `-`, at most 64; every tool needs a different one. In a trajectory, a renamed tool is "
    "followed by its own name in parentheses."
)
"""The form of the section for an optimizer, where tools may be renamed."""
_ARROW = "->"
# What all large providers accept; some need a letter or `_` first.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MOST_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One line of the section.

    Attributes:
        tool: the name before the colon or the arrow, with an argument as `tool.argument`.
        name: the name behind the arrow; None without an arrow.
        text: on one line; empty without one.
    """

    tool: str
    name: str | None
    text: str


def tool_lines(section: Section | None) -> Iterator[ToolLine]:
    """Yield the lines of a section that can be texts or names of tools."""
    for line in _lines(section):
        head, colon, text = line.partition(": ")
        old, arrow, new = head.partition(_ARROW)
        if colon or arrow:
            yield ToolLine(_bare(old), _bare(new) if arrow else None, " ".join(text.split()))


def new_names(section: Section | None, tools: Collection[str]) -> dict[str, str]:
    """Return the names that a section gives to tools, by their names in the program; those that are valid together.

    Args:
        section: of a skill that may rename tools.
        tools: names in the program.
    """
    found: dict[str, str] = {}
    for line in tool_lines(section):
        if line.name is None or line.tool not in tools:
            continue
        if _problem(line.tool, line.name, found, tools) is None:
            found[line.tool] = line.name
    return {tool: name for tool, name in found.items() if tool != name}


def name_problem(section: Section, tools: Collection[str]) -> str | None:
    """Return why one of the names that a section gives to tools cannot be used; None if all can.

    Args:
        section: of a skill that may rename tools.
        tools: names in the program; empty if they are not known.
    """
    found: dict[str, str] = {}
    for line in tool_lines(section):
        # An arrow in prose is advice, as any line about something else.
        if line.name is None or not is_tool_name(line.tool):
            continue
        if tools and line.tool not in tools:
            return f"there is no tool `{line.tool}` to rename, but {listed(sorted(tools), 'and')}"
        problem = _problem(line.tool, line.name, found, tools)
        if problem is not None:
            return problem
        found[line.tool] = line.name
    return None


def is_tool_name(name: str) -> bool:
    """Return whether all large providers accept a name of a tool."""
    return _NAME.fullmatch(name) is not None


def knowing_tools(document: Document, tools: Iterable[str]) -> Document:
    """Return a skill whose section `tools`, if it may rename tools, is checked against the names of all of them.

    Raises:
        SkillcError: it gives a tool a wrong name.
    """
    section = document.section(SECTION)
    if section is None or section.renames is None:
        return document
    section = replace(section, renames=tuple(tools))
    problem = name_problem(section, section.renames or ())
    if problem is not None:
        raise SkillcError(problem, hint=f"correct the line in the section `{SECTION}`")
    return document.with_section(section)


def _problem(tool: str, name: str, given: Mapping[str, str], tools: Collection[str]) -> str | None:
    """Return why a tool cannot get a name, given the names of the others."""
    if tool in given:
        return f"the tool `{tool}` is renamed twice, to `{given[tool]}` and `{name}`"
    if not is_tool_name(name):
        if len(name) > _MOST_CHARACTERS:
            return f"the name `{name}` has {len(name)} characters; agents accept at most {_MOST_CHARACTERS}"
        return f"`{name}` is not a name of a tool: use letters, digits, `_` and `-`, and a letter or `_` first"
    if name in RESERVED_NAMES:
        return f"the name `{name}` is one of the agent's own tools"
    others = {**{other: other for other in tools}, **{new: other for other, new in given.items()}}
    alike = next((other for known, other in others.items() if other != tool and _folded(known) == _folded(name)), None)
    if alike is None:
        return None
    return f"the name `{name}` is taken by the tool `{alike}`; case, `-` and `_` make no difference"


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")


def _bare(name: str) -> str:
    return name.strip().strip("`")


def _lines(section: Section | None) -> Iterable[str]:
    if section is None:
        return ()
    if section.mode == "trainable":
        return [rule.text for rule in section.rules]
    return [line.strip().removeprefix("- ") for line in section.text.splitlines()]
