"""A session as text for a reader: turns, folded tool calls, shortened results, marks and findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.sessions.session import Event, Session
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall

Findings = Mapping[int, Sequence[tuple[str, str]]]

FOLDED_RESULT, UNFOLDED_RESULT = 3, 60
"""Lines of a result."""
_FIRST_STEPS, _LAST_STEPS = 120, 120
_MESSAGE_LINES = 200
_LINE_CHARACTERS = 1_000
_CHARACTERS, _UNFOLDED_CHARACTERS = 100_000, 400_000
_CALL_CHARACTERS, _WHOLE_CALL = 160, 4_000
_MARK = re.compile(r"\[(?:secret [\w-]+|[a-z][a-z ]* \d+)\]")

USER, AGENT, CALL, RESULT = "bold blue", "bold green", "bold", "dim"
WRONG, MARK, FINDING = "bold red", "magenta", "bold red reverse"


def session_text(session: Session, findings: Findings, *, unfolded: bool = False) -> Text:
    """Return a session for the terminal: no character of it moves the cursor or changes the direction of writing.

    Args:
        session: the session.
        findings: kind and excerpt of what the scan found, by step.
        unfolded: show calls and results at greater length, and all steps.
    """
    steps = list(enumerate(session.events))
    left = len(steps) - _FIRST_STEPS - _LAST_STEPS
    parts: list[Text] = []
    size, most = 0, _UNFOLDED_CHARACTERS if unfolded else _CHARACTERS
    for number, event in steps:
        if size > most:
            parts.append(Text(f"\n… {len(steps) - number:,} steps more are too much to show", "italic"))
            break
        if left > 0 and not unfolded and _FIRST_STEPS <= number < _FIRST_STEPS + left:
            if number == _FIRST_STEPS:
                parts.append(Text(f"\n… {left:,} steps left out; x shows them", "italic"))
            continue
        parts.append(_step(event, findings.get(number, ()), unfolded=unfolded))
        size += len(parts[-1])
    text = Text("\n").join(parts)
    return text[1:] if text.plain.startswith("\n") else text


def _step(event: Event, findings: Sequence[tuple[str, str]], *, unfolded: bool) -> Text:
    step = event.step
    if isinstance(step, Message):
        role = "automatic, no person wrote it" if event.automatic else "user" if step.role == "user" else "agent"
        text = Text.assemble("\n", (role, USER if step.role == "user" else AGENT), "\n")
        text.append_text(_body(step.text, _MESSAGE_LINES, style="dim" if event.automatic else ""))
    elif isinstance(step, ToolCall):
        written = json.dumps(step.arguments, ensure_ascii=False) if step.arguments else ""
        most = _WHOLE_CALL if unfolded else _CALL_CHARACTERS
        more = f" … {len(written) - most:,} characters more" if len(written) > most else ""
        name = (_line(step.shown[:_LINE_CHARACTERS]), CALL)
        text = Text.assemble("  ▸ ", name, " ", _line(written[:most]), (more, "italic"))
    elif isinstance(step, Observation):
        sign = ("  ✗ error", WRONG) if step.failed else ("  └ result", RESULT)
        text = Text.assemble(sign, "\n")
        most = UNFOLDED_RESULT if unfolded else FOLDED_RESULT
        text.append_text(_body(step.text, most, indent="    ", style="" if step.failed else RESULT))
    else:
        text = _change(step, unfolded=unfolded)
    text.highlight_regex(_MARK, MARK)
    for kind, excerpt in findings:
        _highlight(text, excerpt)
        text.append(f"\n  ‼ finding: {_line(kind)}: {_line(' '.join(excerpt.split())[:200])}", FINDING)
    return text


def _change(step: FileChange, *, unfolded: bool) -> Text:
    text = Text.assemble(("  ▸ ", CALL), f"file {step.change}: ", (_line(step.path[:_LINE_CHARACTERS]), CALL))
    if unfolded and step.text is not None:
        text.append("\n")
        text.append_text(_body(step.text, UNFOLDED_RESULT, indent="    ", style=RESULT))
    return text


def _body(whole: str, most: int, *, indent: str = "", style: str = "") -> Text:
    """Return at most so many lines of a text, each cut, and how much is left out."""
    shown, at = [], 0
    for line in islice(_lines(whole), most):
        more = len(line) - _LINE_CHARACTERS
        shown.append(indent + _line(line[:_LINE_CHARACTERS]) + (f" … {more:,} characters more" if more > 0 else ""))
        at += len(line) + 1
    text = Text("\n".join(shown), style)
    if at <= len(whole):
        text.append(f"\n{indent}… {len(whole) - at:,} characters more", "italic")
    return text


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end].rstrip("\r")
        start = end + 1


def _line(text: str) -> str:
    return printable(text.replace("\n", " ").replace("\r", " "))


def _highlight(text: Text, excerpt: str) -> None:
    """Mark an excerpt where it is shown, whatever white space is in it."""
    words = [re.escape(word) for word in _line(excerpt).split()][:60]
    if words:
        text.highlight_regex(r"\s+".join(words), FINDING)
