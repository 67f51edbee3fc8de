"""Completion: the parser determines the valid tokens, the tables and the program the names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lsprotocol import types

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS, Builtin, Takes
from skillc.gates.units import UNITS
from skillc.language.arguments import REFERENCES
from skillc.language.forms import Form, SettingKind
from skillc.language.functions import PARAMETER_TYPES
from skillc.language.kinds import FIELD_TYPES, STATES, Kind, kinds_in
from skillc.language.links import fields_in, metrics_in
from skillc.language.modules import STD, Loader, Module, standard_names
from skillc.language.statements import KindDeclaration
from skillc.lsp.cursor import CallContext, Cursor, cursor_at, kind_of, setting_of
from skillc.lsp.hover import builtin_text, function_of, head, parameter_texts, setting_text, signature
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax.source import Source, Span

ITEM = types.CompletionItemKind


@dataclass(frozen=True, slots=True)
class Offer:
    """One completion; editors with snippet support insert `snippet`."""

    label: str
    kind: types.CompletionItemKind
    detail: str = ""
    text: str = ""
    snippet: str = ""
    rank: int = 5


def _declared(decl: KindDeclaration, kind: types.CompletionItemKind) -> Offer:
    """Offer the name of a declaration."""
    name = decl.name.text if decl.name is not None else ""
    return Offer(name, kind, decl.kind.word, decl.node.doc or "", rank=2)


def _called(name: str, decl: KindDeclaration) -> Offer:
    """Offer a function of the program or a module, with parentheses."""
    text = f"```skill\n{head(decl)}\n```\n\n{decl.node.doc or ''}".strip()
    return Offer(name, ITEM.Function, signature(decl), text, f"{name}($1)", rank=3)


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
        yield from _files(analysis, cursor)
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
        yield from _used(analysis, cursor)
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
            yield from (_declared(each, ITEM.Field) for each in fields_in(module).values())
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
        yield from (_declared(each, ITEM.Value) for each in known.values())
        return
    own = cursor.words[-1] if cursor.words else ""
    for name, decl in module.named(kind.word).items():
        if name != own:
            yield _declared(decl, ITEM.Value)
    yield from _modules(module)
    yield from _formed(module, (form for form in kind.value if form.kind == "call"))


def _expression(module: Module, kind: Kind, cursor: Cursor) -> Iterator[Offer]:
    run = kind.word in ("gate", "require")
    if cursor.before:
        yield from _members(module, cursor, run=run)
        return
    takes = None
    if cursor.call is not None:
        if cursor.call.option is None:
            yield from _options(module, cursor.call, run=run)
        takes = _taken(module, cursor.call, run=run)
    if takes in _BY_TAKES:
        yield from _BY_TAKES[takes](module)
        return
    run = run and takes not in ("metric", "condition", "output", "readable")
    yield from _parameters(cursor)
    if run:
        yield from (Offer(state, ITEM.Constant, STATES[state], rank=2) for state in STATES)
    elif cursor.parameters is None:
        yield from (_declared(each, ITEM.Field) for each in fields_in(module).values())
        own = cursor.words[-1] if cursor.words else ""
        yield from (_declared(each, ITEM.Variable) for n, each in metrics_in(module).items() if n != own)
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
            yield _called(name, decl)
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
            yield from (_declared(each, ITEM.Variable) for each in metrics_in(module).values())
    elif (home := module.uses.get(of)) is not None:
        wanted = "gate" if run else "metric"
        for name, decl in home.functions().items():
            if decl.kind.word == wanted:
                yield _called(name, decl)


# ---- modules and files ----------------------------------------------------------------------------


_DATA_SUFFIXES = (".jsonl", ".csv", ".json", ".tsv", ".parquet")
_FILES_LIMIT = 500


def _used(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    """Offer the standard library, installed packages, and their modules."""
    loader = analysis.work.loader
    if cursor.last == "USE":
        yield Offer(STD, ITEM.Module, "the standard library", snippet=f"{STD}.")
        for name in loader.claims:
            yield Offer(name, ITEM.Module, "an installed package", snippet=f"{name}.")
    elif cursor.before == (STD,):
        for name in standard_names():
            yield Offer(name, ITEM.Module, f"{STD}.{name}")
    elif cursor.before:
        yield from _packaged(loader, cursor.before)


def _packaged(loader: Loader, path: tuple[str, ...]) -> Iterator[Offer]:
    """Offer the modules of an installed package below a path."""
    below = "".join(f"{word}." for word in path[1:])
    with suppress(SkillcError, OSError):
        package = loader.package(path[0])
        for name in package.modules():
            if name.startswith(below):
                yield Offer(name.removeprefix(below), ITEM.Module, f"{package.name}.{name}")


def _files(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    """Offer files beside the program, for `use "` and the settings of `data` that name a file."""
    using = cursor.words[:1] == ("use",)
    if not using and cursor.place.kind != "data":
        return
    path = Path(analysis.source.name)
    if not path.is_absolute():
        return
    suffixes = (".skill", ".md") if using else _DATA_SUFFIXES
    typed = cursor.quoted[1:].rpartition("/")[0]
    folder = path.parent / typed
    prefix = f"{typed}/" if typed else "./" if using else ""
    try:
        if not folder.resolve().is_relative_to(path.parent.resolve()):
            return
        entries = sorted(folder.iterdir())[:_FILES_LIMIT]
    except (OSError, ValueError):
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield Offer(f"{prefix}{entry.name}/", ITEM.Folder, rank=6)
        elif entry.suffix in suffixes and entry != path:
            yield Offer(f"{prefix}{entry.name}", ITEM.File)


# ---- arguments ------------------------------------------------------------------------------------


def _options(module: Module, call: CallContext, *, run: bool) -> Iterator[Offer]:
    """Offer the named arguments of a call."""
    called = function_of(module, call, run=run)
    if isinstance(called, Builtin):
        for option in called.options:
            yield Offer(option.name, ITEM.Property, f"option of {called.name}", snippet=f"{option.name} = ", rank=1)
    elif called is not None:
        pairs = zip(called.node.parameters or (), parameter_texts(called), strict=True)
        for parameter, detail in list(pairs)[call.index :]:
            name = parameter.name.text
            yield Offer(name, ITEM.Property, detail, snippet=f"{name} = ", rank=4)


def _taken(module: Module, call: CallContext, *, run: bool) -> Takes | str | None:
    """Return what the argument at the cursor takes."""
    called = function_of(module, call, run=run)
    if isinstance(called, Builtin):
        if call.option is not None:
            return next((each.takes for each in called.options if each.name == call.option), None)
        wanted = called.positional
        return wanted[min(call.index, len(wanted) - 1)].takes if wanted else None
    if called is None:
        return None
    parameters = called.node.parameters or ()
    named = [each for each in parameters if each.name.text == call.option] if call.option else []
    found = named or list(parameters[call.index : call.index + 1])
    written = found[0].type if found else None
    return getattr(written, "name", None)


def _of_kind(kind: str) -> Callable[[Module], Iterator[Offer]]:
    return lambda module: (_declared(each, ITEM.Value) for each in module.named(kind).values())


def _word(word: str) -> Callable[[Module], Iterator[Offer]]:
    return lambda module: iter((Offer(word, ITEM.EnumMember),))


def _fields(module: Module, *, outputs: bool) -> Iterator[Offer]:
    fields = fields_in(module).values()
    return (_declared(each, ITEM.Field) for each in fields if (each.kind.word == "output") == outputs)


_BY_TAKES: Mapping[str | None, Callable[[Module], Iterator[Offer]]] = {
    "field": lambda module: _fields(module, outputs=False),
    "output": lambda module: _fields(module, outputs=True),
    "state": lambda module: (Offer(state, ITEM.Constant, about) for state, about in STATES.items()),
    "candidate": _word("candidate"),
    "batch": _word("batch"),
    "run": _word("run"),
    "model": _of_kind("model"),
    "rubric": _of_kind("rubric"),
    "judged": _of_kind("rubric"),
    "skill": _of_kind("skill"),
    "models": _of_kind("model"),
    "reference": lambda module: (Offer(word, ITEM.EnumMember) for word in REFERENCES),
}
