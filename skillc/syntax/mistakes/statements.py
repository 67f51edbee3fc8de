"""Statements in the manner of JSON, YAML and other languages: commas, colons, hyphens, quoted keys, conditions."""

from __future__ import annotations

import re

from skillc.syntax.mistakes.signs import VALUES
from skillc.syntax.mistakes.situation import Edit, Mistake, Situation
from skillc.syntax.outline import separators

_COLON = re.compile(r"(?:[^\W\d]\w*[ \t]+)*[^\W\d]\w*[ \t]*(:)[ \t]*")
_KEY = re.compile(r'"([^\W\d][\w-]*)"[ \t]*(:|=)?')
_KEBAB = re.compile(r"[^\W\d]\w*(?:-\w+)+")
_STATEMENT = re.compile(r"[^\W\d]\w*(?:[ \t]+[^\W\d]\w*)*[ \t]*[={:]")
_ENDS_VALUE = {"NAME", "NUMBER", "MONEY", "STRING", "TEXT", "RPAR", "RSQB", "PERCENT"}
_CONTROL = {"if", "else", "elif", "while", "unless", "then"}


def comma_in_block(s: Situation) -> Mistake | None:
    """`{ a = 1, b = 2 }`."""
    if s.kind != "COMMA" or s.inside not in ("", "LBRACE"):
        return None
    text = s.draft.text
    commas = [s.start, *(c for c in separators(text, s.start + 1, max(s.statement[1], s.start + 1)))]
    repair = []
    for comma in commas:
        rest = text[comma + 1 : text.find("\n", comma + 1) if "\n" in text[comma + 1 :] else len(text)].strip()
        repair.append(Edit(comma, comma + 1, "" if not rest or rest[0] in "#}" else ";"))
    message = "statements are not separated by commas"
    hint = "put each on a line of its own, or write `;`"
    return s.mistake("SK012", message, (s.start, s.start + 1), hint=hint, repair=repair, safe=True)


def colon_for_equals(s: Situation) -> Mistake | None:
    """`limit: 800 tokens`: a colon is followed by a type, and this is none."""
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
    colon = match.start(1)
    before = "" if text[colon - 1].isspace() else " "
    after = "" if text[colon + 1 : colon + 2].isspace() else " "
    name = text[start:colon].split()[-1]
    repair = [Edit(colon, colon + 1, f"{before}={after}")]
    message = "a value is given with `=`; `:` names a type"
    return s.mistake("SK013", message, (colon, colon + 1), hint=f"write `{name} =`", repair=repair, safe=True)


def quoted_key(s: Situation) -> Mistake | None:
    """`"limit": 800`."""
    if s.kind != "STRING" or s.last_kind not in ("", "LBRACE", "_END", "COMMA"):
        return None
    match = _KEY.match(s.draft.text, s.start)
    if match is None:
        return None
    name = match[1].replace("-", "_")
    repair = [Edit(s.start, s.failure.at.end, name)]
    message, hint = "the language's own words stand without quotes", f"write `{name} = ...`"
    if match[2] == ":":
        repair.append(Edit(match.start(2), match.end(2), " ="))
    return s.mistake("SK022", message, (s.start, s.failure.at.end), hint=hint, repair=repair, safe=True)


def quoted_name(s: Situation) -> Mistake | None:
    """`model "target" = ...`."""
    last = s.failure.last
    if last is None or last.kind != "STRING" or s.kind not in ("EQUAL", "COLON") or s.failure.accepts & {"COMPARE"}:
        return None
    match = _KEY.match(s.draft.text, last.start)
    if match is None:
        return None
    name = match[1].replace("-", "_")
    repair = [Edit(last.start, last.end, name)]
    place = (last.start, last.end)
    return s.mistake("SK022", "names stand without quotes", place, hint=f"write `{name}`", repair=repair, safe=True)


def operator_as_value(s: Situation) -> Mistake | None:
    """`a < and b`: the parser takes `and` for a name where it accepts no operator."""
    last = s.failure.last
    if last is None or last.kind != "NAME" or s.draft.text[last.start : last.end] not in ("and", "or", "not"):
        return None
    word = s.draft.text[last.start : last.end]
    return s.mistake("SK001", f"expected a value, found `{word}`", (last.start, last.end))


def hyphen_in_name(s: Situation) -> Mistake | None:
    """`skill route-tickets { ... }`."""
    if s.kind != "SIGN" or s.word != "-" or s.last_kind != "NAME" or s.last_end != s.start:
        return None
    last = s.failure.last
    match = _KEBAB.match(s.draft.text, last.start) if last else None
    if match is None:
        return None
    right = match[0].replace("-", "_")
    message = f"`{match[0]}` is not a name: `-` means minus"
    repair = [Edit(match.start(), match.end(), right)]
    return s.mistake("SK022", message, match.span(), hint=f"write `{right}`", repair=repair, safe=True)


def condition(s: Situation) -> Mistake | None:
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
    return s.mistake("SK017", f"there is no `{text[slice(*place)]}`", place, hint=hint)


def missing_comma(s: Situation) -> Mistake | None:
    """`[a b]`, and two statements on a line."""
    if s.kind not in VALUES - {"SIGN", "LPAR", "LSQB"} or s.last_kind not in _ENDS_VALUE:
        return None
    end = s.last_end
    if "COMMA" in s.failure.accepts and s.inside in ("LPAR", "LSQB"):
        what = "items of a list" if s.inside == "LSQB" else "arguments"
        repair = [Edit(end, end, ",")]
        place = (s.start, s.failure.at.end)
        return s.mistake(
            "SK023", f"{what} are separated by commas", place, hint="write `,` before it", repair=repair, safe=True
        )
    if "_END" in s.failure.accepts and s.kind == "NAME" and not s.first_on_line():
        repair = [Edit(end, end, ";")] if _STATEMENT.match(s.draft.text, s.start) else []
        hint = "begin a new line, or write `;` before it"
        message = f"`{s.word}` can't follow here: the statement is complete"
        return s.mistake("SK001", message, (s.start, s.failure.at.end), hint=hint, repair=repair, safe=False)
    return None


def block_as_value(s: Situation) -> Mistake | None:
    """`data = { ... }`."""
    if s.kind != "LBRACE" or s.last_kind != "EQUAL" or s.last_end == 0:
        return None
    equals = s.last_end - 1
    if s.inside not in ("", "LBRACE"):
        return None
    text = s.draft.text
    start = equals - 1 if text[equals - 1 : equals].isspace() and text[equals + 1 : equals + 2].isspace() else equals
    repair = [Edit(start, equals + 1, "")]
    message = "a block is not a value, and follows without `=`"
    return s.mistake("SK029", message, (equals, equals + 1), hint="remove the `=`", repair=repair, safe=True)


def reserved_word(s: Situation) -> Mistake | None:
    """`use = 3`; the other reserved words parse as names, and are reported when the tree is built."""
    last = s.failure.last
    if last and last.kind == "USE" and s.kind in ("EQUAL", "COLON", "LBRACE", "LPAR"):
        hint = "choose another name; `use` brings in a module"
        return s.mistake("SK030", "`use` is reserved and can't begin a setting", (last.start, last.end), hint=hint)
    return None


def missing_value(s: Situation) -> Mistake | None:
    """`limit =` with nothing behind it."""
    last = s.failure.last
    if last is None or last.kind not in ("EQUAL", "COLON"):
        return None
    if s.kind not in ("_END", "RBRACE", "$END", "EQUAL") and not s.first_on_line():
        return None
    what = "type" if last.kind == "COLON" else "value"
    sign = s.draft.text[last.start : last.end]
    return s.mistake(
        "SK026", f"no {what} follows the `{sign}`", (last.start, last.end), hint=f"write the {what} behind it"
    )
