"""Turns of agents are made again as the target was asked them, and become rows that chat templates read."""

import itertools
import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tasks"))

from faulty_server import call_tools
from test_native_calls import SKILL, THOUGHT, run, submit

from skillc.cli import skillc
from skillc.export.chat import RunChats, parting
from skillc.export.turns import Turn, Turns
from skillc.models.client import Client
from skillc.outcomes import Example

EXAMPLE = Example("1", {"ticket": "order 7?"}, {}, {}, "1")
FIND = ("find_order", {"number": "7"})
FAILS = ("find_order", {"number": "404"})


def played(folder, done, skill="s"):
    view = SimpleNamespace(plan=done.plan, program=folder / "shop.skill", skills={"s": SKILL})
    with Turns(view) as turns:
        return turns.of(skill, EXAMPLE, done.trajectory)


def with_objects(messages):
    """Messages as a server got them, with arguments of calls as objects, and the same ids as in rows."""
    numbers, found = {}, []
    for each in messages:
        row = {"role": each["role"], "content": each.get("content") or ""}
        for call in each.get("tool_calls") or ():
            numbers[call["id"]] = f"call_{len(numbers)}"
            function = {**call["function"], "arguments": json.loads(call["function"]["arguments"])}
            row.setdefault("tool_calls", []).append(
                {"id": numbers[call["id"]], "type": "function", "function": function}
            )
        if "tool_call_id" in each:
            row |= {"tool_call_id": numbers[each["tool_call_id"]], "name": "find_order"}
        found.append(row)
    return found


@pytest.mark.parametrize(
    "steps",
    [
        [call_tools(FIND, FAILS, text=THOUGHT), call_tools(FIND, text=THOUGHT), submit()],
        # Without thoughts, replies of one call each are told apart by their number.
        [call_tools(FIND), call_tools(FAILS), submit()],
        [submit()],
    ],
)
def test_native_turns_are_those_that_the_server_was_asked(tmp_path, monkeypatch, steps):
    done = run(tmp_path, monkeypatch, steps)
    turns = played(tmp_path, done)
    assert len(turns) == len(done.asked) == len(steps)
    for turn, asked in zip(turns, done.asked, strict=True):
        assert with_objects(asked["messages"]) == with_objects_of(turn.prompt)
        assert list(turn.tools) == asked["tools"]
    (last,) = turns[-1].reply["tool_calls"]
    assert last["function"] == {"name": "submit", "arguments": {"team": "shipping"}}
    failed = [any(call == FAILS for call in calls_of(turn)) for turn in turns]
    assert [turn.failed for turn in turns] == failed
    # What a turn replies is what the next prompt has of it.
    for turn, later in itertools.pairwise(turns):
        assert turn.reply in later.prompt


def with_objects_of(messages):
    names = ("role", "content", "tool_calls", "tool_call_id", "name")
    return [{name: each[name] for name in names if name in each} for each in messages]


def calls_of(turn):
    return [(each["function"]["name"], each["function"]["arguments"]) for each in turn.reply.get("tool_calls", ())]


def test_replies_that_cannot_be_told_apart_give_no_turn(tmp_path, monkeypatch):
    # Two calls in one reply and one in the next, without a thought: three calls in a row.
    done = run(tmp_path, monkeypatch, [call_tools(FIND, FAILS), call_tools(FIND), submit()])
    assert len(done.trajectory.calls()) == 3
    assert played(tmp_path, done) == ()


def test_two_rollouts_part_at_the_first_reply_that_differs():
    def turn(prompt, text, failed=False):
        return Turn([{"role": "user", "content": prompt}], {"role": "assistant", "content": text}, failed=failed)

    same, right, wrong = turn("a", "look"), turn("b", "yes"), turn("b", "no")
    assert parting([same, right], [same, wrong]) == (right, wrong)
    # Another result of the same call: what follows answers another prompt.
    assert parting([same, right], [same, turn("c", "no")]) is None
    assert parting([same, turn("b", "yes", failed=True)], [same, wrong]) is None
    assert parting([same], [same, wrong]) is None


# ---- tools as text ---------------------------------------------------------------------------------

SHOP = '''
ORDERS = {ORDERS}


def find_order(number: str) -> str:
    """Find what the shop knows of an order.

    Args:
        number: the first text that looks like "A-123"
    """
    return ORDERS[number]
'''
PROGRAM = """language 1

task {
  input  ticket: text
  output team: "billing" | "shipping"
  rollout = react { tools = [python("shop_of_turns:find_order")]; turns = 3 }
}

skill route_tickets {
  about = "Route tickets."
  frozen section role = "You route tickets."
  trainable section rules { limit = 300 tokens }
}

model target    = "rulebook/v1"
model optimizer = "rulebook/v1"

data { source = "tickets.jsonl"; split = 3 : 1 : 1 }

goal correct = exact_match(team)
optimize { batch = 12 }
budget { steps = 3 }
gate better = candidate.correct > incumbent.correct
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    signs = {"billing": "the invoice is open", "shipping": "the parcel left the depot"}
    orders = {f"A-{100 + i}": ("billing", "shipping")[i % 2] for i in range(60)}
    known = {number: signs[team] for number, team in orders.items()}
    (folder / "shop_of_turns.py").write_text(SHOP.replace("{ORDERS}", repr(known)))
    rows = [{"ticket": f"What about order {number}?", "team": team} for number, team in orders.items()]
    (folder / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "shop.skill").write_text(PROGRAM)
    sent, complete = [], Client.complete

    async def recorded(self, call):
        if call.role == "target":
            sent.append([{"role": each.role, "content": each.content} for each in call.messages])
        return await complete(self, call)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "complete", recorded)
        done = CliRunner().invoke(skillc, ["compile", str(folder / "shop.skill"), "--offline", "--quiet"])
    assert done.exit_code in (0, 1), done.output
    return folder / "shop.skill", sent


def test_text_turns_are_those_that_the_target_was_asked(compiled):
    program, sent = compiled
    found = RunChats(program, skill="keep")
    chats = found.sft()
    assert len(chats.examples) > 3
    assert len(chats.rows) >= 3 * len(chats.examples)
    for row in chats.rows:
        assert row["prompt"] in sent
        assert "tools" not in row
    written = Counter(row["completion"][0]["content"].split("\n")[0] for row in chats.rows)
    assert written["[[ ## next_thought ## ]]"] >= 2 * len(chats.examples)
    assert written["[[ ## reasoning ## ]]"] == len(chats.examples)
    assert not {each.id for each in chats.examples} & {each.id for each in found.view.dataset.test}
    without = RunChats(program).sft()
    assert not [row for row in without.rows if "You route tickets." in json.dumps(row["prompt"])]


def test_a_pair_of_an_agent_has_the_replies_where_the_rollouts_part(compiled):
    program, sent = compiled
    pairs = RunChats(program, skill="keep").dpo()
    assert pairs.rows
    for row in pairs.rows:
        assert row["prompt"] in sent
        assert row["chosen"] != row["rejected"]
