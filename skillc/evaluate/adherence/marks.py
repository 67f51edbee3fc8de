"""Ask a model which rules apply in a rollout and which of them were followed, and read its typed reply."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Template

from skillc.dataclass import dataclass
from skillc.document.skill import Rule
from skillc.files import templates
from skillc.json_values import values_within
from skillc.metrics.judging.prompt import again_messages, code_of, shown_text
from skillc.metrics.judging.verdict import JudgeFailed
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.text import counted, cut, shown
from skillc.trajectories.trajectory import Trajectory, render

STAGE = "adherence"
_PROMPTS = Path(__file__).parent / "prompts"
_SHOWN, _LONGEST_REASON = 120, 300
_WORDS: Mapping[str, bool | None] = {"yes": True, "true": True, "no": False, "false": False, "unclear": None}


@dataclass(frozen=True, slots=True)
class Mark:
    """Whether a rule applies in a rollout, and whether it was followed; None where that is unclear.

    Attributes:
        rule: its id.
        followed: None too where the rule does not apply.
        by: who decided it.
        instructions: whether the judge reports instructions to itself within the rollout.
    """

    rule: str
    applies: bool | None
    followed: bool | None
    reason: str = ""
    by: Literal["judge", "code"] = "judge"
    instructions: bool = False

    @property
    def known(self) -> bool:
        """Whether the mark can be counted."""
        return self.applies is False or (self.applies is True and self.followed is not None)


class MalformedMarks(ValueError):  # noqa: N818 -- as `MalformedVerdict`
    """A reply without a mark for each rule; its message can be sent back to the model."""


def shuffled(rules: Sequence[Rule], example: Example, sample: int, seed: int) -> tuple[Rule, ...]:
    """Return rules in an order that depends on the rollout, so that no rule is always the first or the last one."""

    def key(rule: Rule) -> bytes:
        return hashlib.sha256(f"{seed}\0{example.id}\0{sample}\0{rule.id}".encode()).digest()

    return tuple(sorted(rules, key=key))


def marks_messages(plan: Plan, example: Example, trajectory: Trajectory, rules: Sequence[Rule]) -> tuple[Message, ...]:
    """Ask which rules apply in a rollout and were followed. The right answer and the score are not shown."""
    texts = _texts(plan, example, trajectory, rules)
    code = code_of(texts)
    text = _template("rollout").render(code=code, texts=texts, count=counted(len(rules), "rule"))
    return Message("system", _template("system").render().strip()), Message("user", text.strip())


def _texts(plan: Plan, example: Example, trajectory: Trajectory, rules: Sequence[Rule]) -> list[tuple[str, str]]:
    inputs = [
        (f"input {field.name}", example.labels.get(field.name) or shown_text(example.inputs.get(field.name)))
        for field in plan.task.inputs
    ]
    found = [*inputs, ("what the assistant did", render(trajectory, plan.optimize.trajectory_limit))]
    if trajectory.answer is None:
        found.append(("answer", "(no readable answer)"))
    else:
        answer = trajectory.answer
        found += [(f"answer {field.name}", shown_text(answer.get(field.name))) for field in plan.task.outputs]
    return [*found, *((f"rule {i}", rule.text) for i, rule in enumerate(rules, 1))]


async def ask_marks(
    client: Client, role: str, plan: Plan, example: Example, trajectory: Trajectory, rules: Sequence[Rule], sample: Any
) -> tuple[Mark, ...] | JudgeFailed:
    """Return a mark for each rule. A reply that cannot be read is asked for once more.

    Raises:
        PermanentFailure, BudgetReached: from the model.
    """
    messages = marks_messages(plan, example, trajectory, rules)
    code = code_of(_texts(plan, example, trajectory, rules))
    problem = ""
    for again in (0, 1):
        try:
            reply = (await client.complete(Call(role, STAGE, messages, (*sample, again), judges=True))).text
        except CallFailed as failure:
            return JudgeFailed(role, client.hide.message(f"judge `{role}`: {failure}"))
        try:
            return read_marks(client.hide(reply) if client.hide else reply, rules, code)
        except MalformedMarks as found:
            problem = f"{found}; it replied {cut(' '.join(reply.split()), _SHOWN)!r}"
            messages = again_messages(messages, reply, str(found))
    return JudgeFailed(role, client.hide.message(f"judge `{role}`: no marks in two replies: {problem}"))


def read_marks(text: str, rules: Sequence[Rule], code: str) -> tuple[Mark, ...]:
    """Read a mark for each rule from a reply: bare JSON, in a code fence, or within prose.

    An object with the code of the rollout goes first, since a model may quote one that the rollout contains.

    Raises:
        MalformedMarks: no object fits, or a rule has no mark, two marks, or a word that is none.
    """
    found = [value for value in values_within(text) if isinstance(value, Mapping)]
    ours = [value for value in found if value.get("case") == code]
    problem: MalformedMarks | None = None
    for value in reversed(ours or found):
        try:
            return _marks(value, rules)
        except MalformedMarks as error:
            problem = problem or error
    raise problem or MalformedMarks("the reply has no JSON object" if text.strip() else "the reply is empty")


def _marks(value: Mapping[str, Any], rules: Sequence[Rule]) -> tuple[Mark, ...]:
    entries = value.get("rules")
    if not isinstance(entries, list):
        raise MalformedMarks("`rules` must be a list with an entry for each rule")
    found: dict[int, Mark] = {}
    for entry in entries:
        number = _number(entry.get("rule")) if isinstance(entry, Mapping) else None
        if number is None or not 1 <= number <= len(rules):
            named = shown(repr(entry.get("rule") if isinstance(entry, Mapping) else entry))
            raise MalformedMarks(f"an entry names no rule from 1 to {len(rules)}: {named}")
        if number in found:
            raise MalformedMarks(f"rule {number} has two entries")
        found[number] = _mark(
            entry, number, rules[number - 1], flagged=str(value.get("instructions")).lower() == "true"
        )
    missing = [number for number in range(1, len(rules) + 1) if number not in found]
    if missing:
        raise MalformedMarks(f"rule {missing[0]} has no entry")
    return tuple(found[number] for number in range(1, len(rules) + 1))


def _number(value: object) -> int | None:
    if isinstance(value, str):
        digits = value.strip().lower().removeprefix("rule").strip()
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mark(entry: Mapping[str, Any], number: int, rule: Rule, *, flagged: bool) -> Mark:
    applies = _word(entry, "applies", number)
    # `followed` is meaningless for a rule that does not apply.
    followed = _word(entry, "followed", number) if applies else None
    reason = cut(" ".join(str(entry.get("reason") or "").split()), _LONGEST_REASON)
    return Mark(rule.id, applies, followed, reason, instructions=flagged)


def _word(entry: Mapping[str, Any], name: str, number: int) -> bool | None:
    given = entry.get(name)
    word = str(given).strip().strip('"`.').casefold() if isinstance(given, str | bool) else ""
    if word not in _WORDS:
        choices = '"yes", "no" or "unclear"'
        raise MalformedMarks(f"`{name}` of rule {number} must be {choices}, not {shown(repr(given))}")
    return _WORDS[word]


@cache
def _template(name: str) -> Template:
    return templates(_PROMPTS).get_template(f"{name}.j2")
