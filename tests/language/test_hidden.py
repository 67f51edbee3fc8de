"""What a reader does not see: in comments, strings and texts, and in names."""

from __future__ import annotations

import pytest
from checking import program, run

from skillc.diagnostics.diagnostic import Severity
from skillc.syntax.parser import parse
from skillc.syntax.source import Source


def hidden(text: str) -> list[tuple[str, str, str]]:
    found = [d for d in run(program(text)).diagnostics if d.code in ("SK024", "SK031")]
    return [(d.severity.value, d.message, d.hint or "") for d in found]


@pytest.mark.parametrize(
    ("sign", "named"),
    [
        ("\u202e", "a right-to-left override (U+202E), which displays the text in another order than it is read"),
        ("\u2066", "a left-to-right isolate (U+2066), which displays the text in another order than it is read"),
        ("\u2028", "a line separator (U+2028), which some editors show as a line break"),
        ("\r", "a carriage return (U+000D), which some editors show as a line break"),
        ("\x85", "a control character (U+0085), which some editors show as a line break"),
        ("\x1b", "a control character (U+001B), which is invisible"),
        ("\U000e0041", "a tag latin capital letter a (U+E0041), which is invisible"),
    ],
)
def test_each_place_of_a_hidden_character_is_named(sign: str, named: str) -> None:
    assert hidden(f"# a{sign}b") == [("warning", f"this comment contains {named}", hidden(f"# {sign}b")[0][2])]
    in_string = hidden(f'rubric r = "a{sign}b"')
    assert [message for _, message, _ in in_string] == [f"this string contains {named}"]
    assert f"`\\u{{{ord(sign):x}}}`" in in_string[0][2]
    assert [m for _, m, _ in hidden(f'rubric r = """\n  a{sign}b\n"""')] == [f"this text contains {named}"]


@pytest.mark.parametrize(
    "words",
    [
        "größer",
        "日本語",
        "שלום",
        "مرحبا",
        "می‌خواهم",
        "👩‍💻",
        "\U0001f3f4\U000e0067\U000e0062\U000e007f",
        "a\tb",
        "soft\u00adly",
    ],
)
def test_what_people_write_is_not_hidden(words: str) -> None:
    assert hidden(f'# {words}\nrubric r = "{words}"') == []


def test_line_ends_of_windows_are_not_hidden() -> None:
    assert hidden("# a\r\nrubric r = 'x'".replace("'", '"') + "\r\n") == []


def test_a_statement_that_an_editor_shows_is_not_silently_a_comment() -> None:
    assert hidden("# note\rgate strict = candidate.correct > 90%")[0][0] == "warning"


@pytest.mark.parametrize(
    ("name", "sign", "plain"),
    [
        ("ｃost_2", "`ｃ` is a fullwidth latin small letter c (U+FF43), which only looks like `c`", "cost_2"),
        ("ﬁnal", "`ﬁ` is a latin small ligature fi (U+FB01), which only looks like `fi`", "final"),
        ("сorrect_2", "`с` is a cyrillic small letter es (U+0441), which only looks like `c`", "correct_2"),
        ("Αlpha", "`Α` is a greek capital letter alpha (U+0391), which only looks like `A`", "Alpha"),
    ],
)
def test_names_with_letters_that_look_like_others(name: str, sign: str, plain: str) -> None:
    assert hidden(f"metric {name} = exact_match(team)\nmetric b = {name}") == [
        ("error", f"in the name `{name}`, {sign}", f"write `{plain}`")
    ]


@pytest.mark.parametrize("name", ["größe", "точность", "λόγος", "Δscore", "数据", "é"])
def test_names_of_one_script(name: str) -> None:
    assert hidden(f"metric {name} = exact_match(team)") == []


@pytest.mark.parametrize("sign", ["\u200d", "\u200b", "\u00ad", "\u202e", "\u2066", "\ufeff", "\u0301", "\u0e34"])
def test_no_name_holds_what_is_not_seen(sign: str) -> None:
    found = run(program(f"metric na{sign}me = exact_match(team)")).diagnostics
    errors = [d for d in found if d.severity is Severity.ERROR]
    assert f"U+{ord(sign):04X}" in errors[0].message


def test_a_mark_apart_from_its_letter_is_joined() -> None:
    text = "metric e\u0301te = exact_match(team)"
    found = parse(Source("a.skill", text)).diagnostics[0]
    assert found.message == "the combining acute accent (U+0301) is separate from its letter"
    assert found.fix is not None
    assert found.fix.text == "é"
    span = found.fix.span
    mended = text[: span.start] + found.fix.text + text[span.end :]
    assert parse(Source("a.skill", mended)).diagnostics == ()


def test_few_of_many_are_reported() -> None:
    assert len(hidden("# " + "\u202e" * 1000)) == 20
