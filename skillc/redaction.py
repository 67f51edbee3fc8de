"""Redaction of declared secrets: every form of their values becomes `[secret NAME]`.

A model or a command may repeat a key in its own words: plain, in a JSON text, in an address, in base64. Texts are
redacted where they enter skillc, once and before they are stored, so that a reply is the same when it is sent and when
it comes from the cache.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

SHORTEST = 8
"""Characters of the shortest value that is redacted: a shorter one is part of common words, and easily guessed."""

# Messages are not stored and not scored, so that more is redacted there than in replies.
_SHORTEST_IN_MESSAGES = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Secret:
    """The value of a secret, never shown, and the name that is shown instead of it."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


class Redactor:
    """Replaces each secret in a text by `[secret NAME]`; a text without any is returned unchanged.

    It finds a value as it is, with characters escaped as in JSON, Python, a shell or HTML, percent-encoded, in
    hexadecimal, and in base64 of both alphabets wherever it begins within the encoded bytes. A value that is split
    over several lines or texts is not found.

    Args:
        secrets: equal values are shown under the first name of the alphabet.
        shortest: values with fewer characters are ignored.

    Attributes:
        too_short: names of the secrets that are not redacted because of their length, sorted.
    """

    def __init__(self, secrets: Iterable[Secret], shortest: int = SHORTEST) -> None:
        self._secrets = frozenset(secret for secret in secrets if secret.value)
        self.too_short = tuple(sorted({each.name for each in self._secrets if len(each.value) < shortest}))
        kept: dict[str, str] = {}
        for each in sorted(self._secrets, key=lambda secret: secret.name):
            if len(each.value) >= shortest:
                kept.setdefault(each.value, f"[secret {_UNSAFE.sub('_', each.name)}]")
        # The longest first, since one value may be the beginning of another.
        self._marks = {value: kept[value] for value in sorted(kept, key=lambda value: (-len(value), value))}
        anchors = [_anchors(value) for value in self._marks]
        self._anchors = None if None in anchors else [anchor for each in anchors for anchor in each or ()]

    def __bool__(self) -> bool:
        return bool(self._marks)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self._any.sub(self._replace, text) if self._marks and self._may_occur(text) else text

    def value(self, value: T) -> T:
        """Return a JSON value with all its texts redacted, names included."""
        return redact_value(value, self) if self._marks else value

    # Compiled at the first suspicion: that takes 10 ms for a long key.
    @cached_property
    def _forms(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(_pattern(value)), mark) for value, mark in self._marks.items()]

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile("|".join(form.pattern for form, _ in self._forms))

    def message(self, text: str) -> str:
        """Return a message for the user without secrets, shorter ones and those that are cut at an `…` included."""
        return self._in_messages._cut_off(self._in_messages(text))

    def having(self, secret: Secret) -> Redactor:
        """Return one that replaces another secret too, unless it replaces that value already."""
        return self if not secret.value or secret.value in self._marks else Redactor({*self._secrets, secret})

    def as_text(self) -> str:
        """Return the secrets as text, to be given to a process of this user alone."""
        return json.dumps([[each.name, each.value] for each in sorted(self._secrets, key=lambda each: each.name)])

    @classmethod
    def of_text(cls, text: str) -> Redactor:
        """Read what `as_text` returned."""
        return cls(Secret(name, value) for name, value in json.loads(text))

    @cached_property
    def _in_messages(self) -> Redactor:
        return Redactor(self._secrets, _SHORTEST_IN_MESSAGES)

    def _may_occur(self, text: str) -> bool:
        """Look for what every form of a value contains, which is much faster than the expression."""
        if self._anchors is None:
            return True
        for anchor in self._anchors:
            if anchor in text:
                return True
        return any(sign in text and escape.search(text) is not None for sign, escape in _ESCAPES)

    def _replace(self, found: re.Match[str]) -> str:
        return next(mark for form, mark in self._forms if form.fullmatch(found[0]))

    def _cut_off(self, text: str) -> str:
        """Replace the beginning of a value right before an `…`, and the end of one right behind it."""
        parts = text.split("…")
        for i in range(len(parts)):
            for value, mark in self._marks.items():
                for part in _parts(value) if len(parts) > 1 else ():
                    if i + 1 < len(parts) and value.startswith(part) and parts[i].endswith(part):
                        parts[i] = parts[i][: -len(part)] + mark
                    if i and value.endswith(part) and parts[i].startswith(part):
                        parts[i] = mark + parts[i][len(part) :]
        return "…".join(parts)


def redact_value(value: Any, hide: Callable[[str], str]) -> Any:
    """Return a JSON value with `hide` applied to all its texts, names included."""
    match value:
        case str():
            return hide(value)
        case Mapping():
            return {hide(str(name)): redact_value(item, hide) for name, item in value.items()}
        case list() | tuple():
            return [redact_value(item, hide) for item in value]
        case _:
            return value


NOTHING = Redactor(())
"""Redacts nothing."""

# The mark needs no escape, so that a JSON text stays one.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


def describe_too_short(names: Sequence[str]) -> str | None:
    """Return the note about secrets that are not redacted because of their length; None if there are none."""
    if not names:
        return None
    listed = ", ".join(f"`{name}`" for name in names)
    one = len(names) == 1
    which = f"the value of {listed} has" if one else f"the values of {listed} have"
    return f"{which} fewer than {SHORTEST} characters: replies that contain {'it' if one else 'them'} are not redacted"


def _parts(value: str) -> Iterator[str]:
    """Yield the beginnings and ends of a value that are worth hiding, the longest first."""
    for count in range(len(value) - 1, _SHORTEST_IN_MESSAGES - 1, -1):
        yield value[:count]
        yield value[-count:]


# ---- the forms of one value ------------------------------------------------------------------------

# Escapes double backslashes, and `%` becomes `%25`. The limits keep a search linear in the length of the text.
_BACKSLASHES, _PERCENT = r"\\{1,8}", "%(?:25){0,3}"
_HTML = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# The signs of the two alphabets of base64, percent-encoded, or escaped as `\/`.
_SIGNS = {"+": rf"(?:[+-]|{_PERCENT}2[bB])", "/": rf"(?:\\{{0,8}}/|_|{_PERCENT}2[fF])"}
# An escaped letter or digit of ASCII.
_ESCAPES = (("%", re.compile(r"%(?:25)*[3-7]")), ("\\", re.compile(r"\\(?:u00|x)[3-7]")))
_RUN = re.compile(r"[A-Za-z0-9]{4,}")
_LONGEST_ANCHOR = 16


def _anchors(value: str) -> list[str] | None:
    """Return texts of which each form of a value contains one, unless its letters are escaped; None if it has none."""
    coded = value.encode("utf-8", "surrogatepass")
    digits = coded.hex()
    runs = [_longest_run(form) for form in (value, *(_base64_core(coded, offset) for offset in range(3)))]
    if not all(runs):
        return None
    # Digits in mixed case are written by nobody.
    return list(dict.fromkeys([*runs, *(text[:_LONGEST_ANCHOR] for text in (digits, digits.upper()))]))


def _longest_run(text: str) -> str:
    return max(_RUN.findall(text), key=len, default="")[:_LONGEST_ANCHOR]


def _pattern(value: str) -> str:
    """Return the expression that matches a value in each of its forms, without groups."""
    written = "".join(_run(found[0]) for found in re.finditer(r"\\+|[^\\]", value))
    coded = value.encode("utf-8", "surrogatepass")
    digits = "".join(map(_either_case, coded.hex()))
    return "|".join([written, digits, *dict.fromkeys(_base64(coded, offset) for offset in range(3))])


def _run(text: str) -> str:
    """Match one character, or several backslashes."""
    if text[0] != "\\":
        return _character(text)
    return rf"(?:(?:{_escaped(text[0])}){{{len(text)}}}|\\{{{len(text)},{8 * len(text)}}})"


def _character(sign: str) -> str:
    """Match a character as it is and escaped."""
    # Escapes first: the plain form of `%` or `&` is the beginning of its escaped one.
    ways = [_escaped(sign)]
    if sign in _LETTERS:
        ways.append(_BACKSLASHES + _LETTERS[sign])
    if sign in _HTML:
        ways.append(f"&(?:{_HTML[sign]}|#0{{0,6}}{ord(sign)}|#[xX]0{{0,6}}{_hex(ord(sign), 2)});")
    if sign == " ":
        ways.append(r"\+")
    ways.append(re.escape(sign) if sign.isalnum() else rf"\\{{0,8}}{re.escape(sign)}")
    return f"(?:{'|'.join(ways)})"


def _escaped(sign: str) -> str:
    """Match a character as an escape of JSON or Python, and percent-encoded."""
    units, octets = sign.encode("utf-16-be", "surrogatepass"), sign.encode("utf-8", "surrogatepass")
    wide = "".join(f"{_BACKSLASHES}u{_hex(int.from_bytes(units[i : i + 2]), 4)}" for i in range(0, len(units), 2))
    narrow = ("".join(f"{lead}{_hex(octet, 2)}" for octet in octets) for lead in (f"{_BACKSLASHES}x", _PERCENT))
    whole = f"{_BACKSLASHES}x{_hex(ord(sign), 2)}" if ord(sign) < 256 else f"{_BACKSLASHES}U{_hex(ord(sign), 8)}"
    return "|".join(dict.fromkeys([wide, *narrow, whole]))


def _hex(number: int, digits: int) -> str:
    return "".join(map(_either_case, f"{number:0{digits}x}"))


def _either_case(digit: str) -> str:
    return f"[{digit}{digit.upper()}]" if digit.isalpha() else digit


def _base64_core(coded: bytes, offset: int) -> str:
    """Return what bytes are in base64, behind `offset` other bytes, without the characters that they share."""
    text = base64.b64encode(bytes(offset) + coded).decode()
    return text[(0, 2, 3)[offset] : (offset + len(coded)) * 8 // 6]


def _base64(coded: bytes, offset: int) -> str:
    """Match bytes in base64 behind `offset` other bytes; at the end also the character that they share, and padding."""
    bits = (offset + len(coded)) * 8 % 6
    last = ""
    if bits:
        shared = base64.b64encode(bytes(offset) + coded).decode()[(offset + len(coded)) * 8 // 6]
        first = _ALPHABET.index(shared)
        choices = _ALPHABET[first : first + 2 ** (6 - bits)]
        last = "[" + choices.replace("+", r"+\-").replace("/", "/_") + "]?"
    core = "".join(_SIGNS.get(sign, sign) for sign in _base64_core(coded, offset))
    return f"{core}{last}(?:=|{_PERCENT}3[dD]){{0,2}}"
