from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.syntax.literals import number_value, quote, string_value, text_value


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_quote_is_the_inverse_of_string_value(value: str) -> None:
    literal = quote(value)
    assert "\n" not in literal
    assert string_value(literal) == (value, ())


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('""""""', ""),
        ('"""a"""', "a"),
        ('""" a """', " a "),
        ('"""\n  a\n  """', "a"),
        ('"""\n    a\n      b\n\n    c\n"""', "a\n  b\n\nc"),
        ('"""\n  a\n   \n  b\n"""', "a\n\nb"),
        ('"""\n\n  a\n\n"""', "\na\n"),
        ('"""\r\n  a\r\n  b\r\n"""', "a\nb"),
        ('"""\n\ta\n\t\tb\n"""', "a\n\tb"),
        ('"""\n\ta\n  b\n"""', "\ta\n  b"),
        ('"""first\n  second\n"""', "first\nsecond"),
        ('"""\n  say \\"""hi\\"""\n"""', 'say """hi"""'),
        ('"""\n  a\\n "b" \n"""', 'a\\n "b" '),
        ('"""\n"""', ""),
    ],
)
def test_text_value(raw: str, value: str) -> None:
    assert text_value(raw) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("0", 0),
        ("1_500", 1500),
        ("0.1", Fraction(1, 10)),
        ("2e3", 2000),
        ("2e-3", Fraction(1, 500)),
        ("1.5k", 1500),
        ("31M", 31_000_000),
        ("9" * 40, int("9" * 40)),
        ("9" * 41, None),
        ("1e31", None),
        ("1e999999999", None),
    ],
)
def test_number_value(raw: str, value: Fraction | None) -> None:
    assert number_value(raw) == value


def test_unknown_escapes_are_kept_and_told() -> None:
    assert string_value(r'"a\q\u{110000}\ud800"') == (r"a\q\u{110000}\ud800", ((2, 4), (4, 14), (14, 20)))
