"""Sessions with nearly the same request are one cluster, others are not."""

import random
import sys

import pytest
from labelled import WORDS

from skillc.errors import SkillcError
from skillc.sessions.likeness import cluster, normal_words

LONG = (
    "The nightly export of the orders to the warehouse failed again with a timeout after the third retry; look at the "
    "log, find out which of the queries is slow, and add the index that it needs without locking the table"
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Why is order 4410 late?", "Why is order 98213 late?"),
        ("Fix the test in src/app/login.py", "Fix the test in tests/test_other.py"),
        ("Fix the test in /home/[user name 1]/a.py", "fix the test in   ~/work/b.py"),
        ("Send the report of 2026-03-01, please", "Send the report of 12 May 2026, please!"),
        ("Look at https://a.example/x?y=1 and sum it up", "Look at http://other.example and sum it up"),
        ("Revert commit 3f2a91bc on main", "Revert commit 91b07de44a on main"),
        ("Write to [email 1] about the parcel", "Write to [email 3] about the parcel"),
        (LONG, LONG.replace("third", "second")),
        (LONG, f"{LONG}, thanks"),
    ],
)
def test_pairs_that_are_joined(first, second):
    assert set(cluster([("a", first), ("b", second)]).of.values()) == {"a"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Fix the login page", "Fix the search page"),
        ("Add a test for the parser", "Remove the test for the parser"),
        ("Which team gets this ticket: my parcel is late", "Which team gets this ticket: my invoice is wrong"),
        ("Translate the page to German", "Translate the page to Greek"),
        ("Why is order 4410 late?", "Why is order 4410 cancelled and not paid back?"),
        (LONG, " ".join(reversed(LONG.split()))),
        (
            LONG,
            LONG[: len(LONG) // 2]
            + " and write a page for the wiki about how retries and exports work at night in summer",
        ),
        ("", "Go."),
    ],
)
def test_pairs_that_are_not_joined(first, second):
    assert cluster([("a", first), ("b", second)]).of == {"a": "a", "b": "b"}


def test_a_cluster_keeps_its_name_when_sessions_are_added():
    requests = [(f"k{i:02}", f"{LONG} {WORDS[i % 4]}") for i in range(8)]
    before = cluster(requests).of
    after = cluster([*requests, ("a0", requests[0][1]), ("a1", "Something else entirely, my dear")]).of
    assert {key: after[key] for key in before} == before
    assert after["a0"] == "k00"
    assert after["a1"] == "a1"


def test_sessions_without_words_are_apart_from_those_with_words():
    assert cluster([("a", ""), ("b", "?!"), ("c", "why")]).of == {"a": "a", "b": "a", "c": "c"}


def test_many_sessions_of_one_request_are_joined_without_comparing_all_with_all():
    draw = random.Random(3)
    again = [(f"s{i:05}", f"{LONG} {' '.join(draw.sample(WORDS, 2))}") for i in range(200)]
    others = [(f"t{i:05}", " ".join(draw.choices(WORDS, k=20))) for i in range(1_300)]
    found = cluster([*again, *others])
    assert found.sizes["s00000"] == 200
    assert len(found.sizes) == 1_301


def test_what_most_requests_share_is_a_template_and_makes_no_two_the_same():
    draw = random.Random(4)
    payloads = [" ".join(draw.choices(WORDS, k=12)) for _ in range(40)]
    requests = [(f"s{i:02}", f"{LONG}: {payload}") for i, payload in enumerate(payloads)]
    again = [(f"t{i:02}", f"{LONG}: {payload} {i}, please") for i, payload in enumerate(payloads[:5])]
    found = cluster([*requests, *again])
    assert len(found.sizes) == 40
    assert [found.of[f"t{i:02}"] for i in range(5)] == [f"s{i:02}" for i in range(5)]
    # Of few requests, nobody can tell a template from a request that came again.
    assert len(cluster(requests[:2]).sizes) == 1


def test_one_value_in_two_forms_is_one_word():
    assert normal_words("on 12 May 2026 at 10:30") == ["on", "xnumberx", "at", "xnumberx"]
    assert normal_words("we may go and be effaced") == ["we", "may", "go", "and", "be", "effaced"]


def test_without_datasketch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(SkillcError, match="needs datasketch") as raised:
        cluster([("a", "Go.")])
    assert raised.value.hint == 'pip install "skillc[sessions]"'
