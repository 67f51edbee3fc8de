"""Circles, names that are missed, and names that stand for two things."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import program, run

from skillc.diagnostics.diagnostic import Diagnostic, Severity
from skillc.frontend import check
from skillc.language.modules import Loader
from skillc.syntax.source import Source

MOST = "gate most(m: metric) = candidate.m >= incumbent.m\n"


def only(text: str, code: str, root: Path | None = None) -> Diagnostic:
    """The one finding of a code."""
    (found,) = [d for d in run(text, root).diagnostics if d.code == code]
    return found


def written(root: Path, **files: str) -> Path:
    for name, text in files.items():
        (root / f"{name}.skill").write_text(f"language 1\n{text}")
    return root


# ---- circles --------------------------------------------------------------------------------------


def test_a_circle_is_told_with_every_step(tmp_path: Path) -> None:
    written(
        tmp_path,
        a='use "./b.skill" as b\n' + MOST,
        b='use "./c.skill" as c\n' + MOST,
        c='use "./a.skill" as a\n' + MOST,
    )
    found = only(program(use='use "./a.skill" as first'), "SK103", tmp_path)
    assert found.message == ("circular use of files: `a.skill` → `b.skill` → `c.skill` → `a.skill`")
    assert found.primary.source.name == str(tmp_path / "c.skill")
    assert found.primary.source.slice(found.primary.span) == '"./a.skill"'
    assert [(label.source.name, label.source.slice(label.span), label.text) for label in found.secondary] == [
        (str(tmp_path / "a.skill"), '"./b.skill"', "`a.skill` uses `b.skill`"),
        (str(tmp_path / "b.skill"), '"./c.skill"', "`b.skill` uses `c.skill`"),
    ]
    assert found.hint == "move the shared declarations into a third file"


def test_a_file_that_uses_itself_and_one_that_uses_the_program(tmp_path: Path) -> None:
    written(tmp_path, a='use "a.skill" as a\n', b='use "./main.skill" as main\n')
    assert "`a.skill` → `a.skill`" in only(program(use='use "./a.skill" as x'), "SK103", tmp_path).message
    found = only(program(use='use "./b.skill" as x'), "SK103", tmp_path)
    assert "`main.skill` → `b.skill` → `main.skill`" in found.message
    assert found.secondary[0].source.name == "main.skill"


def test_a_file_that_two_others_use_is_no_circle(tmp_path: Path) -> None:
    written(tmp_path, base=MOST, a='use "base.skill" as base\n' + MOST, b='use "base.skill" as base\n' + MOST)
    uses = 'use "./a.skill" as a\nuse "./b.skill" as b\nuse "./base.skill" as base'
    more = "gate x = a.most(correct)\ngate y = b.most(correct)\ngate z = base.most(correct)"
    # Three times the same gate, and no circle.
    assert {each.code for each in run(program(more, use=uses), tmp_path).diagnostics} == {"SK513"}


def test_a_chain_of_files_has_an_end(tmp_path: Path) -> None:
    for i in range(300):
        (tmp_path / f"f{i}.skill").write_text(f'language 1\nuse "f{i + 1}.skill" as next\n{MOST}')
    (tmp_path / "f300.skill").write_text("language 1\n")
    found = only(program(use='use "f0.skill" as f'), "SK121", tmp_path)
    assert "is at the end of a chain of" in found.message
    assert run(program("gate g = f.most(correct)", use='use "f270.skill" as f'), tmp_path).diagnostics == ()


def test_files_in_folders_name_each_other_from_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one.skill").write_text(f'language 1\nuse "b/two.skill" as two\n{MOST}')
    (tmp_path / "a" / "b" / "two.skill").write_text(f'language 1\nuse "../../top.skill" as top\n{MOST}')
    (tmp_path / "top.skill").write_text(f"language 1\n{MOST}")
    text = program("gate g = one.most(correct)", use='use "a/one.skill" as one')
    assert run(text, tmp_path).diagnostics == ()
    (tmp_path / "a" / "b" / "two.skill").write_text('language 1\nuse "../../../top.skill" as top\n')
    assert only(text, "SK102", tmp_path).primary.source.name == str(tmp_path / "a" / "b" / "two.skill")


# ---- missing names --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "more", "code", "message", "hint"),
    [
        ("use std.gates", "gate g = gates.strct(correct)", "SK105", "no function `strct`", "did you mean `strict`?"),
        (
            "use std.text",
            "gate g = text.strict(correct)",
            "SK105",
            "`text` has no function `strict`",
            "`strict` is in `std.gates`: write `use std.gates`, and `gates.strict`",
        ),
        (
            "use std.text\nuse std.gates as g",
            "gate g = text.strict(correct)",
            "SK105",
            "`text` has no function `strict`",
            "`strict` is in `std.gates`: write `g.strict`",
        ),
        (
            "use std.gates as g",
            "gate g = gates.strict(correct)",
            "SK204",
            "unknown module `gates`",
            "`std.gates` is used as `g` in this file",
        ),
        (
            'use "./lab.skill" as ours',
            "gate g = lab.most(correct)",
            "SK204",
            "unknown module `lab`",
            "`lab.skill` is used as `ours` in this file",
        ),
        ("", "gate g = strict(correct)", "SK205", "unknown function `strict`", "`strict` is in `std.gates`"),
        ("", "gate g = gates.strict(correct)", "SK204", "unknown module `gates`", "write `use std.gates`"),
        ("use std.schedules", "optimize = schedules.carefull", "SK105", "optimize `carefull`", "`careful`"),
        (
            "use std.gates\nuse std.schedules",
            "optimize = gates.careful",
            "SK105",
            "unknown optimize `careful`",
            "`careful` is in `std.schedules`: write `schedules.careful`",
        ),
        ("use std.judging", "metric m = judging.solves(reply)", "SK105", "is not a function", "only metrics and gates"),
        (
            "use std.judging",
            "metric m = judge(reply, judging.solve, model = target)",
            "SK105",
            "`judging` has no rubric `solve`",
            "did you mean `solves`?",
        ),
        ("use lab", "", "SK111", "no package `lab` is installed", 'use "./lab.skill" as lab'),
        ("use stdd.gates", "", "SK111", "no package `stdd` is installed", "did you mean `std`?"),
        ("use no_such_thing.gates", "", "SK111", "no package `no_such_thing`", "install its distribution"),
        ("use std", "", "SK104", "unknown module `std`", "valid options: `std.c"),
        ("use std.gates.strict", "", "SK104", "unknown module `std.gates.strict`", ""),
    ],
)
def test_a_missing_name_is_found_where_it_is(
    use: str, more: str, code: str, message: str, hint: str, tmp_path: Path
) -> None:
    written(tmp_path, lab=MOST)
    found = only(program(more, use=use), code, tmp_path)
    assert message in found.message
    assert hint in (found.hint or "")


def test_a_heading_of_a_markdown_skill(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("## When to use\n\nNow.\n")
    text = program(use='use "./SKILL.md" as today').replace(
        "trainable section rules { limit = 500 tokens }", "trainable section rules = today.when_to_us"
    )
    found = next(d for d in run(text, tmp_path, {"when_to_use": "Now."}).diagnostics if d.code == "SK105")
    assert (found.message, found.hint) == ("the skill has no section `when_to_us`", "did you mean `when_to_use`?")


def test_the_name_of_a_module_is_mended() -> None:
    text = program(use="use std.gatez")
    found = only(text, "SK104")
    assert found.fix is not None
    assert text[: found.fix.span.start] + found.fix.text + text[found.fix.span.end :] == program(use="use std.gates")


# ---- names for two things -------------------------------------------------------------------------


def test_two_modules_of_one_name_are_told_with_both_places(tmp_path: Path) -> None:
    text = program(use="use std.gates\nuse std.text as gates")
    found = only(text, "SK108")
    assert found.primary.source.slice(found.primary.span) == "gates"
    assert found.secondary[0].source.slice(found.secondary[0].span) == "use std.gates"
    written(tmp_path, std=MOST)
    assert "reserved for the standard library" in only(program(use='use "std.skill" as std'), "SK108", tmp_path).message


@pytest.mark.parametrize(
    ("use", "more", "message"),
    [
        ("use std.gates", "metric gates = f1(reply)\ngate g = gates.strict(gates)", "and a metric elsewhere"),
        ("use std.gates as correct", "gate g = correct.strict(correct)", "and the goal elsewhere"),
        ("use std.gates as most", MOST + "gate g = most.strict(correct)\ngate h = most(correct)", "a gate elsewhere"),
        ("use std.text as tokens", "metric m = tokens.short(reply, 9 tokens)", "and a function of the language"),
        ("use std.gates as target", "gate g = target.strict(correct)", "and a model elsewhere"),
        (
            "use std.gates",
            "gate own(gates: metric) = gates.strict(gates)\ngate g = own(correct)",
            "and a parameter elsewhere",
        ),
        (
            "use std.gates\nuse std.gates as g",
            "gate a = gates.strict(correct)\ngate b = g.cures(correct)",
            "are the same module",
        ),
    ],
)
def test_a_name_for_two_things_is_noted(use: str, more: str, message: str) -> None:
    found = only(program(more, use=use), "SK118")
    assert found.severity is Severity.NOTE
    assert message in found.message
    assert found.secondary or "function of the language" in found.message


def test_a_field_or_a_skill_called_like_a_module_is_clear() -> None:
    text = program("metric m = text.short(text, 9 tokens)", use="use std.text").replace("reply: text", "text: text")
    assert [d.code for d in run(text).diagnostics] == ["SK409"]
    text = program("gate g = route.strict(correct)", use="use std.gates as route")
    assert run(text).diagnostics == ()


# ---- what checking opens --------------------------------------------------------------------------


def test_checking_opens_the_program_and_what_it_uses_and_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, lab=MOST)
    (tmp_path / "tickets.jsonl").mkdir()  # nobody reads it, or there would be an error
    text = program("gate g = lab.most(correct)", use='use "./lab.skill" as lab')
    opened: list[str] = []

    class Watched(Loader):
        def source(self, path: str, package=None) -> Source:
            opened.append(path)
            return super().source(path, package)

    assert check(Source("main.skill", text), Watched(tmp_path)).diagnostics == ()
    assert opened == ["lab.skill"]
