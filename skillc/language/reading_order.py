"""The order in which metrics are lowered: each after those that it reads, so that no row of them is too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from skillc.syntax import nodes


def in_order(expressions: Mapping[str, nodes.Expression | None]) -> list[str]:
    """The names, each behind those that stand in its expression, as far as there is no circle; else in their order.

    A name counts wherever it stands as a value, whatever it means there: this is an order, and no more.
    """
    found: dict[str, None] = {}
    begun: set[str] = set()
    for first in expressions:
        waiting = [] if first in begun else [(first, _read(expressions, first))]
        begun.add(first)
        while waiting:
            name, read = waiting[-1]
            following = next((each for each in read if each not in begun), None)
            if following is None:
                found[name] = None
                waiting.pop()
            else:
                begun.add(following)
                waiting.append((following, _read(expressions, following)))
    return list(found)


def _read(expressions: Mapping[str, nodes.Expression | None], name: str) -> Iterator[str]:
    """The names of others in the expression of one."""
    waiting: list[object] = [expressions[name]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Reference):
            if node.name in expressions:
                yield node.name
        elif isinstance(node, tuple):
            waiting += reversed(node)
        elif isinstance(node, nodes.Node):
            waiting += (getattr(node, field.name) for field in reversed(fields(node)))
