"""Where a name is declared, and where it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol import types

from skillc.language.links import Link
from skillc.language.symbols import Symbol
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax.source import Source, Span


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a symbol is spoken of."""

    source: Source
    link: Link


def link_at(analysis: Analysis, offset: int) -> Link | None:
    """The name at a place, or right before it; of two, the one that is declared somewhere."""
    found = [link for link in analysis.links if link.span.start <= offset <= link.span.end]
    found.sort(key=lambda link: (link.symbol.file is None, link.span.end == offset, link.span.end - link.span.start))
    return found[0] if found else None


def definition(project: Project, analysis: Analysis, offset: int) -> types.Location | None:
    """Where the name at a place is declared; from the name of a module it goes on into the file."""
    link = link_at(analysis, offset)
    if link is None:
        return None
    symbol = link.symbol
    if symbol.kind == "module" and link.declares:
        target = next((each.symbol for each in analysis.links if _leads(each, link)), None)
        symbol = target or symbol
    if symbol.span is None or symbol.source is None:
        return None
    return project.location(symbol.source, symbol.span)


def _leads(each: Link, alias: Link) -> bool:
    """Whether a link is the path of the `use` that declares an alias."""
    return each.symbol.kind == "file" and each.symbol.origin is alias.symbol.origin and each.symbol.origin is not None


def uses(project: Project, symbol: Symbol, analysis: Analysis) -> Iterator[Use]:
    """Every place of the workspace where a symbol is spoken of, its declaration included, each once."""
    if symbol.file is None:
        for link in analysis.links:
            if link.symbol == symbol:
                yield Use(analysis.source, link)
        return
    seen: set[tuple[str, Span]] = set()
    for each in [analysis, *project.mentioning(symbol.name)]:
        for link in each.links:
            if link.symbol == symbol and (each.source.name, link.span) not in seen:
                seen.add((each.source.name, link.span))
                yield Use(each.source, link)
    if symbol.source is not None and symbol.span is not None and (symbol.source.name, symbol.span) not in seen:
        yield Use(symbol.source, Link(symbol.span, symbol, declares=True))


def references(project: Project, analysis: Analysis, offset: int, *, declaration: bool) -> list[types.Location]:
    """Where the name at a place is used."""
    link = link_at(analysis, offset)
    if link is None:
        return []
    return [
        project.location(use.source, use.link.span)
        for use in uses(project, link.symbol, analysis)
        if declaration or not use.link.declares
    ]


def highlights(project: Project, analysis: Analysis, offset: int) -> list[types.DocumentHighlight]:
    """The same name in the same file."""
    link = link_at(analysis, offset)
    if link is None:
        return []
    positions = project.positions(analysis.source)
    kinds = types.DocumentHighlightKind
    return [
        types.DocumentHighlight(positions.range(each.span), kinds.Write if each.declares else kinds.Read)
        for each in analysis.links
        if each.symbol == link.symbol
    ]
