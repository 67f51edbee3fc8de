"""Characters that begin no token: operators and quotes of other languages, currency, invisible characters."""

from __future__ import annotations

import re
import unicodedata

from skillc.syntax.literals import quote
from skillc.syntax.mistakes.context import Detector, ErrorContext, Mistake, TextPatch, padded

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
    **{chr(c): ("bidirectional control", "") for c in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))},
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


def _logic(s: ErrorContext) -> Mistake | None:
    sign = "&&" if s.ahead(2) == "&&" else s.ahead()
    word = {"&": "and", "&&": "and", "!": "not", **_LOGIC}.get(sign)
    if word is None:
        return None
    place = (s.start, s.start + len(sign))
    text = padded(s.draft.text, place, word, opened="([")
    return s.replacement("SK015", f"`{sign}` is not an operator", place, text, hint=f"write `{word}`")


def _sign(s: ErrorContext) -> Mistake | None:
    sign, place = s.ahead(), (s.start, s.start + 1)
    if sign in _SIGNS:
        return s.replacement("SK016", f"`{sign}` is not an operator", place, _SIGNS[sign])
    if sign and sign in _DASHES:
        return s.replacement("SK016", f"`{sign}` is a dash, not a minus sign", place, "-")
    return None


def _quotes(s: ErrorContext) -> Mistake | None:
    sign, start = s.ahead(), s.start
    if sign == "'":
        match, name = _SINGLE.match(s.draft.text, start), "single"
    elif sign and sign in "“”„‟«»‘’‚‛":
        match, name = _CURLY.match(s.draft.text, start), "curly" if sign not in "«»" else "angle"
    else:
        return None
    message = f"{name} quotes can't delimit a string"
    if match is None:
        return s.mistake("SK018", message, (start, start + 1), hint='use straight double quotes: `"billing"`')
    inner = match[1] if match[1] is not None else match[2]
    right = quote(inner.replace("\\'", "'") if name == "single" else inner)
    hint = f"write {right}" if "`" in right else f"write `{right}`"
    return s.replacement("SK018", message, (start, match.end()), right, hint=hint)


def _money(s: ErrorContext) -> Mistake | None:
    sign, start, text = s.ahead(), s.start, s.draft.text
    if not sign or unicodedata.category(sign) != "Sc":
        return None
    spaces = _SPACES.match(text, start + 1)
    amount = _MONEY.match(text, spaces.end() if spaces else start + 1)
    if amount:
        right = "$" + ("0" if amount[1].startswith(".") else "") + amount[1]
        place = (start, amount.end())
    elif s.failure.last and s.last_kind == "NUMBER":
        last = s.failure.last
        right = "$" + text[last.start : last.end]
        place = (last.start, start + 1)
    elif sign == "$":
        hint = 'read an environment variable with `env("NAME")`'
        return s.mistake("SK020", "no amount follows the `$`", (start, start + 1), hint=hint)
    else:
        return None
    if text[slice(*place)] == right:
        return s.mistake("SK020", f"missing space after the amount `{right}`", place, hint="add a space")
    if sign == "$":
        return s.replacement("SK020", "`$` must be directly before the amount", place, right)
    message, hint = f"amounts are in dollars, not in `{sign}`", f"convert the amount to dollars, such as `{right}`"
    return s.mistake("SK020", message, place, hint=hint, repair=[TextPatch(*place, right)])


def _conditional(s: ErrorContext) -> Mistake | None:
    if s.ahead() != "?":
        return None
    hint = "in a metric a condition counts as 0 or 1: `(when) * a + (not when) * b`"
    return s.mistake("SK017", "the language has no `? :`", (s.start, s.start + 1), hint=hint)


def _invisible(s: ErrorContext) -> Mistake | None:
    sign, start, text = s.ahead(), s.start, s.draft.text
    if sign not in _INVISIBLE:
        return None
    end = start + 1
    while text[end : end + 1] == sign:
        end += 1
    name, right = _INVISIBLE[sign]
    message = f"unexpected {name} (U+{ord(sign):04X})"
    hint = f"replace it with {'a plain space' if right == ' ' else 'a line break'}" if right else "remove it"
    # Removing it between two halves of a word joins them, which is how the text looks.
    return s.replacement("SK024", message, (start, end), right * (end - start), hint=hint)


def _look_alike(s: ErrorContext) -> Mistake | None:
    sign = s.ahead()
    if not ("\uff01" <= sign <= "\uff5e" or sign in "。、「」"):
        return None
    right = {"。": ".", "、": ",", "「": '"', "」": '"'}.get(sign) or chr(ord(sign) - 0xFEE0)
    message = f"`{sign}` (U+{ord(sign):04X}) only looks like `{right}`"
    return s.replacement("SK024", message, (s.start, s.start + 1), right)


def _combining(s: ErrorContext) -> Mistake | None:
    sign, start = s.ahead(), s.start
    if not sign or not unicodedata.combining(sign) or not start:
        return None
    joined = unicodedata.normalize("NFC", s.behind() + sign)
    message = f"the {unicodedata.name(sign, 'mark').lower()} (U+{ord(sign):04X}) is separate from its letter"
    if len(joined) != 1:
        hint = "a name consists of letters, digits and `_`"
        return s.mistake("SK024", message, (start, start + 1), hint=hint)
    hint = f"write `{joined}` as one character, U+{ord(joined):04X}"
    return s.replacement("SK024", message, (start - 1, start + 1), joined, hint=hint)


_HINTS = {
    "`": 'quote a string with `"`, and a text of several lines with `"""`',
    "\\": "a line that ends in an operator, `=` or `,` continues without it",
    "^": "write a power as a product: `x * x`",
    "\0": "the file is not a text, or is damaged",
    "\r": "end lines with a line feed",
}


def _other(s: ErrorContext) -> Mistake | None:
    sign = s.ahead()
    name = unicodedata.name(sign, "").lower() if not sign.isascii() else ""
    if sign == "`":
        what = "the backtick"
    elif not sign.isprintable():
        what = f"the character U+{ord(sign):04X}"
    else:
        what = f"`{sign}` (U+{ord(sign):04X}, {name})" if name else f"`{sign}`"
    return s.mistake("SK002", f"{what} has no meaning here", (s.start, s.start + 1), hint=_HINTS.get(sign))


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


def unknown_character(s: ErrorContext) -> Mistake | None:
    """Explain a character that begins no token."""
    if s.kind != "CHARACTER":
        return None
    return next((found for detector in _DETECTORS if (found := detector(s))), None)
