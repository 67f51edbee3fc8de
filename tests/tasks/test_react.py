"""Rollouts of an agent with tools, against a scripted model."""

import asyncio
import itertools
import json
from types import SimpleNamespace

import pytest
from model_plans import Scripted, plan_of, reply

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import RolloutPlan
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner
from skillc.trajectories.trajectory import Message, Observation, ToolCall

SKILL = Skill.of(document_of("route-tickets", "routes", [("rules", "trainable", "- Look up the order.", None)]))
NUMBERS = itertools.count()
TOOLS = '''
def find_order(number: str, times: int = 1) -> str:
    """Find an order.

    Args:
        number: the order's number.
        times: how often to look.
    """
    if number == "404":
        raise KeyError("no such order")
    if number == "down":
        raise ConnectionError("the shop is closed")
    return f"order {number} is late" * times
'''


def turn(thought, tool, **arguments):
    """What a model writes in a turn of the loop."""
    fields = {"next_thought": thought, "next_tool_name": tool, "next_tool_args": json.dumps(arguments)}
    return written(fields)


def answer(team):
    return written({"reasoning": "as it says", "team": team})


def written(fields):
    return "\n\n".join([*(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()), "[[ ## completed ## ]]"])


def react_plan(tools, **settings):
    made = plan_of()
    rollout = RolloutPlan(kind="react", settings={"tools": tools, **settings})
    return made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})


def python(name):
    return {"function": "python", "arguments": [name]}


def run(folder, replies, code=TOOLS, skill=SKILL, **settings):
    """Play an agent whose model gives these replies in turn."""
    module = f"shop_{next(NUMBERS)}"
    (folder / f"{module}.py").write_text(code)
    left = iter(replies)
    transport = Scripted(lambda sent: reply(next(left), usage=(30, 4)))
    plan = react_plan([python(f"{module}:find_order")], **settings)

    async def scenario():
        with Client(plan, transport=transport) as client:
            runner = RolloutRunner(plan, client, root=folder)
            try:
                return await runner(skill, Example("1", {"ticket": "order 7?"}, {}, {}, "1"), 0, "rollout")
            finally:
                await runner.close()

    rollout = asyncio.run(scenario())
    prompts = ["\n".join(str(m["content"]) for m in sent["messages"]) for sent in transport.sent]
    return SimpleNamespace(rollout=rollout, trajectory=rollout.trajectory, prompts=prompts)


def test_an_agent_calls_a_tool_reads_its_result_and_answers(tmp_path) -> None:
    done = run(
        tmp_path, [turn("look", "find_order", number="7"), turn("enough", "finish"), answer("shipping")], turns=5
    )
    assert done.rollout.prediction == {"team": "shipping"}
    assert done.trajectory.steps[:3] == (
        Message("look"),
        ToolCall("find_order", {"number": "7"}),
        Observation("order 7 is late"),
    )
    assert (done.trajectory.outcome, done.trajectory.turns, done.trajectory.tokens) == ("finished", 2, 102)
    assert "Look up the order." in done.prompts[0]
    assert "Find an order." in done.prompts[0]
    assert "the order's number." in done.prompts[0]
    assert "order 7 is late" in done.prompts[1]
    assert "order 7 is late" in done.prompts[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"number": "404"}, "error: KeyError: 'no such order'"),
        ({"number": "7", "times": "many"}, "error: `times`: Input should be a valid integer"),
        ({}, "error: missing argument `number`"),
        ({"number": "7", "color": "red"}, "error: unknown argument `color`"),
    ],
)
def test_a_tool_that_fails_is_an_observation(tmp_path, arguments, said) -> None:
    done = run(tmp_path, [turn("look", "find_order", **arguments), turn("so", "finish"), answer("billing")])
    seen = next(step for step in done.trajectory.steps if isinstance(step, Observation))
    assert seen.failed
    assert seen.text.startswith(said)
    assert said in done.prompts[1]
    assert done.rollout.prediction == {"team": "billing"}


def test_a_tool_whose_service_is_down_is_unmeasured(tmp_path) -> None:
    done = run(tmp_path, [turn("look", "find_order", number="down")])
    assert done.rollout.failure == "tool"
    assert "the shop is closed" in done.rollout.detail
    assert done.trajectory.tokens == 34


def test_at_the_limit_of_turns_the_answer_is_asked_for(tmp_path) -> None:
    again = [turn("look", "find_order", number="7")] * 3
    done = run(tmp_path, [*again, answer("shipping")], turns=3)
    assert (done.trajectory.outcome, done.trajectory.turns) == ("turns", 3)
    assert done.rollout.prediction == {"team": "shipping"}


def test_a_long_result_is_cut_in_its_middle(tmp_path) -> None:
    done = run(
        tmp_path,
        [turn("look", "find_order", number="7", times=1000), turn("so", "finish"), answer("billing")],
        result=10,
    )
    seen = next(step for step in done.trajectory.steps if isinstance(step, Observation))
    assert seen.text.startswith("order 7 is late")
    assert "characters left out]" in seen.text
    assert len(seen.text) < 100


@pytest.mark.parametrize(
    ("replies", "problem"),
    [
        (["what?"], "the reply lacks `next_thought`, `next_tool_name`, `next_tool_args`"),
        ([turn("so", "finish"), answer("sales")], "the reply's `team` is no declared value: sales"),
        ([turn("so", "buy")], "the reply's `next_tool_name` is no declared value: buy"),
    ],
)
def test_an_unreadable_reply_is_a_wrong_answer_with_its_reason(tmp_path, replies, problem) -> None:
    done = run(tmp_path, replies)
    assert done.rollout.failure is None
    assert done.rollout.prediction is None
    assert done.trajectory.problem == problem


def test_a_trajectory_that_is_too_long_loses_its_first_turn(tmp_path) -> None:
    refused = {"status": 0}

    class TooLongError(Exception):
        status_code = 400

    def script(sent):
        text = str(sent["messages"])
        if "tool_name_2" in text and "tool_name_0" in text:
            refused["status"] += 1
            return TooLongError("This model's maximum context length is 8192 tokens")
        if "tool_name_2" in text:
            return reply(answer("billing") if "reasoning" in text else turn("so", "finish"))
        return reply(turn("look", "find_order", number="7"))

    (tmp_path / "shop_long.py").write_text(TOOLS)
    plan = react_plan([python("shop_long:find_order")], turns=3)
    with Client(plan, transport=Scripted(script)) as client:
        runner = RolloutRunner(plan, client, root=tmp_path)
        done = asyncio.run(runner(None, Example("1", {"ticket": "?"}, {}, {}, "1"), 0, "rollout"))
    assert refused["status"] == 1
    assert done.prediction == {"team": "billing"}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def find_order(number: str) -> str:\n    return ''\n", "no docstring"),
        ("def find_order(number):\n    '''Find.'''\n", "`number` of the tool .* has no type"),
        ("def find_order(number: str):\n    '''Find.'''\n", "does not describe `number`"),
        ("def find_order(*numbers: str):\n    '''Find.'''\n", "takes `\\*numbers: str`"),
        ("find_order = 3\n", "has no function `find_order`"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_before_the_first_call(tmp_path, code, message) -> None:
    with pytest.raises(SkillcError, match=message):
        run(tmp_path, [], code)


def test_two_tools_of_one_name_are_refused(tmp_path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"shop_{name}.py").write_text(TOOLS)
    plan = react_plan([python("shop_one:find_order"), python("shop_two:find_order")])
    with pytest.raises(SkillcError, match="two tools are named `find_order`"), Client(plan, transport=Scripted()) as c:
        RolloutRunner(plan, c, root=tmp_path)


def test_a_section_of_tools_replaces_their_texts_and_stays_in_the_skill(tmp_path) -> None:
    lines = "- find_order: Use it before any answer.\n- `find_order.number`: the number after the A.\n- other: x"
    skill = Skill.of(document_of("route", "routes", [("tools", "trainable", lines, None)]))
    done = run(tmp_path, [turn("so", "finish"), answer("billing")], skill=skill)
    assert "<desc>Use it before any answer.</desc>" in done.prompts[0]
    assert "'description': 'the number after the A.'" in done.prompts[0]
    assert "'description': 'how often to look.'" in done.prompts[0]
    assert "Find an order." not in done.prompts[0]
    assert "- other: x" in done.prompts[0]
    bare = run(tmp_path, [turn("so", "finish"), answer("billing")], skill=None)
    assert "Find an order." in bare.prompts[0]


def test_a_secret_that_a_server_was_given_reaches_neither_the_model_nor_the_record(tmp_path, monkeypatch) -> None:
    from skillc.redaction import Secret
    from skillc.tools.toolbox import Toolbox

    class WithSecret(Toolbox):
        def __init__(self, declared, root, **more):
            super().__init__(declared, root, **more)
            self.secrets = [Secret("TOKEN", "order 7 is late")]

    monkeypatch.setattr("skillc.tasks.episodes.Toolbox", WithSecret)
    done = run(tmp_path, [turn("look", "find_order", number="7"), turn("so", "finish"), answer("billing")])
    assert "is late" not in "\n".join(done.prompts)
    assert Observation("[secret TOKEN]") in done.trajectory.steps
