"""Semantic tokens: what each word of a file is, from the syntax tree and the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lsprotocol import types

from skillc.language.links import Link
from skillc.language.statements import Stated
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax import nodes
from skillc.syntax.source import Span

TYPES = (
    "namespace",
    "type",
    "class",
    "enumMember",
    "parameter",
    "variable",
    "property",
    "function",
    "keyword",
    "string",
    "number",
    "comment",
    "operator",
)
MODIFIERS = ("declaration", "readonly", "documentation", "defaultLibrary")
LEGEND = types.SemanticTokensLegend(list(TYPES), list(MODIFIERS))

_DECLARATION, _READONLY, _DOCUMENTATION, _LIBRARY = (1 << i for i in range(len(MODIFIERS)))
_OF_KIND: Mapping[str, tuple[str, int]] = {
    "statement": ("keyword", 0),
    "module": ("namespace", 0),
    "type": ("type", _LIBRARY),
    "input": ("property", 0),
    "output": ("property", 0),
    "field": ("property", 0),
    "setting": ("property", _LIBRARY),
    "option": ("parameter", _LIBRARY),
    "parameter": ("parameter", 0),
    "state": ("variable", _READONLY | _LIBRARY),
    "word": ("enumMember", _LIBRARY),
    "function": ("function", _LIBRARY),
    "label": ("enumMember", 0),
    "heading": ("class", 0),
    "skill": ("class", 0),
    "section": ("class", 0),
    "model": ("variable", 0),
    "rubric": ("variable", 0),
    "optimize": ("variable", 0),
    "budget": ("variable", 0),
    "metric": ("variable", 0),
    "goal": ("variable", 0),
    "gate": ("variable", 0),
    "require": ("variable", 0),
}


def semantic_tokens(project: Project, analysis: Analysis, within: Span | None = None) -> types.SemanticTokens:
    """The tokens of a file, or of those parts that touch a span, coded as the protocol wants them."""
    positions = project.positions(analysis.source)
    data: list[int] = []
    line = character = 0
    for span, kind, modifiers in _distinct(analysis):
        if within is not None and (span.end <= within.start or span.start >= within.end):
            continue
        for piece in positions.lines(span):
            at = positions.position(piece.start)
            same = at.line == line
            data += [
                at.line - line,
                at.character - (character if same else 0),
                positions.length(piece),
                TYPES.index(kind),
                modifiers,
            ]
            line, character = at.line, at.character
    return types.SemanticTokens(data)


def _distinct(analysis: Analysis) -> Iterator[tuple[Span, str, int]]:
    """All tokens in the order of the file; where two overlap, the one that begins first, of those the longer."""
    found = [*_linked(analysis), *_trivia(analysis), *_literals(analysis)]
    found.sort(key=lambda each: (each[0].start, -each[0].end))
    end = 0
    for token in found:
        if token[0].start >= end and token[0].end > token[0].start:
            yield token
            end = token[0].end


def _linked(analysis: Analysis) -> Iterator[tuple[Span, str, int]]:
    for link in analysis.links:
        if link.symbol.kind == "file":
            if not analysis.source.text.startswith('"', link.span.start):
                yield from _path(analysis, link)
            continue
        kind, modifiers = _OF_KIND[link.symbol.kind]
        stated = link.symbol.origin
        if isinstance(stated, Stated) and stated.node.parameters is not None:
            kind = "function"
        yield link.span, kind, modifiers | (_DECLARATION if link.declares else 0)


def _path(analysis: Analysis, link: Link) -> Iterator[tuple[Span, str, int]]:
    """`std.gates`: each word of it; the last may be the module's name too, and is told once."""
    start = link.span.start
    for word in analysis.source.slice(link.span).split("."):
        yield Span(start, start + len(word)), "namespace", 0
        start += len(word) + 1


def _trivia(analysis: Analysis) -> Iterator[tuple[Span, str, int]]:
    for item in analysis.work.program.comments:
        yield item.span, "comment", _DOCUMENTATION if item.documents else 0


def _literals(analysis: Analysis) -> Iterator[tuple[Span, str, int]]:
    waiting: list[object] = list(analysis.work.program.statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Text):
            # Left to the grammar of the editor, which shows markdown in it.
            continue
        if isinstance(node, nodes.String):
            yield node.span, "string", 0
        elif isinstance(node, nodes.Quantity | nodes.Money):
            unit = node.unit if isinstance(node, nodes.Quantity) else None
            text = analysis.source.slice(node.span)
            # Parentheses around a number belong to its span.
            lead = len(text) - len(text.lstrip("( \t\r\n"))
            end = unit.span.start if unit is not None else node.span.end
            shown = analysis.source.text[node.span.start + lead : end].rstrip(") \t\r\n")
            start = node.span.start + lead
            yield Span(start, start + len(shown)), "number", 0
            if unit is not None and unit.text != "%":
                yield unit.span, "type", _LIBRARY
        elif isinstance(node, nodes.Use):
            yield Span(node.span.start, node.span.start + len("use")), "keyword", 0
            waiting.append(node.file)
        else:
            waiting += _inside(node)


def _inside(node: object) -> list[object]:
    if isinstance(node, nodes.Declaration | nodes.Header):
        block = node.block.statements if node.block is not None else ()
        parameters = (node.parameters or ()) if isinstance(node, nodes.Declaration) else ()
        return [node.value, *block, *(parameter.default for parameter in parameters)]
    if isinstance(node, nodes.List):
        return list(node.items)
    if isinstance(node, nodes.Ratio):
        return list(node.parts)
    if isinstance(node, nodes.Call):
        return [node.function, *(argument.value for argument in node.arguments)]
    if isinstance(node, nodes.Unary):
        return [node.operand]
    if isinstance(node, nodes.Binary):
        return [node.left, node.right]
    if isinstance(node, nodes.Compare | nodes.Logic):
        return list(node.operands)
    return [node.of] if isinstance(node, nodes.Member) else []
