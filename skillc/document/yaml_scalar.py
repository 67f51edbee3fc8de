"""The little of YAML that the frontmatter of a SKILL.md needs: one scalar out, top-level scalars in."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,.()/_'-]*[A-Za-z0-9.)]|[A-Za-z]")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_BARE_KEY = r"[^\s#:'\"\[\]{}&*!|>%@`,?-][^:#]*|-[^\s:#][^:#]*"
_KEY = re.compile(rf"""(?:"([^"\\]*)"|'([^']*)'|({_BARE_KEY}))\s*:(?:[ \t]+(.*)|$)""")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", '"': '\\"', "\\": "\\\\"}
_LONG = {short[1]: char for char, short in _SHORT.items()} | {
    "a": "\a", "b": "\b", "v": "\v", "f": "\f", "e": "\x1b", " ": " ", "/": "/", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


def to_yaml(text: str) -> str:
    """A text as one YAML scalar on one line: plain where nothing can go wrong, else double-quoted.

    Three hyphens are escaped: the reference validator, like many readers, ends the frontmatter at any `---`.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and "---" not in text:
        return text
    return '"' + "".join(map(_escaped, text)).replace("---", "--\\x2D") + '"'


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character == " " or (character.isprintable() and character != "\ufeff"):
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def read_frontmatter(lines: list[str]) -> Mapping[str, str]:
    """The top-level keys of a YAML mapping with their values as text.

    Values may be plain, quoted, or blocks (`|`, `>`). Lists and mappings below a key come as their raw text. A block
    loses the newline at its end. A plain
    value that holds `: ` is no valid YAML, but common, and is read as it is meant. Never raises.
    """
    found: dict[str, str] = {}
    key, first, rest = "", "", list[str]()
    for line in [*lines, "end:"]:
        match = _KEY.fullmatch(line.rstrip())
        if match is None:
            rest.append(line)
            continue
        if key:
            found.setdefault(key, _value(first, rest))
        key, first, rest = next(k for k in match.groups()[:3] if k is not None).strip(), (match[4] or "").strip(), []
    return found


def other_lines(lines: list[str], known: Collection[str]) -> list[str]:
    """The lines of a YAML mapping without those of some top-level keys."""
    kept: list[str] = []
    keeps = False
    for line in lines:
        match = _KEY.fullmatch(line.rstrip())
        if match is not None:
            keeps = next(k for k in match.groups()[:3] if k is not None).strip() not in known
        if keeps and line.strip():
            kept.append(line.rstrip())
    return kept


def further_keys(text: str) -> set[str] | None:
    """The top-level keys of a YAML mapping, None where the text is none or would end the frontmatter."""
    lines = text.strip("\n").split("\n")
    if "---" in text or not is_mapping(lines):
        return None
    return set(read_frontmatter(lines))


def is_mapping(lines: list[str]) -> bool:
    """Whether lines between two `---` can be a YAML mapping, and are not text between thematic breaks."""
    outer = [line for line in lines if line.strip() and line[0] not in " \t#" and not line.startswith("- ")]
    keys = [line for line in outer if _KEY.fullmatch(line.rstrip())]
    return not outer or (bool(keys) and outer[0] is keys[0])


def _value(first: str, rest: list[str]) -> str:
    block = re.fullmatch(r"([|>])([-+0-9]*)(?:\s+#.*)?", first)
    if block:
        return _block(rest, folded=block[1] == ">", chomp=block[2])
    if first[:1] == '"':
        return _double(_flow([first, *rest]))
    if first[:1] == "'":
        whole = re.match(r"'((?:[^']|'')*)'", _flow([first, *rest]))
        return whole[1].replace("''", "'") if whole else first[1:]
    return _folded([re.sub(r"(^|\s)#.*$", "", line) for line in [first, *rest]])


def _double(text: str) -> str:
    whole = re.match(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL)
    return _ESCAPE.sub(_unescaped, whole[1] if whole else text[1:])


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    return _LONG.get(match[4], match[4])


def _flow(lines: list[str]) -> str:
    """The lines of a quoted scalar as one: a line break is a space, an empty line a newline."""
    return lines[0] if len(lines) == 1 else _folded(lines)


def _folded(lines: list[str]) -> str:
    text, blank = lines[0].strip(), 0
    for line in lines[1:]:
        if not line.strip():
            blank += 1
            continue
        glue = "\n" * blank if blank else " "
        text, blank = (text + glue + line.strip() if text else line.strip()), 0
    return text


def _block(lines: list[str], *, folded: bool, chomp: str) -> str:
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    cut = [line[margin:] if line.strip() else "" for line in lines]
    body = "\n".join(cut).rstrip("\n")
    if folded:
        body = re.sub(r"(?<=[^\n])\n(?=[^\n \t])", " ", body)
        body = re.sub(r"\n(\n+)(?=[^\n])", r"\1", body)
    return body + "\n" if "+" in chomp and body else body
