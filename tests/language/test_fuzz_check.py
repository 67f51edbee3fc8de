"""What holds of any text, drawn at random: nothing is raised, everything can be shown, and a fix mends."""

from __future__ import annotations

from checking import run
from hypothesis import given
from hypothesis import strategies as st
from invariants import must_hold
from making import EXAMPLES, HOSTILE, layouts, mutated, programs, quick, sound_programs

from skillc.diagnostics.diagnostic import Severity
from skillc.plan.resolve import resolve
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

TEXTS = st.one_of(
    mutated(),
    mutated(sound_programs()),
    programs(),
    st.lists(st.sampled_from([*HOSTILE, *"ab=\n{}()[]", " ", '"']), max_size=30).map("".join),
)


@given(TEXTS)
@quick(150)
def test_every_check_keeps_its_promises(text: str) -> None:
    checked = run(text)
    must_hold(checked)
    assert run(text).diagnostics == checked.diagnostics


@given(mutated(sound_programs()))
@quick(60)
def test_what_is_sound_has_a_plan_or_a_reason(text: str) -> None:
    resolved = resolve(run(text))
    assert resolved.plan is not None or run(text).failed or run(text).library or resolved.diagnostics


@given(TEXTS)
@quick(100)
def test_a_safe_fix_adds_no_error_of_syntax(text: str) -> None:
    def errors(each: str) -> list[str]:
        return [d.code for d in parse(Source("a.skill", each)).diagnostics if d.severity is Severity.ERROR]

    before = parse(Source("a.skill", text)).diagnostics
    fix = next((d.fix for d in before if d.fix is not None and d.fix.safe), None)
    if fix is not None and len(before) < 20:
        mended = text[: fix.span.start] + fix.text + text[fix.span.end :]
        assert mended != text
        # What stood behind the mistake may now be read, and be wrong: by as many mistakes as it holds, not for ever.
        assert len(errors(mended)) <= len(before) + 3


@given(st.data())
@quick(40)
def test_a_layout_is_told_the_same(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(EXAMPLES) | sound_programs())
    found = [sorted((d.code, d.message) for d in run(each).diagnostics) for each in (text, data.draw(layouts(text)))]
    assert [code for code, _ in found[0]] == [code for code, _ in found[1]]


def test_the_parser_takes_steps_by_the_length_of_a_text() -> None:
    def steps(times: int) -> int:
        from skillc.syntax import mistakes

        count = 0
        lexed = mistakes.tokenize

        def counted(text, **options):
            nonlocal count
            found = lexed(text, **options)
            count += len(found.found)
            return found

        mistakes.tokenize = counted
        text = "metric a = (1 + 2) * exact_match(team) # note\nbudget { cost = ; a = @ }\n"
        try:
            parse(Source("a.skill", text * times))
        finally:
            mistakes.tokenize = lexed
        return count

    assert steps(40) <= 3 * steps(20)
