"""Rollouts by a function of the user, and kinds that other packages register."""

import asyncio
import itertools
import json
from types import SimpleNamespace

import pytest
from model_plans import Scripted, model, plan_of, reply

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import RolloutPlan, TypePlan
from skillc.tasks import kind
from skillc.tasks.kind import RolloutFailed, RolloutKind, Skill, rollout_kind
from skillc.tasks.module import RolloutModule
from skillc.tasks.runner import RolloutRunner
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory

SKILL = Skill.of(document_of("route-tickets", "routes", [("rules", "trainable", "- Invoices go to billing.", None)]))
NUMBERS = itertools.count()


def plan(rollout: RolloutPlan, *models):
    made = plan_of(*models)
    return made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})


def run(folder, code, transport=None, skill=SKILL, models=()):
    """Run one rollout of an agent with this code; returns it and the notes."""
    module = f"agent_{next(NUMBERS)}"
    (folder / f"{module}.py").write_text(code)
    made = plan(RolloutPlan(kind="python", arguments=(f"{module}:run",)), *models)
    notes = []
    with Client(made, transport=transport or Scripted()) as client:
        client.pacing.report = notes.append
        runner = RolloutRunner(made, client, root=folder)
        rollout = asyncio.run(runner(skill, Example("1", {"ticket": "my invoice"}, {}, {}, "1"), 0, "rollout"))
    return SimpleNamespace(rollout=rollout, notes=notes, trajectory=rollout.trajectory)


def test_a_function_gets_what_its_parameters_name_and_its_calls_are_charged(tmp_path) -> None:
    code = """
import pathlib
def run(inputs, skill, folder, lm):
    assert "Invoices go to billing" in skill
    assert "Invoices go to billing" in pathlib.Path(folder, "route-tickets", "SKILL.md").read_text()
    return lm(inputs["ticket"])[0]
"""
    done = run(tmp_path, code, Scripted(lambda sent: reply("billing", usage=(30, 4))))
    assert done.rollout.prediction == {"team": "billing"}
    assert done.trajectory.tokens == 34
    assert done.trajectory.steps == (Message("billing"),)


@pytest.mark.parametrize("head", ["def run(inputs)", "async def run(inputs)"])
def test_both_kinds_of_functions_and_values_by_name(tmp_path, head) -> None:
    done = run(tmp_path, f"{head}:\n    return {{'team': 'shipping'}}\n", skill=None)
    assert done.rollout.prediction == {"team": "shipping"}


def test_a_trajectory_is_taken_over_and_its_answer_read(tmp_path) -> None:
    code = """
from skillc import Trajectory
from skillc.trajectories.trajectory import Message, Observation, ToolCall
def run(inputs):
    return Trajectory((ToolCall("look", {"at": "inbox"}), Observation("one mail"), Message("billing")), turns=2)
"""
    done = run(tmp_path, code)
    assert done.rollout.prediction == {"team": "billing"}
    assert done.trajectory.calls() == (ToolCall("look", {"at": "inbox"}),)
    assert Observation("one mail") in done.trajectory.steps
    assert done.trajectory.turns == 2


@pytest.mark.parametrize("error", ["ConnectionError", "TimeoutError", "OSError"])
def test_a_connection_that_fails_is_unmeasured(tmp_path, error) -> None:
    done = run(tmp_path, f"def run(inputs):\n    raise {error}('the server of the agent is down')\n")
    assert done.rollout.failure == "agent"
    assert "the server of the agent is down" in done.rollout.detail


def test_another_exception_is_a_wrong_answer_with_its_reason(tmp_path) -> None:
    done = run(tmp_path, "def run(inputs):\n    raise KeyError('total')\n")
    assert done.rollout.failure is None
    assert done.rollout.prediction is None
    assert "KeyError: 'total'" in str(done.trajectory.problem)
    assert len(done.notes) == 1


def test_sys_exit_in_an_agent_ends_nothing_but_the_rollout(tmp_path) -> None:
    done = run(tmp_path, "import sys\ndef run(inputs):\n    sys.exit(3)\n")
    assert "SystemExit" in str(done.trajectory.problem)


def test_a_failed_call_inside_is_the_calls_failure(tmp_path) -> None:
    done = run(
        tmp_path,
        "def run(inputs, lm):\n    return lm('x')[0]\n",
        Scripted(lambda sent: reply("")),
    )
    assert done.rollout.failure == "empty"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def run(question):\n    return ''\n", "requires `question`"),
        ("run = 3\n", "has no function `run`"),
        ("def run(inputs):\n    return 3\n", "returned int"),
    ],
)
def test_a_function_that_cannot_serve_is_an_error_that_names_the_fix(tmp_path, code, message) -> None:
    with pytest.raises(SkillcError, match=message):
        run(tmp_path, code)


class Echo(RolloutKind):
    slots = 1
    most = now = 0

    async def run(self, skill, example, *, sample):
        Echo.now += 1
        Echo.most = max(Echo.most, Echo.now)
        await asyncio.sleep(0)
        Echo.now -= 1
        if example.id == "down":
            raise RolloutFailed("environment", "its process died")
        return Trajectory((Message(str(self.site.settings["word"])),), {"team": self.site.settings["word"]}, reward=1.0)


def test_a_registered_kind_runs_within_its_slots_and_reports_its_failures(monkeypatch) -> None:
    monkeypatch.setattr(kind, "_KINDS", dict(kind._KINDS))
    rollout_kind("echo")(Echo)
    made = plan(RolloutPlan(kind="plugin", arguments=("echo",), settings={"word": "billing"}))

    async def scenario():
        with Client(made, transport=Scripted()) as client:
            runner = RolloutRunner(made, client)
            return await asyncio.gather(
                *(runner(None, Example(name, {}, {}, {}, name), 0, "rollout") for name in ("a", "down", "c"))
            )

    first, down, last = asyncio.run(scenario())
    assert first.prediction == last.prediction == {"team": "billing"}
    assert (down.failure, down.detail) == ("environment", "its process died")
    assert Echo.most == 1


def test_an_unknown_kind_names_those_that_are_there() -> None:
    made = plan(RolloutPlan(kind="plugin", arguments=("nowhere",)))
    with pytest.raises(SkillcError, match="`nowhere`") as raised, Client(made, transport=Scripted()) as client:
        RolloutRunner(made, client)
    assert "`predict`" in str(raised.value.hint)


def test_a_function_gets_names_of_files_and_their_absolute_paths(tmp_path) -> None:
    (tmp_path / "books/7").mkdir(parents=True)
    (tmp_path / "books/7/total.csv").write_text("shipping")
    (tmp_path / "reader.py").write_text(
        "import pathlib\n"
        "def run(inputs, files):\n"
        "    assert inputs == {'ticket': 'total.csv'} and pathlib.Path(files['total.csv']).is_absolute()\n"
        "    return pathlib.Path(files['total.csv']).read_text()\n"
    )
    made = plan(RolloutPlan(kind="python", arguments=("reader:run",)))
    (ticket,) = made.task.inputs
    inputs = (ticket.model_copy(update={"type": TypePlan(kind="file")}),)
    made = made.model_copy(update={"task": made.task.model_copy(update={"inputs": inputs})})
    with Client(made, transport=Scripted()) as client:
        runner = RolloutRunner(made, client, root=tmp_path)
        example = Example("1", {"ticket": "books/7/total.csv"}, {}, {}, "1")
        rollout = asyncio.run(runner(SKILL, example, 0, "rollout"))
    assert rollout.prediction == {"team": "shipping"}
    called = RolloutModule(made, tmp_path, SKILL.document)
    assert called(ticket=tmp_path / "books/7/total.csv").team == "shipping"


KEY = "planted/key+0123456789=abcdef"


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("return f'billing {key}'", None),
        ("return {'team': key}", None),
        ("return Trajectory((Message(key), ToolCall(key, {key: [key]}), Observation(key)), {'team': key}, key)", None),
        ("return Trajectory((FileChange(key, 'added', key), Message('billing')), problem=key)", None),
        ("raise ValueError(key)", None),
        ("raise ConnectionError(key)", "agent"),
    ],
)
def test_what_an_agent_prints_of_a_secret_is_in_no_outcome(tmp_path, monkeypatch, body, failure) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    code = f"""
import os
from skillc import Trajectory
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall
def run(inputs):
    key = os.environ["TEAM_KEY"]
    {body}
"""
    done = run(tmp_path, code, models=(model(key_env="TEAM_KEY"), model("optimizer")))
    assert done.rollout.failure == failure
    told = json.dumps(done.trajectory.to_json()) + done.rollout.detail + "".join(done.notes)
    assert "[secret TEAM_KEY]" in told
    assert KEY not in told


def test_what_an_agent_raises_for_the_user_is_redacted(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    code = f"from skillc.errors import SkillcError\ndef run(inputs):\n    raise SkillcError('bad {KEY}')\n"
    with pytest.raises(SkillcError, match=r"bad \[secret TEAM_KEY\]"):
        run(tmp_path, code, models=(model(key_env="TEAM_KEY"), model("optimizer")))
