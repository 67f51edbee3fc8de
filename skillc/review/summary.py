"""A run as a short markdown summary, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillc.items.record import SplitName
from skillc.plan.lock import ArmLock
from skillc.review.confidence import ARM_WORDS, SPLIT_WORDS, confidence_lines, ends, score
from skillc.review.curve import arm_estimate
from skillc.review.decisions import Decision
from skillc.review.origins import lineage
from skillc.review.remarks import remarks_on
from skillc.review.run_view import RunView
from skillc.review.saved import saved_by
from skillc.review.stored import NO_SKILL
from skillc.review.words import duration
from skillc.text import counted, cut

_MOST_EDITS = 30
_MOST = 300
_STAGES = 3
# The last two make links of bare addresses.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~$@&]|:(?=//)|(?<=www)\.")


def markdown_report(view: RunView) -> str:
    """Return the result table, the verdict and the accepted edits; texts of data and models are escaped."""
    lock = view.lock
    verdict = lock.verdict if lock is not None else "no verdict yet"
    state = "delivered" if view.delivered else "not delivered"
    lines = [f"### {plain(view.name)}: {verdict} ({state})", ""]
    if lock is not None:
        validation, test = SPLIT_WORDS["validation"], SPLIT_WORDS["test"]
        lines += [f"| {plain(view.plan.goal.name)} | {validation} | {test} |", "|---|---:|---:|"]
        digests = {"none": NO_SKILL, "initial": view.initial, "best": view.best}
        for name, label in ARM_WORDS.items():
            arms = getattr(lock.validation, name), getattr(lock.test, name)
            validation = _arm(view, digests[name], "validation", arms[0])
            lines.append(f"| {label} | {validation} | {_arm(view, digests[name], 'test', arms[1])} |")
        lines.append("")
    lines += [f"- **warning**: {plain(line)}" for line in remarks_on(view.items).warnings]
    lines += [f"- {plain(line)}" for line in confidence_lines(lock, view.plan.goal)]
    lines += [f"- {plain(line)}" for line in _run_lines(view)]
    lines += [f"- {plain(line)}" for line in view.missing]
    return "\n".join([*lines, *_edits(view)]) + "\n"


def plain(text: str) -> str:
    """Return a text on one line, with every character that markdown or HTML reads written as an entity.

    It makes no link, no mention and no reference to an issue either.
    """
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def _arm(view: RunView, skill: str, split: SplitName, arm: ArmLock) -> str:
    if arm.mean is None:
        return "–"
    goal = view.plan.goal
    interval = ends(arm_estimate(view, skill, split, arm.mean, arm.n).interval, goal)
    return f"{score(arm.mean, goal)} of {arm.n}" + (f" ({interval})" if interval else "")


def _run_lines(view: RunView) -> Iterable[str]:
    accepted = sum(each.accepted for each in view.decisions)
    stopped = f", stopped by {view.lock.stopped}" if view.lock is not None else ""
    yield f"{counted(len(view.decisions), 'decision')}, {accepted} accepted{stopped}"
    seconds = sorted((view.seconds or {}).items(), key=lambda each: -each[1])
    if seconds:
        longest = ", ".join(f"{stage} {duration(amount)}" for stage, amount in seconds[:_STAGES] if amount >= 1)
        whole = duration(sum(amount for _, amount in seconds))
        yield f"wall time {whole}" + (f", mostly {longest}" if longest else "")
    saved = saved_by(view)
    if saved.early:
        yield f"deciding gates early left out {saved.early:,} of {saved.whole:,} rollouts on validation"


def _edits(view: RunView) -> Iterable[str]:
    """Yield the edits of the decisions that led to the compiled skill."""
    rows = [(decision, row) for decision in lineage(view, view.best) for row in _rows(decision)]
    if not rows:
        return
    yield ""
    yield f"<details><summary>{counted(len(rows), 'accepted edit')}</summary>"
    yield ""
    for decision, row in rows[:_MOST_EDITS]:
        yield f"- **{plain(decision.place)}** {row}"
    if len(rows) > _MOST_EDITS:
        yield f"- … and {len(rows) - _MOST_EDITS} more"
    yield ""
    yield "</details>"


def _rows(decision: Decision) -> Iterable[str]:
    if decision.guidance:
        yield plain(cut(f"rewrite of {decision.section}: {decision.guidance}", _MOST))
    for section in decision.sections:
        yield plain(f"rewrite of {section}")
    for edit in decision.edits:
        credit = edit.credit
        effect = f" (validation: +{credit.cured} −{credit.broke})" if credit is not None else ""
        yield plain(cut(edit.words, _MOST)) + effect
