"""Completion: the parser determines the valid tokens, the tables and the program the names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types

from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS
from skillc.gates.units import UNITS
from skillc.language.forms import Form, SettingKind
from skillc.language.functions import PARAMETER_TYPES
from skillc.language.kinds import FIELD_TYPES, STATES, Kind, kinds_in
from skillc.language.links import fields_in, metrics_in
from skillc.language.modules import Module
from skillc.lsp.cursor import Cursor, cursor_at, kind_of, setting_of
from skillc.lsp.hover import builtin_text, setting_text
from skillc.lsp.offers import BY_TAKES, ITEM, Offer, called, declared, files, options, taken, used
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax.source import Source, Span

_PLURAL_UNITS = tuple(unit for unit in UNITS if f"{unit}s" not in UNITS and unit != "%")


def completion(
    project: Project, analysis: Analysis, source: Source, offset: int, *, snippets: bool
) -> types.CompletionList:
    """Return the completions at an offset of the current text; the analysis may be of an earlier text."""
    cursor = cursor_at(source.text, offset)
    begins = cursor.start + 1 if cursor.section == "string" else cursor.start
    place = project.positions(source).range(Span(begins, offset))
    offers: dict[str, Offer] = {}
    for offer in _offers(analysis, cursor):
        offers.setdefault(offer.label, offer)
    items = [_item(offer, place, snippets=snippets) for offer in offers.values()]
    return types.CompletionList(is_incomplete=False, items=items)


def _item(offer: Offer, place: types.Range, *, snippets: bool) -> types.CompletionItem:
    snippet = snippets and bool(offer.snippet)
    return types.CompletionItem(
        label=offer.label,
        kind=offer.kind,
        detail=offer.detail or None,
        documentation=types.MarkupContent(types.MarkupKind.Markdown, offer.text) if offer.text else None,
        sort_text=f"{offer.rank}{offer.label}",
        insert_text_format=types.InsertTextFormat.Snippet if snippet else types.InsertTextFormat.PlainText,
        text_edit=types.TextEdit(place, offer.snippet if snippet else offer.label),
    )


def _offers(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    module, accepts = analysis.work.module, cursor.accepts
    if cursor.section == "string":
        yield from files(analysis, cursor)
        return
    if not accepts or cursor.section == "none":
        return
    if cursor.last == "NUMBER" and "PERCENT" in accepts:
        yield from (Offer(unit, ITEM.Unit) for unit in _PLURAL_UNITS)
        return
    if "AND" in accepts:
        yield from (Offer(word, ITEM.Keyword) for word in ("and", "or"))
    if "NAME" not in accepts and "USE" not in accepts:
        return
    if cursor.section == "words":
        yield from _statements(analysis, cursor)
    elif cursor.section == "type":
        yield from _types(cursor)
    elif cursor.section == "value" and cursor.words[:1] == ("use",):
        yield from used(analysis, cursor)
    elif cursor.section == "value":
        yield from _values(module, cursor)


# ---- statements -----------------------------------------------------------------------------------


def _statements(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    place, words = cursor.place, cursor.words
    known = {} if place.kind is None else kinds_in(place.kind)
    if not words:
        if place.kind == "":
            yield Offer("use", ITEM.Keyword, "a module or a file", snippet="use ")
            if "language" not in analysis.source.text:
                yield Offer("language", ITEM.Keyword, "the version of the language", snippet="language 1", rank=1)
        for kind in known.values():
            yield from _kind(analysis.work.module, kind)
        for setting in place.settings:
            if setting.name not in cursor.given:
                yield _setting(setting, place.owner)
        return
    decl = kind_of(place, words)
    if decl is not None:
        yield from _behind(analysis.work.module, decl, words)
    elif len(words) == 1:
        for each in known.values():
            if words[0] in each.modifiers:
                yield Offer(each.word, ITEM.Keyword, each.about, snippet=_shape(each))
        for setting in place.settings:
            if words[0] in setting.modifiers:
                yield _setting(setting, place.owner)


def _kind(module: Module, kind: Kind) -> Iterator[Offer]:
    if kind.once and kind.name == "forbidden" and any(each.kind is kind for each in module.declarations):
        return
    for prefix in [f"{modifier} " for modifier in kind.modifiers] or [""]:
        yield Offer(f"{prefix}{kind.word}", ITEM.Keyword, kind.about, snippet=f"{prefix}{_shape(kind)}")


def _shape(kind: Kind) -> str:
    name = " ${1:name}" if kind.name == "required" else ""
    type_ = ": ${2:text}" if kind.type else ""
    if kind.expression:
        return f"{kind.word}{name} = $0"
    if kind.word == "section" or (kind.value and kind.settings is None):
        return f'{kind.word}{name} = """\n$0\n"""'
    if kind.value:
        return f'{kind.word}{name} = "$0"'
    if kind.settings is not None and not kind.type:
        return f"{kind.word}{name} {{\n\t$0\n}}"
    return f"{kind.word}{name}{type_}"


def _behind(module: Module, kind: Kind, words: tuple[str, ...]) -> Iterator[Offer]:
    """Offer what may follow the word of a kind: a predefined name, `for slow`."""
    named = words[words.index(kind.word) + 1 :]
    if kind.word == "model" and not named:
        for role in ("target", "optimizer"):
            if role not in module.named("model"):
                yield Offer(role, ITEM.Value, "a role that every compile needs", snippet=f'{role} = "$0"', rank=1)
    if not named:
        for name, about in kind.bare:
            if name not in module.named(kind.word):
                yield Offer(name, ITEM.EnumMember, about, rank=1)
    for suffix in kind.suffixes:
        behind = named[1:]
        if named and len(behind) < len(suffix) and suffix[: len(behind)] == behind:
            yield Offer(" ".join(suffix[len(behind) :]), ITEM.Keyword)


def _setting(setting: SettingKind, owner: str) -> Offer:
    form = setting.forms[0]
    value = {"text": '"$0"', "list": "[$0]"}.get(form.kind, "$0")
    snippet = f"{setting.name} {{\n\t$0\n}}" if form.kind == "block" else f"{setting.name} = {value}"
    return Offer(setting.name, ITEM.Property, setting.about, setting_text(setting, owner), snippet, rank=3)


# ---- types and units ------------------------------------------------------------------------------


def _types(cursor: Cursor) -> Iterator[Offer]:
    kind = kind_of(cursor.place, cursor.words)
    if kind is not None and kind.parameters:
        for name in PARAMETER_TYPES:
            yield Offer(name, ITEM.TypeParameter)
        return
    for name in FIELD_TYPES:
        snippet = "list[${1:text}]" if name == "list" else ""
        yield Offer(name, ITEM.TypeParameter, FIELD_TYPES[name], snippet=snippet)


# ---- values ---------------------------------------------------------------------------------------


def _values(module: Module, cursor: Cursor) -> Iterator[Offer]:
    kind = kind_of(cursor.place, cursor.words)
    if kind is None:
        setting = setting_of(cursor.place, cursor.words)
        if setting is not None and not cursor.before:
            yield from _formed(module, setting.forms)
    elif kind.expression:
        yield from _expression(module, kind, cursor)
    elif kind.refers:
        yield from _referred(module, kind, cursor)


def _formed(module: Module, forms: Iterable[Form]) -> Iterator[Offer]:
    for form in forms:
        for word in form.words:
            snippet = f"{word} {{\n\t$0\n}}" if form.block else ""
            yield Offer(word, ITEM.EnumMember, snippet=snippet, rank=2)
        if form.kind == "switch":
            yield from (Offer(word, ITEM.EnumMember, rank=2) for word in ("on", "off"))
        elif form.kind == "call":
            inner = '"$1"' if form.arguments and form.arguments[0].kind == "text" else "$1"
            yield Offer(form.name, ITEM.Function, form.example(), snippet=f"{form.name}({inner})", rank=2)
        elif form.kind == "field":
            yield from (declared(each, ITEM.Field) for each in fields_in(module).values())
        elif form.kind == "role":
            yield from (Offer(name, ITEM.Variable, rank=2) for name in module.named("model"))
        elif form.kind == "list":
            yield from _formed(module, form.items)


def _referred(module: Module, kind: Kind, cursor: Cursor) -> Iterator[Offer]:
    if cursor.before:
        home = module.uses.get(cursor.before[0])
        if home is None or len(cursor.before) > 1:
            return
        if home.sections is not None:
            yield from (Offer(name, ITEM.Value, f"a heading of {home.key}") for name in home.sections)
            return
        known = home.all_sections if kind.word == "section" else home.named(kind.word)
        yield from (declared(each, ITEM.Value) for each in known.values())
        return
    own = cursor.words[-1] if cursor.words else ""
    for name, decl in module.named(kind.word).items():
        if name != own:
            yield declared(decl, ITEM.Value)
    yield from _modules(module)
    yield from _formed(module, (form for form in kind.value if form.kind == "call"))


def _expression(module: Module, kind: Kind, cursor: Cursor) -> Iterator[Offer]:
    run = kind.word in ("gate", "require")
    if cursor.before:
        yield from _members(module, cursor, run=run)
        return
    if cursor.call is not None and cursor.call.option is None:
        yield from options(module, cursor.call, run=run)
    takes = taken(module, cursor.call, run=run) if cursor.call is not None else None
    if takes in BY_TAKES:
        yield from BY_TAKES[takes](module)
        return
    run = run and takes not in ("metric", "condition", "output", "readable")
    yield from _parameters(cursor)
    if run:
        yield from (Offer(state, ITEM.Constant, STATES[state], rank=2) for state in STATES)
    elif cursor.parameters is None:
        yield from (declared(each, ITEM.Field) for each in fields_in(module).values())
        own = cursor.words[-1] if cursor.words else ""
        yield from (declared(each, ITEM.Variable) for n, each in metrics_in(module).items() if n != own)
    yield from _functions(module, run=run)
    yield from _modules(module)
    if "NOT" in cursor.accepts:
        yield Offer("not", ITEM.Keyword, rank=6)


def _parameters(cursor: Cursor) -> Iterator[Offer]:
    return (Offer(name, ITEM.Variable, "parameter", rank=1) for name in cursor.parameters or ())


def _functions(module: Module, *, run: bool) -> Iterator[Offer]:
    wanted = "gate" if run else "metric"
    for name, decl in module.functions().items():
        if decl.kind.word == wanted:
            yield called(name, decl)
    for builtin in (RUN_FUNCTIONS if run else EXAMPLE_FUNCTIONS).values():
        snippet = f"{builtin.name}($1)" if builtin.parameters else f"{builtin.name}()"
        yield Offer(builtin.name, ITEM.Function, builtin.usage, builtin_text(builtin), snippet, rank=4)


def _modules(module: Module) -> Iterator[Offer]:
    for alias, home in module.uses.items():
        yield Offer(alias, ITEM.Module, home.key if home is not None else "", rank=5)


def _members(module: Module, cursor: Cursor, *, run: bool) -> Iterator[Offer]:
    of = cursor.before[0]
    if len(cursor.before) > 1:
        return
    if of in STATES and run:
        if cursor.parameters is not None:
            yield from _parameters(cursor)
        else:
            yield from (declared(each, ITEM.Variable) for each in metrics_in(module).values())
    elif (home := module.uses.get(of)) is not None:
        wanted = "gate" if run else "metric"
        for name, decl in home.functions().items():
            if decl.kind.word == wanted:
                yield called(name, decl)
