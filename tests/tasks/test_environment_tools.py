"""An agent with tools in an environment: `agent = react { tools = [...] }`, played by a scripted target."""

import itertools
import json
from types import SimpleNamespace

import pytest
from model_plans import model, reply
from test_environments import SKILL, WON, example, plan, play

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.models.failures import CallFailed
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, RolloutPlan, TypePlan
from skillc.tasks.kind import Skill
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Message, Observation, ToolCall

NUMBERS = itertools.count()
TOOLS = '''
def ask_map(thing: str) -> str:
    """Ask where a thing is.

    Args:
        thing: what is looked for.
    """
    if thing == "down":
        raise ConnectionError("the map is closed")
    if thing == "ghost":
        raise KeyError(thing)
    return f"the {thing} is in the kitchen" + " and so on" * (500 if thing == "book" else 0)
'''


def says(tool, thought="so", **arguments):
    fields = {"next_thought": thought, "next_tool_name": tool, "next_tool_args": json.dumps(arguments)}
    return "\n\n".join([*(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()), "[[ ## completed ## ]]"])


def act(action, thought="so"):
    return says("act", thought, action=action)


ASKED = (says("ask_map", "where?", thing="apple"), *map(act, WON))


def run(folder, script, *, examples=None, skill=SKILL, code=TOOLS, block=None, made=None, **settings):
    """Play examples, each with a script of replies; returns what `play` does, with the prompts as texts."""
    module = f"maps_{next(NUMBERS)}"
    (folder / f"{module}.py").write_text(code)
    agent = {"kind": "react", "tools": [{"function": "python", "arguments": [f"{module}:ask_map"]}], **(block or {})}
    left, sent = iter(script), []

    def answer(request):
        sent.append("\n".join(message["content"] for message in request["messages"]))
        return reply(next(left), usage=(10, 2))

    made = made(agent) if made is not None else plan(agent=agent, **settings)
    done = play(folder, answer, examples, made, skill)
    return SimpleNamespace(**{**vars(done), "prompts": sent})


def test_a_tool_is_asked_beside_the_environment_and_takes_no_turn(tmp_path) -> None:
    done = run(tmp_path, ASKED)
    assert (done.trajectory.reward, done.trajectory.outcome, done.trajectory.turns) == (1.0, "finished", 3)
    assert done.trajectory.steps[:6] == (
        Observation("You are in the hall. The apple is somewhere."),
        Message("where?"),
        ToolCall("ask_map", {"thing": "apple"}),
        Observation("the apple is in the kitchen"),
        Message("so"),
        ToolCall("act", {"action": "go to kitchen"}),
    )
    assert done.one.prediction == {"action": "finish"}
    assert done.trajectory.tokens == 48
    assert len(done.prompts) == 4


def test_the_target_reads_skill_tools_and_actions_and_the_prompt_only_grows(tmp_path) -> None:
    first, second, third, _ = run(tmp_path, ASKED).prompts
    for text in ("Look in the kitchen.", "Ask where a thing is.", "what is looked for.", "bring the apple"):
        assert text in first
    assert "[[ ## possible_actions ## ]]\n- go to kitchen\n- go to garden\n- finish" in first
    kept = first.partition("[[ ## possible_actions")[0]
    assert second.startswith(kept)
    assert "[[ ## observation_1 ## ]]\nthe apple is in the kitchen" in second
    assert third.startswith(second.partition("[[ ## possible_actions")[0])
    assert "[[ ## observation_2 ## ]]\nYou are in the kitchen." in third


def test_the_calls_of_a_turn_are_limited(tmp_path) -> None:
    again = says("ask_map", thing="apple")
    done = run(tmp_path, [again, again, again, *map(act, WON)], block={"calls": 2})
    assert "[only `act` can be called now]" in done.prompts[2]
    assert "[only" not in done.prompts[1] + done.prompts[3]
    failed = [step.text for step in done.trajectory.steps if isinstance(step, Observation) and step.failed]
    assert failed == ["`ask_map` was not called: after 2 calls in a turn comes `act`; nothing was done"]
    assert (done.trajectory.reward, done.trajectory.turns) == (1.0, 4)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("written", "said"),
    [
        (says("ask_map", thing="ghost"), "error: KeyError: 'ghost'"),
        (says("ask_map", place="here"), "error: unknown argument `place`; missing argument `thing`"),
        (says("act", place="here"), "unknown argument `place`; missing argument `action`; nothing was done"),
        (says("fly"), "error: there is no tool `fly`, but `act` and `ask_map`"),
        ("what?", "the reply lacks `next_thought`, `next_tool_name`, `next_tool_args`; nothing was done"),
        (act("sing"), "nobody sings here"),
    ],
)
def test_what_the_agent_does_wrong_is_an_observation(tmp_path, written, said) -> None:
    done = run(tmp_path, [written, *map(act, WON)])
    assert Observation(said, failed=True) in done.trajectory.steps
    assert said in done.prompts[1]
    assert (done.one.failure, done.trajectory.reward) == (None, 1.0)


def test_a_tool_whose_service_is_down_is_unmeasured(tmp_path) -> None:
    done = run(tmp_path, [says("ask_map", thing="down")])
    assert (done.one.failure, "the map is closed" in done.one.detail) == ("tool", True)


def test_a_process_that_fails_once_repeats_the_rollout_without_a_further_charge(tmp_path) -> None:
    (sound := tmp_path / "sound").mkdir(), (faulty := tmp_path / "faulty").mkdir()
    want, done = run(sound, ASKED), run(faulty, ASKED, examples=[example("kill@step")])
    assert done.one.failure is None
    same = [{**each.trajectory.to_json(), "seconds": 0} for each in (want, done)]
    assert same[0] == same[1]
    assert done.calls == want.calls


def test_the_history_is_cut_but_not_the_present_turn(tmp_path) -> None:
    walk = [says("ask_map", thing="apple"), act("go to garden"), says("ask_map", thing="apple"), act("go to hall")] * 4
    done = run(tmp_path, [*walk, says("ask_map", thing="book"), act("finish")], history=80, block={"result": 100})
    assert "earlier steps left out]" in done.prompts[-1]
    assert "[[ ## observation_0 ## ]]" not in done.prompts[-1]
    assert "[[ ## observation_16 ## ]]" in done.prompts[-1]
    assert "characters left out]" in done.prompts[-1]
    assert done.trajectory.outcome == "finished"


def test_labels_and_several_outputs_are_the_arguments_of_the_action(tmp_path) -> None:
    def made(agent):
        base = plan(agent=agent, name="toy_house:Pairs")
        outputs = (
            FieldPlan(name="verb", type=TypePlan(kind="labels", labels=("go", "take")), column="verb"),
            FieldPlan(name="times", type=TypePlan(kind="integer"), column="times", about="how often"),
        )
        return base.model_copy(update={"task": base.task.model_copy(update={"outputs": outputs})})

    done = run(tmp_path, [says("act", verb="fly", times=1), says("act", verb="go", times=2)], made=made)
    assert "how often" in done.prompts[0]
    print(done.prompts[1])
    assert "`verb` is no declared value: `fly`" in done.prompts[1]
    assert (done.one.prediction, done.trajectory.reward) == ({"verb": "go", "times": 2}, 1.0)


def test_texts_of_tools_are_trained_with_the_skill(tmp_path) -> None:
    lines = "- ask_map: Ask first.\n- act.action: one of the list"
    skill = Skill.of(document_of("find-things", "finds", [("tools", "trainable", lines, None)]))
    prompt = run(tmp_path, map(act, WON), skill=skill).prompts[0]
    assert "<desc>Ask first.</desc>" in prompt
    assert "one of the list" in prompt
    assert "Ask where a thing is." not in prompt


def test_an_agent_opens_a_skill_whole_by_a_tool(tmp_path) -> None:
    def made(agent):
        base = plan(agent=agent, history=60)
        return base.model_copy(update={"skill": base.skill.model_copy(update={"load": "on_demand"})})

    text = "- Look in the kitchen." + " Look again." * 60
    skill = Skill.of(document_of("find-things", "Find a thing.", [("rules", "trainable", text, None)]))
    walk = [act("go to garden"), act("go to hall")] * 6
    script = [says("open_skill", name="cook"), says("open_skill", name="find-things"), *walk, *map(act, WON)]
    done = run(tmp_path, script, skill=skill, made=made, block={"result": 20})
    assert "- find-things: Find a thing." in done.prompts[0]
    assert "Look in the kitchen" not in "".join(done.prompts[:2])
    assert all(" Look again." * 60 in prompt for prompt in done.prompts[2:])
    assert "earlier steps left out]" in done.prompts[-1]
    assert "error: there is no skill `cook`" not in done.prompts[-1]
    assert opened_skills(done.trajectory) == ("find-things",)
    assert (done.trajectory.reward, done.trajectory.turns) == (1.0, 15)


def test_a_tool_with_the_name_of_the_action_is_refused_before_the_first_call(tmp_path) -> None:
    code = TOOLS.replace("ask_map", "act")
    (tmp_path / "acting_tools.py").write_text(code)
    agent = {"kind": "react", "tools": [{"function": "python", "arguments": ["acting_tools:act"]}]}
    with pytest.raises(SkillcError, match=r"`act` of .* is how an agent acts in an environment"):
        play(tmp_path, made=plan(agent=agent))


def test_without_tools_the_agent_reasons_and_acts(tmp_path) -> None:
    rollout = RolloutPlan(kind="environment", arguments=("toy_house:House",), settings={"agent": "react"})
    made = plan()
    made = made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})
    script = iter(map(act, WON))
    done = play(
        tmp_path, lambda sent: reply(next(script)), [Example("1", {"goal": "x"}, {}, {"place": "kitchen"}, "1")], made
    )
    assert done.trajectory.reward == 1.0


# ---- tools that act -------------------------------------------------------------------------------

ACTING = '''
import time


def move(room: str, environment) -> str:
    """Go to a room.

    Args:
        room: which one.
    """
    return environment.step(f"go to {room}")


async def carry(environment) -> str:
    """Take the apple and bring it."""
    return await environment.astep("take apple") + " " + await environment.astep("finish")


def slowly(environment) -> str:
    """Go slowly."""
    time.sleep(0.15)
    return environment.step("go to garden")


def respond(message: str, environment) -> str:
    """Say something to the customer.

    Args:
        message: what you say.
    """
    return environment.step(message)


def scatter(environment) -> str:
    """Do what no JSON says."""
    return environment.step({1, 2})


def weigh(thing: str) -> str:
    """Weigh a thing.

    Args:
        thing: which.
    """
    return f"the {thing} is light"
'''
NAMES = ("move", "carry", "slowly", "scatter", "weigh", "respond")
CARRIED = (says("weigh", thing="apple"), says("move", room="kitchen"), says("carry"), says("finish", done=True))


def acting(folder, script, *, examples=None, name="toy_house:House", models=(), customer=None, **settings):
    """Play with tools that act; the answer is `done`, of type bool."""
    module = f"acting_{next(NUMBERS)}"
    (folder / f"{module}.py").write_text(ACTING)
    block = settings.pop("block", {})
    tools = [{"function": "python", "arguments": [f"{module}:{each}"]} for each in NAMES]
    agent = {"kind": "react", "tools": tools, **block}
    made = plan(*models, name=name, agent=agent, **settings)
    outputs = (FieldPlan(name="done", type=TypePlan(kind="bool"), column="done"),)
    made = made.model_copy(update={"task": made.task.model_copy(update={"outputs": outputs})})
    left, sent = iter(script), []

    def answer(request):
        if "You play a user" in request["messages"][0]["content"]:
            said = next(customer)
            if isinstance(said, Exception):
                raise said
            return reply(said)
        sent.append("\n".join(message["content"] for message in request["messages"]))
        return reply(next(left), usage=(10, 2))

    done = play(folder, answer, examples, made)
    return SimpleNamespace(**{**vars(done), "prompts": sent})


def test_tools_act_in_the_environment_and_the_answer_ends_the_rollout(tmp_path) -> None:
    done = acting(tmp_path, CARRIED)
    assert (done.trajectory.reward, done.trajectory.outcome, done.trajectory.turns) == (1.0, "finished", 3)
    assert done.one.prediction == {"done": True}
    assert [call.tool for call in done.trajectory.calls()] == ["weigh", "move", "carry"]
    assert Observation("You are in the kitchen. You see the apple.") in done.trajectory.steps
    assert "environment'" not in done.prompts[0].partition("[[ ## goal ## ]]\n")[0].partition("(1) finish")[2]
    assert "- take apple" in done.prompts[2]
    assert "[only `finish` can be called now]" in done.prompts[3]


def test_an_agent_that_finishes_early_gets_the_score_so_far(tmp_path) -> None:
    done = acting(tmp_path, [says("move", room="kitchen"), says("finish", done=False)])
    assert (done.trajectory.reward, done.trajectory.outcome, done.trajectory.turns) == (0.0, "finished", 2)
    assert done.one.prediction == {"done": False}


def test_at_the_limit_of_turns_the_answer_is_asked_for_once(tmp_path) -> None:
    done = acting(tmp_path, [says("move", room="kitchen"), says("carry")], turns=1)
    assert (done.trajectory.outcome, done.trajectory.turns) == ("turns", 1)
    assert done.one.prediction is None
    assert done.trajectory.problem == "`carry` was not called: after the last turn comes `finish`"
    assert done.trajectory.reward == 0.0


def test_what_is_not_possible_in_a_tool_is_a_failed_result(tmp_path) -> None:
    done = acting(tmp_path, [says("move", room="cellar"), says("carry"), *CARRIED[1:]])
    failed = [step for step in done.trajectory.steps if isinstance(step, Observation) and step.failed]
    assert [step.text for step in failed] == ["'go to cellar'", "'take apple' You are in the hall."]
    assert done.trajectory.reward == 0.0


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("fault", ["kill@step", "raise@step"])
def test_an_environment_that_fails_in_a_tool_is_no_result_of_the_tool(tmp_path, fault) -> None:
    want = acting(tmp_path, CARRIED)
    done = acting(tmp_path, CARRIED, examples=[example(fault)])
    assert done.one.failure is None
    assert done.trajectory.to_json()["steps"] == want.trajectory.to_json()["steps"]
    assert acting(tmp_path, CARRIED[:2], examples=[example(f"!{fault}")]).one.failure == "environment"


def test_an_action_after_the_limit_of_its_tool_disturbs_no_reply(tmp_path) -> None:
    script = [says("slowly"), says("move", room="kitchen"), says("carry"), says("finish", done=True)]
    done = acting(tmp_path, script, block={"timeout": 0.05})
    assert Observation("error: no result within 0.05 seconds", failed=True) in done.trajectory.steps
    assert (done.one.failure, done.trajectory.outcome) == (None, "finished")
    assert done.one.prediction == {"done": True}


def test_an_action_that_is_no_json_is_a_failure_of_the_tool(tmp_path) -> None:
    done = acting(tmp_path, [says("scatter"), *CARRIED])
    failed = next(step.text for step in done.trajectory.steps if isinstance(step, Observation) and step.failed)
    assert failed == "error: TypeError: Object of type set is not JSON serializable"
    assert (done.one.failure, done.trajectory.reward) == (None, 1.0)


def shop(folder, said, script):
    models = (model(), model("optimizer"), model("customer", "openai/user"))
    user = {"kind": "customer", "goal": "place"}
    told = [example(place="a blue hat")]
    return acting(folder, script, examples=told, name="toy_house:Shop", models=models, customer=iter(said), user=user)


def test_a_simulated_user_answers_in_a_tool(tmp_path) -> None:
    script = [
        says("respond", message="What colour?"),
        says("respond", message="Here it is."),
        says("finish", done=True),
    ]
    done = shop(tmp_path, ["I want a hat.", "A blue one.", "[END]"], script)
    assert "[user] A blue one." in done.prompts[1]
    heard = [step.text for step in done.trajectory.steps if isinstance(step, Message) and step.role == "user"]
    assert heard == ["I want a hat.", "A blue one.", ""]
    assert (done.trajectory.reward, done.trajectory.outcome, done.one.prediction) == (1.0, "finished", {"done": True})


def test_a_user_whose_model_is_down_is_no_result_of_a_tool(tmp_path) -> None:
    done = shop(tmp_path, ["I want a hat.", CallFailed("empty", "no text")], [says("respond", message="What colour?")])
    assert done.one.failure == "user"
