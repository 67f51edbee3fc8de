"""Other layouts of one program: the same tokens with other white space, comments and line ends between them.

Where a newline ends a statement and where it does not is said here a second time, on purpose: the language's own answer
is what is tested.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

_TOKEN = re.compile(
    r"(?P<gap>(?:[ \t\f\r\n;]|\#[^\n]*|///[^\n]*)+)"
    r'|(?P<text>"""(?:[^"\\]|\\.|"(?!""))*""")|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<word>[0-9][0-9_]*\.[0-9]+\w*|\$?\w+(?:(?<=[0-9])\.[0-9]+\w*)?)|(?P<sign>[<>=!]=|.)",
    re.DOTALL,
)
_GOES_ON_BEHIND = {"=", ",", ":", "|", "<", ">", "<=", ">=", "==", "!=", "+", "-", "*", "/", ".", "and", "or", "not"}
_GOES_ON_BEFORE = (_GOES_ON_BEHIND - {"not"}) | {"{"}

COMMENTS = ("#", "# note", "# }", '# """', "#\t# x = 1;", "# größer ≥ 数据 🙂", "#!", "# [ ( {")
_SPACES = (" ", "  ", "\t", " \t ", " \f ")
_LINES = ("\n", "\n\n", "\n  ", "\n\t", " \n \n\n    ")


@dataclass(frozen=True, slots=True)
class Token:
    """A token and what stands before it: white space, comments, semicolons."""

    gap: str
    text: str


def tokens(text: str) -> list[Token]:
    """The tokens of any text, well formed or not; the last one is empty and has what stands at the end."""
    found, gap = [], ""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "gap":
            gap = match[0]
        else:
            found.append(Token(gap, match[0]))
            gap = ""
    return [*found, Token(gap, "")]


@st.composite
def layouts(draw: st.DrawFn, text: str, *, docs: bool = False) -> str:
    """The program of `text`, which is well formed, in another layout.

    Comments that it has stay where they are. With `docs`, comments that document are added too.
    """
    share = draw(st.sampled_from([0.0, 0.05, 0.3, 1.0]))
    ends = draw(st.sampled_from([("\n",), ("\r\n",), ("\n", "\r\n"), ("\r\n", "\n", "\n")]))
    chance = random.Random(draw(st.integers(0, 2**16)))
    return laid_out(text, chance, share, ends, docs)


def laid_out(text: str, chance: random.Random, share: float, ends: tuple[str, ...], docs: bool = False) -> str:
    """The program with that share of its gaps drawn anew, and its line ends taken from `ends` in turn."""
    pieces = []
    for gap, kind, token in _gaps(text.replace("\r\n", "\n")):
        if "#" in gap or "///" in gap or chance.random() >= share:
            pieces.append(gap)
        else:
            pieces.append(_drawn(gap, kind, chance, docs))
        pieces.append(token)
    turn = itertools.cycle(ends)
    return re.sub("\n", lambda _: next(turn), "".join(pieces))


def _gaps(text: str) -> Iterator[tuple[str, str, str]]:
    """Each gap with what it may be, and the token behind it: `free`, `end`, `lines`, `apart` or `none`."""
    opened: list[str] = []
    last = "{"
    for token in tokens(text):
        word, gap = token.text, token.gap
        if opened and opened[-1] != "{":
            kind = "lines"
        elif last == "{" or word in ("}", ""):
            kind = "free"
        elif last in _GOES_ON_BEHIND or word in _GOES_ON_BEFORE:
            kind = "lines"
        elif "\n" in gap or ";" in gap:
            kind = "end"
        else:
            kind = "apart"
        if kind in ("lines", "apart") and not gap and (_is_word(last) or _is_word(word)):
            # `5%`, `f(x)`, `2k`: nothing, or a space where no letter would become another token.
            kind = "none"
        elif kind == "lines" and not (_is_word(last[-1:]) and _is_word(word[:1])):
            kind = "lines or nothing"
        yield gap, kind, word
        if word in ("(", "[", "{"):
            opened.append(word)
        elif word in (")", "]", "}") and opened:
            opened.pop()
        last = word


def _is_word(text: str) -> bool:
    return text[-1:].isalnum() or text[-1:] in ("_", "$", '"', "%")


def _drawn(gap: str, kind: str, chance: random.Random, docs: bool) -> str:
    if kind == "none":
        return gap
    choices = [*_SPACES]
    if kind != "apart":
        notes = [*COMMENTS, *(("/// more", "///") if docs else ())]
        comment = f" {chance.choice(notes)}\n"
        choices = [*_LINES, comment, f"\n{comment}", f"{comment}  {comment}"] + ([] if kind == "end" else choices)
    if kind in ("free", "end"):
        choices += [";", " ; ", ";\n", ";;"]
    if kind in ("free", "lines or nothing"):
        choices.append("")
    return chance.choice(choices)
