"""Texts of tools that a skill trains: the section `tools` of a program whose agent has tools.

    - find_order: Use it before any answer about a delivery.
    - find_order.number: the number that begins with `A-`, never the invoice's.

A line replaces the text of a tool, or of one of its arguments; names never change. The section is part of SKILL.md like
any other, so an agent elsewhere that has the same tools reads it there, and the owner of a server can copy it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from skillc.document.skill import Document
from skillc.tools.tool import Tool

SECTION = "tools"


def with_texts(tools: Sequence[Tool], document: Document | None) -> tuple[Tool, ...]:
    """Return tools with the texts that a skill has for them; lines about anything else are advice like other rules."""
    found = {tool.name: tool for tool in tools}
    for line in _lines(document):
        name, colon, text = line.partition(": ")
        name, text = name.strip().strip("`"), " ".join(text.split())
        owner, _, argument = name.rpartition(".")
        if not colon or not text:
            continue
        if name in found:
            found[name] = replace(found[name], about=text)
        elif owner in found and argument in found[owner].arguments:
            arguments = found[owner].arguments
            found[owner] = replace(
                found[owner], arguments={**arguments, argument: {**arguments[argument], "description": text}}
            )
    return tuple(found.values())


def text_lines(tools: Sequence[Tool]) -> list[str]:
    """Return the texts of tools and of their arguments, in the form of the section's lines."""
    lines = []
    for tool in tools:
        lines.append(f"{tool.name}: {' '.join(tool.about.split())}")
        for name, schema in tool.arguments.items():
            lines.append(f"{tool.name}.{name}: {' '.join(str(schema.get('description', '')).split())}".rstrip())
    return lines


def _lines(document: Document | None) -> Iterable[str]:
    section = document.section(SECTION) if document is not None else None
    if section is None:
        return ()
    if section.mode == "trainable":
        return [rule.text for rule in section.rules]
    return [line.strip().removeprefix("- ") for line in section.text.splitlines()]
