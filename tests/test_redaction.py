"""A secret is found in each of its forms, and a text without it stays as it is."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secret_forms import FORMS

from skillc.redaction import NOTHING, Redactor, Secret, describe_too_short

KEY = "planted/key+0123456789=abcdef"
MARK = "[secret KEY]"


def hidden(*values: str) -> Redactor:
    """What redacts some values."""
    return Redactor([Secret("KEY", value) for value in values])


@pytest.mark.parametrize("form", FORMS)
@given(st.text(min_size=8, max_size=60))
def test_a_value_of_any_letters_is_found_in_each_form_and_nothing_else_is_changed(form: str, value: str) -> None:
    written = FORMS[form](value)
    assert hidden(value)(f"ab|{written}|yz") == f"ab|{MARK}|yz"


@given(st.text(min_size=8, max_size=60), st.binary(max_size=9), st.binary(max_size=9), st.booleans())
def test_a_value_is_found_in_base64_wherever_it_begins(value: str, before: bytes, after: bytes, safe: bool) -> None:
    coded = (base64.urlsafe_b64encode if safe else base64.b64encode)(before + value.encode() + after).decode()
    for text in (coded, quote(coded, safe=""), coded.replace("/", "\\/")):
        found = hidden(value)(text)
        assert MARK in found
        assert len(found) <= len(text) - len(value.encode()) * 8 // 6 + len(MARK) + 3


@given(st.text(max_size=300))
def test_a_text_without_a_secret_is_the_same_object(text: str) -> None:
    assert hidden(KEY)(text) is text
    assert NOTHING(text) is text


@given(
    st.recursive(
        st.text(max_size=5) | st.integers() | st.none(),
        lambda each: st.lists(each) | st.dictionaries(st.text(max_size=5), each),
        max_leaves=20,
    )
)
def test_a_value_without_a_secret_is_equal(value: object) -> None:
    assert hidden(KEY).value(value) == value


def test_texts_at_every_place_of_a_value_are_redacted() -> None:
    value = {"a": [KEY, 1, None, {KEY: f"x {KEY}"}], "b": True}
    assert hidden(KEY).value(value) == {"a": [MARK, 1, None, {MARK: f"x {MARK}"}], "b": True}


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from([KEY, f"x{KEY}", "other"])))
def test_json_around_a_secret_stays_json(value: dict[str, str]) -> None:
    for text in (json.dumps(value), "".join(f"\\u{ord(c):04x}" if c in KEY else c for c in json.dumps(value))):
        if text == json.dumps(value):
            assert json.loads(hidden(KEY)(text)) == hidden(KEY).value(value)


def test_of_two_values_the_longer_is_found_and_each_has_its_name() -> None:
    hide = Redactor(
        [Secret("SHORT", "planted-0123"), Secret("LONG", "planted-0123-4567"), Secret("OTHER", "abcdefghij")]
    )
    assert hide("planted-0123-4567 planted-0123 abcdefghij") == "[secret LONG] [secret SHORT] [secret OTHER]"


def test_equal_values_have_the_first_name_whatever_the_order() -> None:
    both = [Secret("B", KEY), Secret("A", KEY)]
    assert Redactor(both)(KEY) == Redactor(reversed(both))(KEY) == "[secret A]"


def test_a_name_that_json_would_escape_is_written_without_its_signs() -> None:
    assert Redactor([Secret('a"b\\c d', KEY)])(KEY) == "[secret a_b_c_d]"


def test_short_values_are_kept_in_replies_and_named() -> None:
    hide = Redactor([Secret("PIN", "1234567"), Secret("FLAG", "1"), Secret("EMPTY", ""), Secret("KEY", KEY)])
    assert hide(f"1234567 {KEY}") == f"1234567 {MARK}"
    assert hide.too_short == ("FLAG", "PIN")
    assert describe_too_short(hide.too_short) == (
        "the values of `FLAG`, `PIN` have fewer than 8 characters: replies that contain them are not redacted"
    )
    assert describe_too_short(()) is None


def test_in_messages_shorter_values_and_parts_at_a_cut_are_redacted_too() -> None:
    hide = Redactor([Secret("PIN", "7654321"), Secret("KEY", KEY)])
    assert hide.message("bad 7654321") == "bad [secret PIN]"
    assert hide.message(f"bad {KEY[:20]}…") == f"bad {MARK}…"
    assert hide.message(f"…{KEY[9:]} is bad") == f"…{MARK} is bad"
    assert hide.message("bad plan…ing") == "bad [secret KEY]…ing"
    assert hide.message("planted tree") == "planted tree"


def test_no_value_is_in_what_python_shows() -> None:
    assert KEY not in repr(Secret("KEY", KEY)) + repr(hidden(KEY))


def test_the_secrets_travel_as_text() -> None:
    hide = Redactor([Secret("A", "first-value"), Secret("B", "second\nvalue")])
    assert Redactor.of_text(hide.as_text())("first-value second\\nvalue") == "[secret A] [secret B]"


@pytest.mark.parametrize(
    "text", ["\\", "%25", "%", "&#000", "\\u0070", "plante\\", "planted/key+0123456789=\\", "cGxhbnRl"]
)
def test_a_text_that_almost_matches_costs_no_more_than_its_length(text: str) -> None:
    hide = hidden(KEY, "\\\\\\\\//planted")
    began = time.process_time()
    hide(text * (400_000 // len(text)))
    assert time.process_time() - began < 2
