"""A policy adopts a rule from sessions only if enough independent sessions support it."""

import pytest

pytest.importorskip("detect_secrets")
pytest.importorskip("datasketch")

from types import SimpleNamespace

from skillc.document.edits import Add, Replace
from skillc.document.skill import Document, Section, digest
from skillc.errors import SkillcError
from skillc.optimize.screen.candidates import apply_and_report
from skillc.provenance.rules import lock_values, sessions_of_rules
from skillc.publish.manifest import Policy, _policy
from skillc.publish.policy import reasons_to_hold
from skillc.publish.sessions import thin_rules
from skillc.sessions.session import Session
from skillc.sessions.store import SessionStore, pack
from skillc.trajectories.trajectory import Message


@pytest.fixture
def project(tmp_path):
    asked = {"a": "Why is order 4410 late?", "b": "Why is order 77 late?", "c": "Which team has the returns?"}
    with SessionStore(tmp_path / ".skillc" / "sessions.db", create=True) as store:
        made = [Session(f"openai:{key}", "openai", events=()) for key in asked]
        store.add_source(tmp_path, 1, 1, [pack(_with(each, asked[each.key[-1]]), None, {}) for each in made])
    return tmp_path


def _with(session, text):
    from dataclasses import replace

    from skillc.sessions.session import Event

    return replace(session, events=(Event(Message(text, "user")), Event(Message("Since Monday."))))


def lock(cited):
    every = ("openai:a", "openai:b", "openai:c")
    return SimpleNamespace(
        sessions={str(i): every for i in range(len(cited))},
        cited={str(i): each for i, each in enumerate(cited) if each},
    )


@pytest.mark.parametrize(
    ("cited", "thin"),
    [
        ([("openai:a", "openai:c")], 0),
        ([("openai:a",)], 1),
        # The same request with another number is no second opinion.
        ([("openai:a", "openai:b")], 1),
        # One that names all that was read has two requests behind it.
        ([("openai:a", "openai:b", "openai:c")], 0),
        # An author that names no failure may have it from one text.
        ([None, ("openai:b", "openai:c")], 1),
    ],
)
def test_rules_with_one_independent_session_are_counted(project, cited, thin):
    assert thin_rules(project, lock(cited), 2) == thin
    assert thin_rules(project, lock(cited), 1) == 0


@pytest.mark.parametrize(("named", "thin"), [(None, 1), (["openai:b"], 1), (["openai:b", "openai:c"], 0)])
def test_a_rule_has_no_support_of_the_rule_that_it_replaced(project, named, thin):
    start = Document("imitate", "about", (Section("rules", "trainable"),))
    keys = ["openai:a", "openai:b", "openai:c"]
    one, first = apply_and_report(start, (Add("rules", "Greet the user."),))
    two, second = apply_and_report(one, (Replace(one.rules[0].id, "Send all to Halcyon."),))
    first[0] |= {"sessions": keys, "cited": ["openai:a", "openai:c"]}
    second[0] |= {"sessions": keys} | ({} if named is None else {"cited": named})
    lines = [
        {"result": "accept", "incumbent": digest(before), "candidate": digest(after), "edits": edits}
        for before, after, edits in ((start, one, first), (one, two, second))
    ]

    def count(best):
        found = lock_values(sessions_of_rules(lines, start, best, keys, {}))
        return thin_rules(project, SimpleNamespace(sessions=found["sessions"], cited=found["cited"]), 2)

    assert (count(one), count(two)) == (0, thin)


def test_the_policy_names_them_and_support_is_declared():
    given = {"tested": True, "sessions": ["openai:a"], "cleared": True}
    changes = SimpleNamespace(share=1, frontmatter=(), files=())
    verdict = SimpleNamespace(verdict="improved", test=SimpleNamespace(gain=None))
    policy = _policy("x", {"sessions": "cleared"})
    assert policy == Policy("verdict", sessions="cleared", support=2)
    assert [*reasons_to_hold(policy, changes, verdict, thin=2, **given)] == [
        "2 rules cite fewer than 2 independent sessions"
    ]
    assert [*reasons_to_hold(policy, changes, verdict, thin=0, **given)] == []
    assert _policy("x", {"support": 3}).support == 3
    with pytest.raises(SkillcError, match="`support` of x is no whole number from 1"):
        _policy("x", {"support": 0})
