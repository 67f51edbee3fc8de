"""The canonical form, on programs that show it: `formatting/NAME.skill` becomes `formatting/NAME.fmt.skill`.

`pytest tests/language/test_formatting.py --update-golden` writes the canonical forms, and formats every program of the
repository; read the diff.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from trees import meaning

from skillc.diagnostics.diagnostic import Severity
from skillc.syntax.formatting import format_source
from skillc.syntax.formatting.lines import indented
from skillc.syntax.literals import text_value
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASES = sorted(path for path in (HERE / "formatting").glob("*.skill") if not path.name.endswith(".fmt.skill"))
FOLDERS = ("programs", "examples", "stdlib", "benchmarks", "tests/language/programs")
PROGRAMS = sorted(
    path for folder in FOLDERS for path in (ROOT / folder).rglob("*.skill") if ".skillc" not in path.parts
)


def formatted(text: str) -> str:
    done = format_source(Source("test.skill", text))
    assert done.diagnostics == ()
    assert done.text is not None
    return done.text


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_canonical_form(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_bytes().decode()
    expected = path.with_suffix(".fmt.skill")
    actual = formatted(text)
    if request.config.getoption("--update-golden"):
        expected.write_text(actual, "utf-8", newline="\n")
    assert actual == expected.read_text("utf-8")
    assert meaning(actual) == meaning(text)
    assert formatted(actual) == actual


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_programs_of_the_repository_are_formatted(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_bytes().decode()
    if request.config.getoption("--update-golden"):
        path.write_text(formatted(text), "utf-8", newline="\n")
        text = path.read_text("utf-8")
    assert formatted(text) == text, f"format it: skillc fmt {path.relative_to(ROOT)}"


def test_there_are_programs_to_look_at() -> None:
    assert len(CASES) >= 6
    assert len(PROGRAMS) >= 15


def test_golden_programs_that_parse_keep_their_meaning() -> None:
    seen = 0
    for path in sorted((HERE / "golden").rglob("*.skill")):
        text = path.read_text("utf-8")
        if parse(Source(path.name, text)).diagnostics:
            assert format_source(Source(path.name, text)).text is None
            continue
        seen += 1
        assert meaning(formatted(text)) == meaning(text)
    assert seen >= 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("\n\n# only this\n\n\n", "# only this\n"),
        ("a = 1", "a = 1\n"),
        ("a = 1\n\n\n", "a = 1\n"),
        (";;a = 1;;", "a = 1\n"),
        ("a = 1\r\nb = 2\r\n", "a = 1\nb = 2\n"),
        ("a = 1 # c \t\r\nb {\r\n  # d\r\n}\r\n", "a = 1  # c\nb {\n  # d\n}\n"),
        ('a = """\r\n  x\r\n    y\r\n"""\r\n', 'a = """\n  x\n    y\n"""\n'),
        ("\fa = 1\n", "a = 1\n"),
    ],
)
def test_ends(text: str, expected: str) -> None:
    assert formatted(text) == expected


def test_a_text_with_mistakes_is_refused_with_all_of_them() -> None:
    done = format_source(Source("test.skill", "goal x = (a\n\nbudget { a = 1, b = 2 }\n"))
    assert done.text is None
    assert [each.code for each in done.diagnostics] == ["SK003", "SK012"]
    assert all(each.severity is Severity.ERROR for each in done.diagnostics)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda text: text.replace("correct", "wrong"),
        lambda text: text.replace("  # why", ""),
        lambda text: text.replace("# one", "# two").replace("# why", "# one"),
        lambda text: text.replace("/// what", "  goal y = z\n/// what"),
        lambda text: text.replace("/// what\n", "") + "/// what\n",
        lambda text: text.replace("goal", "  goal"),
        lambda text: text + "}",
        lambda text: text + "'",
        lambda text: text.replace("1\n", "1 "),
    ],
)
def test_a_wrong_layout_is_refused_as_a_bug_of_ours(wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillc.syntax import formatting as module
    from skillc.syntax.formatting.layout import lay_out

    layouts = iter((wrong, str))
    monkeypatch.setattr(module, "lay_out", lambda program: next(layouts)(lay_out(program)))
    text = "language 1\n# one\n/// what\ngoal correct  = a # why\n"
    done = format_source(Source("test.skill", text))
    assert done.text is None
    assert [each.code for each in done.diagnostics] == ["SK901"]
    assert "bug in skillc" in (done.diagnostics[0].hint or "")


def test_the_place_of_a_bug_is_that_of_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    from skillc.syntax import formatting as module
    from skillc.syntax.formatting.layout import lay_out

    monkeypatch.setattr(module, "lay_out", lambda program: lay_out(program).replace("5%", "6%"))
    source = Source("test.skill", "language 1\ngoal correct  = a\ngate x = b <= 5%\n")
    (found,) = format_source(source).diagnostics
    assert source.position(found.primary.span.start) == (3, 15)


def test_a_crash_of_the_layout_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    from skillc.syntax import formatting as module

    def crash(program: object) -> str:
        raise IndexError

    monkeypatch.setattr(module, "lay_out", crash)
    (found,) = format_source(Source("test.skill", "a = 1")).diagnostics
    assert found.code == "SK901"
    assert "IndexError" in found.message


def test_what_can_move_to_the_next_line_breaks_no_bracket_before_it() -> None:
    long = "clamp(1 - tokens(question) / 20 tokens, 0, 1)"
    text = f"language 1\n\ngoal g = 0.9 * exact_match(question) + 0.1 * clamp(+{long} - {long}, 0%, 100%)\n"
    done = format_source(Source("test.skill", text))
    assert done.diagnostics == ()
    assert "\n  0.9 * exact_match(question) + 0.1\n  * clamp(" in done.text


def test_deep_nesting() -> None:
    for text in (
        "a = " + "(" * 95 + "b" + ")" * 95,
        "a = " + "f(\n" * 95 + "b" + ")" * 95,
        "a = " + "(1 or " * 95 + "b" + ")" * 95,
        "a = " + "[\n# c\n" * 95 + "b" + "]" * 95,
        "a {\n" * 95 + "}" * 95,
        "a { b = c { " * 45 + "}" * 90,
        "a = " + "not " * 95 + "b",
        "a = " + "-" * 95 + "b",
        "a = b" + ".c" * 95,
        "a = " + "b + " * 95 + "c",
        "a: " + "list[" * 95 + "text" + "]" * 95,
    ):
        assert meaning(formatted(text)) == meaning(text)
        assert formatted(formatted(text)) == formatted(text)


def test_long_lines_and_many_comments() -> None:
    for text in (
        "a = [" + ", ".join(["b"] * 3_000) + "]",
        "a = " + " and ".join(["b"] * 2_000),
        "a = " + " + ".join(["b.c"] * 2_000),
        "a = " + " * ".join(["-b"] * 2_000),
        "a = b" + "\n# c" * 3_000,
        "a { " + "; ".join(["b = 1"] * 2_000) + " }",
        'a = """\n' + "  x\n" * 20_000 + '"""',
    ):
        once = formatted(text)
        assert formatted(once) == once


@pytest.mark.parametrize("indent", [0, 2, 6])
@pytest.mark.parametrize(
    "body",
    [
        *("", "\n", "\n\n", "x", " x ", "x\n", "\n  x\n    y\n", "\n\tx\n\t\ty\n", "  x\n  y\n", "  x\n\n"),
        *("\n  x  \n\n\n  y\n", "\nx\r\r\ny\n", "\n x\r\n  y\r\n", "\n x\\\n", "\n\u00a0\n  x\n", "\n x\n\t"),
        *('\n \\"""x\\"""\n', "\n\t x\n  y\n"),
    ],
)
def test_texts_keep_their_value(body: str, indent: int) -> None:
    raw = f'"""{body}"""'
    made = "\n".join(indented(raw, indent))
    assert text_value(made) == text_value(raw)
    assert "\n".join(indented(made, indent)) == made


@pytest.mark.parametrize(
    "text",
    [
        "gate and = 1\n",
        "gate x = a and\n",
        "gate x = not\n",
        "gate x𝟙² = 1\n",
        "gate x = 1" + "0" * 60 + "\n",
        'gate x = "\\q"\n',
        'gate x = "open\n',
        'gate x = """open\n',
        'frozen section a = """\n  text\n  more""" { limit = 3 tokens }\n',
        "gate x = " + "(" * 101 + "1" + ")" * 101 + "\n",
        "gate x = a" + ".b" * 101 + "\n",
        "a { " * 101 + "}" * 101 + "\n",
        "gate x =\r 1\n",
        "gate x = (1; 2)\n",
        "gate x = 1 gate y = 2\n",
        "gate x = a order\n",
        "use std.a assoc\n",
        "<<<<<<< ours\ngate x = 1\n=======\ngate x = 2\n>>>>>>> theirs\n",
        "use = 1\n",
        "}\n",
        "a {\n",
    ],
)
def test_a_text_with_a_mistake_is_not_formatted(text: str) -> None:
    assert parse(Source("test.skill", text)).diagnostics
    assert format_source(Source("test.skill", text)).text is None


@pytest.mark.parametrize(
    "text", ["", "\n", "use std.a as b\n", "user = as\n", "a use = 1\n", "use std.use as as\n", ";;a;;b\n"]
)
def test_the_words_of_a_use_are_names_elsewhere(text: str) -> None:
    assert not parse(Source("test.skill", text)).diagnostics
    assert format_source(Source("test.skill", text)).text is not None


def test_formatting_imports_nothing_heavy() -> None:
    heavy = ("pydantic", "rich", "difflib")
    code = f"import sys, skillc.syntax.formatting; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
