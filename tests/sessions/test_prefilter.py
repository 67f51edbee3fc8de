"""Leaving searches out never loses a match."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.poison.planted import planted
from skillc.sessions.phrases import ROLES, SIGNS
from skillc.sessions.prefilter import Alternatives, Prefilter


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        (r"\bsk-[a-z]{3}", ("sk-",)),
        (r"(?:ignore|forget) .{0,5}rules?", ("ignore", "forget")),
        (r"x?\d+", None),
        (r"(?:ab|c)", None),
        (r"(?:longest|long) (?:word)+", ("long",)),
    ],
)
def test_the_needed_texts_of_a_pattern(pattern, needed):
    assert Prefilter(re.compile(pattern)).needed == needed


@pytest.mark.parametrize(
    "alternatives", [*(sign.pattern for sign in SIGNS), ROLES], ids=[*(sign.name for sign in SIGNS), "roles"]
)
def test_all_matches_of_the_whole_expression_are_found(alternatives):
    whole = re.compile("|".join(alternatives.parts))
    texts = [text.lower() for _, text, _ in planted()]
    for text in (*texts, "\n".join(texts), ""):
        assert [m.span() for m in alternatives.finditer(text)] == [m.span() for m in whole.finditer(text)]
        first = alternatives.search(text)
        assert (first and first.span()) == ((m := whole.search(text)) and m.span())


@given(st.text("abc d", max_size=12))
def test_a_part_that_matches_is_searched(text):
    parts = (r"ab(?:c|d)", r"(?:ca)+b?", r"\bdd|c{2,3}", r"a.b")
    assert [m.span() for m in Alternatives(*parts).finditer(text)] == [
        m.span() for m in re.finditer("|".join(f"(?:{part})" for part in parts), text)
    ]
