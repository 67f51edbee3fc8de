"""What of a session becomes an example: the request, the answer, the outcome."""

import pytest
from labelled import agent, call, make_store, session, user

from skillc.sessions.examples import (
    ANSWER_CHARACTERS,
    REQUEST_CHARACTERS,
    answer_of,
    examples_of,
    outcomes_of,
    request_of,
    shortened,
)
from skillc.sessions.labels import Label
from skillc.sessions.session import Event, Session
from skillc.sessions.store import SessionStore
from skillc.trajectories.trajectory import Message


@pytest.mark.parametrize(
    ("steps", "asked", "answer"),
    [
        (["Fix the build.", *call(), agent("Done.")], "Fix the build.", "Done."),
        # What comes after the agent acted is no part of the request.
        (["Route it.", agent("billing"), user("No, it is shipping."), agent("shipping")], "Route it.", "shipping"),
        # A new request ends the first one; its answer belongs to it alone.
        (
            ["Fix it.", *call(), agent("Fixed."), user("Now the tests."), *call(), agent("They pass.")],
            "Fix it.",
            "Fixed.",
        ),
        (["Fix it.", agent("Fixed."), user("Thanks!"), agent("You are welcome.")], "Fix it.", "Fixed."),
        # A question of the agent and the reply to it belong to the request.
        (
            ["Move the table.", agent("Which database?"), user("The one for tests."), *call(), agent("Moved.")],
            "Move the table.\n\n[agent] Which database?\n\n[user] The one for tests.",
            "Moved.",
        ),
        # An offer is no question: the agent has answered.
        (["Route it.", agent("billing. Anything else?"), user("No, thanks.")], "Route it.", "billing. Anything else?"),
        (["Two things.", user("And a third."), agent("All three.")], "Two things.\n\nAnd a third.", "All three."),
        # `No problem` does not object.
        (["Go.", agent("Late, but done."), user("No problem."), agent("Thanks.")], "Go.", "Late, but done."),
        (["Go.", *call()], "Go.", ""),
    ],
)
def test_request_and_answer(steps, asked, answer):
    made = session("a", *steps)
    assert request_of(made) == asked
    assert answer_of(made) == answer


def test_a_message_that_no_person_wrote_is_no_request():
    events = (
        Event(Message("a hook says", "user"), automatic=True),
        Event(Message("Go.", "user")),
        Event(agent("Done.")),
    )
    made = Session(key="a", format="openai", events=events)
    assert request_of(made) == "Go."
    assert answer_of(made) == "Done."


def test_a_long_text_is_cut_to_the_declared_size_and_says_so(tmp_path):
    long = "begin " + "x" * 50_000 + " end"
    path = make_store(tmp_path / "s.db", [session("a", long, agent(long))], [("a", "route", "worked")])
    with SessionStore(path) as store:
        (found,) = examples_of(store, skill="route").examples
    assert len(found.request) <= REQUEST_CHARACTERS
    assert len(found.answer) <= ANSWER_CHARACTERS
    assert found.cut == ("request", "answer")
    assert found.request.startswith("begin ")
    assert found.request.endswith(" end")
    left = long[len("begin ") :]
    assert "characters left out]" in found.request
    said = int(found.request.split("\n[")[1].split(" ")[0].replace(",", ""))
    kept = len(found.request) - len(f"\n[{said:,} characters left out]\n")
    assert said + kept == len(long) == len(left) + len("begin ")
    assert shortened("short", 10) == "short"


def test_only_usable_sessions_with_a_clear_label_for_the_skill_become_examples(tmp_path):
    made = [session(key, f"Do {key} with care, please.", agent("ok")) for key in ("a", "b", "c", "d", "e")]
    made.append(session("f", "Elsewhere.", agent("ok"), project="/srv/other"))
    labels = [("a", "route", "worked"), ("b", "route", "failed"), ("c", "route", "unclear"), ("d", "reply", "worked")]
    path = make_store(tmp_path / "s.db", made, [*labels, ("f", "reply", "worked")])
    with SessionStore(path) as store:
        found = examples_of(store, skill="route")
        assert [(each.session, each.outcome) for each in found.examples] == [("a", "worked"), ("b", "failed")]
        assert found.left_out == {
            "labelled for another skill or none": 2,
            "not labelled": 1,
            "unclear whether they worked": 1,
        }
        assert {each.session for each in examples_of(store, project="shop").examples} == {"a", "b", "d"}
        store.execute("UPDATE sessions SET reason = 'no end' WHERE key = 'a'")
        assert [each.session for each in examples_of(store, skill="route").examples] == ["b"]


def test_a_person_overrules_a_signal(tmp_path):
    labels = [Label("a", "route", "signal:tests", "worked", 0.99), Label("a", "route", "person:ada", "failed", 1.0)]
    path = make_store(tmp_path / "s.db", [session("a", "Go.", agent("ok"))], labels)
    with SessionStore(path) as store:
        assert outcomes_of(store, "route")["a"].outcome == "failed"


def test_text_that_is_no_unicode_becomes_valid_text(tmp_path):
    path = make_store(tmp_path / "s.db", [session("a", "Go \ud800 on.", agent("ok"))], [("a", "route", "worked")])
    with SessionStore(path) as store:
        (found,) = examples_of(store, skill="route").examples
    assert found.request == "Go ? on."
