"""The formatter accepts a sound text by the parser's tables alone, and parses a text that may hold a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import EXAMPLES, layouts, mutated, quick, sound_programs

from skillc.syntax.formatting import format as formatter
from skillc.syntax.formatting.format import format_source
from skillc.syntax.formatting.sound import is_sound
from skillc.syntax.formatting.tokens import UnknownTokenError, tokenize
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

ROOT = Path(__file__).parents[2]
PROGRAMS = [path for folder in ("programs", "examples", "stdlib") for path in sorted((ROOT / folder).rglob("*.skill"))]
GATES = 'gate {} = not (-candidate.a.b > +incumbent.a - 10% or f(x)(y) <= $3k) {{ about = "x\\n" }}\n'


def sound(text: str) -> bool:
    try:
        return is_sound(text, tokenize(text)[0])
    except UnknownTokenError:
        return False


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_sound_program_is_formatted_without_a_parse(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Source) -> None:
        raise AssertionError(f"{source.name} was parsed")

    text = path.read_text("utf-8")
    expected = format_source(Source(path.name, text))
    monkeypatch.setattr(formatter, "parse", refuse)
    assert format_source(Source(path.name, text)) == expected
    windows = format_source(Source(path.name, text.replace("\n", "\r\n")))
    assert windows.text == expected.text


def test_thousands_of_gates_are_sound_together() -> None:
    assert sound("".join(GATES.format(f"g{i}") for i in range(2_000)))


@pytest.mark.parametrize(
    "text",
    [
        "gate and = 1\n",
        "gate x = a and\n",
        "task { input or: text }\n",
        "gate x = not\n",
        "gate x𝟙² = 1\n",
        "gate ² = 1\n",
        "gate x = 1" + "0" * 60 + "\n",
        "gate x = $1" + "0" * 60 + "\n",
        'gate x = "\\q"\n',
        'gate x = "open\n',
        'gate x = """open\n',
        'frozen section a = """\n  text\n  more""" { limit = 3 tokens }\n',
        "gate x = " + "(" * 101 + "1" + ")" * 101 + "\n",
        "gate x = " + "not " * 101 + "a\n",
        "gate x = a" + ".b" * 101 + "\n",
        "gate x = a" + "()" * 101 + "\n",
        "a { " * 101 + "}" * 101 + "\n",
        "gate x =\r 1\n",
        "gate x = (1; 2)\n",
        "gate x = 1 gate y = 2\n",
        "<<<<<<< ours\ngate x = 1\n=======\ngate x = 2\n>>>>>>> theirs\n",
        'a = """\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"""\n',
        "use = 1\n",
        "use std.a as\n",
        "}\n",
        "a {\n",
        "a = ]\n",
    ],
)
def test_a_text_with_a_mistake_is_not_sound(text: str) -> None:
    assert parse(Source("test.skill", text)).diagnostics
    assert not sound(text)


@pytest.mark.parametrize(
    "text", ["", "\n", "use std.a as b\n", "user = as\n", "a use = 1\n", "use std.use as as\n", ";;a;;b\n"]
)
def test_the_words_of_a_use_are_names_elsewhere(text: str) -> None:
    assert not parse(Source("test.skill", text)).diagnostics
    assert sound(text)


@given(mutated())
@quick(200)
def test_a_sound_text_parses_without_a_diagnostic(text: str) -> None:
    assert not (sound(text) and parse(Source("test.skill", text)).diagnostics)


@given(st.data())
@quick(60)
def test_programs_in_any_layout_are_sound(data: st.DataObject) -> None:
    text = data.draw(layouts(data.draw(st.sampled_from(EXAMPLES) | sound_programs()), docs=True))
    assert sound(text)
