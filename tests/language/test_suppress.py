"""Suppressions of findings of every phase; what they read like stands in the golden programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import program, run
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from skillc.cli import skillc
from skillc.diagnostics.codes.code import program as trivia_program
from skillc.diagnostics.codes.code import trivia
from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.diagnostics.fixing import fix
from skillc.diagnostics.suppress import apply_suppressions
from skillc.frontend import ProgramError, check, check_data, estimate, plan_file
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span

CLOSE = "metric close = f1(reply)"


def codes(found: tuple[Diagnostic, ...]) -> list[str]:
    return [each.code for each in found]


def test_what_is_suppressed_is_kept_with_its_reason() -> None:
    checked = run(program(f"{CLOSE}  # skillc: ignore[SK409] - shown in the report"))
    assert codes(checked.diagnostics) == []
    (one,) = checked.suppressed
    assert (one.diagnostic.code, one.reason) == ("SK409", "shown in the report")
    assert checked.program.source.slice(one.comment.span).startswith("# skillc:")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{CLOSE}  # skillc: ignore[SK506] no", CLOSE),
        (f"# skillc: ignore[SK506] no\n{CLOSE}", CLOSE),
        (f"{CLOSE}  # skillc: ignore[SK409,SK506] yes", f"{CLOSE}  # skillc: ignore[SK409] yes"),
        (f"{CLOSE}  # skillc: ignore[SK506, SK409, SK109] yes", f"{CLOSE}  # skillc: ignore[SK409] yes"),
        (
            f"{CLOSE}  # skillc: ignore[SK409, SK551] of the plan",
            f"{CLOSE}  # skillc: ignore[SK409, SK551] of the plan",
        ),
    ],
)
def test_an_unused_suppression_is_removed_by_its_fix(before: str, after: str) -> None:
    done = fix(Source("main.skill", program(before)), check)
    assert done.source.text == program(after)


def test_the_closest_suppression_counts() -> None:
    text = program(f"# skillc: ignore[SK409] the outer\n{CLOSE}  # skillc: ignore[SK409] the inner")
    checked = run(text)
    # Both cover the metric's name alone on one line; the line is no larger than the statement.
    assert len(checked.suppressed) == 1
    assert codes(checked.diagnostics) == ["SK045"]


def planned(folder: Path, text: str, *, lines: int = 100, **changes: object) -> tuple[list[str], list[str]]:
    """Codes that plan and estimate keep, and those that are suppressed."""
    (folder / "trivia.jsonl").write_text(trivia(lines))
    (folder / "a.skill").write_text(text)
    plan = plan_file(folder / "a.skill", **changes)  # type: ignore[arg-type]
    found = estimate(plan)
    suppressed = [each.diagnostic.code for each in (*plan.suppressed, *found.suppressed)]
    return codes((*plan.diagnostics, *found.diagnostics)), suppressed


def test_findings_of_the_plan_are_suppressed_too(tmp_path: Path) -> None:
    text = trivia_program("optimize { batch = 64 }  # skillc: ignore[SK553] all at once is what we want")
    assert "SK553" not in run_codes(text)
    kept, suppressed = planned(tmp_path, text)
    assert "SK553" not in kept
    assert suppressed == ["SK553"]


def run_codes(text: str) -> list[str]:
    return codes(run(text).diagnostics)


def test_a_finding_about_a_setting_that_is_not_written_stands_at_the_first_statement(tmp_path: Path) -> None:
    text = "# what it is for\n# skillc: ignore[SK553] small data\n" + trivia_program()
    assert planned(tmp_path, text, lines=30)[1] == ["SK553"]


def test_suppressions_of_the_plan_are_judged_by_the_plan_as_it_is_written(tmp_path: Path) -> None:
    text = trivia_program("optimize { batch = 20 }  # skillc: ignore[SK553] no longer needed")
    assert run_codes(text) == []
    assert "SK045" in planned(tmp_path, text)[0]
    assert "SK045" not in planned(tmp_path, text, settings=["optimize.batch=16"])[0]
    assert "SK045" not in planned(tmp_path, text, offline=True)[0]


def test_an_error_of_the_plan_is_not_suppressed(tmp_path: Path) -> None:
    text = trivia_program().replace(
        "budget { epochs = 4 }", "budget { epochs = 4; calls = 60 }  # skillc: ignore[SK501] cheap"
    )
    kept, suppressed = planned(tmp_path, text)
    assert {"SK501", "SK044"} <= set(kept)
    assert suppressed == []


def test_a_suppressed_error_of_the_text_leaves_no_plan(tmp_path: Path) -> None:
    text = trivia_program("metric odd = f1(nothing)  # skillc: ignore[SK204] no")
    with pytest.raises(ProgramError) as error:
        planned(tmp_path, text)
    assert codes(error.value.diagnostics) == ["SK204", "SK044"]


def test_suppressions_of_used_files_hold_and_are_not_judged() -> None:
    lab = Source("lab.skill", "budget nightly {\n  cost = $2  # skillc: ignore[SK551, SK553] a night is short\n}\n")
    main = parse(Source("main.skill", "language 1\n")).program
    start = lab.text.index("cost")
    found = Diagnostic("SK551", "m", Label(lab, Span(start, start + 4)), Severity.WARNING)
    filtered = apply_suppressions([found], main, ("check", "plan"))
    assert filtered.kept == ()
    assert [each.reason for each in filtered.suppressed] == ["a night is short"]


@given(st.text(alphabet="#skilc: gnore[]SK409,\n/\"'{}= ab", max_size=80))
def test_whatever_is_written_in_comments(text: str) -> None:
    checked = run(program(f"{CLOSE}  # skillc: ignore{text}"))
    assert not any(each.diagnostic.severity is Severity.ERROR for each in checked.suppressed)
    for each in checked.suppressed:
        assert each.reason


@pytest.mark.parametrize("code", ["SK507", "SK552"])
def test_a_code_of_the_text_and_the_plan_is_judged_by_the_plan_under_both_its_names(tmp_path: Path, code: str) -> None:
    patient = f"epochs = 4; patience = 20 steps  # skillc: ignore[{code}] the budget may grow\n"
    text = trivia_program("optimize { batch = 20 }").replace("epochs = 4", patient)
    # The text does not show how many steps there are, so `check` can't know whether the suppression is used.
    assert "SK045" not in codes(check(Source("a.skill", text)).diagnostics)
    kept, suppressed = planned(tmp_path, text)
    assert not {"SK045", "SK507"} & set(kept)
    assert suppressed == ["SK507"]
    assert "SK045" in planned(tmp_path, text.replace("20 steps", "2 steps"))[0]


def test_the_plan_repeats_no_finding_of_the_text(tmp_path: Path) -> None:
    text = trivia_program().replace("epochs = 4", "epochs = 4; steps = 4; patience = 20 steps")
    (tmp_path / "trivia.jsonl").write_text(trivia(100))
    (tmp_path / "a.skill").write_text(text)
    found = [each for each in check_data(tmp_path / "a.skill").kept if each.code == "SK507"]
    assert [each.severity for each in found] == [Severity.WARNING]


def test_a_retired_code_is_explained_by_the_one_that_took_its_place() -> None:
    shown = CliRunner().invoke(skillc, ["explain", "SK552"]).stdout
    assert shown.startswith("SK507: ")
