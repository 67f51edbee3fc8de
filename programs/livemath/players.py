"""Scripts in place of both models, so that the program compiles without a key.

The target knows no mathematics: it looks at the wording of the choices, as a student who guesses. Each of `RULES` in
its skill makes it weigh one sign more. The optimizer answers each failed question again with one rule more, and
proposes the rules with which the guess would have been right. So it shows how far wording alone leads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillc import scripted

RULES: Mapping[str, tuple[re.Pattern[str], float]] = {
    "Prefer a choice that states an exact condition: `if and only if`, `exactly`, `precisely`.": (
        re.compile(r"if and only if|exactly|precisely", re.IGNORECASE),
        2,
    ),
    "Distrust a choice that claims something of all cases: `always`, `every`, `whenever`, `for all`, `never`.": (
        re.compile(r"always|\bevery\b|whenever|for all|never|\bany\b", re.IGNORECASE),
        -3,
    ),
    "Prefer a choice that says where the statement stops: `at most`, `provided`, `converse`, `in general`, `may`.": (
        re.compile(
            r"at (?:most|least)|provided|converse|general|without|need not|\bmay\b|otherwise|although|even where"
        ),
        3,
    ),
    "Distrust a choice with an exception that nothing explains: `except`, `unless`.": (
        re.compile(r"except|unless"),
        -3,
    ),
    "Distrust a choice that rests on a single example: `only`.": (re.compile(r"(?<!and )\bonly (?:if|for)\b"), -1),
    "Prefer a choice that says two things: it has a comma or a semicolon.": (re.compile(r"[,;]"), 1.5),
    "Distrust a bare equation or a single word.": (re.compile(r"^.{0,24}$"), -1.5),
}
"""The sign that each rule is about, and its weight."""
_CHOICE = re.compile(r"^([A-G])\. (.*?)(?=\n[A-G]\. |\Z)", re.MULTILINE | re.DOTALL)


def act(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Choose by the wording, as the skill says."""
    asked = scripted.read(messages)
    return asked.answer(answer=choose(asked.inputs["choices"], asked.skill))


def improve(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Propose the rules with which the target would have chosen right."""

    def cures(case: scripted.Case, skill: str) -> list[str]:
        choices = case.inputs.get("choices", "")
        return [rule for rule in RULES if choose(choices, f"{skill}\n{rule}") == (case.gold_text or "").strip()]

    return scripted.learn(messages, cures)


def choose(choices: str, skill: str) -> str:
    """Return the label of the choice with the best signs, the first of equals."""
    found = _CHOICE.findall(choices)
    signs = [sign for rule, sign in RULES.items() if rule in skill]

    def weight(text: str) -> float:
        return sum(value for pattern, value in signs if pattern.search(text))

    best = max((weight(text) for _, text in found), default=0)
    return next((label for label, text in found if weight(text) == best), "")
