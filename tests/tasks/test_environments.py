"""Rollouts in an environment: a toy household played by a scripted target, with faults of its process."""

import asyncio
import shutil
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from model_plans import Scripted, model, plan_of, reply

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.gates.terms import CallTerm
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, MetricPlan, RolloutPlan, TaskPlan, TypePlan
from skillc.processes.guard import is_there
from skillc.tasks import environments
from skillc.tasks.environments import protocol
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner
from skillc.trajectories.signals import signals
from skillc.trajectories.trajectory import Message, Observation, ToolCall

SKILL = Skill.of(document_of("find-things", "finds", [("rules", "trainable", "- Look in the kitchen.", None)]))
TEXT = TypePlan(kind="text")
TASK = TaskPlan(
    inputs=(FieldPlan(name="goal", type=TEXT, column="goal"),),
    outputs=(FieldPlan(name="action", type=TEXT, column="action"),),
)
WON = ("go to kitchen", "take apple", "finish")


def plan(*models, name="toy_house:House", **settings):
    rollout = RolloutPlan(kind="environment", arguments=(name,), settings=settings)
    return plan_of(*models, task=TASK.model_copy(update={"rollout": rollout}))


def example(fault=None, place="kitchen", name="1"):
    return Example(name, {"goal": "bring the apple"}, {}, {"place": place, "fault": fault, "where": "seen"}, name)


class Player:
    """A target that acts by its turn, and keeps the prompts."""

    def __init__(self, *actions):
        self.actions, self.prompts = actions, []

    def __call__(self, sent):
        self.prompts.append(sent["messages"])
        turn = sum(message["role"] == "assistant" for message in sent["messages"])
        return reply(self.actions[min(turn, len(self.actions) - 1)], usage=(10, 2))


def play(folder, actions=WON, examples=None, made=None, skill=SKILL, **settings):
    """Play examples at once; returns the rollouts, the prompts and what the client charged."""
    shutil.copy(Path(__file__).with_name("toy_house.py"), folder / "toy_house.py")
    made = made or plan(**settings)
    examples = examples or [example()]
    player = actions if callable(actions) else Player(*actions)

    async def scenario():
        with Client(made, transport=Scripted(player), root=folder) as client:
            notes = []
            client.pacing.report = notes.append
            runner = RolloutRunner(made, client, root=folder)
            pool = runner._kind._pool
            try:
                rollouts = await asyncio.gather(*(runner(skill, each, 0, "rollout") for each in examples))
            finally:
                pids = [each.pid for each in pool._alive]
                await runner.close()
            calls = client.ledger.snapshot()["charged"]
            return SimpleNamespace(
                rollouts=rollouts,
                one=rollouts[0],
                trajectory=rollouts[0].trajectory,
                notes=notes,
                pids=pids,
                calls=calls,
            )

    done = asyncio.run(scenario())
    done.prompts = getattr(player, "prompts", [])
    return done


def test_a_game_is_played_to_its_end(tmp_path) -> None:
    done = play(tmp_path)
    assert (done.trajectory.reward, done.trajectory.outcome, done.trajectory.turns) == (1.0, "finished", 3)
    assert done.trajectory.calls() == tuple(ToolCall("act", {"action": action}) for action in WON)
    assert done.trajectory.steps[0] == Observation("You are in the hall. The apple is somewhere.")
    assert done.one.prediction == {"action": "finish"}
    assert done.trajectory.tokens == 36
    assert not any(is_there(pid) for pid in done.pids)


def test_the_target_reads_skill_goal_history_and_actions_and_the_prompt_only_grows(tmp_path) -> None:
    first, second, third = ([(each["role"], each["content"]) for each in prompt] for prompt in play(tmp_path).prompts)
    assert "Look in the kitchen." in first[0][1]
    assert "bring the apple" in first[1][1]
    assert "- go to kitchen\n- go to garden\n- finish" in first[1][1]
    assert second[0] == first[0]
    assert first[1][1].startswith(second[1][1])
    assert "Possible actions" not in second[1][1]
    assert second[2] == ("assistant", "go to kitchen")
    assert third[:3] == second[:3]


def test_without_a_skill_the_target_reads_the_task(tmp_path) -> None:
    assert "Given the goal" in play(tmp_path, skill=None).prompts[0][0]["content"]


def test_the_limit_of_turns_ends_a_rollout(tmp_path) -> None:
    done = play(tmp_path, ("go to garden", "go to hall"), turns=2)
    assert (done.trajectory.reward, done.trajectory.outcome, done.trajectory.turns) == (0.0, "turns", 2)
    assert any("limit of turns" in each for each in signals(done.trajectory))


@pytest.mark.parametrize(("action", "said"), [("sing", "nobody sings here"), ("fly", "'fly'")])
def test_an_inadmissible_action_is_an_observation(tmp_path, action, said) -> None:
    done = play(tmp_path, (action, *WON))
    assert Observation(said, failed=True) in done.trajectory.steps
    assert done.trajectory.reward == 1.0


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "written", ["Action: GO TO KITCHEN.", "> `go to kitchen`", "I look there first.\ngo to kitchen"]
)
def test_an_action_is_recognised_as_models_write_it(tmp_path, written) -> None:
    assert play(tmp_path, (written, *WON[1:])).trajectory.reward == 1.0


def test_reasoning_is_kept_before_the_action(tmp_path) -> None:
    done = play(tmp_path, ("It must be cold.\ngo to kitchen", *WON[1:]), agent="chain_of_thought")
    assert Message("It must be cold.\ngo to kitchen") in done.trajectory.steps
    assert "reasoning" in done.prompts[0][0]["content"]


@pytest.mark.parametrize("agent", ["predict", "chain_of_thought"])
def test_a_whole_reply_is_the_action(tmp_path, agent) -> None:
    said = "I go.\ngo to kitchen"
    done = play(tmp_path, (said, *WON), agent=agent, action="whole_reply")
    assert ToolCall("act", {"action": said}) in done.trajectory.steps
    assert Message(said) not in done.trajectory.steps
    assert "last line" not in done.prompts[0][0]["content"] + done.prompts[0][-1]["content"]
    assert done.trajectory.reward == 1.0


FAULTS = ["kill@step", "exit@reset", "memory@step", "raise@step", "quit@reset", "kill@reset", "kill@score"]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_process_that_fails_once_is_replaced_and_the_rollout_is_the_same(tmp_path, fault) -> None:
    settings = {"memory": 2**28} if "memory" in fault else {}
    (sound := tmp_path / "sound").mkdir(), (faulty := tmp_path / "faulty").mkdir()
    want, done = play(sound), play(faulty, examples=[example(fault)], **settings)
    assert done.one.failure is None
    same = [{**each.trajectory.to_json(), "seconds": 0} for each in (want, done)]
    assert same[0] == same[1]
    assert done.calls == want.calls


def test_a_process_that_fails_twice_is_unmeasured(tmp_path) -> None:
    done = play(tmp_path, examples=[example("!kill@step"), example(name="2")])
    assert (done.one.failure, done.rollouts[1].trajectory.reward) == ("environment", 1.0)
    assert "was killed by SIGKILL" in done.one.detail


@pytest.mark.parametrize("fault", ["!hang@step", "!hang@reset"])
def test_a_process_that_hangs_is_killed_at_its_limit(tmp_path, fault) -> None:
    done = play(tmp_path, examples=[example(fault)], step_time=0.1, reset_time=0.4)
    assert done.one.failure == "environment"
    assert "did not return within" in done.one.detail
    assert not any(is_there(pid) for pid in done.pids)


def test_an_exception_on_a_legal_action_names_its_place(tmp_path) -> None:
    done = play(tmp_path, examples=[example("!raise@step")])
    assert done.one.failure == "environment"
    assert "ZeroDivisionError" in done.one.detail
    assert "toy_house.py:" in done.one.detail


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("when", ["step", "reset"])
def test_what_an_environment_prints_does_not_reach_the_pipe(tmp_path, when) -> None:
    assert play(tmp_path, examples=[example(f"!garbage@{when}")]).trajectory.reward == 1.0


def test_many_rollouts_share_the_declared_processes(tmp_path) -> None:
    done = play(tmp_path, examples=[example(name=str(i)) for i in range(6)], processes=2)
    assert [each.trajectory.reward for each in done.rollouts] == [1.0] * 6
    assert len(done.pids) <= 2


def test_the_seed_belongs_to_the_example_and_the_class_gets_the_other_settings(tmp_path) -> None:
    first, second = (play(tmp_path, ("go to hall",), [example(place=None)], turns=2, key="pear") for _ in range(2))
    assert first.trajectory.to_json()["steps"] == second.trajectory.to_json()["steps"]
    assert "The pear is somewhere" in str(first.trajectory.steps[0])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("toy_house:Silent", "has no method `score`"),
        ("toy_house:Missing", "has no attribute 'Missing'"),
        ("nowhere:House", "No module named 'nowhere'"),
        ("castle", "no installed package provides the environment `castle`"),
    ],
)
def test_a_class_that_cannot_serve_is_an_error_before_the_first_call(tmp_path, name, message) -> None:
    with pytest.raises(SkillcError, match=message):
        play(tmp_path, made=plan(name=name))


def test_a_setting_that_the_class_does_not_take_is_an_error(tmp_path) -> None:
    with pytest.raises(SkillcError, match="unexpected keyword argument 'colour'"):
        play(tmp_path, colour="red")


def test_a_class_may_have_a_registered_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(protocol, "_REGISTERED", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copy(Path(__file__).with_name("toy_house.py"), tmp_path / "house_by_name.py")
    from house_by_name import House

    environments.register_environment("toy")(House)
    assert play(tmp_path, made=plan(name="toy")).trajectory.reward == 1.0


def test_the_history_is_cut_to_its_limit_in_the_same_way_each_time(tmp_path) -> None:
    walk = ["go to garden", "go to hall"] * 10
    prompts = play(tmp_path, walk, turns=20, history=60).prompts
    assert prompts == play(tmp_path, walk, turns=20, history=60).prompts
    assert all(len(prompt) <= 14 for prompt in prompts)
    assert "earlier turns left out]" in prompts[-1][1]["content"]
    starts = [prompt[1]["content"].split("## observation")[0] for prompt in prompts]
    assert len(set(starts)) < len(starts) / 2


# ---- metrics --------------------------------------------------------------------------------------


def test_reward_and_turns_are_metrics(tmp_path) -> None:
    metrics = (
        MetricPlan(name="won", term=CallTerm("reward"), low=Fraction(0), high=Fraction(1), goal=True),
        MetricPlan(name="length", term=CallTerm("turns"), low=Fraction(0), high=Fraction(50)),
    )
    made = plan().model_copy(update={"metrics": metrics})
    scores = Meter(made, tmp_path).measure(example(), play(tmp_path).trajectory)
    assert {name: cell.value for name, cell in scores.cells.items()} == {"won": 1_000_000, "length": 3_000_000}
    assert "the environment gave 1" in scores.feedback


# ---- a simulated user -----------------------------------------------------------------------------


def shop(folder, said, acted=("What colour?",), **settings):
    """A conversation in which the user says one thing after the other."""
    models = (model(), model("optimizer"), model("customer", "openai/user"))
    heard = []

    def answer(sent):
        own = sum(message["role"] == "assistant" for message in sent["messages"])
        if "You play a user" in sent["messages"][0]["content"]:
            heard.append(sent["messages"])
            text = said[min(own, len(said) - 1)]
            if isinstance(text, Exception):
                raise text
            return reply(text)
        return reply(acted[min(own, len(acted) - 1)])

    settings = {"user": {"kind": "customer", "goal": "place"}, "turns": 5, **settings}
    done = play(folder, answer, [example(place="a blue hat")], plan(*models, name="toy_house:Shop", **settings))
    return SimpleNamespace(**vars(done), heard=heard)


def test_a_user_with_a_goal_talks_until_it_ends(tmp_path) -> None:
    done = shop(tmp_path, ["I want a hat.", "A blue one.", "[END]"])
    assert (done.trajectory.reward, done.trajectory.outcome, done.trajectory.turns) == (1.0, "finished", 2)
    assert [step.text for step in done.trajectory.steps if isinstance(step, Message) and step.role == "user"][:2] == [
        "I want a hat.",
        "A blue one.",
    ]
    assert "a blue hat" in done.heard[0][0]["content"]


@pytest.mark.parametrize("wrong", ["As an AI language model, I can't buy hats.", "What colour do you want?"])
def test_a_user_that_leaves_its_role_is_no_answer_of_the_target(tmp_path, wrong) -> None:
    done = shop(tmp_path, ["I want a hat.", wrong], ["What colour do you want?"])
    assert done.one.failure == "user"
    assert len(done.notes) == 1


def test_a_user_that_never_ends_is_noted(tmp_path) -> None:
    done = shop(tmp_path, ["I want a hat."])
    assert done.one.failure is None
    assert done.trajectory.turns == 2
    assert any("simulated user repeated itself" in each for each in signals(done.trajectory))


def test_a_user_whose_model_is_down_is_unmeasured(tmp_path) -> None:
    done = shop(tmp_path, ["I want a hat.", CallFailed("empty", "no text")])
    assert done.one.failure == "user"
