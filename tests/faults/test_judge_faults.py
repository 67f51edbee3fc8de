"""Judges under kills, caps and failures: the same bytes, no call above a cap, and no failure is a score."""

import json
import random
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from loopback import Loopback
from nursery import Nursery
from test_resume import IN_FLIGHT, REMOTE, compiled, finish, killed, shop, start

JUDGED = REMOTE.replace(
    "goal correct = exact_match(kind)",
    '''rubric right = """
  5  the kind is right
  1  it is not
""" { sees = [gold] }
rubric better = "Is the kind right?" { sees = [gold] }
model referee = "openai/rulebook" { base_url = env("SERVER"); key = env("KEY"); temperature = 0 }
model second  = "openai/rulebook-2" { base_url = env("SERVER"); key = env("KEY") }
model third   = "openai/rulebook-3" { base_url = env("SERVER"); key = env("KEY") }
metric ahead = judge(kind, better, model = referee, against = initial)
metric exact = exact_match(kind)
goal correct = judge(kind, right, panel = [referee, second, third])''',
)

pytestmark = pytest.mark.thorough
ROWS = 40


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


@pytest.fixture
def server():
    with Loopback(latency=0.002) as server:
        yield server


@pytest.fixture(scope="module")
def whole(nursery, tmp_path_factory):
    """An undisturbed run: its bytes, and what the server was asked."""
    folder = shop(tmp_path_factory.mktemp("whole") / "things", JUDGED, ROWS)
    with Loopback(latency=0.002) as server:
        finish(nursery, server, folder)
        return compiled(folder), server.asked.copy()


def lock(files):
    return json.loads(files["sort-things.lock"])


def test_kills_change_no_byte(nursery, server, whole, tmp_path):
    bytes_of_whole, once = whole
    folder, dice = shop(tmp_path / "things", JUDGED, ROWS), random.Random(3)
    kills = sum(killed(nursery, server, folder, dice, most=60) == -signal.SIGKILL for _ in range(5))
    finish(nursery, server, folder)
    assert kills > 2
    assert compiled(folder) == bytes_of_whole
    assert set(server.asked) == set(once)
    assert server.total - once.total() <= kills * IN_FLIGHT


@pytest.mark.parametrize("cap", [40, 150])
def test_the_cap_on_judges_is_kept_and_the_run_goes_on_with_a_larger_one(nursery, server, whole, tmp_path, cap):
    folder, judged = shop(tmp_path / "things", JUDGED, ROWS), []

    def count(messages):
        if str(messages[1]["content"] if len(messages) > 1 else "").startswith("Case "):
            judged.append(messages)

    server.replies = count
    start(nursery, server, folder, "--set", f"budget.judge_calls={cap}")
    assert nursery.wait() in (2, 3)
    assert 0 < len(judged) <= cap
    server.replies = None
    finish(nursery, server, folder, "--set", "budget.judge_calls=100000")
    again, first = compiled(folder), whole[0]
    assert again["sort-things/SKILL.md"] == first["sort-things/SKILL.md"]
    assert again["sort-things.history.jsonl"] == first["sort-things.history.jsonl"]
    assert lock(again)["charged"] == lock(first)["charged"]


def test_nonsense_is_asked_for_again_and_never_scored(nursery, server, whole, tmp_path):
    """A judge refuses or rambles at one case in seven: the run decides as if it had not, and pays for the question."""
    folder, dice, spoilt = shop(tmp_path / "things", JUDGED, ROWS), random.Random(1), []

    def replies(messages):
        if len(messages) != 2 or not str(messages[1]["content"]).startswith("Case ") or dice.random() > 1 / 7:
            return None
        spoilt.append(messages)
        return dice.choice(["I can't help with that.", "It is fine, I think: 4.", '{"verdicts": [{"level": 10}]}', "{"])

    server.replies = replies
    finish(nursery, server, folder)
    found, expected = compiled(folder), whole[0]
    assert len(spoilt) > 10
    assert found["sort-things/SKILL.md"] == expected["sort-things/SKILL.md"]
    assert found["sort-things.history.jsonl"] == expected["sort-things.history.jsonl"]
    assert lock(found)["charged"]["calls"] > lock(expected)["charged"]["calls"]


def test_a_judge_that_always_refuses_stops_the_run_with_its_words(nursery, server, tmp_path):
    folder = shop(tmp_path / "things", JUDGED, ROWS)
    server.replies = lambda messages: (
        "I can't help with that." if str(messages[-1]["content"]).startswith(("Case ", "This reply")) else None
    )
    start(nursery, server, folder)
    assert nursery.wait() == 2
    told = (folder / "stderr.txt").read_text()
    assert "could not be measured with the initial skill: a judge failed" in told
    assert "judge `referee`: no verdict in two replies" in told
    assert "I can't help with that." in told


def test_an_overloaded_judge_is_waited_for(nursery, server, whole, tmp_path):
    folder, dice = shop(tmp_path / "things", JUDGED, ROWS), random.Random(2)
    server.fails = lambda body: body["model"].startswith("rulebook-") and dice.random() < 0.05
    finish(nursery, server, folder)
    assert compiled(folder) == whole[0]
