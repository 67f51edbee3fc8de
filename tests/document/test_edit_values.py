"""Edits as plain values, as a history has them."""

import pytest

from skillc.document.edits import Add, Delete, Move, Replace, edit_from_json, edit_to_json


@pytest.mark.parametrize(
    "edit",
    [
        Add("rules", "If it purrs, answer animal.", "Animals", "seen twice", "a1b2c3", "1."),
        Add("rules", "If it purrs, answer animal."),
        Replace("a1b2c3", "print(2)", "shorter", old="print(1)"),
        Delete("a1b2c3", "never helped"),
        Move("a1b2c3", "d4e5f6"),
    ],
)
def test_an_edit_is_read_as_it_was_written(edit):
    assert edit_from_json({**edit_to_json(edit), "report": "done", "cured": 2}) == edit


@pytest.mark.parametrize("value", [{}, {"op": "burn", "rule": "a1b2c3"}, {"op": "add", "text": "no section"}])
def test_values_that_are_no_edit_are_none(value):
    assert edit_from_json(value) is None
