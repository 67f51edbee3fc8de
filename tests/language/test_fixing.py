"""What `check --fix` leaves of a program.

Below `fixed` stands each golden program after its safe fixes; `pytest tests/language --update-golden` writes them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import program
from hypothesis import given
from hypothesis import strategies as st
from making import mutated, quick, sound_programs
from test_golden import EXPECTED, HERE

from skillc.diagnostics.codes import CODES
from skillc.diagnostics.diagnostic import Fix
from skillc.diagnostics.fixing import FixResult, apply_fixes, fix
from skillc.frontend import check
from skillc.language.checked import Checked
from skillc.language.modules import Loader
from skillc.syntax.source import Source, Span

FIXED = Path(__file__).parent / "fixed"
GOLDEN = sorted(HERE.rglob("*.skill"))


def examine(source: Source) -> Checked:
    return check(source, Loader(HERE / "modules"))


def mended(text: str, *, unsafe: bool = False) -> str:
    return fix(Source("main.skill", text), examine, unsafe=unsafe).source.text


def fixed(text: str, *, unsafe: bool = False) -> FixResult:
    return fix(Source("main.skill", text), examine, unsafe=unsafe)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: str(path.relative_to(HERE)))
def test_golden_programs(path: Path, request: pytest.FixtureRequest) -> None:
    lines = [line for line in path.read_text("utf-8").split("\n") if not EXPECTED.fullmatch(line)]
    done = fix(Source("main.skill", "\n".join(lines)), examine)
    expected = FIXED / path.relative_to(HERE)
    if request.config.getoption("--update-golden"):
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(done.source.text, "utf-8")
        return
    assert done.source.text == expected.read_text("utf-8")
    refused = {(each.code, each.message) for each in done.refused}
    own = [each for each in done.checked.diagnostics if each.primary.source == done.source]
    safe = {(each.code, each.message) for each in own if each.fix is not None and each.fix.safe}
    assert safe <= refused
    assert not refused


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("metric a = team = 'billing'\n", 'metric a = team == "billing"\n'),
        ("gate a = 0.2 < candidate.correct < 0.9\n", "gate a = 0.2 < candidate.correct and candidate.correct < 0.9\n"),
        (
            "gate a = not 0.2 < candidate.correct < 0.9\n",
            "gate a = not (0.2 < candidate.correct and candidate.correct < 0.9)\n",
        ),
        ("optimize { slow_update = false }\n", "optimize { slow_update = off }\n"),
        ('optimize { sees = ["gold"] }\n', "optimize { sees = [gold] }\n"),
        ("optimize { batch 40 }\n", "optimize { batch = 40 }\n"),
        ("/* one\n * two\n */\n", "# one\n# two\n"),
        ("  /* one */\n", "  # one\n"),
        ("metric a = f1(reply) /* one */ * 1\n", None),
        ("metric a = 5. * f1(reply)\n", "metric a = 5.0 * f1(reply)\n"),
        ("use std.gates\n", ""),
        ("use std.gates  # for later\n", None),
        ("rubric r = '''x'''\n", None),
        ('metric a = equals(reply, "a\\q")\n', None),
    ],
)
def test_safe_fixes(before: str, after: str | None) -> None:
    text = program(before.rstrip("\n"))
    expected = text if after is None else text.replace(before, after)
    if after is None and ("'''" in before or "\\q" in before):
        expected = mended(expected)
    assert mended(text) == expected


def test_an_unknown_escape_keeps_its_value() -> None:
    text = program().replace('"tickets.jsonl"', '"data\\questions.csv"')
    assert '"data\\\\questions.csv"' in mended(text)


def test_a_closing_fence_gets_a_line_of_its_own() -> None:
    text = program().replace("rules { limit = 500 tokens }", 'rules = """\n    Be brief."""\n')
    assert '"""\n    Be brief.\n    """\n' in mended(text)


def test_the_language_is_said_in_the_lines_of_the_file() -> None:
    text = program().removeprefix("language 1\n").replace("\n", "\r\n")
    done = mended(text)
    assert done.startswith("language 1\r\n\r\n")
    assert "\n" not in done.replace("\r\n", "")


def test_unsafe_fixes_are_asked_for() -> None:
    text = program("gate small = tokens(candidate) <= 2000")
    assert mended(text) == text
    assert "<= 2000 tokens\n" in mended(text, unsafe=True)


def test_a_fix_may_uncover_more() -> None:
    text = program("metric close = f1(replly) * .5").replace("batch", "batch")
    done = fix(Source("main.skill", text), examine)
    assert {each.code for each in done.applied} == {"SK021"}
    assert {each.code for each in done.checked.diagnostics} == {"SK204"}
    assert "f1(reply)" in mended(text, unsafe=True)


def test_a_fix_that_leaves_a_new_error_is_left_out() -> None:
    text = program("metric close = f1(reply)")
    good = examine(Source("main.skill", text))
    start = text.index("f1(reply)")
    note = next(each for each in good.diagnostics if each.code == "SK409")

    def harmful(source: Source) -> Checked:
        found = examine(source)
        if source.text != text:
            return found
        from dataclasses import replace

        worse = replace(note, fix=Fix(Span(start, start + 9), "f1(nothing)"))
        broken = replace(note, message="other", fix=Fix(Span(start, start + 2), "f1(("))
        return replace(found, diagnostics=(worse, broken))

    done = fix(Source("main.skill", text), harmful)
    assert done.source.text == text
    assert len(done.refused) == 2
    assert done.applied == ()


def test_only_the_file_itself_is_mended(tmp_path: Path) -> None:
    (tmp_path / "lab.skill").write_text("gate most(m: metric) = candidate.m >= incumbent.m\n")
    text = program("gate more = lab.most(correct)", use='use "./lab.skill" as lab')
    done = fix(Source(str(tmp_path / "main.skill"), text), lambda source: check(source, Loader(tmp_path)))
    assert (done.source.text, done.applied) == (text, ())


def test_fixes_are_put_in_from_behind() -> None:
    source = Source("a", "one two three")
    fixes = [Fix(Span(0, 3), "1"), Fix(Span(8, 13), "3\n"), Fix(Span(3, 3), "!"), Fix(Span(8, 13), "3\n")]
    assert apply_fixes(source, fixes).text == "1! two 3\n"


PIECES = ["'x'", "“x”", "≥", "&&", "||", "//", "/*", "*/", "=", ":", ",", "{", "}", '"', '"""', ".5", "$ 3", "\u00a0"]
TEXTS = [code.bad for code in CODES.values() if code.bad and len(code.bad) < 900]


def stays_fixed(text: str) -> None:
    before = examine(Source("main.skill", text))
    done = fix(Source("main.skill", text), examine)
    assert fix(done.source, examine).source.text == done.source.text
    unread = [sum(d.code < "SK040" for d in each.diagnostics) for each in (before, done.checked)]
    assert unread[1] <= unread[0]


@given(mutated())
@quick(40)
def test_damaged_programs_stay_fixed(text: str) -> None:
    stays_fixed(text)


@given(sound_programs())
@quick(25)
def test_a_sound_program_keeps_its_meaning(text: str) -> None:
    before = examine(Source("main.skill", text))
    after = fix(Source("main.skill", text), examine).checked
    assert not after.broken
    assert [gate.term for gate in after.gates] == [gate.term for gate in before.gates]
    assert [metric.term for metric in after.metrics] == [metric.term for metric in before.metrics]
    assert len(after.entities) == len(before.entities)


@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.integers(0, 900), st.sampled_from(PIECES)), max_size=3))
@quick(60)
def test_whatever_is_fixed_stays_fixed(text: str, more: list[tuple[int, str]]) -> None:
    for place, piece in more:
        text = text[:place] + piece + text[place:]
    stays_fixed(text)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('model spare = "rulebook/v1" { max_tokens = "1k" }', "max_tokens = 1k"),
        ('model spare = "rulebook/v1" { max_tokens = "1_000" }', "max_tokens = 1_000"),
        ('model spare = "rulebook/v1" { temperature = "0.5" }', "temperature = 0.5"),
        ('model spare = "rulebook/v1" { timeout = "2 min" }', "timeout = 2 min"),
        ('model spare = "rulebook/v1" { timeout = "90" }', "timeout = 90 min"),
        ('model spare = "rulebook/v1" { price { input = "$3"; output = "15" } }', "input = $3; output = $15"),
        ('optimize { batch = "20" }', "batch = 20"),
        ("gate sure = confidence(correct) >= 95%", "confidence(candidate.correct > incumbent.correct)"),
        ("gate sure = confidence(best.correct) >= 95%", "confidence(candidate.correct > incumbent.correct)"),
        ("gate sure = e_value(correct) >= 20", "e_value(candidate.correct > incumbent.correct)"),
        ("gate sure = worst(correct, by = product) >= 50%", "worst(candidate.correct, by = product)"),
    ],
)
def test_a_fix_says_what_was_meant_and_passes(wrong: str, right: str) -> None:
    done = fixed(program(wrong), unsafe=True)
    assert right in done.source.text
    assert not done.refused
    assert not done.checked.failed


@pytest.mark.parametrize("wrong", ["60/20/20", "[60, 20, 20]", '"60:20:20"', '"60 / 20 / 20"'])
def test_a_split_is_mended_from_what_was_written(wrong: str) -> None:
    text = program().replace('"tickets.jsonl"', f'"tickets.jsonl"; split = {wrong}')
    (found,) = fixed(text).checked.diagnostics
    assert found.hint == "write `split = 60 : 20 : 20`"
    assert "split = 60 : 20 : 20" in fixed(text, unsafe=True).source.text


@pytest.mark.parametrize("wrong", ['"many"', '"1.5"', '"2 h"', '"$3"', "[1]"])
def test_a_number_that_was_not_written_is_not_guessed(wrong: str) -> None:
    done = fixed(program(f'model spare = "rulebook/v1" {{ max_tokens = {wrong} }}'))
    (found,) = [each for each in done.checked.diagnostics if each.code == "SK313"]
    assert (found.hint, found.fix) == ("write `max_tokens = 1000`", None)
