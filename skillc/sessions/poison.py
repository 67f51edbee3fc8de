"""Find instructions to agents in the data of a session, before anything is learned from it.

Tool results, pages, files, mails and text that a user pastes are data: none of it may become a rule. The scan is pure
and needs no model. It looks for combinations of signs (`phrases.py`), for text that is hidden from people, and for
encoded text, which it decodes and scans again. A user's own words may ask for anything; there it looks only for hidden
characters and control tokens. A person decides on each finding: `verdicts.py`.

It cannot find a false statement without an instruction, or an instruction in words that it does not know.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal
from urllib.parse import unquote

from skillc.dataclass import dataclass
from skillc.sessions.phrases import CONTROL, ROLES, SIGNS
from skillc.sessions.prefilter import Prefilter
from skillc.sessions.session import Event, Session
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall

Place = Literal["data", "own"]
"""Data, or the own words of a user or an agent."""

ENOUGH = 3.0
"""The weight of signs that is a finding."""
_WINDOW = 260
"""Characters in which the signs must meet: two or three sentences."""
_EXCERPT = 160
_LONGEST = 400_000
"""Characters of one text that are scanned; the middle of a longer one is data such as a build log."""
_SHORT_PASTE = 80

_TAGS = re.compile("[\U000e0000-\U000e007f]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_OVERRIDES = re.compile("[\u202d\u202e]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufefc]")
_JOINED = re.compile("[A-Za-z][\u200b-\u200d\u2060\ufeff\u00ad][A-Za-z]")
_ZERO = re.compile("[\u200b-\u200d\u2060-\u2064\ufeff\u00ad\u180e\u034f\u115f\u1160\u3164\uffa0]")
_MIXED = re.compile("(?=\\w*[a-zA-Z])(?=\\w*[\u0400-\u04ff\u13a0-\u13ff\u0370-\u03ff])[\\w]{4,}")
_LETTERS = str.maketrans(
    dict(
        zip(
            "аеорсухікјѕһԁԛԝвмнтгАВЕКМНОРСТУХІЈЅαοερτυικνΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡıѵѡԍᴀᴇɪᴏᴜꜱ",
            "aeopcyxikjshdqwbmhtrABEKMHOPCTYXIJSaoeptuiknABEZHIKMNOPTYXgivwgaeious",
            strict=True,
        )
    )
)
_LEET = str.maketrans("013457@$", "oieastas")
_SPACED = re.compile(r"(?<!\w)(?:\w[ .\-_*·]){5,}\w(?!\w)")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/=])")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :]?){20,}(?![0-9A-Fa-f])|(?:\\x[0-9A-Fa-f]{2}){12,}")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[\w.+-]*){8,}")
_ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4}){8,}")
_ROT13 = re.compile(
    r"\b(?:vtaber|vafgehpgvbaf?|nyjnlf|nffvfgnag|flfgrz|erzrzore|arire|cebzcg|ntrag|sbetrg|qvfertneq)\b", re.I
)
_REVERSED = re.compile(
    r"\b(?:snoitcurtsni|erongi|syawla|tnatsissa|rebmemer|reven|suoiverp|tnega|draegersid|tpmorp)\b", re.I
)
_MAY_ROT13, _MAY_REVERSED = Prefilter(_ROT13), Prefilter(_REVERSED)
_DIGIT_INSIDE = re.compile(r"[A-Za-z][013457@$][A-Za-z]")
_PLAIN = re.compile(r"instruction|ignore|always|assistant|remember|system prompt")
_HIDDEN = re.compile(
    r"<!--(.{12,2000}?)-->|^\[(?://|comment)\]: *[^\n]*?[(\"'](.{12,1000}?)[)\"']\s*$"
    r"|<[a-z]+[^>]*(?:display ?: ?none|visibility ?: ?hidden|font-size ?: ?0|opacity ?: ?0(?:\D|$)"
    r"|color ?: ?(?:white|#fff"
    r"|transparent)|left ?: ?-\d{3,}|text-indent ?: ?-\d{3,}|\bhidden\b|height ?: ?0|width ?: ?0|max-height ?: ?0"
    r"|sr-only)"
    r"[^>]*>(.{12,2000}?)</|<(?:template|noscript|meta"
    r"|script[^>]*text/plain)[^>]*?(?:content=[\"'](.{12,1000}?)[\"']|>(.{12,1000}?)</)"
    r"|\b(?:alt|title|aria-label|data-\w+)=[\"'](.{40,1000}?)[\"']",
    re.I | re.S | re.M,
)
# What agents' own programs add to a result.
_HARNESS = re.compile(
    r"<system-reminder>\s*(?:Whenever you read a file|The TodoWrite tool|This is a reminder that your todo"
    r"|Warning: the file exists"
    r"|Note: |As you answer the user's questions|Your todo list has changed).*?</system-reminder>",
    re.S,
)
_PASTED = re.compile(
    r"```.*?```|<(document|file|pasted|page|email|quote|context|attachment|article)\b.*?</\1>|(?:^[ \t]*>[^\n]*\n?)+"
    r"|^(?:From|Von|Subject|Betreff|De|Forwarded message|-{3,} ?(?:Forwarded|Original)[^\n]*): ?.*|<(?:html|body"
    r"|div|p)\b.*"
    r"|[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb\n]{80,})[\"\u201d\u00bb]",
    re.S | re.M,
)
_OWN_LIST = re.compile(r"\b(?:i|we|you|claude|add|remember|write|put|change|please do)\b")
_ABOUT_TEXT = re.compile(
    r"\b(?:mail|e-?mail|page|article|document|letter|message|ticket|log|output|file|readme|text|post|thread|chat)\b"
)
_LEAD = re.compile(r"\A[^\n]{0,300}:[ \t]*\n", re.S)
_CONFIGURATION = re.compile(
    r"(?:CLAUDE|AGENTS|GEMINI|SKILL|MEMORY)\.md\b|copilot-instructions|\.cursor|\.windsurf", re.I
)
_NAMES = {
    "override": "overrides instructions",
    "addressed": "addresses the agent",
    "named": "addresses the agent",
    "quietly": "asks to hide something",
    "install": "asks to run code",
    "for later": "is for later sessions",
    "memory": "asks to be kept as a rule",
    "conceal": "asks to hide something",
    "authority": "claims authority",
    "send data": "asks to send data",
    "disable checks": "asks to disable a check",
    "run code": "asks to run code",
}
_ACTS = ("send data", "disable checks", "run code", "conceal", "memory", "override")


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a session that may be somebody else's instruction.

    Attributes:
        step: the number of the event, from 0.
        excerpt: the beginning of the part, on one line.
    """

    kind: str
    step: int
    excerpt: str


def scan(session: Session) -> tuple[Finding, ...]:
    """Return what looks like planted instructions in a session, at most one of a kind for each event."""
    found: list[Finding] = []
    reads_rules = False
    for i, event in enumerate(session.events):
        if isinstance(event.step, ToolCall):
            reads_rules = bool(_CONFIGURATION.search(str(event.step.arguments)))
            of_event = list(_in_own(_flat(event.step.arguments)))
        else:
            of_event = list(_of_event(event, reads_rules))
        seen = set[str]()
        for kind, excerpt in of_event:
            if kind not in seen:
                seen.add(kind)
                found.append(Finding(kind, i, excerpt))
    return tuple(found)


def scan_text(text: str) -> tuple[tuple[str, str], ...]:
    """Return kind and excerpt of what looks like planted instructions in a text that is data."""
    return tuple(dict(reversed([*_in_data(text)])).items())


def scan_rule(text: str) -> tuple[tuple[str, str], ...]:
    """Return kind and excerpt of what a rule of a skill must not ask for.

    A rule may address an agent and instruct it. It may not be hidden, imitate a speaker, override or hide
    anything, change what an agent remembers, send data away, switch off checks or run code from elsewhere.
    """
    plain, findings = _revealed(text)
    low = plain.lower()
    if ROLES.search(low):
        findings.append(("imitates a role", _short(plain, 0)))
    for part, how in _decoded(plain):
        if _strongest(part.lower(), 1.5) is not None or _orders(part.lower()):
            findings.append((how, _short(part, 0)))
    for sign in SIGNS:
        match = sign.pattern.search(low) if sign.name in (*_ACTS, "authority") else None
        if match is not None:
            findings.append((_NAMES[sign.name], _short(plain, match.start())))
    return tuple(dict(reversed(findings)).items())


def revealed(text: str) -> str:
    """Return a text as an agent understands it: without invisible characters and look-alike letters."""
    return _revealed(text)[0]


# ---- places ----------------------------------------------------------------------------------------


def _of_event(event: Event, reads_rules: bool) -> Iterator[tuple[str, str]]:
    match event.step:
        case Observation(text):
            yield from _in_data(_HARNESS.sub(" ", text), addressed=not reads_rules)
        case FileChange(_, _, text):
            yield from _in_own(text or "")
        case Message(text, "assistant"):
            yield from _in_own(text)
        case Message(text):
            if event.automatic:
                # Reminders and commands of the agent's own program look like this.
                yield from _in_own(text, roles=False)
                return
            yield from _in_own(text)
            for part in pasted(text):
                yield from _in_data(part)
        case _:
            pass


def pasted(text: str) -> Iterator[str]:
    """Yield somebody else's words in a user's message: what is quoted, fenced, forwarded or below a colon."""
    found = [match[0] for match in _PASTED.finditer(text) if len(match[0]) >= _SHORT_PASTE // 2]
    lead = _LEAD.match(text)
    if lead is not None and (_ABOUT_TEXT.search(lead[0].lower()) or not _OWN_LIST.search(lead[0].lower())):
        found.append(text[lead.end() :])
    yield from found


def _in_own(text: str, *, roles: bool = True) -> Iterator[tuple[str, str]]:
    plain, findings = _revealed(text)
    yield from findings
    control = CONTROL.search(plain.lower()) if roles else None
    if control is not None and "`" not in plain[max(0, control.start() - 20) : control.end() + 20]:
        yield "imitates a role", _short(plain, control.start())


def _in_data(text: str, *, addressed: bool = True) -> Iterator[tuple[str, str]]:
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"
    plain, findings = _revealed(text)
    yield from findings
    low = plain.lower()
    strongest = _strongest(low, 0.0, addressed=addressed)
    if strongest is not None:
        yield _NAMES[strongest[0]], _short(plain, strongest[1])
    for match in ROLES.finditer(low):
        after = low[match.start() : match.end() + _WINDOW]
        if _strongest(after, 1.5) is not None or _orders(after) or (CONTROL.match(match[0]) and _demands(after)):
            yield "imitates a role", _short(plain, match.start())
            break
    for match in _HIDDEN.finditer(plain):
        inner = next(part for part in match.groups() if part is not None)
        if _strongest(inner.lower(), 1.5) is not None:
            yield "hidden from people", _short(inner, 0)
            break
    for part, how in _decoded(plain):
        if _strongest(part.lower(), 1.5) is not None or _orders(part.lower()):
            yield how, _short(part, 0)
            break


def _orders(text: str) -> bool:
    """Return whether a text demands an act; for places where any demand is suspicious."""
    names = {sign.name for sign in SIGNS if sign.pattern.search(text)}
    return "demand" in names and bool(names & {"person", "addressed", "for later", *_ACTS})


def _demands(text: str) -> bool:
    return any(sign.pattern.search(text) for sign in SIGNS if sign.name in ("demand", *_ACTS))


def _strongest(text: str, bonus: float, *, addressed: bool = True) -> tuple[str, int] | None:
    """Return the name and the place of the strongest sign where enough of them meet; None if nowhere.

    Args:
        text: in lower case.
        bonus: weight of the place itself, such as a hidden one, which also counts as a sign that an agent is addressed.
        addressed: whether words to an agent count; not in files that are there for agents.
    """
    hidden = () if addressed else ("addressed", "named", "for later", "memory", "authority")
    signs = [(number, sign) for number, sign in enumerate(SIGNS) if sign.name not in hidden]
    places = [(match.start(), number) for number, sign in signs if sign.agent for match in sign.pattern.finditer(text)]
    # The other words are many, and count near these only.
    for start, end in [(0, len(text))] if bonus else _around([start for start, _ in places], len(text)):
        near = text[start:end]
        places += [
            (start + match.start(), number)
            for number, sign in signs
            if not sign.agent
            for match in sign.pattern.finditer(near)
        ]
    places.sort()
    first, heaviest, found = 0, 0.0, None
    for last in range(len(places)):
        while places[last][0] - places[first][0] > _WINDOW:
            first += 1
        inside = {number for _, number in places[first : last + 1]}
        total = bonus + sum(SIGNS[number].weight for number in inside)
        if total < max(ENOUGH, heaviest + 0.01) or not (bonus or any(SIGNS[number].agent for number in inside)):
            continue
        if not _is_instruction({SIGNS[number].name for number in inside}, bonus):
            continue
        best = max(inside, key=lambda number: (SIGNS[number].name in _ACTS, SIGNS[number].weight))
        if SIGNS[best].name in _NAMES:
            heaviest, found = total, (SIGNS[best].name, places[first][0])
    return found


def _around(starts: list[int], length: int) -> list[tuple[int, int]]:
    """Return the parts of a text within reach of some places, joined where they meet."""
    found: list[tuple[int, int]] = []
    for start in sorted(starts):
        low, high = max(0, start - _WINDOW), min(length, start + 2 * _WINDOW)
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def _is_instruction(names: set[str], bonus: float) -> bool:
    """Return whether some signs together ask an agent for something, and do not only mention agents."""
    acts = names & set(_ACTS)
    if "override" in names:
        return True
    called = names & {"addressed", "for later", "memory", "conceal", "quietly"}
    if bonus:
        return bool(called or "named" in names) and bool(acts or len(called) > 1)
    if acts & {"memory", "conceal"}:
        return len(acts) > 1 or len(called) > 1 or "demand" in names
    if acts and (called or ("demand" in names and names & {"authority", "named"})):
        return True
    return bool(called & {"addressed", "for later"}) and (
        "install" in names or {*called, "demand"} >= {"addressed", "for later"}
    )


# ---- what people do not see ------------------------------------------------------------------------


def _revealed(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a text as an agent understands it, and what was hidden in it from people."""
    found: list[tuple[str, str]] = []
    if text.isascii():
        return _joined(text), found
    bare = _FLAG.sub("", text)
    if _TAGS.search(bare):
        hidden = "".join(chr(ord(each) - 0xE0000) for each in _TAGS.findall(bare))
        found.append(("invisible characters", _short(hidden, 0)))
        bare = f"{_TAGS.sub('', bare)}\n{hidden}"
    if _SELECTORS.search(bare):
        found.append(("invisible characters", _short(bare, 0)))
    if len(_JOINED.findall(bare)) >= 3:
        found.append(("invisible characters", _short(_ZERO.sub("", bare), 0)))
    if _OVERRIDES.search(bare) or (len(_BIDI.findall(bare)) >= 2 and not _RIGHT_TO_LEFT.search(bare)):
        found.append(("reordered characters", _short(_BIDI.sub("", bare), 0)))
    bare = unicodedata.normalize("NFKC", _BIDI.sub("", _ZERO.sub("", bare)))
    mixed = _MIXED.findall(bare)
    if len([word for word in mixed if word.translate(_LETTERS).isascii()]) >= 2:
        bare = _MIXED.sub(lambda match: match[0].translate(_LETTERS), bare)
        found.append(("look-alike letters", _short(bare, 0)))
    return _joined(bare), found


def _joined(text: str) -> str:
    """Return a text with HTML's entities and words in spaced letters resolved, and the marks of emphasis removed."""
    if "&" in text:
        text = html.unescape(text)
    text = text.replace("\u2019", "'")
    text = _SPACED.sub(lambda match: re.sub(r"[ .\-_*·]", "", match[0]), text) if _SPACED.search(text) else text
    return re.sub(r"\*\*|__", "", text)


def _decoded(text: str) -> Iterator[tuple[str, str]]:
    """Yield the texts that are encoded in a text."""
    for match in _BASE64.finditer(text):
        yield from ((each, "encoded text") for each in _base64(match[0]))
    for match in _HEX.finditer(text):
        digits = re.sub(r"\\x|[ :]", "", match[0])
        yield from ((each, "encoded text") for each in _readable(bytes.fromhex(digits[: len(digits) // 2 * 2])))
    for match in _PERCENT.finditer(text):
        yield unquote(match[0]).replace("+", " "), "encoded text"
    for match in _ESCAPES.finditer(text):
        yield codecs.decode(match[0], "unicode_escape"), "encoded text"
    low = text.lower()
    spelled = _PLAIN.search(low.translate(_LEET)) is not None
    if not (spelled or _MAY_ROT13.may_match(low) or _MAY_REVERSED.may_match(low)):
        return
    for line in text.splitlines():
        if _ROT13.search(line):
            yield codecs.decode(line, "rot13"), "encoded text"
        if _REVERSED.search(line):
            yield line[::-1], "encoded text"
        if spelled and _DIGIT_INSIDE.search(line):
            changed = line.lower().translate(_LEET)
            if _PLAIN.search(changed) and not _PLAIN.search(line.lower()):
                yield changed, "look-alike letters"


def _base64(text: str) -> Iterator[str]:
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        yield from _readable(
            base64.b64decode(
                plain[: len(plain) // 4 * 4 + (len(plain) % 4 > 1) * (len(plain) % 4)] + "=" * (-len(plain) % 4)
            )
        )
    except (binascii.Error, ValueError):
        return


def _readable(data: bytes) -> Iterator[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if len(text) >= 12 and " " in text and sum(each.isprintable() or each.isspace() for each in text) == len(text):
        yield text


def _flat(value: object) -> str:
    """Return the texts in the arguments of a call."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(map(_flat, value.values()))
    return "\n".join(map(_flat, value)) if isinstance(value, Sequence) else ""


def _short(text: str, start: int) -> str:
    begin = max(text.rfind(mark, 0, start + 1) for mark in (". ", "\n", "! ", "? "))
    begin = begin + 1 if 0 <= start - begin <= 60 else max(0, start)
    line = " ".join(text[begin : begin + 2 * _EXCERPT].split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1]}…"
