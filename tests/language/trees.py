"""What a program says, whatever its layout: for comparisons before and after."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from skillc.syntax import nodes
from skillc.syntax.parser import parse
from skillc.syntax.source import Source


def meaning(text: str) -> tuple[Any, list[str]]:
    """The tree of a sound text without places, its documentation included; and all comments in order."""
    parsed = parse(Source("test.skill", text))
    assert parsed.diagnostics == ()
    comments = [each.text for each in parsed.program.comments]
    return _plain(parsed.program.statements), comments


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(each) for each in value)
    if isinstance(value, nodes.Node):
        kept = (field.name for field in fields(value) if field.name != "span")
        return (type(value).__name__, *(_plain(getattr(value, name)) for name in kept))
    return value
