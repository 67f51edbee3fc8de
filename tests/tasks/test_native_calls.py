"""Agents whose tools go to the provider, against servers of both protocols on this machine."""

import asyncio
import importlib.util
import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))

from faulty_server import FaultyServer, call_tools, refuse, say
from model_plans import model, plan_of
from wire_calls import address, at

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.models.pace import RetryPolicy
from skillc.outcomes import Example
from skillc.plan.schema import RolloutPlan
from skillc.program.emitted import module_source
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner
from skillc.trajectories.trajectory import Message, Observation, ToolCall

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
SKILL = document_of("route-tickets", "routes", [("rules", "trainable", "- Look up the order.", None)])
THOUGHT = "[[ ## next_thought ## ]]\nlook\n\n[[ ## completed ## ]]"


def native_plan(*tools, target=None, **settings):
    made = plan_of(*([target, model("optimizer")] if target is not None else []))
    declared = [{"function": "python", "arguments": [name]} for name in tools]
    rollout = RolloutPlan(kind="react", settings={"tools": declared, "tool_calls": "native", **settings})
    return made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})


def run(folder, monkeypatch, steps, protocol="openai", skill=SKILL, again=(), **settings):
    """Play an agent whose server takes these steps, and once more with each skill in `again`."""
    monkeypatch.setenv("TEAM_KEY", "sk-planted-0123456789abcdef")
    module = f"native_shop_{next(NUMBERS)}"
    (folder / f"{module}.py").write_text(TOOLS)
    with FaultyServer(steps) as server:
        plan = native_plan(f"{module}:find_order", target=at(address(server, protocol), protocol), **settings)

        async def scenario(client):
            runner = RolloutRunner(plan, client, root=folder)
            example = Example("1", {"ticket": "order 7?"}, {}, {}, "1")
            try:
                async with client.connected():
                    return [await runner(Skill.of(each), example, 0, "rollout") for each in (skill, *again)]
            finally:
                await runner.close()

        with Client(plan, retries=RetryPolicy(1, 0, 0)) as client:
            rollouts = asyncio.run(scenario(client))
            tools, spent = runner_tools(plan, client, folder), client.ledger.charged.spent
        asked = [each.body for each in server.asked]
    return SimpleNamespace(
        rollout=rollouts[0], trajectory=rollouts[0].trajectory, asked=asked, plan=plan, tools=tools, spent=spent
    )


def runner_tools(plan, client, folder):
    return RolloutRunner(plan, client, root=folder).tools


def submit(team="shipping"):
    return call_tools(("submit", {"team": team}))


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "hosted_vllm"])
def test_parallel_calls_are_made_in_order_and_their_results_go_back(tmp_path, monkeypatch, protocol) -> None:
    calls = [("find_order", {"number": "7"}), ("find_order", {"number": "404"})]
    done = run(tmp_path, monkeypatch, [call_tools(*calls, text=THOUGHT), submit()], protocol)
    assert done.rollout.prediction == {"team": "shipping"}
    assert done.trajectory.steps == (
        Message("look"),
        ToolCall("find_order", {"number": "7"}),
        Observation("order 7 is late"),
        ToolCall("find_order", {"number": "404"}),
        Observation("error: KeyError: 'no such order'", failed=True),
    )
    assert (done.trajectory.outcome, done.trajectory.turns, done.trajectory.tokens) == ("finished", 2, 28)
    assert (done.spent.calls, done.spent.tokens) == (2, 28)

    first, second = done.asked
    written = json.dumps(second["messages"])
    assert "Look up the order." in json.dumps(first)
    assert first["tools"] == second["tools"]
    if protocol == "anthropic":
        schemas = {each["name"]: each["input_schema"] for each in first["tools"]}
        used = [part for part in second["messages"][1]["content"] if part["type"] == "tool_use"]
        results = [part for part in second["messages"][2]["content"] if part["type"] == "tool_result"]
        assert [part["input"] for part in used] == [{"number": "7"}, {"number": "404"}]
        assert [part["tool_use_id"] for part in results] == [part["id"] for part in used]
    else:
        schemas = {each["function"]["name"]: each["function"]["parameters"] for each in first["tools"]}
        messages = second["messages"]
        assert [each["role"] for each in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
        assert [each["tool_call_id"] for each in messages[3:5]] == [each["id"] for each in messages[2]["tool_calls"]]
    assert "order 7 is late" in written
    assert "KeyError" in written
    assert list(schemas) == ["find_order", "submit"]
    assert schemas["find_order"]["required"] == ["number"]
    assert schemas["find_order"]["properties"]["number"]["description"] == "the order's number."
    assert schemas["submit"]["properties"]["team"]["enum"] == ["billing", "shipping"]


@pytest.mark.parametrize(
    ("name", "given", "call", "said"),
    [
        (
            "find_order",
            '{"number": "7"',
            {"partial_json": '{"number": "7"'},
            "error: the arguments are not a JSON object",
        ),
        ("find_order", "[7]", {"partial_json": "[7]"}, "error: the arguments are not a JSON object"),
        ("find_order", '{"number": NaN}', {"partial_json": '{"number": NaN}'}, "error: the arguments are not a JSON"),
        ("find_order", "", {}, "error: missing argument `number`"),
        ("find_order", {"number": "7", "times": "many"}, None, "error: `times`: Input should be a valid integer"),
        ("find_order", {"number": "\ud800"}, {"number": "\ufffd"}, "order \ufffd is late"),
        ("buy", {"number": "7"}, None, "Unknown tool: buy"),
        ("submit", {"team": "sales"}, None, "error: Arg team is invalid: 'sales' is not one of"),
        ("submit", {}, None, "error: Missing required final output field(s): team"),
    ],
)
def test_a_wrong_call_is_an_observation(tmp_path, monkeypatch, name, given, call, said) -> None:
    done = run(tmp_path, monkeypatch, [call_tools((name, given)), submit()])
    tool = "find_order" if name == "find_order" else ""
    made, seen = done.trajectory.steps
    assert made == ToolCall(tool, given if call is None else call, "" if tool else name)
    assert seen.text.startswith(said)
    assert seen.failed == (not said.startswith("order"))
    assert said in done.asked[1]["messages"][3]["content"]
    assert done.rollout.prediction == {"team": "shipping"}


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("steps", "outcome", "turns"),
    [
        ([say("The team is shipping.")], "finished", 1),
        ([say("[[ ## next_thought ## ]]\nThe team is shipping.\n\n[[ ## completed ## ]]")], "finished", 1),
        ([call_tools(("find_order", {"number": "7"}))] * 2, "turns", 2),
    ],
)
def test_an_agent_that_does_not_submit_is_asked_to(tmp_path, monkeypatch, protocol, steps, outcome, turns) -> None:
    done = run(tmp_path, monkeypatch, [*steps, submit()], protocol, turns=2)
    assert done.rollout.prediction == {"team": "shipping"}
    assert (done.trajectory.outcome, done.trajectory.turns) == (outcome, turns)
    if turns == 1:
        assert done.trajectory.steps == (Message("The team is shipping."),)
    choices = [each.get("tool_choice") for each in done.asked]
    named = (
        {"type": "tool", "name": "submit"}
        if protocol == "anthropic"
        else {
            "type": "function",
            "function": {"name": "submit"},
        }
    )
    assert choices == [*[None] * (len(choices) - 1), named]


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        (say("shipping"), "it did not call `submit` with its answer"),
        (call_tools(("find_order", {"number": "7"})), "it did not call `submit` with its answer"),
        (submit("sales"), "its answer is not valid: error: Arg team is invalid: 'sales' is not one of"),
    ],
)
def test_an_agent_that_never_answers_has_the_worst_score_with_the_reason(tmp_path, monkeypatch, last, problem) -> None:
    done = run(tmp_path, monkeypatch, [say("done"), last])
    assert done.rollout.failure is None
    assert done.rollout.prediction is None
    assert done.trajectory.outcome == "failed"
    assert done.trajectory.problem.startswith(problem)


def test_a_tool_whose_service_is_down_is_unmeasured(tmp_path, monkeypatch) -> None:
    done = run(tmp_path, monkeypatch, [call_tools(("find_order", {"number": "down"}))])
    assert done.rollout.failure == "tool"
    assert "the shop is closed" in done.rollout.detail


def test_a_server_that_fails_is_unmeasured(tmp_path, monkeypatch) -> None:
    done = run(tmp_path, monkeypatch, [call_tools(("find_order", {"number": "7"})), refuse(500, "overheated")])
    assert done.rollout.failure == "transport"


def test_a_trajectory_that_is_too_long_loses_its_first_turn_and_keeps_the_inputs(tmp_path, monkeypatch) -> None:
    step = call_tools(("find_order", {"number": "7"}), text=THOUGHT)

    def script(asked):
        results = sum(each["role"] == "tool" for each in asked.body["messages"])
        return step if results < 2 else submit()

    def refusing(asked):
        results = sum(each["role"] == "tool" for each in asked.body["messages"])
        return refuse(400, "This model's maximum context length is 8192 tokens") if results == 2 else script(asked)

    done = run(tmp_path, monkeypatch, refusing, turns=2)
    # The last request, after the limit of turns, has one turn less, so the model is asked to submit there.
    assert [sum(each["role"] == "tool" for each in body["messages"]) for body in done.asked] == [0, 1, 2, 1]
    assert "order 7?" in done.asked[-1]["messages"][1]["content"]
    assert done.trajectory.problem == "it did not call `submit` with its answer"


def test_replies_are_cached_by_the_names_and_texts_of_the_tools(tmp_path, monkeypatch) -> None:
    text = "- find_order: Use it first.\n- find_order.number: the number after the A"
    trained = document_of("route-tickets", "routes", [("tools", "trainable", text, None)])
    done = run(tmp_path, monkeypatch, lambda asked: submit(), skill=trained, again=[trained, SKILL, trained])
    assert len(done.asked) == 2
    function = done.asked[0]["tools"][0]["function"]
    assert function["description"] == "Use it first."
    assert function["parameters"]["properties"]["number"]["description"] == "the number after the A"
    assert done.asked[1]["tools"][0]["function"]["description"] == "Find an order."
    assert done.spent.calls == 4


def test_the_emitted_module_sends_what_the_compile_sent(tmp_path, monkeypatch) -> None:
    import dspy

    bad = [("find_order", {"number": "404", "color": 1}), ("submit", {"team": "sales"}), ("find_order", '{"number"')]
    steps = [call_tools(*bad, text=THOUGHT), call_tools(("find_order", {"number": "7"})), say("It is late."), submit()]
    done = run(tmp_path, monkeypatch, steps)
    source = module_source(done.plan, SKILL, done.tools)
    (tmp_path / "skills/route-tickets").mkdir(parents=True)
    (tmp_path / "skills/route_tickets.py").write_text(source)
    from skillc.document.skill_md import to_skill_md

    (tmp_path / "skills/route-tickets/SKILL.md").write_text(to_skill_md(SKILL))
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = importlib.util.spec_from_file_location("native_route_tickets", tmp_path / "skills/route_tickets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with FaultyServer(steps) as server:
        lm = dspy.LM("openai/gpt-4o-mini", api_base=server.url, api_key="sk-1", cache=False, max_tokens=99)
        with dspy.context(lm=lm):
            assert module.program(ticket="order 7?").team == "shipping"
        asked = [each.body for each in server.asked]
    assert len(asked) == len(done.asked) == 4
    for ours, theirs in zip(done.asked, asked, strict=True):
        assert [ours.get("tools"), ours.get("tool_choice")] == [theirs.get("tools"), theirs.get("tool_choice")]
        # A content of null may be left out.
        both = [
            [{k: v for k, v in each.items() if v is not None} for each in body["messages"]] for body in (ours, theirs)
        ]
        assert both[0] == both[1]


@pytest.mark.parametrize(("name", "message"), [("submit", "by which an agent ends"), ("größe", "providers accept no")])
def test_a_name_that_providers_refuse_is_an_error_before_the_first_call(tmp_path, name, message) -> None:
    (tmp_path / "odd_shop.py").write_text(TOOLS.replace("find_order", name))
    plan = native_plan(f"odd_shop:{name}")
    with Client(plan) as client, pytest.raises(SkillcError, match=message):
        RolloutRunner(plan, client, root=tmp_path)


def test_a_rollout_may_be_one_call_and_is_bounded_by_its_turns() -> None:
    from skillc.budget.call_sizes import CallSizer
    from skillc.budget.spend import Sizes

    native = native_plan("shop:find_order", target=model(), turns=3)
    settings = {name: each for name, each in native.task.rollout.settings.items() if name != "tool_calls"}
    rollout = native.task.rollout.model_copy(update={"settings": settings})
    text = native.model_copy(update={"task": native.task.model_copy(update={"rollout": rollout})})
    bounds = [CallSizer(plan, Sizes(train=1, validation=1, test=0), {}).all().rollout for plan in (native, text)]
    assert [(bound.least.calls, bound.most.calls) for bound in bounds] == [(1, 4), (2, 4)]


PROGRAM = """language 1
task {
  input ticket: text
  output team: "billing" | "shipping"
  output urgent: bool
  output days: integer | none
  rollout = react { tools = [python("offline_shop:find_order")]; CALLS }
}
skill route { about = "Routes."; trainable section rules = "- If the trajectory mentions `late`, answer shipping." }
TARGET
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
goal correct = exact_match(team)
budget { epochs = 1 }
gate better = candidate.correct > incumbent.correct
"""
RULEBOOK = 'model target = "rulebook/v1"'


@pytest.mark.parametrize(
    ("calls", "target", "found"),
    [
        ("tool_calls = native", RULEBOOK, None),
        ("tool_calls = native", 'model target = "exec/tool" { exec = "tool {prompt}" }', "the target is a command"),
        ("tool_calls = text", 'model target = "exec/tool" { exec = "tool {prompt}" }', None),
        (
            "tool_calls = native",
            'model target = "hosted_vllm/a/b" { serve = vllm { args = ["--tool-call-parser=hermes"] } }',
            "the server of `target` reads no tool calls without `--enable-auto-tool-choice`",
        ),
        (
            "tool_calls = native",
            'model target = "hosted_vllm/a/b" { serve = vllm { '
            'args = ["--tool-call-parser", "hermes", "--enable-auto-tool-choice"] } }',
            None,
        ),
    ],
)
def test_check_refuses_a_target_that_cannot_be_given_tools(tmp_path, calls, target, found) -> None:
    from skillc.frontend import check_source
    from skillc.syntax.source import Source

    source = Source(str(tmp_path / "p.skill"), PROGRAM.replace("CALLS", calls).replace("TARGET", target))
    messages = [each.message for each in check_source(source, tmp_path).diagnostics if each.code == "SK625"]
    assert [message.startswith(found or "") for message in messages] == ([True] if found else [])


def test_the_embedded_model_plays_native_calls_offline(tmp_path) -> None:
    from skillc.frontend import plan_file
    from skillc.plan.initial import initial_document

    described = TOOLS.replace("the order's number.", 'the word after "order"')
    (tmp_path / "offline_shop.py").write_text(described)
    text = PROGRAM.replace("CALLS", "tool_calls = native").replace("TARGET", 'model target = "openai/gpt-4o-mini"')
    (tmp_path / "p.skill").write_text(text)
    plan = plan_file(tmp_path / "p.skill", complete=False).plan
    with Client(plan, offline=True) as client:
        runner = RolloutRunner(plan, client, root=tmp_path)
        example = Example("1", {"ticket": "Where is order 71?"}, {}, {}, "1")
        done = asyncio.run(runner(Skill.of(initial_document(plan)), example, 0, "rollout"))
    assert done.trajectory.steps[1:3] == (ToolCall("find_order", {"number": "71"}), Observation("order 71 is late"))
    assert done.prediction == {"team": "shipping", "urgent": False, "days": 71}
    assert done.trajectory.tokens > 300
