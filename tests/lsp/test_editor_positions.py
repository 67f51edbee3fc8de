"""Offsets and the editor's positions: the inverse of each other, in the units that were agreed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from skillc.lsp.findings import line_edits
from skillc.lsp.workspace import Encoding, Positions
from skillc.syntax.source import Span

ENCODINGS = {Encoding.Utf8: ("utf-8", 1), Encoding.Utf16: ("utf-16-le", 2), Encoding.Utf32: ("utf-32-le", 4)}
TEXTS = st.text(alphabet=st.sampled_from("ab \t\n\r{é精😀\u2028\x0c\x85\u200d"), max_size=60)


def reference(text, offset, encoding):
    """Line and units of an offset, counted by the codec itself."""
    ends = [match.end() for match in re.finditer("\r\n|\n|\r", text) if match.end() <= offset]
    codec, size = ENCODINGS[encoding]
    start = ends[-1] if ends else 0
    return types.Position(len(ends), len(text[start:offset].encode(codec)) // size)


@given(TEXTS, st.data(), st.sampled_from(list(ENCODINGS)))
def test_an_offset_comes_back(text, data, encoding):
    offset = data.draw(st.integers(0, len(text)))
    positions = Positions(text, encoding)
    found = positions.position(offset)
    assert found == reference(text, offset, encoding)
    # Between a carriage return and its line feed an editor has no position.
    if not text[:offset].endswith("\r") or not text[offset:].startswith("\n"):
        assert positions.offset(found) == offset


@given(TEXTS, st.integers(0, 20), st.integers(0, 80), st.sampled_from(list(ENCODINGS)))
def test_any_position_is_some_place_of_the_text(text, line, character, encoding):
    assert 0 <= Positions(text, encoding).offset(types.Position(line, character)) <= len(text)


def test_a_position_inside_of_a_character_is_its_beginning():
    assert Positions("a😀b").offset(types.Position(0, 2)) == 1
    assert Positions("a😀b").offset(types.Position(0, 3)) == 2
    assert Positions("精b", Encoding.Utf8).offset(types.Position(0, 2)) == 0


def test_past_the_end_is_the_end():
    positions = Positions("ab\r\ncd")
    assert positions.offset(types.Position(0, 99)) == 2
    assert positions.offset(types.Position(9, 0)) == 6
    assert positions.position(99) == types.Position(1, 2)


@given(TEXTS, st.data())
def test_pieces_of_a_span_lie_on_one_line_each(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    pieces = Positions(text).lines(Span(start, end))
    assert "".join(text[p.start : p.end] for p in pieces) == re.sub("[\r\n]", "", text[start:end])
    assert all(not set(text[p.start : p.end]) & {"\r", "\n"} for p in pieces)


@given(TEXTS, TEXTS)
def test_line_edits_turn_one_text_into_the_other(old, new):
    positions = Positions(old)
    text = old
    for edit in sorted(line_edits(positions, old, new), key=lambda e: positions.span(e.range), reverse=True):
        span = positions.span(edit.range)
        text = text[: span.start] + edit.new_text + text[span.end :]
    # A range can't end between a carriage return and its line feed.
    if "\r" not in old:
        assert text == new


def test_equal_texts_need_no_edit():
    assert line_edits(Positions("a\nb\n"), "a\nb\n", "a\nb\n") == []
    edits = line_edits(Positions("a\nb\nc\n"), "a\nb\nc\n", "a\nB\nc\n")
    assert [(edit.range.start.line, edit.range.end.line, edit.new_text) for edit in edits] == [(1, 2, "B\n")]


@pytest.mark.parametrize("encoding", list(ENCODINGS))
def test_the_length_of_a_span(encoding):
    codec, size = ENCODINGS[encoding]
    text = "x精😀y"
    assert Positions(text, encoding).length(Span(0, 4)) == len(text.encode(codec)) // size
