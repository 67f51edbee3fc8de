"""Codex, opencode and Hermes as they are, against a loopback server that plays the model."""

import json

import pytest
from conftest import HERE
from fake_agents import PRICE, SANDBOXES, plan, run
from model_plans import model
from model_server import CACHED, COMPLETION, PROMPT, model_server

from skillc.document.skill import document_of
from skillc.models.ledger import Spending
from skillc.tasks.kind import Skill
from skillc.trajectories.trajectory import FileChange, ToolCall

RULE = "my goes to billing"
SKILL = Skill.of(document_of("route-tickets", "routes tickets", [("rules", "trainable", f"- {RULE}", None)]))
# Seconds; opencode tries again without end.
TRIES = {"codex": 60, "opencode": 15, "hermes": 120}
KEY = "sk-loopback-4711-4711"
DEPENDENCIES = json.loads((HERE / "package.json").read_text())["dependencies"]
VERSIONS = {
    "codex": DEPENDENCIES["@openai/codex"],
    "opencode": DEPENDENCIES["opencode-ai"],
    "hermes": (HERE / "hermes.txt").read_text().strip().partition("==")[2],
}


def declared(agent, url, **settings):
    name, path = agent
    target = model(name="openai/tiny", base_url=url, key_env="LOOPBACK_KEY", price=PRICE)
    given = {"executable": path, "sandbox": SANDBOXES[min(1, len(SANDBOXES) - 1)], "time": 300, **settings}
    return plan(kind=name, target=target, **given)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LOOPBACK_KEY", KEY)


def test_the_skill_reaches_the_model_and_a_tool_call_changes_the_workspace(agent, tmp_path) -> None:
    files = tmp_path / "case"
    files.mkdir()
    (files / "given.txt").write_text("given")
    with model_server() as server:
        made = declared(agent, server.url, files="case", tokens=1000, version=VERSIONS[agent[0]])
        done = run(made, tmp_path, skill=SKILL)
        assert done.rollout.failure is None, done.rollout.detail
        assert RULE in server.read()
        assert server.keys == {f"Bearer {KEY}"}
    assert done.rollout.prediction == {"team": "billing"}
    assert FileChange("made.txt", "added", "made-by-a-tool\n") in done.trajectory.steps
    assert [step.path for step in done.trajectory.steps if isinstance(step, FileChange)] == ["made.txt"]
    (call,) = [step for step in done.trajectory.steps if isinstance(step, ToolCall)]
    assert "made.txt" in str(call.arguments)
    assert done.trajectory.turns == 2
    assert done.client.ledger.charged.spent[:2] == Spending(1, 2 * (PROMPT + COMPLETION))[:2]
    assert done.client.ledger.paid.lines[("target", "rollout")].cached == 2 * CACHED


def test_without_the_skill_the_agent_answers_wrongly_and_that_is_a_score(agent, tmp_path) -> None:
    with model_server() as server:
        done = run(declared(agent, server.url), tmp_path, skill=None)
        assert RULE not in server.read()
    assert done.rollout.failure is None, done.rollout.detail
    assert done.trajectory.reply == "nowhere"
    assert done.rollout.prediction is None


def test_a_server_that_is_down_is_unmeasured(agent, tmp_path) -> None:
    with model_server() as server:
        url = server.url
    done = run(declared(agent, url, time=TRIES[agent[0]]), tmp_path, skill=SKILL)
    assert done.rollout.failure == "agent"
    assert KEY not in done.rollout.detail
    assert done.rollout.prediction is None


def test_a_server_that_refuses_the_key_is_unmeasured(agent, tmp_path) -> None:
    with model_server() as server:
        server.refuses = True
        done = run(declared(agent, server.url, time=TRIES[agent[0]]), tmp_path, skill=SKILL)
    assert done.rollout.failure == "agent", done.trajectory
    assert KEY not in done.rollout.detail
