"""Types of task and data fields."""

from __future__ import annotations

from typing import Literal, NoReturn, cast

from skillc.diagnostics.diagnostic import Report
from skillc.diagnostics.suggest import meant
from skillc.language.checked import FieldType
from skillc.language.types import Broken
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed

TYPES = ("text", "bool", "number", "integer", "json", "file", "image", "list")

_SYNONYMS = {
    "str": "text",
    "string": "text",
    "float": "number",
    "double": "number",
    "int": "integer",
    "boolean": "bool",
    "array": "list[text]",
    "dict": "json",
    "object": "json",
    "null": "none",
    "None": "none",
}


def field_type(report: Report, source: Source, node: nodes.TypeExpression) -> FieldType:
    """The meaning of a written type.

    Raises:
        Broken: it has none; the error has been reported.
    """
    return _Reader(report, source).read(node)


class _Reader:
    def __init__(self, report: Report, source: Source) -> None:
        self._report = report
        self._source = source

    def read(self, node: nodes.TypeExpression) -> FieldType:
        if isinstance(node, nodes.LabelType):
            return FieldType("labels", (node.value,))
        if isinstance(node, nodes.NamedType):
            return self._named(node)
        return self._union(node)

    def _named(self, node: nodes.NamedType) -> FieldType:
        if node.name == "none":
            self._fail(node.span, "`none` alone is no type", "write `text | none`")
        if node.name not in TYPES:
            types = listed(TYPES)
            right = _SYNONYMS.get(node.name)
            hint = f"write `{right}`" if right else meant(node.name, TYPES) or f"there is {types}, and labels in quotes"
            self._fail(node.span, f"unknown type `{node.name}`", hint)
        if node.name == "list":
            return FieldType("list", item=self.read(node.item) if node.item else FieldType("text"))
        if node.item is not None:
            self._fail(node.span, f"`{node.name}` holds no items", "only a `list` does: `list[text]`")
        return FieldType(cast('Literal["text"]', node.name))

    def _union(self, node: nodes.UnionType) -> FieldType:
        labels: dict[str, None] = {}
        others: list[nodes.NamedType] = []
        optional = False
        for option in node.options:
            if isinstance(option, nodes.LabelType):
                if option.value in labels:
                    self._report.add(
                        "SK203",
                        self._source,
                        option.span,
                        f'the label "{option.value}" is declared twice',
                        hint="remove one",
                    )
                else:
                    labels[option.value] = None
            elif option.name == "none" and option.item is None:
                optional = True
            else:
                others.append(option)
        if others and (labels or len(others) > 1):
            hint = "a type is labels, or one type, either of them with `| none`"
            self._fail(node.span, "these can't be joined into one type", hint)
        if not others and not labels:
            self._fail(node.span, "`none` alone is no type", "write `text | none`")
        base = FieldType("labels", tuple(labels)) if labels else self._named(others[0])
        return FieldType(base.kind, base.labels, base.item, optional)

    def _fail(self, span: Span, message: str, hint: str | None) -> NoReturn:
        self._report.add("SK216", self._source, span, message, hint=hint)
        raise Broken
