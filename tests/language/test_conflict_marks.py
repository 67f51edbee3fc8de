"""Programs that a git merge left open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from making import quick

from skillc.conflict import conflicts, keep_ours
from skillc.syntax.formatting import format_source
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

OURS, BASE, BETWEEN, THEIRS = "<" * 7 + " HEAD", "|" * 7 + " base", "=" * 7, ">" * 7 + " other"


def merged(*lines: str) -> str:
    return "\n".join(lines) + "\n"


OPEN = merged("language 1", OURS, "budget { epochs = 4 }", BETWEEN, "budget { epochs = 5 }", THEIRS, "seed = 3")


def test_a_conflict_is_one_mistake_and_the_rest_is_read_with_our_side() -> None:
    parsed = parse(Source("x.skill", OPEN))
    (found,) = parsed.diagnostics
    assert (found.code, OPEN[found.primary.span.start : found.primary.span.end]) == ("SK032", OURS)
    assert [OPEN[each.span.start : each.span.end] for each in found.secondary] == [BETWEEN, THEIRS]
    shown = [OPEN[each.span.start : each.span.end] for each in parsed.program.statements]
    assert shown == ["language 1", "budget { epochs = 4 }", "seed = 3"]


def test_a_conflict_within_a_text_is_found_and_nothing_is_formatted() -> None:
    text = merged('section s = """', OURS, "  one", BASE, "  none", BETWEEN, "  two", THEIRS, '"""')
    assert [each.code for each in parse(Source("x.skill", text)).diagnostics] == ["SK032"]
    assert format_source(Source("x.skill", text)).text is None


def test_marks_that_are_indented_or_out_of_order_are_words_of_a_text() -> None:
    indented = merged('section s = """', *(f"  {mark}" for mark in (OURS, BETWEEN, THEIRS)), '"""')
    backwards = merged('section s = """', THEIRS, BETWEEN, OURS, '"""')
    assert not parse(Source("x.skill", indented)).diagnostics
    assert not parse(Source("x.skill", backwards)).diagnostics


def test_line_ends_of_windows_are_no_part_of_a_mark() -> None:
    (found,) = conflicts(OPEN.replace("\n", "\r\n"))
    assert found.between[1] - found.between[0] == 7


def test_many_conflicts_are_told_of_a_few_times() -> None:
    assert len(parse(Source("x.skill", "language 1\n" + OPEN.partition("\n")[2] * 500)).diagnostics) == 20


@quick(60)
@given(st.lists(st.sampled_from([OURS, BASE, BETWEEN, THEIRS, "a = 1", "", "  " + OURS])))
def test_the_other_side_is_blanked_in_place(lines: list[str]) -> None:
    text = merged(*lines)
    one = keep_ours(text, conflicts(text))
    assert len(one) == len(text)
    assert [i for i, c in enumerate(one) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    assert not list(conflicts(one))
