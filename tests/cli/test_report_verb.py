"""`skillc report` of a real compile."""

from conftest_cli import skillc

from skillc.review.curve import curve_of
from skillc.review.run_view import read_run


def test_a_real_compile_is_read_whole_and_reported(compiled, tmp_path):
    folder, result, _ = compiled
    view = read_run(folder / "things.skill")
    assert view.missing == ()
    assert {each.candidate for each in view.decisions if each.candidate} <= set(view.skills)
    assert sum(each.calls for each in view.spent) == view.lock.charged.calls
    assert sum(each.prompt + each.completion for each in view.spent) == result["spent"]["charged"]["total"]["tokens"]
    assert all(point.incumbent.interval is not None for point in curve_of(view).points)
    done = skillc("report", folder / "things.skill", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "wrote sort-things.report.html\n")
    assert f">{result['verdict']}<" in (tmp_path / "sort-things.report.html").read_text(encoding="utf-8")


def test_a_program_without_a_compile_is_an_error(shop):
    done = skillc("report", "things.skill", folder=shop)
    assert done.returncode == 2
    assert "was never compiled" in done.stderr
