"""Trajectories: their JSON, what an optimizer reads of them within a limit, and the signals in them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from skillc.tokens import count_tokens
from skillc.trajectories.signals import signals
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall, Trajectory, redacted, render

texts = st.text(max_size=60)
steps = st.one_of(
    st.builds(Message, texts, st.sampled_from(["assistant", "user"])),
    st.builds(ToolCall, texts, st.dictionaries(texts, st.one_of(texts, st.integers(), st.none()), max_size=3)),
    st.builds(Observation, texts, st.booleans()),
    st.builds(FileChange, texts, st.sampled_from(["added", "changed", "removed"]), st.none() | texts),
)
trajectories = st.builds(Trajectory, st.lists(steps, max_size=12).map(tuple), st.sampled_from(["finished", "turns"]))


@given(trajectories)
def test_a_trajectory_survives_json(trajectory):
    assert Trajectory.from_json(json.loads(json.dumps(trajectory.to_json()))) == trajectory


@given(trajectories, st.integers(20, 200))
def test_what_is_shown_keeps_to_the_limit_but_for_the_marks_of_what_is_missing(trajectory, limit):
    text = render(trajectory, limit)
    assert count_tokens(text) <= limit + 16 * (len(trajectory.steps) + 1)


def test_an_empty_step_after_the_limit_is_used_up():
    # The note in a shortened step takes tokens beyond the limit.
    full = Trajectory((Message(""), ToolCall("", {'0"\x0b0:0:': ""})))
    assert render(full, 20)


def test_the_end_and_the_failures_are_shown_first():
    filler = [Observation(f"page {i} " + "word " * 40) for i in range(30)]
    long = Trajectory(
        (
            Message("plan"),
            *filler[:20],
            ToolCall("run", {"code": "x"}),
            Observation("NameError: x", failed=True),
            *filler[20:],
            Message("the answer is 4"),
        )
    )
    text = render(long, 150)
    assert "NameError: x" in text
    assert '[call] run {"code": "x"}' in text
    assert text.endswith("the answer is 4")
    assert "steps left out]" in text
    assert "plan" in render(long, None)


def test_one_long_step_is_shortened_at_both_ends():
    text = render(Trajectory((Observation("first " + "word " * 500 + "last"), Message("done"))), 60)
    assert text.startswith("[result] first")
    assert "tokens left out]" in text
    assert "last" in text


def test_the_reply_is_the_last_message_of_the_model():
    assert Trajectory((Message("a"), Message("b"), Message("c", "user"))).reply == "b"
    assert Trajectory(()).reply == ""


def test_secrets_are_hidden_everywhere():
    secret = "sk-1"
    trajectory = Trajectory(
        (
            Message(secret),
            ToolCall(secret, {secret: [secret]}),
            Observation(secret),
            FileChange(secret, "added", secret),
            FileChange("a", "removed"),
        )
    )
    hidden = redacted(trajectory, lambda text: text.replace(secret, "***"))
    assert secret not in json.dumps(hidden.to_json())
    assert hidden.steps[1] == ToolCall("***", {"***": ["***"]})


def test_signals_of_a_trajectory_that_went_wrong():
    again = ToolCall("search", {"q": "gaia answers"})
    trajectory = Trajectory(
        (again, Observation("no server", failed=True), again, Observation("nothing"), again, ToolCall("open", {})),
        outcome="turns",
        turns=4,
    )
    assert signals(trajectory, forbidden=["GAIA"]) == (
        "it reached its limit of turns, 4",
        "`search` failed, 1 of 3 calls: `no server`",
        "`search` was called 3 times in a row with the same arguments",
        "`search` was asked for `GAIA`, where the answers are published",
    )
    assert signals(Trajectory((Message("fine"),))) == ()
