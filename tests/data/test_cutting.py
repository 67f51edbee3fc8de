"""Inputs over their limit: what is left out, what is noted, and that cutting twice changes nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.data.cutting import cut_items, cut_text, cut_value
from skillc.plan.schema import FieldPlan, TypePlan
from skillc.tokens import count_tokens, split_tokens, token_spans

PARTS = st.sampled_from(["start", "middle", "end"])
TEXTS = st.text(max_size=400) | st.lists(
    st.sampled_from(["a ", "lamp ", "unbelievable ", "12345 ", "\n", "漢字", "…", "é ", "x" * 90]), max_size=200
).map("".join)
NUMBERS = " ".join(f"w{i}" for i in range(1000))


@given(text=TEXTS, limit=st.integers(20, 80), part=PARTS)
def test_a_cut_text_is_within_its_limit_and_stays_as_it_is(text: str, limit: int, part: str) -> None:
    cut = cut_text(text, limit, part)  # type: ignore[arg-type]
    assert isinstance(cut.value, str)
    assert count_tokens(cut.value) <= limit
    assert cut_text(cut.value, limit, part).value == cut.value  # type: ignore[arg-type]
    if count_tokens(text) <= limit:
        assert (cut.value, cut.left_out) == (text, 0)
    else:
        assert f"[{cut.left_out:,} token{'s' if cut.left_out != 1 else ''} left out]" in cut.value


@pytest.mark.parametrize(
    ("part", "start", "end"),
    [("end", "w0 w1 ", " left out]"), ("start", "[1,", " w999"), ("middle", "w0 w1 ", " w999")],
)
def test_the_declared_part_is_left_out(part: str, start: str, end: str) -> None:
    cut = cut_text(NUMBERS, 100, part)  # type: ignore[arg-type]
    text = str(cut.value)
    assert text.startswith(start)
    assert text.endswith(end)
    kept = [word for word in text.split() if word.startswith("w")]
    assert set(kept) <= set(NUMBERS.split())
    assert cut.left_out == count_tokens(NUMBERS) - sum(map(count_tokens, kept))
    assert 90 <= count_tokens(text) <= 100


@given(items=st.lists(TEXTS, max_size=8), limit=st.integers(30, 90), part=PARTS)
def test_of_a_list_whole_items_are_left_out(items: list[str], limit: int, part: str) -> None:
    cut = cut_items(items, limit, part)  # type: ignore[arg-type]
    assert isinstance(cut.value, list)
    assert sum(count_tokens(str(item)) for item in cut.value) <= limit
    kept = [item for item in cut.value if item in items]
    if sum(map(count_tokens, items)) <= limit:
        assert (cut.value, cut.left_out) == (items, 0)
    else:
        assert cut.left_out > 0
        assert len(kept) < len(items) or len(items) == 1 or cut.value[-1] != items[-1]


def test_the_note_is_where_the_items_were() -> None:
    items = [f"item {i} " + "word " * 8 for i in range(10)]
    note = "[6 items left out: 60 tokens]"
    assert cut_items(items, 55, "end").value == [*items[:4], note]
    assert cut_items(items, 55, "start").value == [note, *items[6:]]
    assert cut_items(items, 55, "middle").value == [*items[:2], note, *items[8:]]
    assert cut_items(["word " * 100, "b"], 30, "end").value == [
        "word " * 14 + "word\n[85 tokens left out]",
        "[1 item left out: 1 token]",
    ]


def test_only_texts_of_fields_with_both_settings_are_cut() -> None:
    text = TypePlan(kind="text")
    both = FieldPlan(name="a", type=text, column="a", limit=20, cut="end")
    assert cut_value(NUMBERS, both).left_out > 0
    assert cut_value(None, both).value is None
    assert cut_value({"a": NUMBERS}, both).value == {"a": NUMBERS}
    for other in ({"cut": None}, {"limit": None}):
        assert cut_value(NUMBERS, both.model_copy(update=other)).value == NUMBERS


@given(TEXTS)
def test_spans_are_the_tokens_that_are_counted(text: str) -> None:
    spans = token_spans(text)
    assert len(spans) == count_tokens(text)
    assert [text[start:end] for start, end in spans] == split_tokens(text)
    assert all(end <= after for (_, end), (after, _) in pairwise(spans))
