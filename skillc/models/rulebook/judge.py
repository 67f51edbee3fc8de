"""rulebook as a judge: replies to the prompts of `metrics/judging/prompts` and `evaluate/adherence/prompts`.

It understands no rubric. Where the case has the right answer, it compares words with it. Otherwise it looks for the
phrases in double quotes of each level, or of the question: the best level counts whose phrases are all in the answer.
Of rules it checks those that it can read as a target; others are unclear to it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.models.rulebook.sentences import applies, normal, read_sentence
from skillc.models.rulebook.target import Messages, texts

_CASE = re.compile(r"Case ([0-9a-f]{12})\n")
_ROLLOUT = re.compile(r"Rollout ([0-9a-f]{12})\n")
_CRITERION = re.compile(r"^## criterion `(.*)`$", re.MULTILINE)
_LEVEL = re.compile(r"- (\d+): (.*)")
_QUOTED = re.compile(r'"([^"]+)"')
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Criterion:
    name: str
    question: str
    levels: tuple[tuple[int, str], ...]


def is_case(messages: Messages) -> bool:
    """Whether a prompt is a judge's: its first user message begins with the code of a case."""
    first = next(iter(texts(messages, "user")), "")
    return _CASE.match(first) is not None


def answer_judge(messages: Messages) -> str:
    """Return a verdict on each criterion."""
    system, user = "\n\n".join(texts(messages, "system")), texts(messages, "user")[0]
    found = _CASE.match(user)
    code = found[1] if found else ""
    parts = _parts(user, code)
    golds = [text for title, text in parts if "right answer" in title]
    answers = {title.split()[1]: text for title, text in parts if title.startswith("answer ")}
    verdicts = []
    for criterion in _criteria(system):
        named = {"criterion": criterion.name} if criterion.name else {}
        if {"A", "B"} <= answers.keys() and len(answers) == 2:
            verdicts.append({**named, **_compared(criterion, answers["A"], answers["B"], golds)})
        else:
            verdicts.append({**named, **_judged(criterion, next(iter(answers.values()), ""), golds)})
    return json.dumps({"case": code, "instructions": False, "verdicts": verdicts}, ensure_ascii=False)


def is_rollout(messages: Messages) -> bool:
    """Whether a prompt asks which rules were followed: its first user message begins with the code of a rollout."""
    first = next(iter(texts(messages, "user")), "")
    return _ROLLOUT.match(first) is not None


def answer_adherence(messages: Messages) -> str:
    """Return whether each rule applies, and whether the answer is the one that it names."""
    user = texts(messages, "user")[0]
    found = _ROLLOUT.match(user)
    code = found[1] if found else ""
    parts = _parts(user, code)
    inputs = {title.removeprefix("input "): normal(text) for title, text in parts if title.startswith("input ")}
    answers = {normal(text) for title, text in parts if title.startswith("answer ")}
    marks: list[dict[str, object]] = []
    for title, text in parts:
        if not title.startswith("rule "):
            continue
        rule = read_sentence(text.strip(), tuple(inputs))
        number = int(title.removeprefix("rule "))
        if rule is None or rule.is_default:
            marks.append({"rule": number, "reason": "rulebook cannot read it", "applies": "unclear", "followed": None})
        elif not applies(rule, inputs):
            marks.append({"rule": number, "reason": "no sign of it", "applies": "no", "followed": None})
        else:
            followed = "yes" if normal(rule.answer) in answers else "no"
            marks.append({"rule": number, "reason": "its signs occur", "applies": "yes", "followed": followed})
    return json.dumps({"case": code, "instructions": False, "rules": marks}, ensure_ascii=False)


def _parts(user: str, code: str) -> list[tuple[str, str]]:
    """Return title and text of each part of a case."""
    pattern = re.compile(rf"^BEGIN {code} ([^\n]*)\n(.*?)\n?^END {code}$", re.MULTILINE | re.DOTALL)
    return [(found[1], found[2]) for found in pattern.finditer(user)]


def _criteria(system: str) -> list[_Criterion]:
    rubric = system.partition("# Rubric\n")[2].partition("# Reply\n")[0]
    # The text before the first heading, then the name and the text of each criterion in turn.
    unnamed, *named = _CRITERION.split(rubric)
    found = []
    for name, text in [("", unnamed), *zip(named[::2], named[1::2], strict=True)]:
        lines = [(line, _LEVEL.fullmatch(line)) for line in text.splitlines() if line.strip()]
        levels = tuple((int(level[1]), level[2]) for _, level in lines if level is not None)
        question = " ".join(line.strip() for line, level in lines if level is None)
        if question or levels:
            found.append(_Criterion(name, question, levels))
    return found


def _judged(criterion: _Criterion, answer: str, golds: Sequence[str]) -> dict[str, object]:
    share, reason = _share(criterion, answer, golds)
    if not criterion.levels:
        return {"reason": reason, "level": "yes" if share == 1 else "no"}
    ordered = sorted(level for level, _ in criterion.levels)
    return {"reason": reason, "level": ordered[int(share * (len(ordered) - 1))]}


def _compared(criterion: _Criterion, first: str, second: str, golds: Sequence[str]) -> dict[str, object]:
    one, other = (_share(criterion, answer, golds) for answer in (first, second))
    better = "A" if one[0] > other[0] else "B" if other[0] > one[0] else "tie"
    return {"reason": f"A: {one[1]}; B: {other[1]}", "better": better}


def _share(criterion: _Criterion, answer: str, golds: Sequence[str]) -> tuple[Fraction, str]:
    """Return how good an answer is, from 0 to 1, and why."""
    if golds:
        best = max(_overlap(answer, gold) for gold in golds)
        return best, "it is the right answer" if best == 1 else f"the right answer is `{golds[0]}`"
    if not criterion.levels:
        missing = _missing(criterion.question, answer)
        if missing is None:
            return Fraction(0), "the question quotes nothing that could be looked for"
        return Fraction(not missing), f"it lacks `{missing[0]}`" if missing else "it has what the question quotes"
    ordered = sorted(criterion.levels)
    lacking = ""
    for place in range(len(ordered) - 1, -1, -1):
        missing = _missing(ordered[place][1], answer)
        if missing is not None and not missing:
            return Fraction(place, len(ordered) - 1), lacking or "it has what the best level quotes"
        lacking = lacking or (f"it lacks `{missing[0]}`" if missing else "")
    return Fraction(0), lacking or "the levels quote nothing that could be looked for"


def _missing(text: str, answer: str) -> list[str] | None:
    """Return the quoted phrases that an answer lacks; None if the text quotes none."""
    quoted = _QUOTED.findall(text)
    folded = " ".join(answer.casefold().split())
    return [phrase for phrase in quoted if " ".join(phrase.casefold().split()) not in folded] if quoted else None


def _overlap(answer: str, gold: str) -> Fraction:
    """Return F1 of the words of two texts; 1 only if they have the same words."""
    ours, theirs = (Counter(_WORD.findall(text.casefold())) for text in (answer, gold))
    if not ours and not theirs:
        return Fraction(1)
    return Fraction(2 * (ours & theirs).total(), ours.total() + theirs.total())
