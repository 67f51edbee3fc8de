"""What may be typed at a place: the parser says which tokens, the tables and the program which names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from skillc.language.builtins import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS, Builtin, Takes
from skillc.language.fields import TYPES as FIELD_TYPES
from skillc.language.forms import Form, SettingKind
from skillc.language.functions import PARAMETER_TYPES
from skillc.language.kinds import Kind, kinds_in
from skillc.language.links import fields_in, metrics_in, sections_in
from skillc.language.modules import STATES, Module
from skillc.language.source import Source, Span
from skillc.language.statements import Stated
from skillc.language.units import UNITS
from skillc.lsp.cursor import Call, Cursor, cursor_at, kind_of, setting_of
from skillc.lsp.hover import STATES as STATE_TEXTS
from skillc.lsp.hover import TYPES as TYPE_TEXTS
from skillc.lsp.hover import builtin_text, head, setting_text, signature
from skillc.lsp.workspace import Analysis, Project

_ITEM = types.CompletionItemKind
_DATA_SUFFIXES = (".jsonl", ".csv", ".json", ".tsv", ".parquet")
_FILES_LIMIT = 500
_PLURAL_UNITS = tuple(unit for unit in UNITS if f"{unit}s" not in UNITS and unit != "%")


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that may be typed; `snippet` is what is put in where the editor knows snippets."""

    label: str
    kind: types.CompletionItemKind
    detail: str = ""
    text: str = ""
    snippet: str = ""
    rank: int = 5


def completion(
    project: Project, analysis: Analysis, source: Source, offset: int, *, snippets: bool
) -> types.CompletionList:
    """Everything that may be typed at a place.

    Args:
        project: the workspace.
        analysis: says which names there are; it may be of a text from before the last changes.
        source: the text as it is.
        offset: the place in it.
        snippets: whether the editor knows places to fill in.
    """
    cursor = cursor_at(source.text, offset)
    begins = cursor.start + 1 if cursor.section == "string" else cursor.start
    place = project.positions(source).range(Span(begins, offset))
    seen: set[str] = set()
    items = []
    for offer in _offers(project, analysis, cursor):
        if offer.label not in seen:
            seen.add(offer.label)
            items.append(_item(offer, place, snippets=snippets))
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


def _offers(project: Project, analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    module, accepts = analysis.work.module, cursor.accepts
    if cursor.section == "string":
        yield from _files(analysis, cursor)
        return
    if not accepts or cursor.section == "none":
        return
    if cursor.last == "NUMBER" and "PERCENT" in accepts:
        yield from _units()
        return
    if "AND" in accepts:
        yield Offer("and", _ITEM.Keyword)
        yield Offer("or", _ITEM.Keyword)
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
            yield Offer("use", _ITEM.Keyword, "a module or a file", snippet="use ")
            if "language" not in analysis.source.text:
                yield Offer("language", _ITEM.Keyword, "the version of the language", snippet="language 1", rank=1)
        for kind in known.values():
            yield from _kind(analysis.work.module, kind, cursor)
        for setting in place.settings:
            if setting.name not in cursor.given:
                yield _setting(setting, place.owner)
        return
    stated = kind_of(place, words)
    if stated is not None:
        yield from _behind(analysis.work.module, stated, words)
    elif len(words) == 1:
        for each in known.values():
            if words[0] in each.modifiers:
                yield Offer(each.word, _ITEM.Keyword, each.about, snippet=_shape(each))
        for setting in place.settings:
            if words[0] in setting.modifiers:
                yield _setting(setting, place.owner)


def _kind(module: Module, kind: Kind, cursor: Cursor) -> Iterator[Offer]:
    if kind.once and kind.name == "forbidden" and any(each.kind is kind for each in module.stated):
        return
    if kind.modifiers:
        for modifier in kind.modifiers:
            label = f"{modifier} {kind.word}"
            yield Offer(label, _ITEM.Keyword, kind.about, snippet=f"{modifier} {_shape(kind)}")
    else:
        yield Offer(kind.word, _ITEM.Keyword, kind.about, snippet=_shape(kind))


def _shape(kind: Kind) -> str:
    """A kind's statement with places to fill in."""
    name = " ${1:name}" if kind.name == "required" else ""
    type_ = ": ${2:text}" if kind.type else ""
    if kind.expression:
        return f"{kind.word}{name} = $0"
    if kind.word == "section":
        return f'{kind.word}{name} = """\n$0\n"""'
    if kind.value and kind.settings is None:
        return f'{kind.word}{name} = """\n$0\n"""'
    if kind.value:
        return f'{kind.word}{name} = "$0"'
    if kind.settings is not None and not kind.type:
        return f"{kind.word}{name} {{\n\t$0\n}}"
    return f"{kind.word}{name}{type_}"


def _behind(module: Module, kind: Kind, words: tuple[str, ...]) -> Iterator[Offer]:
    """What may stand behind the word of a kind: a well-known name, `for slow`."""
    named = words[words.index(kind.word) + 1 :]
    if kind.word == "model" and not named:
        for role in ("target", "optimizer"):
            if role not in module.named("model"):
                yield Offer(role, _ITEM.Value, "a role that every compile asks for", snippet=f'{role} = "$0"', rank=1)
    for suffix in kind.suffixes:
        behind = named[1:]
        if named and len(behind) < len(suffix) and suffix[: len(behind)] == behind:
            yield Offer(" ".join(suffix[len(behind) :]), _ITEM.Keyword)


def _setting(setting: SettingKind, owner: str) -> Offer:
    form = setting.forms[0]
    value = {"text": '"$0"', "list": "[$0]"}.get(form.kind, "$0")
    snippet = f"{setting.name} {{\n\t$0\n}}" if form.kind == "block" else f"{setting.name} = {value}"
    return Offer(setting.name, _ITEM.Property, setting.about, setting_text(setting, owner), snippet, rank=3)


# ---- types and units ------------------------------------------------------------------------------


def _types(cursor: Cursor) -> Iterator[Offer]:
    kind = kind_of(cursor.place, cursor.words)
    if kind is not None and kind.parameters:
        for name in PARAMETER_TYPES:
            yield Offer(name, _ITEM.TypeParameter)
        return
    for name in (*FIELD_TYPES, "none"):
        snippet = "list[${1:text}]" if name == "list" else ""
        yield Offer(name, _ITEM.TypeParameter, TYPE_TEXTS.get(name, ""), snippet=snippet)


def _units() -> Iterator[Offer]:
    for unit in _PLURAL_UNITS:
        yield Offer(unit, _ITEM.Unit)


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
            yield Offer(word, _ITEM.EnumMember, snippet=snippet, rank=2)
        if form.kind == "switch":
            yield Offer("on", _ITEM.EnumMember, rank=2)
            yield Offer("off", _ITEM.EnumMember, rank=2)
        elif form.kind == "call":
            inner = '"$1"' if form.arguments and form.arguments[0].kind == "text" else "$1"
            yield Offer(form.name, _ITEM.Function, form.example(), snippet=f"{form.name}({inner})", rank=2)
        elif form.kind == "field":
            yield from (_declared(each, _ITEM.Field) for each in fields_in(module).values())
        elif form.kind == "list":
            yield from _formed(module, form.items)


def _referred(module: Module, kind: Kind, cursor: Cursor) -> Iterator[Offer]:
    if cursor.before:
        home = module.uses.get(cursor.before[0])
        if home is None or len(cursor.before) > 1:
            return
        if home.sections is not None:
            yield from (Offer(name, _ITEM.Value, f"a heading of {home.key}") for name in home.sections)
            return
        known = sections_in(home) if kind.word == "section" else home.named(kind.word)
        yield from (_declared(each, _ITEM.Value) for each in known.values())
        return
    own = cursor.words[-1] if cursor.words else ""
    for name, stated in module.named(kind.word).items():
        if name != own:
            yield _declared(stated, _ITEM.Value)
    yield from _modules(module)
    yield from _formed(module, (form for form in kind.value if form.kind == "call"))


def _expression(module: Module, kind: Kind, cursor: Cursor) -> Iterator[Offer]:
    run = kind.word in ("gate", "require")
    if cursor.before:
        yield from _members(module, cursor, run=run)
        return
    if cursor.call is not None and cursor.call.option is None:
        yield from _options(module, cursor.call, run=run)
    takes = _takes(module, cursor.call, run=run) if cursor.call is not None else None
    if takes in _BY_TAKES:
        yield from _BY_TAKES[takes](module)
        return
    run = run and takes not in ("metric", "condition", "output", "readable")
    yield from _parameters(cursor)
    if run:
        yield from (Offer(state, _ITEM.Constant, STATE_TEXTS[state], rank=2) for state in STATES)
    elif cursor.parameters is None:
        yield from (_declared(each, _ITEM.Field) for each in fields_in(module).values())
        own = cursor.words[-1] if cursor.words else ""
        yield from (_declared(each, _ITEM.Variable) for n, each in metrics_in(module).items() if n != own)
    yield from _functions(module, run=run)
    yield from _modules(module)
    if "NOT" in cursor.accepts:
        yield Offer("not", _ITEM.Keyword, rank=6)


def _parameters(cursor: Cursor) -> Iterator[Offer]:
    return (Offer(name, _ITEM.Variable, "parameter", rank=1) for name in cursor.parameters or ())


def _functions(module: Module, *, run: bool) -> Iterator[Offer]:
    wanted = "gate" if run else "metric"
    for name, stated in module.functions().items():
        if stated.kind.word == wanted:
            yield _called(name, stated)
    for builtin in (RUN_FUNCTIONS if run else EXAMPLE_FUNCTIONS).values():
        snippet = f"{builtin.name}($1)" if builtin.parameters else f"{builtin.name}()"
        yield Offer(builtin.name, _ITEM.Function, builtin.usage, builtin_text(builtin), snippet, rank=4)


def _called(name: str, stated: Stated) -> Offer:
    text = f"```skill\n{head(stated)}\n```\n\n{stated.node.doc or ''}".strip()
    return Offer(name, _ITEM.Function, signature(stated), text, f"{name}($1)", rank=3)


def _modules(module: Module) -> Iterator[Offer]:
    for alias, home in module.uses.items():
        yield Offer(alias, _ITEM.Module, home.key if home is not None else "", rank=5)


def _declared(stated: Stated, kind: types.CompletionItemKind) -> Offer:
    name = stated.name.text if stated.name is not None else ""
    return Offer(name, kind, stated.kind.word, stated.node.doc or "", rank=2)


def _members(module: Module, cursor: Cursor, *, run: bool) -> Iterator[Offer]:
    of = cursor.before[0]
    if len(cursor.before) > 1:
        return
    if of in STATES and run:
        if cursor.parameters is not None:
            yield from _parameters(cursor)
        else:
            yield from (_declared(each, _ITEM.Variable) for each in metrics_in(module).values())
    elif (home := module.uses.get(of)) is not None:
        wanted = "gate" if run else "metric"
        for name, stated in home.functions().items():
            if stated.kind.word == wanted:
                yield _called(name, stated)


# ---- arguments ------------------------------------------------------------------------------------


def function_of(module: Module, call: Call, *, run: bool) -> Builtin | Stated | None:
    """What a call calls."""
    if len(call.function) == 2:
        home = module.uses.get(call.function[0])
        return home.functions().get(call.function[1]) if home is not None else None
    name = call.function[-1]
    own = module.functions().get(name)
    return own or (RUN_FUNCTIONS if run else EXAMPLE_FUNCTIONS).get(name)


def _options(module: Module, call: Call, *, run: bool) -> Iterator[Offer]:
    called = function_of(module, call, run=run)
    if isinstance(called, Builtin):
        for option in called.options:
            yield Offer(option.name, _ITEM.Property, f"option of {called.name}", snippet=f"{option.name} = ", rank=1)
    elif called is not None:
        for parameter in (called.node.parameters or ())[call.index :]:
            name = parameter.name.text
            detail = " ".join(called.source.slice(parameter.span).split())
            yield Offer(name, _ITEM.Property, detail, snippet=f"{name} = ", rank=4)


def _takes(module: Module, call: Call, *, run: bool) -> Takes | str | None:
    """What the argument at the cursor is to be."""
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
    def offers(module: Module) -> Iterator[Offer]:
        return (_declared(each, _ITEM.Value) for each in module.named(kind).values())

    return offers


def _fields(module: Module) -> Iterator[Offer]:
    return (_declared(each, _ITEM.Field) for each in fields_in(module).values() if each.kind.word != "output")


def _outputs(module: Module) -> Iterator[Offer]:
    return (_declared(each, _ITEM.Field) for each in fields_in(module).values() if each.kind.word == "output")


def _states(module: Module) -> Iterator[Offer]:
    return (Offer(state, _ITEM.Constant, STATE_TEXTS[state]) for state in STATES)


def _one_word(word: str) -> Callable[[Module], Iterator[Offer]]:
    def offers(module: Module) -> Iterator[Offer]:
        yield Offer(word, _ITEM.EnumMember)

    return offers


_BY_TAKES: Mapping[str | None, Callable[[Module], Iterator[Offer]]] = {
    "field": _fields,
    "output": _outputs,
    "state": _states,
    "candidate": _one_word("candidate"),
    "batch": _one_word("batch"),
    "run": _one_word("run"),
    "model": _of_kind("model"),
    "rubric": _of_kind("rubric"),
    "judged": _of_kind("rubric"),
    "skill": _of_kind("skill"),
}


def signature_help(module: Module, text: str, offset: int) -> types.SignatureHelp | None:
    """The function around a place, and which of its parameters is being given."""
    cursor = cursor_at(text, offset)
    kind = kind_of(cursor.place, cursor.words)
    if cursor.call is None or kind is None or not kind.expression:
        return None
    called = function_of(module, cursor.call, run=kind.word in ("gate", "require"))
    if called is None:
        return None
    if isinstance(called, Builtin):
        label, about = called.usage, builtin_text(called)
        names = [each.name for each in called.parameters]
        labels = label[label.index("(") + 1 : -1].split(", ")
    else:
        label, about = signature(called), called.node.doc or ""
        names = [each.name.text for each in called.node.parameters or ()]
        labels = [" ".join(called.source.slice(each.span).split()) for each in called.node.parameters or ()]
    option = cursor.call.option
    active = names.index(option) if option in names else cursor.call.index
    parameters = [types.ParameterInformation(each) for each in labels]
    shown = types.SignatureInformation(label, types.MarkupContent(types.MarkupKind.Markdown, about), parameters)
    return types.SignatureHelp([shown], 0, min(active, max(0, len(parameters) - 1)))


# ---- modules and files ----------------------------------------------------------------------------


def _used(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    if cursor.last == "USE":
        yield Offer("std", _ITEM.Module, "the standard library", snippet="std.")
    elif cursor.before == ("std",):
        from skillc.language.modules import Loader

        for name in Loader(Path(analysis.source.name).parent).standard_names():
            yield Offer(name, _ITEM.Module, f"std.{name}")


def _files(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    """Files beside the program, behind `use "` and behind the settings of `data` that name one."""
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
            yield Offer(f"{prefix}{entry.name}/", _ITEM.Folder, rank=6)
        elif entry.suffix in suffixes and entry != path:
            yield Offer(f"{prefix}{entry.name}", _ITEM.File)
