"""Values of literals: strings, texts, numbers."""

from __future__ import annotations

import re
from fractions import Fraction

_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_UNPLAIN = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_NUMBER = re.compile(r"(?P<whole>[0-9_]+)(?:\.(?P<part>[0-9]+))?(?:e(?P<exponent>-?[0-9]+))?(?P<scale>[kM])?")
_SCALES = {None: 1, "k": 1_000, "M": 1_000_000}
_DIGITS_LIMIT = 40
_EXPONENT_LIMIT = 30


def string_value(raw: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    r"""Return the value of `"..."`, quotes included, and the ranges of unknown escapes.

    Escapes: `\"`, `\\`, `\n`, `\t`, `\r`, `\u00e9`, `\u{1F600}`. An unknown one is kept.

    >>> string_value(r'"a\tb\q"')
    ('a\tb\\q', ((5, 7),))
    """
    body = raw[1:-1]
    if "\\" not in body:
        return body, ()
    wrong: list[tuple[int, int]] = []

    def replace(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        if digits:
            number = int(digits, 16)
            if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
                return chr(number)
        elif match[3] in _PLAIN:
            return _PLAIN[match[3]]
        wrong.append((match.start() + 1, match.end() + 1))
        return match[0]

    return _ESCAPE.sub(replace, body), tuple(wrong)


def quote(value: str) -> str:
    r"""Return the string literal of a value: the inverse of `string_value`.

    >>> quote('say "no"\n')
    '"say \\"no\\"\\n"'
    """
    return '"' + "".join(_UNPLAIN.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in value) + '"'


def text_value(raw: str) -> str:
    r'''Return the value of a text, fences included.

    A fence's line is dropped if it contains nothing else, common indentation is removed, and blank lines are empty. The
    only escape is `\"""`. Line ends become `\n`.

    >>> text_value('"""\n    You route.\n      - billing\n  """')
    'You route.\n  - billing'
    '''
    return "\n".join(dedented(raw)).replace('\\"""', '"""')


def dedented(raw: str) -> list[str]:
    """Return the lines of a text without its fences and its common indentation."""
    lines = raw[3:-3].replace("\r\n", "\n").split("\n")
    first, rest = lines[0], lines[1:]
    if rest and not rest[-1].strip():
        rest.pop()
    margin = _common_indent([line for line in rest if line.strip()])
    kept = [line[margin:] if line.strip() else "" for line in rest]
    if first.strip() or not rest:
        kept.insert(0, first if first.strip() else "")
    return kept


def _common_indent(lines: list[str]) -> int:
    first, last = min(lines, default=""), max(lines, default="")
    length = 0
    while length < len(first) and first[length] in " \t" and first[length] == last[length : length + 1]:
        length += 1
    return length


def number_value(raw: str) -> Fraction | None:
    """Return the exact value of `1_500`, `0.5`, `2e3`, `31M`; None if it has too many digits.

    >>> number_value("1.5k")
    Fraction(1500, 1)
    """
    match = _NUMBER.fullmatch(raw)
    if match is None:
        return None
    whole, part = match["whole"].replace("_", ""), match["part"] or ""
    exponent = match["exponent"] or "0"
    if len(whole) + len(part) > _DIGITS_LIMIT or len(exponent) > 4 or abs(int(exponent)) > _EXPONENT_LIMIT:
        return None
    value = Fraction(int(whole + part), 10 ** len(part))
    # Most numbers have neither, and multiplying fractions is slow.
    value = value * _SCALES[match["scale"]] if match["scale"] else value
    return value * Fraction(10) ** int(exponent) if match["exponent"] else value
