"""Go to definition, references, highlights and rename."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lsprotocol import types

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Severity
from skillc.diagnostics.fixing import apply_fixes
from skillc.errors import SkillcError
from skillc.files import shipped_folder
from skillc.language.links import Link, Symbol
from skillc.language.statements import KindDeclaration
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax.source import Source, Span


def link_at(analysis: Analysis, offset: int) -> Link | None:
    """Return the name at an offset, or directly before it; of two, the one with a declaration."""
    found = [link for link in analysis.links if link.span.start <= offset <= link.span.end]
    found.sort(key=lambda link: (link.symbol.file is None, link.span.end == offset, link.span.end - link.span.start))
    return found[0] if found else None


def definition(project: Project, analysis: Analysis, offset: int) -> types.Location | None:
    """Return where the name at an offset is declared; for the name of a module, its file."""
    link = link_at(analysis, offset)
    if link is None:
        return None
    symbol = link.symbol
    if symbol.kind == "module" and link.declares:
        # The path of the `use` that declares an alias has the same origin.
        origin = symbol.origin
        paths = (each.symbol for each in analysis.links if each.symbol.kind == "file" and origin is not None)
        symbol = next((each for each in paths if each.origin is origin), symbol)
    if symbol.span is None or symbol.source is None:
        return None
    return project.location(symbol.source, symbol.span)


def occurrences(project: Project, symbol: Symbol, analysis: Analysis) -> Iterator[tuple[Source, Link]]:
    """Yield every occurrence of a symbol in the workspace once, including its declaration."""
    if symbol.file is None:
        for link in analysis.links:
            if link.symbol == symbol:
                yield analysis.source, link
        return
    seen: set[tuple[str, Span]] = set()
    for each in [analysis, *project.mentioning(symbol.name)]:
        for link in each.links:
            if link.symbol == symbol and (each.source.name, link.span) not in seen:
                seen.add((each.source.name, link.span))
                yield each.source, link
    if symbol.source is not None and symbol.span is not None and (symbol.source.name, symbol.span) not in seen:
        yield symbol.source, Link(symbol.span, symbol, declares=True)


def references(project: Project, analysis: Analysis, offset: int, *, declaration: bool) -> list[types.Location]:
    """Return where the name at an offset is used."""
    link = link_at(analysis, offset)
    if link is None:
        return []
    return [
        project.location(source, use.span)
        for source, use in occurrences(project, link.symbol, analysis)
        if declaration or not use.declares
    ]


def highlights(project: Project, analysis: Analysis, offset: int) -> list[types.DocumentHighlight]:
    """Return the occurrences of the name at an offset in its file."""
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
        *("criterion", "module", "parameter"),
    ]
)
_ROLES = ("target", "optimizer")
_STDLIB = str(shipped_folder("stdlib"))


FileEdit = tuple[Source, Fix]


class RefusedError(SkillcError):
    """A rename is refused; the message is the reason."""


def renamable(project: Project, analysis: Analysis, offset: int) -> Link:
    """Return the name at an offset.

    Raises:
        RefusedError: there is none, or the user can't change it.
    """
    link = link_at(analysis, offset)
    if link is None:
        raise RefusedError("no declared name is at this position")
    symbol = link.symbol
    name = symbol.name
    if symbol.kind == "label":
        raise RefusedError(f'"{name}" is a value in the data, so a new name would no longer match it')
    if symbol.kind in ("heading", "file"):
        what = "a heading" if symbol.kind == "heading" else "a file"
        raise RefusedError(f"`{name}` is {what}; rename the original")
    if symbol.kind not in _RENAMED or symbol.file is None:
        raise RefusedError(f"`{name}` is a word of the language")
    if symbol.kind == "model" and name in _ROLES:
        raise RefusedError(f"`{name}` is a role that every compile needs")
    if symbol.source is not None and symbol.source.name.startswith(_STDLIB):
        raise RefusedError(f"`{name}` belongs to the standard library")
    if not project.inside(symbol.file):
        raise RefusedError(f"`{name}` is declared outside this workspace")
    return link


def rename(project: Project, analysis: Analysis, offset: int, name: str) -> types.WorkspaceEdit:
    """Return the edits of all files.

    Raises:
        RefusedError: the new name is invalid or taken, or would change the meaning of a program.
    """
    link = renamable(project, analysis, offset)
    changes: dict[str, list[types.TextEdit]] = {}
    for source, fix in edits(project, analysis, link.symbol, name):
        place = project.positions(source).range(fix.span)
        changes.setdefault(project.uri(source.name), []).append(types.TextEdit(place, fix.text))
    return types.WorkspaceEdit(changes=changes)


def edits(project: Project, analysis: Analysis, symbol: Symbol, name: str) -> list[FileEdit]:
    """Return the edits that rename a symbol.

    Raises:
        RefusedError: see `rename`.
    """
    if not name.isidentifier():
        raise RefusedError(f"`{name}` is not a name: a name consists of letters, digits and `_`")
    if name in RESERVED:
        raise RefusedError(f"`{name}` is a word of the language and can't be a name")
    if name == symbol.name:
        return []
    found: list[FileEdit] = []
    for source, use in occurrences(project, symbol, analysis):
        if not project.inside(source.name):
            raise RefusedError(f"`{symbol.name}` is used in `{source.name}`, outside this workspace")
        found.append((source, _edit(source, use, name)))
    found += _column(symbol)
    _check_meaning(project, symbol, found)
    return found


def _edit(source: Source, link: Link, name: str) -> Fix:
    if link.symbol.kind == "module" and link.declares and source.text[link.span.start - 1 : link.span.start] == ".":
        # Without an alias the last word of the path is the module's name.
        return Fix(Span(link.span.end, link.span.end), f" as {name}")
    return Fix(link.span, name)


def _column(symbol: Symbol) -> list[FileEdit]:
    """Add `column` to a renamed field without one, so that it is still read from the same column."""
    decl = symbol.origin
    if symbol.kind not in _FIELDS or not isinstance(decl, KindDeclaration) or symbol.source is None:
        return []
    block, column = decl.node.block, f'column = "{symbol.name}"'
    if block is None:
        end = decl.node.span.end
        return [(symbol.source, Fix(Span(end, end), f" {{ {column} }}"))]
    if any(words and words[-1].text == "column" for s in block.statements if (words := getattr(s, "words", ()))):
        return []
    start = block.span.start + 1
    empty = not symbol.source.text[start : block.span.end - 1].strip()
    return [(symbol.source, Fix(Span(start, start), f" {column}" if empty else f" {column};"))]


def texts_after(found: Iterable[FileEdit]) -> dict[str, str]:
    """Apply the edits of several files; return the new text of each."""
    fixes: dict[str, tuple[Source, list[Fix]]] = {}
    for source, fix in found:
        fixes.setdefault(source.name, (source, []))[1].append(fix)
    return {name: apply_fixes(source, each).text for name, (source, each) in fixes.items()}


def _check_meaning(project: Project, symbol: Symbol, found: Iterable[FileEdit]) -> None:
    """Raise if the edits cause new errors or change the meaning of a name."""
    texts = texts_after(found)
    before = {name: project.analysis(name) for name in texts}
    for each in project.mentioning(symbol.name):
        if not each.readable and symbol.file in each.read:
            shown = each.source.name
            raise RefusedError(f"`{shown}` has syntax errors that may hide uses of the name; fix them first")
    after = project.with_texts(texts)
    for name, analysis in before.items():
        new = after.analysis(name)
        worse = _new_errors(analysis, new)
        if worse:
            raise RefusedError(f"`{symbol.name}` can't be renamed: {worse[0].message}")
        if _shape(analysis) != _shape(new):
            raise RefusedError(f"`{symbol.name}` can't be renamed: the new name already has a meaning here")


def _new_errors(before: Analysis, after: Analysis) -> list[Diagnostic]:
    allowed = Counter(each.code for each in before.checked.diagnostics)
    found = []
    for each in after.checked.diagnostics:
        allowed[each.code] -= 1
        if allowed[each.code] < 0 and each.severity is Severity.ERROR:
            found.append(each)
    return found


def _shape(analysis: Analysis) -> list[tuple[object, ...]]:
    """Return which links refer to the same symbol, without names and positions."""
    links = [link for link in analysis.links if (link.symbol.kind, link.symbol.name) != ("setting", "column")]
    numbers: dict[Symbol, int] = {}
    return [(link.declares, link.symbol.kind, numbers.setdefault(link.symbol, len(numbers))) for link in links]
