"""What a night says of rows that it replays, and of a compile that delivered nothing."""

import pytest

from skillc.evolve.report import compiled_words, replayed_line


def test_replayed_rows_are_shown_with_their_score_now_and_before():
    record = {"replayed": {"a": 0, "b": 1_000_000, "c": 0}, "replayed_before": {"a": 0, "b": 0, "c": 0}}
    assert replayed_line(record) == "3 rows that an earlier version failed, or recur: 33.3%, 0.0% before"
    # A version that was rolled back to and does not help shows.
    record["replayed"] = record["replayed_before"]
    assert replayed_line(record).endswith(": 0.0%, 0.0% before")
    assert replayed_line({"replayed": {"a": 0}}).endswith(": 0.0%"), "records of earlier nights have no score before"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"changed": True, "tried": 1, "stopped": "epochs"}, "a candidate passed the gates"),
        ({"changed": False, "tried": 2, "stopped": "epochs"}, "no candidate of 2 passed the gates (epochs)"),
        (
            {"changed": False, "tried": 0, "stopped": "epochs"},
            "the optimizer proposed nothing that could be tried (epochs)",
        ),
        ({"changed": False, "tried": 0, "stopped": "calls"}, "the cap on calls was reached before the gates decided"),
        ({"changed": False, "tried": 0, "stopped": "budget"}, "no budget was left"),
        ({"changed": False, "stopped": "epochs"}, "no candidate passed the gates (epochs)"),
    ],
)
def test_a_compile_without_a_result_says_whether_anything_was_tried(found, words):
    assert compiled_words(found) == words
