"""Programs made at random: well formed ones, sound ones, and ones with mistakes.

`programs` are well formed and mostly without sense, `sound_programs` have no errors, `mutated` programs are damaged
token by token. `layouts` gives a program another layout. They are drawn from the table of kinds, so that they grow with
the language.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from layouts import COMMENTS, layouts, tokens
from soundness import sound_programs
from thorough import example_count

from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS, Builtin
from skillc.gates.units import UNITS
from skillc.language.forms import Form, SettingKind
from skillc.language.functions import PARAMETER_TYPES
from skillc.language.kinds import KINDS, TYPES, Kind, kinds_in
from skillc.language.vocabulary import vocabulary
from skillc.syntax.literals import quote

__all__ = [
    "EXAMPLES",
    "HOSTILE",
    "expressions",
    "layouts",
    "mutated",
    "names",
    "programs",
    "quick",
    "sound_programs",
    "statements",
    "strings",
    "texts",
]

EXAMPLES = tuple(path.read_text("utf-8") for path in sorted((Path(__file__).parent / "programs").glob("*.skill")))
"""Programs that show the whole language."""

_RESERVED = ("and", "or", "not", "use")
_UNICODE = ("größe", "данные", "数据", "λόγος", "naïve_2", "été", "Ünïcode", "_")
_LETTERS = st.characters(exclude_categories=("C", "Zl", "Zp"))
HOSTILE = (
    *("\u00a0", "\u200b", "\u200d", "\u202e", "\u2066", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\r", "\0"),
    *("\x1b[31m", "\ufeff", "\u00ad", "\u0301", "\ud800", "\U000e0041", "а", "ａ", "ﬁ", "１", "٣", "🙂"),
    *(
        "“",
        "’",
        "€3",
        "≥",
        "×",
        "，",
        "&&",
        "||",
        "!",
        "?",
        ":=",
        "//",
        "/*",
        "*/",
        "->",
        "=>",
        "@",
        "`",
        "\\",
        "^",
        "~",
    ),
    *("'a'", "5 %%", "$", ".5", "1e999", '"', '"""', '\\"""', '"\\', "#", "///", "if", "else", "true", "None"),
    *("${x}", "{{", "}}", "((", "))", "[", "]", ",,"),
)
"""What a program should not hold, or not there."""


def quick(count: int) -> settings:
    """The same few programs each time; with `SKILLC_FUZZ` in the environment that many times as many, and new ones."""
    times = int(os.environ.get("SKILLC_FUZZ", "0"))
    return settings(max_examples=count * times if times else example_count(count), derandomize=not times, deadline=None)


# ---- words and literals ---------------------------------------------------------------------------


def all_words() -> set[str]:
    """Every word of the table of kinds, with those of statements and operators."""
    known = vocabulary()
    table = {*known.kinds, *known.modifiers, *known.settings, *known.values}
    return table | {"language", "use", "as", "and", "or", "not"}


@cache
def names() -> st.SearchStrategy[str]:
    """Names: of the language, of other scripts, and plain ones."""
    known = sorted(all_words() - set(_RESERVED))
    plain = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda word: word not in _RESERVED)
    return st.one_of(plain, st.sampled_from(known), st.sampled_from(_UNICODE))


@cache
def strings() -> st.SearchStrategy[str]:
    """Strings, with every escape."""
    escaped = st.sampled_from([r"\"", r"\\", r"\n", r"\t", r"\r", r"\u00e9", r"\u{1F600}", "# no", "{x}", "///"])
    pieces = st.lists(escaped | st.text(_LETTERS, max_size=6).map(lambda text: quote(text)[1:-1]), max_size=4)
    return pieces.map(lambda found: '"' + "".join(found) + '"')


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Texts between `\"\"\"`, of one or of many lines, with any indentation."""
    line = st.text(_LETTERS, max_size=12).map(lambda text: text.replace("\\", "/").replace('"', "'"))
    if draw(st.booleans()):
        return f'"""{draw(line)}"""'
    indents = st.sampled_from(["", "  ", "    ", "\t", "\t  ", "      "])
    special = st.sampled_from(['\\"""', "# no comment", 'say "no"', "", "}", "goal x = 1", "\\", "- a rule  "])
    lines = draw(st.lists(st.tuples(indents, line | special), max_size=5))
    body = "".join(f"{indent}{line}\n" for indent, line in lines)
    return f'"""{draw(st.sampled_from(["", " "]))}\n{body}{draw(indents)}"""'


def _whole() -> st.SearchStrategy[str]:
    return st.sampled_from(["0", "1", "2", "3", "7", "20", "007", "1_500", "2k", "31M", "2e3"])


@cache
def numbers() -> st.SearchStrategy[str]:
    """Numbers with any unit, and money."""
    number = _whole() | st.sampled_from(["0.5", "1.5k", "0.25", "2e-3", "12.75"])
    with_unit = st.tuples(number, st.sampled_from(["", " "]), st.sampled_from(sorted(UNITS))).map(
        lambda parts: f"{parts[0]} {parts[2]}" if parts[2][0].isalpha() else "".join(parts)
    )
    return st.one_of(number, with_unit, st.sampled_from(["$3", "$0.50", "$1_000", "$2k"]))


# ---- expressions ----------------------------------------------------------------------------------

_OR, _AND, _NOT, _COMPARE, _SUM, _TERM, _UNARY, _ATOM = range(8)
Piece = tuple[int, str]


def _at(piece: Piece, level: int) -> str:
    """An operand, in parentheses where it binds too loosely."""
    return piece[1] if piece[0] >= level else f"({piece[1]})"


def _infix(operators: Sequence[str], level: int, first: int, second: int, inner: st.SearchStrategy[Piece]):
    return st.tuples(inner, st.sampled_from(operators), inner).map(
        lambda parts: (level, f"{_at(parts[0], first)} {parts[1]} {_at(parts[2], second)}")
    )


def _arguments(builtin: Builtin, inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[str]:
    options = st.tuples(*(inner.map(lambda p, name=each.name: f"{name} = {_at(p, _OR)}") for each in builtin.options))
    given = st.tuples(*(inner.map(lambda p: _at(p, _OR)) for _ in builtin.positional))
    return st.tuples(given, options, st.sampled_from(["", ","])).map(
        lambda parts: ", ".join([*parts[0], *parts[1]]) + (parts[2] if parts[0] + parts[1] else "")
    )


def _call(builtin: Builtin, inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    return _arguments(builtin, inner).map(lambda given: (_ATOM, f"{builtin.name}({given})"))


@cache
def expressions(max_leaves: int = 8) -> st.SearchStrategy[str]:
    """Expressions of every operator and function."""
    members = st.tuples(st.sampled_from(["candidate", "incumbent", "best", "initial", "gates"]), names()).map(".".join)
    atoms = st.one_of(names(), numbers(), strings(), members).map(lambda text: (_ATOM, text))

    def larger(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
        calls = [_call(each, inner) for each in (*EXAMPLE_FUNCTIONS.values(), *RUN_FUNCTIONS.values())]
        items = st.tuples(st.lists(inner, max_size=3), st.booleans())
        return st.one_of(
            _infix(["or"], _OR, _AND, _AND, inner),
            _infix(["and"], _AND, _NOT, _NOT, inner),
            _infix(["<", "<=", ">", ">=", "==", "!="], _COMPARE, _SUM, _SUM, inner),
            _infix(["+", "-"], _SUM, _SUM, _TERM, inner),
            _infix(["*", "/"], _TERM, _TERM, _UNARY, inner),
            inner.map(lambda p: (_NOT, f"not {_at(p, _NOT)}")),
            st.tuples(st.sampled_from("+-"), inner).map(lambda p: (_UNARY, f"{p[0]}{_at(p[1], _UNARY)}")),
            inner.map(lambda p: (_ATOM, f"({p[1]})")),
            items.map(lambda p: (_ATOM, f"[{', '.join(_at(x, _OR) for x in p[0])}{',' * bool(p[0] and p[1])}]")),
            st.one_of(calls),
        )

    return st.recursive(atoms, larger, max_leaves=max_leaves).map(lambda piece: piece[1])


@cache
def types() -> st.SearchStrategy[str]:
    """Types of fields."""
    base = st.sampled_from(TYPES)
    named = base | base.map(lambda item: f"list[{item}]")
    labels = st.lists(strings(), min_size=1, max_size=3)
    return st.one_of(named, named.map(lambda t: f"{t} | none"), labels.map(" | ".join))


# ---- statements -----------------------------------------------------------------------------------


@st.composite
def _value(draw: st.DrawFn, form: Form) -> str:
    """A value of a form, with its block."""
    return f"{draw(_bare_value(form))}{draw(_settings_block(form.block, form.passes))}"


@cache
def _bare_value(form: Form) -> st.SearchStrategy[str]:
    match form.kind:
        case "text":
            return strings() | texts()
        case "number":
            return numbers() | numbers().map(lambda number: f"-{number}")
        case "word":
            return st.sampled_from(form.words)
        case "switch":
            return st.sampled_from(["on", "off"])
        case "field":
            return names()
        case "ratio":
            return st.lists(_whole(), min_size=2, max_size=3).map(" : ".join)
        case "list":
            return st.lists(st.one_of([_bare_value(each) for each in form.items]), max_size=3).map(
                lambda items: f"[{', '.join(items)}]"
            )
        case "call":
            arguments = st.tuples(*(_bare_value(each) for each in form.arguments))
            return arguments.map(lambda given: f"{form.name}({', '.join(given)})")
        case "block":
            return st.just("")


@st.composite
def _settings_block(draw: st.DrawFn, settings: tuple[SettingKind, ...] | None, passes: bool) -> str:
    if settings is None or not draw(st.booleans()):
        return ""
    found = draw(st.lists(st.sampled_from(settings), max_size=2)) if settings else []
    lines = [draw(_setting(each)) for each in found]
    if passes:
        literals = st.one_of(strings(), numbers(), st.sampled_from(["on", "off", "none"]))
        lines += [f"{draw(names())} = {draw(literals)}" for _ in range(draw(st.integers(0, 2)))]
    return f" {{ {'; '.join(lines)} }}"


@st.composite
def _setting(draw: st.DrawFn, setting: SettingKind) -> str:
    form = draw(st.sampled_from(setting.forms))
    word = draw(st.sampled_from([setting.name, *(f"{each} {setting.name}" for each in setting.modifiers)]))
    if form.kind == "block":
        return f"{word}{draw(_settings_block(form.block, form.passes)) or ' { }'}"
    return f"{word} = {draw(_value(form))}"


@st.composite
def _parameters(draw: st.DrawFn) -> str:
    found = []
    for name in draw(st.lists(names(), max_size=3)):
        kind = draw(st.sampled_from(["", *(f": {each}" for each in PARAMETER_TYPES)]))
        found.append(f"{name}{kind}{draw(st.sampled_from(['', ' = 5%', ' = none', ' = 3 tokens']))}")
    return f"({', '.join(found)}{draw(st.sampled_from(['', ','])) if found else ''})"


@st.composite
def statements(draw: st.DrawFn, kind: Kind) -> str:
    """A statement of a kind."""
    words = [draw(st.sampled_from(kind.modifiers))] if kind.modifiers else []
    words.append(kind.word)
    if kind.name == "required" or (kind.name == "optional" and draw(st.booleans())):
        words.append(draw(names()))
    if kind.suffixes and draw(st.booleans()):
        words += draw(st.sampled_from(kind.suffixes))
    text = " ".join(words)
    if kind.parameters and draw(st.booleans()):
        text += draw(_parameters())
    if kind.type:
        text += f": {draw(types())}"
    if kind.expression:
        text += f" = {draw(expressions())}"
    elif kind.value and draw(st.booleans()):
        text += f" = {draw(_bare_value(draw(st.sampled_from(kind.value))))}"
    elif kind.refers and draw(st.booleans()):
        text += f" = {draw(names())}.{draw(names())}"
    inside = [*(kinds_in(kind.word).values())]
    if kind.settings is not None and draw(st.booleans()):
        lines = [draw(_setting(each)) for each in draw(st.lists(st.sampled_from(kind.settings), max_size=3))]
        lines += (
            [draw(statements(each)) for each in draw(st.lists(st.sampled_from(inside), max_size=3))] if inside else []
        )
        text += " {\n" + "".join(f"  {line}\n" for line in lines) + "}"
    return text


@cache
def _uses() -> st.SearchStrategy[str]:
    return st.one_of(
        st.just("use std.gates"),
        names().map(lambda name: f"use std.gates as {name}"),
        st.tuples(strings(), names()).map(lambda parts: f"use {parts[0]} as {parts[1]}"),
        strings().map(lambda path: f"use {path}"),
    )


@st.composite
def programs(draw: st.DrawFn, *, max_statements: int = 5, docs: bool = True) -> str:
    """Well-formed programs: their syntax is right, their meaning need not be."""
    kinds = draw(st.lists(st.sampled_from(sorted(kinds_in(""))), max_size=max_statements))
    found = [draw(statements(KINDS[kind])) for kind in kinds]
    found += draw(st.lists(_uses(), max_size=1))
    notes = [*COMMENTS, "/// what it is for", "///"] if docs else COMMENTS
    found = [f"{draw(st.sampled_from(notes))}\n{each}" if draw(st.booleans()) else each for each in found]
    head = draw(st.sampled_from(["language 1", "language 1\n", "# first\nlanguage 1", ""]))
    plain = "\n".join([head, *found, ""])
    return draw(layouts(plain, docs=docs))


# ---- mistakes -------------------------------------------------------------------------------------

_WORDS = sorted({*all_words(), *(token.text for text in EXAMPLES for token in tokens(text)), "\n", ";"})


@st.composite
def mutated(draw: st.DrawFn, found: st.SearchStrategy[str] | None = None) -> str:
    """Programs with mistakes: tokens lost, doubled, swapped or put in, ends cut off, two programs joined."""
    found = st.sampled_from(EXAMPLES) if found is None else found
    pieces = [piece for token in tokens(draw(found)) for piece in (token.gap, token.text)]
    for _ in range(draw(st.integers(1, 4))):
        at, to = sorted((draw(st.integers(0, len(pieces))), draw(st.integers(0, len(pieces)))))
        match draw(st.sampled_from(["lose", "double", "swap", "put", "spoil", "cut", "join", "lose many", "split"])):
            case "lose":
                del pieces[at : at + 1]
            case "lose many":
                del pieces[at : min(to, at + 12)]
            case "double":
                pieces[at:at] = pieces[at : at + 2]
            case "swap" if at < to < len(pieces):
                pieces[at], pieces[to] = pieces[to], pieces[at]
            case "put":
                pieces.insert(at, draw(st.sampled_from(_WORDS)))
            case "spoil":
                pieces.insert(at, draw(st.sampled_from(HOSTILE)))
            case "cut":
                pieces = pieces[at:] if draw(st.booleans()) else pieces[:to]
            case "join":
                other = [piece for token in tokens(draw(found)) for piece in (token.gap, token.text)]
                pieces = pieces[:to] + other[draw(st.integers(0, len(other))) :]
            case "split" if at < len(pieces):
                half = len(pieces[at]) // 2
                pieces[at : at + 1] = [pieces[at][:half], draw(st.sampled_from(HOSTILE)), pieces[at][half:]]
    return "".join(pieces)
