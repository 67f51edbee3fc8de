"""The call around the cursor: what is called, its options, what an argument is to be, and its signature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lsprotocol import types

from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS, Builtin, Takes
from skillc.language import glossary
from skillc.language.modules import STATES, Module
from skillc.language.statements import Stated
from skillc.language.symbols import fields_in
from skillc.lsp.cursor import Call, cursor_at, kind_of
from skillc.lsp.hover import builtin_text, signature
from skillc.lsp.offers import ITEM, Offer, declared


def function_of(module: Module, call: Call, *, run: bool) -> Builtin | Stated | None:
    """What a call calls."""
    if len(call.function) == 2:
        home = module.uses.get(call.function[0])
        return home.functions().get(call.function[1]) if home is not None else None
    name = call.function[-1]
    own = module.functions().get(name)
    return own or (RUN_FUNCTIONS if run else EXAMPLE_FUNCTIONS).get(name)


def options(module: Module, call: Call, *, run: bool) -> Iterator[Offer]:
    """The arguments of a call that are written by name."""
    called = function_of(module, call, run=run)
    if isinstance(called, Builtin):
        for option in called.options:
            yield Offer(option.name, ITEM.Property, f"option of {called.name}", snippet=f"{option.name} = ", rank=1)
    elif called is not None:
        for parameter in (called.node.parameters or ())[call.index :]:
            name = parameter.name.text
            detail = " ".join(called.source.slice(parameter.span).split())
            yield Offer(name, ITEM.Property, detail, snippet=f"{name} = ", rank=4)


def taken(module: Module, call: Call, *, run: bool) -> Takes | str | None:
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
        return (declared(each, ITEM.Value) for each in module.named(kind).values())

    return offers


def _fields(module: Module) -> Iterator[Offer]:
    return (declared(each, ITEM.Field) for each in fields_in(module).values() if each.kind.word != "output")


def _outputs(module: Module) -> Iterator[Offer]:
    return (declared(each, ITEM.Field) for each in fields_in(module).values() if each.kind.word == "output")


def _states(module: Module) -> Iterator[Offer]:
    return (Offer(state, ITEM.Constant, glossary.STATES[state]) for state in STATES)


def _one_word(word: str) -> Callable[[Module], Iterator[Offer]]:
    def offers(module: Module) -> Iterator[Offer]:
        yield Offer(word, ITEM.EnumMember)

    return offers


BY_TAKES: Mapping[str | None, Callable[[Module], Iterator[Offer]]] = {
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
