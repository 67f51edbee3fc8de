"""The outline of a file, the symbols of a workspace, what may be folded, and the files that `use` leads to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lsprotocol import types

from skillc.language.kinds import KINDS
from skillc.lsp.positions import Positions
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

_KINDS: Mapping[str, types.SymbolKind] = {
    "task": types.SymbolKind.Interface,
    "input": types.SymbolKind.Field,
    "output": types.SymbolKind.Field,
    "field": types.SymbolKind.Field,
    "skill": types.SymbolKind.Class,
    "section": types.SymbolKind.String,
    "model": types.SymbolKind.Object,
    "data": types.SymbolKind.Array,
    "metric": types.SymbolKind.Number,
    "goal": types.SymbolKind.Number,
    "rubric": types.SymbolKind.String,
    "optimize": types.SymbolKind.Struct,
    "budget": types.SymbolKind.Struct,
    "gate": types.SymbolKind.Boolean,
    "require": types.SymbolKind.Boolean,
    "use": types.SymbolKind.Module,
}
_FOUND_LIMIT = 1_000


def document_symbols(project: Project, analysis: Analysis) -> list[types.DocumentSymbol]:
    """The tree of what a file declares."""
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
    return types.DocumentSymbol(
        name=name,
        kind=_KINDS[kind],
        range=positions.range(span),
        selection_range=positions.range(chosen),
        detail=detail,
        children=children or [],
    )


def workspace_symbols(project: Project, query: str) -> list[types.WorkspaceSymbol]:
    """What the programs of the workspace declare, where the query's characters occur in the name in their order."""
    found: list[types.WorkspaceSymbol] = []
    for analysis in project.mentioning(""):
        for link in analysis.links:
            symbol = link.symbol
            if link.declares and symbol.kind in _KINDS and _matches(query, symbol.name):
                place = project.location(analysis.source, link.span)
                kind = _KINDS[symbol.kind]
                shown = types.WorkspaceSymbol(location=place, name=symbol.name, kind=kind, container_name=symbol.kind)
                found.append(shown)
                if len(found) >= _FOUND_LIMIT:
                    return found
    return found


def _matches(query: str, name: str) -> bool:
    left = iter(name.casefold())
    return all(character in left for character in query.casefold())


def folding_ranges(project: Project, analysis: Analysis) -> list[types.FoldingRange]:
    """Blocks, texts and runs of comments."""
    positions = project.positions(analysis.source)
    found: list[types.FoldingRange] = []
    for span, kind in _foldable(analysis):
        first, last = positions.position(span.start).line, positions.position(span.end).line
        # The closing line stays in sight.
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
    """Where `use` leads."""
    positions = project.positions(analysis.source)
    return [
        types.DocumentLink(positions.range(link.span), project.uri(link.symbol.file))
        for link in analysis.links
        if link.symbol.kind == "file" and link.symbol.file is not None
    ]
