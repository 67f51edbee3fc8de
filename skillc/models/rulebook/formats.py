"""Free text: the rules of form that would have turned wrong answers into the right ones."""

from __future__ import annotations

import re
from collections.abc import Callable

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.edits import Edit, is_rejected

_WORDS = ("one", "two", "three")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")


def _number(text: str) -> str:
    found = _NUMBER.search(text)
    return found[0] if found else text


def _first_words(count: int) -> Callable[[str], str]:
    return lambda text: " ".join(text.split()[:count])


FORMS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("Answer in lower case.", str.lower),
    ("Answer in upper case.", str.upper),
    ("Answer without a full stop.", lambda text: text.rstrip(". ")),
    ("Answer without an article.", lambda text: re.sub(r"^(?:the|an|a)\s+", "", text, flags=re.IGNORECASE)),
    ("Answer with the number only.", _number),
    *((f"Answer with at most {w} word{'s' if i else ''}.", _first_words(i + 1)) for i, w in enumerate(_WORDS)),
)


def format_edits(brief: Brief, cases: list[Case]) -> list[Edit]:
    """One edit for each form that turns an answer into the right one, those that cure most first."""
    present = {rule.text for rule in brief.rules}
    edits: list[tuple[int, Edit]] = []
    for text, form in FORMS:
        cured = [case.tag for case in cases if case.answer != case.gold and form(case.answer) == case.gold]
        add: Edit = {"op": "add", "section": brief.sections[0], "text": text, "topic": "form", "after": "end"}
        if cured and text not in present and not is_rejected(brief, add):
            why = f"{len(cured)} of {len(cases)} wrong answers were right but for this"
            edits.append((len(cured), {**add, "rationale": why, "cures": cured}))
    return [edit for _, edit in sorted(edits, key=lambda item: -item[0])]
