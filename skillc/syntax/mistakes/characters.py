"""Characters with which nothing begins: operators and quotes of other languages, money, what cannot be seen."""

from __future__ import annotations

import re
import unicodedata

from skillc.syntax.literals import quote
from skillc.syntax.mistakes.situation import Detector, Edit, Mistake, Situation

_INVISIBLE = {
    "\u00a0": ("no-break space", " "),
    "\u1680": ("ogham space", " "),
    **{chr(c): ("space of unusual width", " ") for c in range(0x2000, 0x200B)},
    "\u2007": ("figure space", " "),
    "\u202f": ("narrow no-break space", " "),
    "\u205f": ("mathematical space", " "),
    "\u3000": ("ideographic space", " "),
    "\u200b": ("zero-width space", ""),
    "\u200c": ("zero-width non-joiner", ""),
    "\u200d": ("zero-width joiner", ""),
    "\u2060": ("word joiner", ""),
    "\ufeff": ("byte-order mark", ""),
    "\u00ad": ("soft hyphen", ""),
    **{
        chr(c): ("mark of writing direction", "")
        for c in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    },
    "\u2028": ("line separator", "\n"),
    "\u2029": ("paragraph separator", "\n"),
    "\u0085": ("next-line character", "\n"),
    "\x0b": ("vertical tab", " "),
}
_SIGNS = {"≥": ">=", "≤": "<=", "≠": "!=", "≧": ">=", "≦": "<=", "⩾": ">=", "⩽": "<=", "×": "*", "·": "*", "÷": "/"}
_DASHES = "−–—‐‑"
_LOGIC = {"∧": "and", "∨": "or", "¬": "not"}
_SINGLE = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
_CURLY = re.compile(r"[“”„‟«»]([^“”„‟«»\n\"]*)[“”„‟«»\"]|[‘’‚‛]([^‘’‚‛\n\"]*)[‘’‚‛]")
_MONEY = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)")
_SPACES = re.compile(r"[ \t]*")


def _logic(s: Situation) -> Mistake | None:
    sign, start = s.ahead(), s.start
    if sign == "&":
        end = start + (2 if s.ahead(2) == "&&" else 1)
        return _word(s, start, end, "and")
    if sign == "!":
        return _word(s, start, start + 1, "not")
    if sign in _LOGIC:
        return _word(s, start, start + 1, _LOGIC[sign])
    return None


def _word(s: Situation, start: int, end: int, word: str) -> Mistake:
    sign, text = s.draft.text[start:end], s.draft.text
    before = "" if start == 0 or text[start - 1].isspace() or text[start - 1] in "([" else " "
    after = "" if text[end : end + 1].isspace() else " "
    edit = Edit(start, end, f"{before}{word}{after}")
    return s.mistake(
        "SK015", f"`{sign}` is not an operator", (start, end), hint=f"write `{word}`", repair=[edit], safe=True
    )


def _sign(s: Situation) -> Mistake | None:
    sign, start = s.ahead(), s.start
    if sign in _SIGNS:
        right = _SIGNS[sign]
    elif sign and sign in _DASHES:
        right = "-"
    else:
        return None
    edit = Edit(start, start + 1, right)
    message = f"`{sign}` is not an operator" if right != "-" else f"`{sign}` is a dash, not a minus sign"
    return s.mistake("SK016", message, (start, start + 1), hint=f"write `{right}`", repair=[edit], safe=True)


def _quotes(s: Situation) -> Mistake | None:
    sign, start = s.ahead(), s.start
    if sign == "'":
        match, name = _SINGLE.match(s.draft.text, start), "single"
    elif sign and sign in "“”„‟«»‘’‚‛":
        match, name = _CURLY.match(s.draft.text, start), "curly" if sign not in "«»" else "angle"
    else:
        return None
    if match is None:
        hint = 'write texts in straight double quotes: `"billing"`'
        return s.mistake("SK018", f"{name} quotes do not hold a text", (start, start + 1), hint=hint)
    inner = match[1] if match[1] is not None else match[2]
    right = quote(inner.replace("\\'", "'") if name == "single" else inner)
    hint = f"write {right}" if "`" in right else f"write `{right}`"
    edit = Edit(start, match.end(), right)
    return s.mistake(
        "SK018", f"{name} quotes do not hold a text", (start, match.end()), hint=hint, repair=[edit], safe=True
    )


def _money(s: Situation) -> Mistake | None:
    sign, start, text = s.ahead(), s.start, s.draft.text
    if not sign or unicodedata.category(sign) != "Sc":
        return None
    spaces = _SPACES.match(text, start + 1)
    amount = _MONEY.match(text, spaces.end() if spaces else start + 1)
    if amount:
        right = "$" + ("0" if amount[1].startswith(".") else "") + amount[1]
        place, repair = (start, amount.end()), [Edit(start, amount.end(), right)]
    elif s.failure.last and s.last_kind == "NUMBER":
        last = s.failure.last
        right = "$" + text[last.start : last.end]
        place, repair = (last.start, start + 1), [Edit(last.start, start + 1, right)]
    elif sign == "$":
        hint = 'a variable of the environment is read with `env("NAME")`'
        return s.mistake("SK020", "no amount follows the `$`", (start, start + 1), hint=hint)
    else:
        return None
    if text[slice(*place)] == right:
        return s.mistake("SK020", f"something stands behind the amount `{right}`", place, hint="leave a space after it")
    if sign == "$":
        message, hint = "an amount of money is written without a space, the `$` first", f"write `{right}`"
        return s.mistake("SK020", message, place, hint=hint, repair=repair, safe=True)
    message, hint = f"money is counted in dollars, not in `{sign}`", f"write the amount in dollars, such as `{right}`"
    return s.mistake("SK020", message, place, hint=hint, repair=repair)


def _conditional(s: Situation) -> Mistake | None:
    if s.ahead() != "?":
        return None
    hint = "in a metric a condition counts as 0 or 1: `(when) * a + (not when) * b`"
    return s.mistake("SK017", "there is no `? :`", (s.start, s.start + 1), hint=hint)


def _invisible(s: Situation) -> Mistake | None:
    sign, start, text = s.ahead(), s.start, s.draft.text
    if sign not in _INVISIBLE:
        return None
    end = start + 1
    while text[end : end + 1] == sign:
        end += 1
    name, right = _INVISIBLE[sign]
    place = f"{name} (U+{ord(sign):04X})"
    hint = f"replace it by {'a plain space' if right == ' ' else 'a line end'}" if right else "remove it"
    # Between two halves of a word its removal joins them, which is what the reader of the text sees.
    edits = [Edit(start, end, right * (end - start))]
    return s.mistake(
        "SK024",
        f"{'an' if name[0] in 'io' else 'a'} {place} stands here",
        (start, end),
        hint=hint,
        repair=edits,
        safe=True,
    )


def _look_alike(s: Situation) -> Mistake | None:
    sign, start = s.ahead(), s.start
    if not ("\uff01" <= sign <= "\uff5e" or sign in "。、「」"):
        return None
    right = {"。": ".", "、": ",", "「": '"', "」": '"'}.get(sign) or chr(ord(sign) - 0xFEE0)
    message = f"`{sign}` (U+{ord(sign):04X}) only looks like `{right}`"
    return s.mistake(
        "SK024", message, (start, start + 1), hint=f"write `{right}`", repair=[Edit(start, start + 1, right)], safe=True
    )


def _combining(s: Situation) -> Mistake | None:
    sign, start = s.ahead(), s.start
    if not sign or not unicodedata.combining(sign) or not start:
        return None
    before = s.behind()
    joined = unicodedata.normalize("NFC", before + sign)
    message = f"the {unicodedata.name(sign, 'mark').lower()} (U+{ord(sign):04X}) stands apart from its letter"
    if len(joined) != 1:
        hint = "a name is made of letters, digits and `_`"
        return s.mistake("SK024", message, (start, start + 1), hint=hint)
    edit = Edit(start - 1, start + 1, joined)
    place = (start - 1, start + 1)
    hint = f"write `{joined}` as one character, U+{ord(joined):04X}"
    return s.mistake("SK024", message, place, hint=hint, repair=[edit], safe=True)


def _other(s: Situation) -> Mistake | None:
    sign, place = s.ahead(), (s.start, s.start + 1)
    hints = {
        "`": 'quote a text with `"`, one of several lines with `"""`',
        "\\": "a line that ends in an operator, `=` or `,` goes on by itself",
        "^": "there is no power; write `x * x`",
        "@": None,
        "\0": "the file is not a text, or is damaged",
        "\r": "end lines with a line feed, as every editor can",
    }
    if sign in hints:
        name = (
            "the backtick" if sign == "`" else f"`{sign}`" if sign.isprintable() else f"the character U+{ord(sign):04X}"
        )
        return s.mistake("SK002", f"{name} has no meaning here", place, hint=hints[sign])
    if sign.isprintable():
        name = unicodedata.name(sign, "").lower()
        suffix = f" (U+{ord(sign):04X}, {name})" if name and not sign.isascii() else ""
        return s.mistake("SK002", f"`{sign}`{suffix} has no meaning here", place)
    return s.mistake("SK002", f"the character U+{ord(sign):04X} has no meaning here", place)


def unknown_character(s: Situation) -> Mistake | None:
    """The mistake behind a character with which nothing begins."""
    if s.kind != "CHARACTER":
        return None
    for detector in _DETECTORS:
        if found := detector(s):
            return found
    return None


_DETECTORS: tuple[Detector, ...] = (
    _logic,
    _sign,
    _quotes,
    _money,
    _conditional,
    _invisible,
    _look_alike,
    _combining,
    _other,
)
