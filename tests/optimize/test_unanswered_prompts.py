"""What prompts say where the data has no right answers."""

from __future__ import annotations

import pytest

from skillc.optimize.propose.prompting import (
    Briefing,
    DraftRequest,
    ReflectRequest,
    SectionView,
    TrajectoryView,
    draft_messages,
    reflect_messages,
)
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan

TEXT = TypePlan(kind="text")
TASK = TaskPlan(
    inputs=(FieldPlan(name="mail", type=TEXT, column="mail"),),
    outputs=(FieldPlan(name="reply", type=TEXT, column="reply"),),
)
CASE = TrajectoryView("t1", {"mail": "hi"}, "hello", None, "no greeting", None, "0")


def prompt(*, answered: bool, draft: bool) -> str:
    brief = Briefing("# D", TASK, [SectionView("rules", "trainable", 100, 0)], answered=answered)
    if draft:
        return draft_messages(brief, DraftRequest(written=["rules"], wrong=[CASE], right=[], cases=[]))[-1]["content"]
    return reflect_messages(brief, ReflectRequest("failures", [CASE], 4))[-1]["content"]


@pytest.mark.parametrize("draft", [True, False])
def test_without_right_answers_the_optimizer_reads_that_several_may_be_good(draft: bool) -> None:
    text = prompt(answered=False, draft=draft)
    assert "There are no right answers" in text
    assert "several may be good" in text
    for phrase in ("withheld", "the same right answer"):
        assert phrase not in text


def test_answers_that_are_withheld_are_another_matter() -> None:
    assert "Right answers are withheld where there is no <gold>" in prompt(answered=True, draft=False)
    assert "the same right answer" in prompt(answered=True, draft=True)
    assert "There are no right answers" not in prompt(answered=True, draft=False) + prompt(answered=True, draft=True)
