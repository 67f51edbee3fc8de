"""Edits of a script: its whole text, or one exact place in it."""

from __future__ import annotations

import re

from skillc.document.markdown import Refusal, hidden_character
from skillc.document.skill import Rule

SCRIPT_CHARACTERS = 200_000
_WHOLE_BLOCK = re.compile(r"\s*(`{3,})[^\n`]*\n(.*\n)\1[ \t]*\n?\s*", re.DOTALL)
_SHOWN = 80


def new_script_text(rule: Rule, text: str, old: str = "") -> str:
    """Return the new text of a script.

    Args:
        rule: the present text of the script.
        text: the whole new text, or what replaces `old`. A whole text in a code block is taken out of it, and ends with
            a newline if the present one does.
        old: a text that occurs once in the script; empty to replace the whole script.

    Raises:
        Refusal: `old` does not occur, or more than once; or nothing changes, or the new text cannot be a script.
    """
    if old:
        first, last = rule.text.find(old), rule.text.rfind(old)
        if first < 0 or first != last:
            where = "does not occur in it" if first < 0 else "occurs in more than one place"
            raise Refusal(f"script `{rule.id}`: the text to replace, `{_start(old)}`, {where}; it must occur once")
        after = rule.text[:first] + text + rule.text[first + len(old) :]
    else:
        block = _WHOLE_BLOCK.fullmatch(text)
        after = block[2] if block is not None else text
        after += "\n" if rule.text.endswith("\n") and not after.endswith("\n") else ""
    if after == rule.text:
        raise Refusal(f"script `{rule.id}` has this text already", repeats=True)
    if not after.strip():
        raise Refusal(f"script `{rule.id}` would be empty")
    hidden = hidden_character(after)
    if hidden and not hidden_character(rule.text):
        raise Refusal(hidden)
    if len(after) > SCRIPT_CHARACTERS:
        raise Refusal(f"the script would be longer than {SCRIPT_CHARACTERS:,} characters")
    return after


def _start(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
