"""Requests about a whole document: outline, folding, links of `use`, semantic tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lsprotocol import types

from skillc.language.kinds import KINDS
from skillc.language.links import Link
from skillc.language.statements import KindDeclaration
from skillc.lsp.offer import MODIFIERS, TYPES
from skillc.lsp.workspace import Analysis, Positions, Project
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

_KIND = types.SymbolKind
_KINDS: Mapping[str, types.SymbolKind] = {
    "task": _KIND.Interface,
    "skill": _KIND.Class,
    "model": _KIND.Object,
    "data": _KIND.Array,
    "use": _KIND.Module,
    **dict.fromkeys(("input", "output", "field"), _KIND.Field),
    **dict.fromkeys(("section", "rubric", "criterion"), _KIND.String),
    **dict.fromkeys(("metric", "goal"), _KIND.Number),
    **dict.fromkeys(("optimize", "budget", "evolve"), _KIND.Struct),
    **dict.fromkeys(("gate", "require"), _KIND.Boolean),
}
_FOUND_LIMIT = 1_000


def document_symbols(project: Project, analysis: Analysis) -> list[types.DocumentSymbol]:
    """Return the declarations of a file as a tree."""
    positions = project.positions(analysis.source)
    return list(_symbols(analysis.source, positions, analysis.work.program.statements))


def _symbols(
    source: Source, positions: Positions, statements: tuple[nodes.Statement, ...]
) -> Iterator[types.DocumentSymbol]:
    for statement in statements:
        if isinstance(statement, nodes.Header):
            continue
        if isinstance(statement, nodes.Use):
            name = statement.alias or (statement.path[-1] if statement.path else None)
            if name is not None:
                written = source.slice(statement.span)
                yield _symbol(positions, "use", name.text, written, statement.span, name.span)
            continue
        yield from _declared(source, positions, statement)


def _declared(source: Source, positions: Positions, node: nodes.Declaration) -> Iterator[types.DocumentSymbol]:
    words = [word.text for word in node.words]
    at = next((i for i, word in enumerate(words[:2]) if word in KINDS), None)
    if at is None:
        return
    kind, named = KINDS[words[at]], len(words) > at + 1
    name = node.words[at + 1] if named else node.words[at]
    children = list(_symbols(source, positions, node.block.statements)) if node.block is not None else []
    detail = " ".join([*words[: at + 1], *words[at + 2 :]]) if named else ""
    yield _symbol(positions, kind.word, name.text, detail, node.span, name.span, children)


def _symbol(
    positions: Positions,
    kind: str,
    name: str,
    detail: str,
    span: Span,
    chosen: Span,
    children: list[types.DocumentSymbol] | None = None,
) -> types.DocumentSymbol:
    whole, selected = positions.range(span), positions.range(chosen)
    return types.DocumentSymbol(name, _KINDS[kind], whole, selected, detail, children=children or [])


def workspace_symbols(project: Project, query: str) -> list[types.WorkspaceSymbol]:
    """Return declarations of the workspace whose names contain the characters of the query in order."""
    found: list[types.WorkspaceSymbol] = []
    for analysis in project.mentioning(""):
        for link in analysis.links:
            symbol = link.symbol
            if link.declares and symbol.kind in _KINDS and _matches(query, symbol.name):
                place, kind = project.location(analysis.source, link.span), _KINDS[symbol.kind]
                found.append(types.WorkspaceSymbol(place, symbol.name, kind, container_name=symbol.kind))
                if len(found) >= _FOUND_LIMIT:
                    return found
    return found


def _matches(query: str, name: str) -> bool:
    left = iter(name.casefold())
    return all(character in left for character in query.casefold())


def folding_ranges(project: Project, analysis: Analysis) -> list[types.FoldingRange]:
    """Return blocks, texts and groups of comments."""
    positions = project.positions(analysis.source)
    found: list[types.FoldingRange] = []
    for span, kind in _foldable(analysis):
        first, last = positions.position(span.start).line, positions.position(span.end).line
        # The closing line stays visible.
        last -= kind is None
        if last > first:
            found.append(types.FoldingRange(first, last, kind=kind))
    return found


def _foldable(analysis: Analysis) -> Iterator[tuple[Span, types.FoldingRangeKind | None]]:
    waiting = list(analysis.work.program.statements)
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, nodes.Use):
            continue
        if isinstance(statement.value, nodes.Text):
            yield statement.value.span, None
        if statement.block is not None:
            yield statement.block.span, None
            waiting += statement.block.statements
    run: Span | None = None
    text = analysis.source.text
    for item in analysis.work.program.comments:
        if run is not None and not item.blank and not text[run.end : item.span.start].strip():
            run = run.to(item.span)
            yield run, types.FoldingRangeKind.Comment
        else:
            run = item.span


def document_links(project: Project, analysis: Analysis) -> list[types.DocumentLink]:
    """Return the files that `use` imports."""
    positions = project.positions(analysis.source)
    files = ((link.span, link.symbol.file) for link in analysis.links if link.symbol.kind == "file")
    return [types.DocumentLink(positions.range(span), project.uri(file)) for span, file in files if file is not None]


# ---- semantic tokens ------------------------------------------------------------------------------


_DECLARATION, _READONLY, _DOCUMENTATION, _LIBRARY = (1 << i for i in range(len(MODIFIERS)))
_OF_KIND: Mapping[str, tuple[str, int]] = {
    "statement": ("keyword", 0),
    "module": ("namespace", 0),
    "type": ("type", _LIBRARY),
    "setting": ("property", _LIBRARY),
    "option": ("parameter", _LIBRARY),
    "parameter": ("parameter", 0),
    "state": ("variable", _READONLY | _LIBRARY),
    "word": ("enumMember", _LIBRARY),
    "function": ("function", _LIBRARY),
    "label": ("enumMember", 0),
    **dict.fromkeys(("input", "output", "field"), ("property", 0)),
    **dict.fromkeys(("heading", "skill", "section"), ("class", 0)),
    **dict.fromkeys(("model", "rubric", "criterion", "optimize", "budget", "evolve"), ("variable", 0)),
    **dict.fromkeys(("metric", "goal", "gate", "require"), ("variable", 0)),
}


def semantic_tokens(project: Project, analysis: Analysis, within: Span | None = None) -> types.SemanticTokens:
    """Return the encoded tokens of a file, or those that touch a span."""
    positions = project.positions(analysis.source)
    data: list[int] = []
    line = character = 0
    for span, kind, modifiers in _distinct(analysis):
        if within is not None and (span.end <= within.start or span.start >= within.end):
            continue
        for piece in positions.lines(span):
            at = positions.position(piece.start)
            column = at.character - (character if at.line == line else 0)
            data += [at.line - line, column, positions.length(piece), TYPES.index(kind), modifiers]
            line, character = at.line, at.character
    return types.SemanticTokens(data)


def _distinct(analysis: Analysis) -> Iterator[tuple[Span, str, int]]:
    """Yield all tokens in order; of overlapping ones, the first, or else the longer."""
    comments = analysis.work.program.comments
    found = [*_linked(analysis), *_literals(analysis)]
    found += [(each.span, "comment", _DOCUMENTATION if each.documents else 0) for each in comments]
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
        decl = link.symbol.origin
        if isinstance(decl, KindDeclaration) and decl.node.parameters is not None:
            kind = "function"
        yield link.span, kind, modifiers | (_DECLARATION if link.declares else 0)


def _path(analysis: Analysis, link: Link) -> Iterator[tuple[Span, str, int]]:
    """Yield each word of a path such as `std.gates`."""
    start = link.span.start
    for word in analysis.source.slice(link.span).split("."):
        yield Span(start, start + len(word)), "namespace", 0
        start += len(word) + 1


def _literals(analysis: Analysis) -> Iterator[tuple[Span, str, int]]:
    """Yield strings, numbers with units, and `use`. Texts are left to the editor, which highlights them as markdown."""
    before = ""
    for token in analysis.work.tokens:
        span = Span(token.start, token.end)
        if token.kind == "STRING":
            yield span, "string", 0
        elif token.kind in ("NUMBER", "MONEY"):
            yield span, "number", 0
        elif token.kind == "NAME" and before == "NUMBER":
            yield span, "type", _LIBRARY
        elif token.kind == "USE" and before in ("", "_END", "LBRACE"):
            yield span, "keyword", 0
        before = token.kind
