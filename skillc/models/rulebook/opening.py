"""rulebook and skills that it opens by itself: it reads the list, opens what fits, and follows what it has opened.

A description fits if it names words of the inputs: those in backticks or quotes if it has any, else its longer words. A
sentence that begins with "Not" or "Never", or says "do not" or "not for", names words that keep the skill closed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillc.document.offer import OPEN
from skillc.models.rulebook.sentences import FUNCTION_WORDS, normal

_ITEM = re.compile(r"^[ \t]*- ([a-z0-9-]+): (.*)$", re.MULTILINE)
_INTRODUCTION = "You can open these skills:"
_OPENED = re.compile(r"\AThe skill ([a-z0-9-]+):\n", re.MULTILINE)
_QUOTED = re.compile(r"[`\"“]([^`\"”]+)[`\"”]")
_NOT = re.compile(r"^(?:not|never)\b|\b(?:do not|don't|does not|not for|except|leave it closed)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class OfferedSkill:
    """A skill in the list: its name and its description."""

    name: str
    about: str


def read_offer(instructions: str) -> tuple[OfferedSkill, ...]:
    """Return the skills that a prompt offers."""
    _, found, rest = instructions.partition(_INTRODUCTION)
    listed = rest.partition(f"`{OPEN}")[0]
    return tuple(OfferedSkill(item[1], item[2]) for item in _ITEM.finditer(listed)) if found else ()


def opened_in(users: Sequence[str]) -> dict[str, str]:
    """Return the text by name of the skills that were opened in a conversation."""
    return {found[1]: text for text in users if (found := _OPENED.match(text))}


def skill_to_open(offered: Sequence[OfferedSkill], opened: Mapping[str, str], inputs: Mapping[str, str]) -> str:
    """Return the offered skill whose description fits best, empty if none does or if it is open already."""
    words = normal(" ".join(inputs.values()))
    scores = {skill.name: _fit(skill.about, words) for skill in offered}
    best = max(scores, key=lambda name: scores[name], default="")
    return best if best and scores[best] > 0 and best not in opened else ""


def _fit(about: str, inputs: str) -> int:
    """Return how many words of a description are in the inputs; 0 if one of its exclusions is."""
    fits = 0
    for sentence in re.split(r"(?<=[.;!?])\s+", about):
        named = _QUOTED.findall(sentence) or [
            word for word in _WORD.findall(sentence) if word.lower() not in FUNCTION_WORDS
        ]
        found = sum(_is_in(word, inputs) for word in named)
        if _NOT.search(sentence):
            if found:
                return 0
        else:
            fits += found
    return fits


def _is_in(word: str, inputs: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(normal(word).strip())}", inputs) is not None
