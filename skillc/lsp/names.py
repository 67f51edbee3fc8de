"""Where a name is declared and used; renaming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lsprotocol import types

from skillc.diagnostics.diagnostic import Diagnostic, Severity
from skillc.errors import SkillcError
from skillc.files import shipped_folder
from skillc.language.links import Link, Symbol
from skillc.language.statements import KindDeclaration
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax.source import Source, Span


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a symbol is named."""

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
    """Find every place of the workspace where a symbol is named, its declaration included, each once."""
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


# ---- renaming -------------------------------------------------------------------------------------


RESERVED = ("and", "or", "not", "use", "language", "none")
_FIELDS = ("input", "output", "field")
_RENAMED = frozenset(
    [
        *("metric", "goal", "gate", "require", "rubric", "model", "skill", "section", "optimize", "budget"),
        *_FIELDS,
        *("module", "parameter"),
    ]
)
_ROLES = ("target", "optimizer")


class RefusedError(SkillcError):
    """A rename is refused; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters of a file that are replaced."""

    source: Source
    span: Span
    text: str


def renamable(project: Project, analysis: Analysis, offset: int) -> Link:
    """The name at a place.

    Raises:
        RefusedError: there is none, or it is not the user's to change.
    """
    link = link_at(analysis, offset)
    if link is None:
        raise RefusedError("there is no name here that something declares")
    symbol = link.symbol
    name = symbol.name
    if symbol.kind == "label":
        raise RefusedError(f'"{name}" is a value in the data, so a new name would no longer match it')
    if symbol.kind in ("heading", "file"):
        what = "a heading" if symbol.kind == "heading" else "a file"
        raise RefusedError(f"`{name}` is {what}; rename it where it stands")
    if symbol.kind not in _RENAMED or symbol.file is None:
        raise RefusedError(f"`{name}` is a word of the language")
    if symbol.kind == "model" and name in _ROLES:
        raise RefusedError(f"`{name}` is a role that every compile asks for")
    if symbol.source is not None and _is_standard(symbol.source):
        raise RefusedError(f"`{name}` belongs to the standard library")
    if not project.inside(symbol.file):
        raise RefusedError(f"`{name}` is declared outside of this workspace")
    return link


def rename(project: Project, analysis: Analysis, offset: int, name: str) -> types.WorkspaceEdit:
    """The edits of all files.

    Raises:
        RefusedError: the new name is none, is taken, or would mean something else somewhere.
    """
    link = renamable(project, analysis, offset)
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits(project, analysis, link.symbol, name):
        place = project.positions(edit.source).range(edit.span)
        changes.setdefault(project.uri(edit.source.name), []).append(types.TextEdit(place, edit.text))
    return types.WorkspaceEdit(changes=changes)


def edits(project: Project, analysis: Analysis, symbol: Symbol, name: str) -> list[Edit]:
    """What changes where a symbol gets another name.

    Raises:
        RefusedError: see `rename`.
    """
    _check_name(name)
    if name == symbol.name:
        return []
    found: list[Edit] = []
    for use in uses(project, symbol, analysis):
        if not project.inside(use.source.name):
            raise RefusedError(f"`{symbol.name}` is used in `{use.source.name}`, outside of this workspace")
        found.append(_edit(use.source, use.link, name))
    found += _column(symbol)
    _check_meaning(project, symbol, found)
    return found


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise RefusedError(f"`{name}` is no name: a name is made of letters, digits and `_`")
    if name in RESERVED:
        raise RefusedError(f"`{name}` is a word of the language and can't be a name")


def _edit(source: Source, link: Link, name: str) -> Edit:
    if link.symbol.kind == "module" and link.declares and source.text[link.span.start - 1 : link.span.start] == ".":
        # The last word of a path is the module's name as long as it has no other.
        return Edit(source, Span(link.span.end, link.span.end), f" as {name}")
    return Edit(source, link.span, name)


def _column(symbol: Symbol) -> list[Edit]:
    """A field without a `column` is read from the column of its name, and goes on being."""
    decl = symbol.origin
    if symbol.kind not in _FIELDS or not isinstance(decl, KindDeclaration) or symbol.source is None:
        return []
    block = decl.node.block
    if block is None:
        end = decl.node.span.end
        return [Edit(symbol.source, Span(end, end), f' {{ column = "{symbol.name}" }}')]
    for statement in block.statements:
        words = getattr(statement, "words", ())
        if words and words[-1].text == "column":
            return []
    inside = symbol.source.text[block.span.start + 1 : block.span.end - 1]
    start = block.span.start + 1
    if not inside.strip():
        return [Edit(symbol.source, Span(start, start), f' column = "{symbol.name}"')]
    return [Edit(symbol.source, Span(start, start), f' column = "{symbol.name}";')]


def _check_meaning(project: Project, symbol: Symbol, found: Iterable[Edit]) -> None:
    """After the edits there is no error that was not there before, and every use still means the same thing."""
    by_file: dict[str, list[Edit]] = {}
    for edit in found:
        by_file.setdefault(edit.source.name, []).append(edit)
    texts = {name: applied(each[0].source.text, each) for name, each in by_file.items()}
    before = {name: project.analysis(name) for name in by_file}
    for each in project.mentioning(symbol.name):
        if not each.readable and symbol.file in each.read:
            shown = each.source.name
            raise RefusedError(f"`{shown}` has mistakes, so that some uses can't be seen; mend them first")
    after = project.with_texts(texts)
    for name, analysis in before.items():
        new = after.analysis(name)
        worse = _new_errors(analysis, new)
        if worse:
            raise RefusedError(f"`{symbol.name}` can't be renamed: {worse[0].message}")
        if _shape(analysis) != _shape(new):
            raise RefusedError(f"`{symbol.name}` can't be renamed: the new name means something else here")


def applied(text: str, found: Iterable[Edit]) -> str:
    """A text after edits that do not overlap."""
    for edit in sorted(found, key=lambda each: each.span, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def _new_errors(before: Analysis, after: Analysis) -> list[Diagnostic]:
    left = Counter(each.code for each in before.checked.diagnostics)
    found = []
    for each in after.checked.diagnostics:
        left[each.code] -= 1
        if left[each.code] < 0 and each.severity is Severity.ERROR:
            found.append(each)
    return found


def _shape(analysis: Analysis) -> list[tuple[object, ...]]:
    """Which links refer to the same symbol, apart from names and places."""
    links = [link for link in analysis.links if not _is_column(link)]
    numbers: dict[Symbol, int] = {}
    return [(link.declares, link.symbol.kind, numbers.setdefault(link.symbol, len(numbers))) for link in links]


def _is_column(link: Link) -> bool:
    return link.symbol.kind == "setting" and link.symbol.name == "column"


def _is_standard(source: Source) -> bool:
    return source.name.startswith(str(shipped_folder("stdlib")))
