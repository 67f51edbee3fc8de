"""Statements in the manner of JSON, YAML and other languages: commas, colons, hyphens, quoted keys, conditions."""

from __future__ import annotations

import re

from skillc.syntax.mistakes.context import VALUES, ErrorContext, Mistake, TextPatch, padded
from skillc.syntax.outline import separators

_COLON = re.compile(r"(?:[^\W\d]\w*[ \t]+)*[^\W\d]\w*[ \t]*(:)[ \t]*")
_KEY = re.compile(r'"([^\W\d][\w-]*)"[ \t]*(:|=)?')
_KEBAB = re.compile(r"[^\W\d]\w*(?:-\w+)+")
_STATEMENT = re.compile(r"[^\W\d]\w*(?:[ \t]+[^\W\d]\w*)*[ \t]*[={:]")
_ENDS_VALUE = {"NAME", "NUMBER", "MONEY", "STRING", "TEXT", "RPAR", "RSQB", "PERCENT"}
_CONTROL = {"if", "else", "elif", "while", "unless", "then"}


def comma_in_block(s: ErrorContext) -> Mistake | None:
    """`{ a = 1, b = 2 }`."""
    if s.kind != "COMMA" or s.inside not in ("", "LBRACE"):
        return None
    text = s.draft.text
    repair = []
    for comma in (s.start, *separators(text, s.start + 1, max(s.statement[1], s.start + 1))):
        rest = text[comma + 1 : text.find("\n", comma + 1) if "\n" in text[comma + 1 :] else len(text)].strip()
        repair.append(TextPatch(comma, comma + 1, "" if not rest or rest[0] in "#}" else ";"))
    message, hint = "statements are not separated by commas", "write each on a separate line, or write `;`"
    return s.mistake("SK012", message, (s.start, s.start + 1), hint=hint, repair=repair, safe=True)


def colon_for_equals(s: ErrorContext) -> Mistake | None:
    """`limit: 800 tokens`: a type follows a colon, and this is none."""
    if s.inside not in ("", "LBRACE"):
        return None
    text, (start, _) = s.draft.text, s.statement
    match = _COLON.match(text, start)
    if match is None or match.end(1) > s.start:
        return None
    between = text[match.end() : s.start]
    if between and not re.fullmatch(r'[^\W\d]\w*[ \t]*|"(?:[^"\\\n]|\\.)*"[ \t]*', between):
        return None
    if s.kind not in VALUES | {"UNCLOSED", "SCALE", "DOT", "COMPARE"} or (between and s.kind in ("NAME", "STRING")):
        return None
    place, name = match.span(1), text[start : match.start(1)].split()[-1]
    message = "`=` assigns a value; `:` precedes a type"
    return s.replacement("SK013", message, place, padded(text, place, "="), hint=f"write `{name} =`")


def quoted_key(s: ErrorContext) -> Mistake | None:
    """`"limit": 800`."""
    if s.kind != "STRING" or s.last_kind not in ("", "LBRACE", "_END", "COMMA"):
        return None
    match = _KEY.match(s.draft.text, s.start)
    if match is None:
        return None
    name, place = match[1].replace("-", "_"), (s.start, s.failure.at.end)
    repair = [TextPatch(*place, name)]
    if match[2] == ":":
        repair.append(TextPatch(*match.span(2), " ="))
    message, hint = "words of the language have no quotes", f"write `{name} = ...`"
    return s.mistake("SK022", message, place, hint=hint, repair=repair, safe=True)


def quoted_name(s: ErrorContext) -> Mistake | None:
    """`model "target" = ...`."""
    last = s.failure.last
    if last is None or last.kind != "STRING" or s.kind not in ("EQUAL", "COLON") or s.failure.accepts & {"COMPARE"}:
        return None
    match = _KEY.match(s.draft.text, last.start)
    if match is None:
        return None
    return s.replacement("SK022", "names have no quotes", (last.start, last.end), match[1].replace("-", "_"))


def operator_as_value(s: ErrorContext) -> Mistake | None:
    """`a < and b`: the parser takes `and` for a name where it accepts no operator."""
    last = s.failure.last
    if last is None or last.kind != "NAME" or s.draft.text[last.start : last.end] not in ("and", "or", "not"):
        return None
    word = s.draft.text[last.start : last.end]
    return s.mistake("SK001", f"expected a value, found `{word}`", (last.start, last.end))


def hyphen_in_name(s: ErrorContext) -> Mistake | None:
    """`skill route-tickets { ... }`."""
    if s.kind != "SIGN" or s.word != "-" or s.last_kind != "NAME" or s.last_end != s.start:
        return None
    last = s.failure.last
    match = _KEBAB.match(s.draft.text, last.start) if last else None
    if match is None:
        return None
    message = f"`{match[0]}` is not a name: `-` means minus"
    return s.replacement("SK022", message, match.span(), match[0].replace("-", "_"))


def condition(s: ErrorContext) -> Mistake | None:
    """`if`, `else` and the like."""
    text = s.draft.text
    first = re.compile(r"[^\W\d]\w*").match(text, s.statement[0])
    if s.kind == "NAME" and s.word in _CONTROL:
        place = (s.start, s.failure.at.end)
    elif first and first[0] in _CONTROL and first.end() <= s.start:
        place = first.span()
    else:
        return None
    hint = "in a metric a condition counts as 0 or 1: `(when) * a + (not when) * b`; a gate is itself a condition"
    return s.mistake("SK017", f"the language has no `{text[slice(*place)]}`", place, hint=hint)


def missing_comma(s: ErrorContext) -> Mistake | None:
    """`[a b]`, and two statements on a line."""
    if s.kind not in VALUES - {"SIGN", "LPAR", "LSQB"} or s.last_kind not in _ENDS_VALUE:
        return None
    place, end = (s.start, s.failure.at.end), s.last_end
    if "COMMA" in s.failure.accepts and s.inside in ("LPAR", "LSQB"):
        message = f"missing comma between {'list items' if s.inside == 'LSQB' else 'arguments'}"
        repair = [TextPatch(end, end, ",")]
        return s.mistake("SK023", message, place, hint="write `,` before it", repair=repair, safe=True)
    if "_END" in s.failure.accepts and s.kind == "NAME" and not s.first_on_line():
        repair = [TextPatch(end, end, ";")] if _STATEMENT.match(s.draft.text, s.start) else []
        message = f"unexpected `{s.word}` after a complete statement"
        hint = "begin a new line, or write `;` before it"
        return s.mistake("SK001", message, place, hint=hint, repair=repair, safe=False)
    return None


def block_as_value(s: ErrorContext) -> Mistake | None:
    """`data = { ... }`."""
    if s.kind != "LBRACE" or s.last_kind != "EQUAL" or s.last_end == 0 or s.inside not in ("", "LBRACE"):
        return None
    text, equals = s.draft.text, s.last_end - 1
    start = equals - 1 if text[equals - 1 : equals].isspace() and text[equals + 1 : equals + 2].isspace() else equals
    message, repair = "a block is not a value, and follows without `=`", [TextPatch(start, equals + 1, "")]
    return s.mistake("SK029", message, (equals, equals + 1), hint="remove the `=`", repair=repair, safe=True)


def reserved_word(s: ErrorContext) -> Mistake | None:
    """`use = 3`; the other reserved words parse as names, and the builder reports them."""
    last = s.failure.last
    if last and last.kind == "USE" and s.kind in ("EQUAL", "COLON", "LBRACE", "LPAR"):
        hint = "choose another name; `use` imports a module"
        return s.mistake("SK030", "`use` is reserved and can't begin a setting", (last.start, last.end), hint=hint)
    return None


def missing_value(s: ErrorContext) -> Mistake | None:
    """`limit =` without a value."""
    last = s.failure.last
    if last is None or last.kind not in ("EQUAL", "COLON"):
        return None
    if s.kind not in ("_END", "RBRACE", "$END", "EQUAL") and not s.first_on_line():
        return None
    what = "type" if last.kind == "COLON" else "value"
    place = (last.start, last.end)
    message = f"no {what} follows the `{s.draft.text[slice(*place)]}`"
    return s.mistake("SK026", message, place, hint=f"write the {what} after it")
