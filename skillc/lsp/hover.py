"""Hover texts (declaration, documentation, meaning and cost of a name) and signature help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lsprotocol import types

from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS, Builtin, BuiltinParameter, Level
from skillc.gates.terms import show_term
from skillc.gates.units import decimal, format_quantity
from skillc.language.checked import Amount, Entity, Invocation, Items, Setting, Shares, Value, Word
from skillc.language.forms import SettingKind
from skillc.language.kinds import FIELD_TYPES, STATES, Kind
from skillc.language.links import Symbol
from skillc.language.modules import Module
from skillc.language.statements import KindDeclaration
from skillc.lsp.costs import TABLE_HEADING, Costs, describe_cost, describe_price
from skillc.lsp.cursor import CallContext, cursor_at, kind_of
from skillc.lsp.workspace import Analysis
from skillc.syntax import nodes
from skillc.text import listed

_TERM_LIMIT = 1_000
_LINES_LIMIT = 8


def hover(analysis: Analysis, symbol: Symbol, costs: Costs | None = None) -> str | None:
    """Describe a symbol in markdown, with the costs of the program if known; None if there is nothing to show."""
    parts = [part for part in _parts(analysis, symbol) if part]
    if costs is not None and symbol.kind == "model" and (price := describe_price(costs, symbol.name)):
        parts.append(price)
    if costs is not None and (cost := describe_cost(costs, symbol)):
        parts.append(cost if cost.startswith(TABLE_HEADING) else f"*cost*: {cost}")
    return "\n\n".join(parts) or None


def _parts(analysis: Analysis, symbol: Symbol) -> Iterator[str | None]:
    origin = symbol.origin
    if isinstance(origin, KindDeclaration):
        yield from _declaration(analysis, origin)
    elif isinstance(origin, SettingKind):
        yield from _setting(analysis, symbol, origin)
    elif isinstance(origin, Kind):
        yield from _kind(analysis, symbol, origin)
    elif isinstance(origin, Builtin):
        yield from _builtin(origin)
    elif isinstance(origin, BuiltinParameter):
        optional = "" if origin.required else "optional "
        yield f"{optional}option `{origin.name}` of `{symbol.owner}`: a {origin.takes}"
    elif isinstance(origin, nodes.Parameter):
        source = symbol.source
        yield _code(source.slice(origin.span)) if source is not None else None
        yield f"parameter of `{symbol.owner}`"
    elif isinstance(origin, Module):
        yield f"module `{origin.label}`"
        yield f"members: {listed(origin.names(), most=20)}" if origin.names() else None
    elif symbol.kind == "state":
        yield f"`{symbol.name}`: {STATES[symbol.name]}"
    elif symbol.kind == "type" and symbol.owner != "parameter" and symbol.name in FIELD_TYPES:
        yield f"`{symbol.name}`: {FIELD_TYPES[symbol.name]}"


def _code(text: str) -> str:
    return f"```skill\n{text}\n```"


# ---- declarations ---------------------------------------------------------------------------------


def _declaration(analysis: Analysis, decl: KindDeclaration) -> Iterator[str | None]:
    yield _code(head(decl))
    yield decl.node.doc
    own = decl.source.name == analysis.source.name
    if decl.bare is not None:
        yield decl.bare
    elif own:
        about = _MEANINGS.get(decl.kind.word)
        yield about(analysis, decl) if about is not None else None
    else:
        yield f"from `{decl.source.name.replace(chr(92), '/').rpartition('/')[2]}`"


def head(decl: KindDeclaration) -> str:
    """Return a declaration without its block and long text, shortened."""
    node, source = decl.node, decl.source
    end = node.span.end
    if isinstance(node.value, nodes.Text):
        shown = source.text[node.span.start : node.value.span.start] + '"""..."""'
    else:
        if node.block is not None:
            end = node.block.span.start
        shown = source.text[node.span.start : end].rstrip()
    lines = [line.rstrip() for line in shown.splitlines()]
    return "\n".join(lines if len(lines) <= _LINES_LIMIT else [*lines[:_LINES_LIMIT], "..."])


def _metric(analysis: Analysis, decl: KindDeclaration) -> str | None:
    found = next((m for m in analysis.checked.metrics if m.declared and m.span == decl.span), None)
    if found is None:
        return None
    low = "no lower bound" if found.low is None else format_quantity(found.low, found.unit)
    high = "no upper bound" if found.high is None else format_quantity(found.high, found.unit)
    goal = "the goal, " if found.goal else ""
    return f"{goal}from {low} to {high}, on each rollout"


def _gate(analysis: Analysis, decl: KindDeclaration) -> str | None:
    found = next((g for g in analysis.checked.gates if g.span == decl.span), None)
    if found is None:
        return None
    shown = show_term(found.term)
    return f"means `{shown}`" if shown != found.text and len(shown) <= _TERM_LIMIT else None


def _section(analysis: Analysis, decl: KindDeclaration) -> str | None:
    entity = _entity(analysis, decl)
    if entity is None:
        return None
    text = entity.value if isinstance(entity.value, str) else ""
    from skillc.tokens import count_tokens

    used = count_tokens(text)
    limit = entity.settings.get("limit")
    if limit is not None and isinstance(limit.value, Amount):
        return f"{used} of {int(limit.value.value)} tokens used"
    return f"{used} tokens" if used else "initially empty"


def _model(analysis: Analysis, decl: KindDeclaration) -> str | None:
    entity = _entity(analysis, decl)
    if entity is None:
        return None
    role = f"role `{entity.name}`"
    return f"{role}: {_value(entity.value)}" if entity.value is not None else role


def _field(analysis: Analysis, decl: KindDeclaration) -> str | None:
    entity = _entity(analysis, decl)
    if entity is None:
        return None
    column = entity.settings.get("column")
    name = column.value if column is not None and isinstance(column.value, str) else entity.name
    about = entity.settings.get("about")
    text = f"{about.value}\n\n" if about is not None and isinstance(about.value, str) else ""
    return f"{text}read from the column `{name}`"


def _entity(analysis: Analysis, decl: KindDeclaration) -> Entity | None:
    if decl.name is None:
        return None
    for entity in analysis.checked.entities:
        for each in (entity, *entity.children):
            if each.kind == decl.kind.word and each.span == decl.name.span:
                return each
    return None


_MEANINGS: Mapping[str, Callable[[Analysis, KindDeclaration], str | None]] = {
    "metric": _metric,
    "goal": _metric,
    "gate": _gate,
    "require": _gate,
    "section": _section,
    "model": _model,
    "input": _field,
    "output": _field,
    "field": _field,
}


# ---- the language's own ---------------------------------------------------------------------------


def setting_text(setting: SettingKind, owner: str) -> str:
    """Return the reference text of a setting."""
    takes = " or ".join(dict.fromkeys(form.describe() for form in setting.forms))
    default = f"; default: {setting.default_markdown}" if setting.default_markdown else ""
    return f"`{setting.name}` of `{owner}`: {setting.about}\n\ntakes {takes}{default}"


def _setting(analysis: Analysis, symbol: Symbol, setting: SettingKind) -> Iterator[str | None]:
    yield setting_text(setting, symbol.owner)
    # Several blocks may have a setting of this name; show the value if there is only one.
    found = [
        each.settings[setting.name]
        for entity in analysis.checked.entities
        for each in (entity, *entity.children)
        if each.kind == symbol.owner and setting.name in each.settings
    ]
    if len(found) == 1:
        yield f"value here: {_value(found[0].value)}"


def _kind(analysis: Analysis, symbol: Symbol, kind: Kind) -> Iterator[str | None]:
    if symbol.name != kind.word:
        yield f"`{symbol.name}`: see `{kind.word}`"
        return
    yield f"`{kind.word}`: {kind.about}"
    entity = next((e for e in analysis.checked.entities if e.kind == kind.word and e.name is None), None)
    if kind.word not in ("optimize", "budget") or entity is None:
        return
    rows = ["| setting | value | |", "|---|---|---|"]
    for setting in kind.settings or ():
        given: Setting | None = entity.settings.get(setting.name)
        value = _value(given.value) if given is not None else setting.default_text or "-"
        rows.append(f"| `{setting.name}` | {value.replace('|', '&#124;')} | {'set here' if given else 'default'} |")
    yield "\n".join(rows)


def builtin_text(builtin: Builtin) -> str:
    """Return the reference text of a function."""
    where = {Level.EXAMPLE: "in metrics", Level.RUN: "in gates"}.get(builtin.level or Level.LITERAL, "anywhere")
    since = f"; requires skillc {builtin.since}" if builtin.since != "0.1" else ""
    return f"{builtin.about}\n\n{where}{since}"


def _builtin(builtin: Builtin) -> Iterator[str | None]:
    yield _code(builtin.usage)
    yield builtin_text(builtin)
    low, high = builtin.range.bounds
    if builtin.unit is not None and low is not None:
        end = "" if high is None else f" to {format_quantity(high, builtin.unit)}"
        yield f"from {format_quantity(low, builtin.unit)}{end}"


def signature(decl: KindDeclaration) -> str:
    """Return the signature of a function of the program."""
    name = decl.name.text if decl.name is not None else ""
    return f"{name}({', '.join(parameter_texts(decl))})"


def parameter_texts(decl: KindDeclaration) -> list[str]:
    """Return the text of each parameter of a function of the program."""
    return [" ".join(decl.source.slice(each.span).split()) for each in decl.node.parameters or ()]


def _value(value: Value) -> str:
    """Return a value in base units, in the syntax of programs."""
    if isinstance(value, bool):
        return f"`{'on' if value else 'off'}`"
    if isinstance(value, Amount):
        return f"`{format_quantity(value.value, value.unit)}`"
    if isinstance(value, Word):
        return f"`{value.text}`"
    if isinstance(value, Items):
        return f"`[{', '.join(_value(item).strip('`') for item in value.items)}]`"
    if isinstance(value, Invocation):
        return f"`{value.function}({', '.join(_value(each).strip('`') for each in value.arguments)})`"
    if isinstance(value, Shares):
        return f"`{' : '.join(decimal(part.value) for part in value.parts)}`"
    shown = " ".join(value.split())
    return f'`"{shown[:60]}{"..." if len(shown) > 60 else ""}"`'


# ---- calls ----------------------------------------------------------------------------------------


def function_of(module: Module, call: CallContext, *, run: bool) -> Builtin | KindDeclaration | None:
    """Return the function of a call."""
    if len(call.function) == 2:
        home = module.uses.get(call.function[0])
        return home.functions().get(call.function[1]) if home is not None else None
    name = call.function[-1]
    own = module.functions().get(name)
    return own or (RUN_FUNCTIONS if run else EXAMPLE_FUNCTIONS).get(name)


def signature_help(module: Module, text: str, offset: int) -> types.SignatureHelp | None:
    """Return the signature of the call around an offset, with its active parameter."""
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
        labels = parameter_texts(called)
    option = cursor.call.option
    active = names.index(option) if option in names else cursor.call.index
    parameters = [types.ParameterInformation(each) for each in labels]
    shown = types.SignatureInformation(label, types.MarkupContent(types.MarkupKind.Markdown, about), parameters)
    return types.SignatureHelp([shown], 0, min(active, max(0, len(parameters) - 1)))
