"""Scripts in place of both models, so that the program compiles without a key.

The target reads snippets as a hurried reader would: it takes the first name that it sees. A rule of its skill makes it
read better, if it is one of `RULES`. The optimizer reads each failed clue again with one rule more, and proposes the
rules that would have given the right answer. Neither knows anything about the world.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from skillc import scripted
from skillc.metrics.primitives import normalise

UNSEEN = "Never answer with words of the clue: the answer is what the clue leaves out."
NEAREST = "Read the snippet that shares the most words with the clue first."
REPEATED = "Prefer a name or a term that more than one snippet has."
LOWER = "Look at terms in lower case too, not only at names."
RARE = "Leave out words that any text has, such as numbers of years, months and adjectives of countries."
RULES = (UNSEEN, NEAREST, REPEATED, LOWER, RARE)
_NAME = re.compile(r"[A-Z][\w'’.-]*(?:\s+(?:(?:of|the|de|van|von)\s+)?[A-Z][\w'’.-]*)*")
_TERM = re.compile(r"[^\W\d_]{4,}")
_FUNCTION_WORDS = """
    about after also among another because before being between both called could does each from have held here into
    its itself just like made many more most much named never none often only other over same should some still such
    than that their them then there these they this those through today under until used very were what when where
    which while with without would years year century
"""
_COMMON = frozenset(_FUNCTION_WORDS.split())
_DATED = re.compile(
    r"\d|January|February|March|April|June|July|August|September|October|November|December|\w+(?:ish|ese|ian)\Z"
)


def act(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Answer a clue by its snippets, as the skill says."""
    asked = scripted.read(messages)
    return asked.answer(answer=find(asked.inputs["question"], asked.inputs["context"], asked.skill))


def improve(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Propose the rules with which the target would have found the right answer."""

    def cures(case: scripted.Case, skill: str) -> list[str]:
        golds = {
            normalise(each)
            for each in re.findall(r'"((?:[^"\\]|\\.)*)"', case.gold_text or "") or [case.gold_text or ""]
        }
        question, context = case.inputs.get("question", ""), case.inputs.get("context", "")
        return [rule for rule in RULES if normalise(find(question, context, f"{skill}\n{rule}")) in golds]

    return scripted.learn(messages, cures)


def find(question: str, context: str, skill: str) -> str:
    """Return the best candidate in the snippets, the first one of equals."""
    asked = set(normalise(question).split())
    snippets = [each.strip() for each in context.split("[DOC]") if each.strip()]
    found: dict[str, float] = {}
    seen: Counter[str] = Counter()
    for place, snippet in enumerate(snippets):
        shared = len(asked & set(normalise(snippet).split()) - _COMMON)
        for text in dict.fromkeys(_candidates(snippet, LOWER in skill)):
            words = set(normalise(text).split())
            if (UNSEEN in skill and words & asked) or (RARE in skill and _DATED.match(text)) or not words:
                continue
            seen[normalise(text)] += 1
            weight = shared if NEAREST in skill else -place
            found[text] = max(found.get(text, -99.0), weight)
    if REPEATED in skill:
        found = {text: weight + 3 * (seen[normalise(text)] - 1) for text, weight in found.items()}
    return max(found, key=lambda text: found[text], default="")


def _candidates(snippet: str, lower: bool) -> list[str]:
    names = [each.strip(".") for each in _NAME.findall(snippet)]
    names = [re.sub(r"['’]s\Z", "", each) for each in names]
    return names + (
        [each for each in _TERM.findall(snippet) if each not in _COMMON and each.islower()] if lower else []
    )
