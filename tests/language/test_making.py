"""The programs that other tests draw are what they are said to be."""

from __future__ import annotations

from checking import run
from hypothesis import given
from hypothesis import strategies as st
from layouts import tokens
from making import EXAMPLES, layouts, mutated, programs, quick, sound_programs

from skillc.diagnostics.diagnostic import Severity
from skillc.plan.digest import plan_digest
from skillc.plan.resolve import resolve
from skillc.syntax.parser import parse
from skillc.syntax.source import Source


@given(programs())
@quick(150)
def test_programs_are_well_formed(text: str) -> None:
    assert [d.message for d in parse(Source("a.skill", text)).diagnostics] == []


@given(sound_programs())
@quick(100)
def test_sound_programs_have_no_error_and_a_plan(text: str) -> None:
    checked = run(text)
    assert [d.message for d in checked.diagnostics if d.severity is Severity.ERROR] == []
    assert resolve(checked).plan is not None


@given(st.data())
@quick(60)
def test_layouts_mean_the_same(data: st.DataObject) -> None:
    text = data.draw(sound_programs())
    other = data.draw(layouts(text, docs=True))
    plans = [resolve(run(each)).plan for each in (text, other)]
    assert plans[0] is not None and plans[1] is not None
    assert plan_digest(plans[0]) == plan_digest(plans[1])


@given(mutated() | mutated(sound_programs()))
@quick(50)
def test_tokens_lose_nothing(text: str) -> None:
    assert "".join(token.gap + token.text for token in tokens(text)) == text


def test_examples_are_there() -> None:
    assert len(EXAMPLES) >= 8
