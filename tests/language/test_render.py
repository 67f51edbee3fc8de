from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from skillc.diagnostics import formats, render
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span


def label(source: Source, words: str, text: str = "") -> Label:
    start = source.text.index(words)
    return Label(source, Span(start, start + len(words)), text)


TRIAGE = Source("triage.skill", "metric accuracy {\n}\n\n\n\n  require 精度 >= 0.85 on test and acuracy > 0.5\n")
TWO = Diagnostic(
    "SK201",
    "unknown metric `acuracy`",
    label(TRIAGE, "acuracy", "not declared in this file or its imports"),
    secondary=(label(TRIAGE, "accuracy", "`accuracy` is declared here"),),
    hint="did you mean `accuracy`?",
    fix=Fix(label(TRIAGE, "acuracy").span, "accuracy"),
)


def test_two_labels() -> None:
    assert (
        render.text(TWO)
        == """\
error[SK201] [*]: unknown metric `acuracy`
 --> triage.skill:6:34
  |
1 | metric accuracy {
  |        -------- `accuracy` is declared here
 ...
6 |   require 精度 >= 0.85 on test and acuracy > 0.5
  |                                    ^^^^^^^ not declared in this file or its imports
  |
  = help: did you mean `accuracy`?
  = fix: require 精度 >= 0.85 on test and accuracy > 0.5"""
    )


def test_colour_is_decoration() -> None:
    colored = render.text(TWO, color=True)
    assert colored != render.text(TWO)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render.text(TWO)


def test_concise() -> None:
    assert render.concise(TWO) == "triage.skill:6:34: error[SK201] [*]: unknown metric `acuracy`"


def test_json() -> None:
    found = json.loads(json.dumps(formats.as_json([TWO])))
    assert found["format_version"] == 1
    (each,) = found["diagnostics"]
    assert (each["file"], each["line"], each["column"], each["end_column"]) == ("triage.skill", 6, 34, 41)
    assert TRIAGE.text[each["start"] : each["end"]] == "acuracy"
    assert each["related"][0]["line"] == 1
    assert each["fix"]["text"] == "accuracy"


def test_summary() -> None:
    note = Diagnostic("SK201", "x", TWO.primary, Severity.NOTE)
    assert render.summary([]) == "no findings"
    assert render.summary([note]) == "1 note"
    assert render.summary([TWO, TWO, note]) == "2 errors and 1 note, 2 fixable with `--fix`"
    unsure = replace(TWO, fix=Fix(TWO.primary.span, "x", safe=False))
    assert render.summary([unsure], 2) == "1 error, 1 with `--fix --unsafe-fixes`, 2 suppressed"
    assert "1 fixable with `--fix`, 1 more with `--fix --unsafe-fixes`" in render.summary([TWO, unsure])


def shown_fix(text: str, fix: Fix) -> str | None:
    source = Source("a.skill", text)
    lines = render.text(Diagnostic("SK001", "m", Label(source, fix.span), fix=fix)).split("\n")
    return next((line.strip() for line in lines if "fix" in line), None)


def test_the_line_as_a_fix_leaves_it() -> None:
    assert shown_fix("a = 1\n  b : 2  \n", Fix(Span(10, 11), "=")) == "= fix: b = 2"
    assert shown_fix("a = b\n", Fix(Span(2, 3), "==", safe=False)) == "= suggested fix (unsafe): a == b"
    assert shown_fix("a\nb\n", Fix(Span(0, 2), "")) is None
    assert shown_fix("a\n", Fix(Span(0, 0), "language 1\n")) is None
    long = shown_fix("x " * 200, Fix(Span(200, 201), "Y"))
    assert long is not None
    assert len(long) < 140
    assert "Y" in long


def test_a_file_that_cannot_be_read_has_no_lines() -> None:
    found = Diagnostic("SK040", "there is no file `a`", Label(Source("a", ""), Span(0, 0)), hint="look elsewhere")
    assert render.text(found).split("\n") == [
        "error[SK040]: there is no file `a`",
        " --> a:1:1",
        "  = help: look elsewhere",
    ]


def drawn(text: str, words: str) -> list[str]:
    source = Source("a.skill", text)
    return render.text(Diagnostic("SK001", "m", label(source, words))).split("\n")[3:]


def test_tabs() -> None:
    assert drawn("\ta\tb", "b") == ["1 |     a   b", "  |         ^"]


def test_width() -> None:
    assert drawn("精e\u0301x", "x") == ["1 | 精e\u0301x", "  |    ^"]
    assert drawn("精度 x", "度") == ["1 | 精度 x", "  |   ^^"]


def test_invisible_characters_are_shown() -> None:
    assert drawn("a\u200bb", "\u200b") == ["1 | a·b", "  |  ^"]
    assert drawn("a\x1b[31mb", "b") == ["1 | a\ufffd[31mb", "  |       ^"]


def test_long_lines_are_cut_around_the_span() -> None:
    code, marks = drawn("a" * 500 + "XY" + "b" * 500, "XY")
    assert len(code) < 130
    assert code.count("…") == 2
    assert code[marks.index("^") :].startswith("XY")


def test_a_span_over_lines_is_marked_on_its_first() -> None:
    assert drawn("ab {\n  c\n}", "{\n  c\n}") == ["1 | ab {", "  |    ^"]


def test_the_end_of_the_file() -> None:
    source = Source("a.skill", "a\n")
    found = render.text(Diagnostic("SK001", "m", Label(source, Span(2, 2))))
    assert found.split("\n")[-2:] == ["2 |", "  | ^"]


def test_two_files() -> None:
    other = Source("lab.skill", "model target\n")
    both = Diagnostic("SK200", "m", label(TRIAGE, "acuracy"), secondary=(label(other, "target", "here"),))
    assert " ::: lab.skill:1:7" in render.text(both)


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_any_text_can_be_shown(text: str, a: int, b: int) -> None:
    a, b = sorted((min(a, len(text)), min(b, len(text))))
    each = Diagnostic("SK001", text, Label(Source(text, text), Span(a, b), text), hint=text)
    render.text(each).encode()
    render.concise(each).encode()
    assert "\n" not in render.concise(each)
    json.dumps(formats.as_json([each]))


def test_all_messages_are_in_one_style() -> None:
    for path in (Path(__file__).parent / "golden" / "syntax").glob("*.skill"):
        for each in parse(Source(path.name, path.read_text("utf-8"))).diagnostics:
            assert not each.message.endswith(".")
            assert not each.message[0].isupper()
            assert each.message.count("`") % 2 == 0 or "`" in each.primary.source.slice(each.primary.span)
