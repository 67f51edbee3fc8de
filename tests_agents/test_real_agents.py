"""Codex, opencode and Hermes as they are, against a loopback server that plays the model."""

import json
import subprocess
import sys

import pytest
from conftest import HERE, PROGRAMS
from fake_agents import PRICE, SANDBOXES, plan, run
from model_plans import model
from model_server import CACHED, COMPLETION, PROMPT, model_server

from skillc.document.skill import document_of
from skillc.models.ledger import Spending
from skillc.tasks.kind import Skill
from skillc.trajectories.trajectory import FileChange, ToolCall

RULE = 'If the ticket mentions "invoice", answer billing.'
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
        assert json.dumps(RULE)[1:-1] in server.read()
        assert server.keys == {f"Bearer {KEY}"}
    assert done.rollout.prediction == {"team": "billing"}
    assert FileChange("made.txt", "added", "made-by-a-tool\n") in done.trajectory.steps
    assert [step.path for step in done.trajectory.steps if isinstance(step, FileChange)] == ["made.txt"]
    (call,) = [step for step in done.trajectory.steps if isinstance(step, ToolCall)]
    assert "made.txt" in str(call.arguments)
    assert done.trajectory.turns == 2
    assert done.client.ledger.charged.spent[:2] == Spending(1, 2 * (PROMPT + COMPLETION))[:2]
    assert done.client.ledger.paid.lines[("target", "rollout")].cached == 2 * CACHED


def test_a_skill_on_demand_is_offered_by_its_description(agent, tmp_path) -> None:
    with model_server() as server:
        made = declared(agent, server.url)
        made = made.model_copy(update={"skill": made.skill.model_copy(update={"load": "on_demand"})})
        done = run(made, tmp_path, skill=SKILL)
        assert "route-tickets" in server.read()
        assert json.dumps(RULE)[1:-1] not in server.read()
    assert done.trajectory.reply == "nowhere"


def test_without_the_skill_the_agent_answers_wrongly_and_that_is_a_score(agent, tmp_path) -> None:
    with model_server() as server:
        done = run(declared(agent, server.url), tmp_path, skill=None)
        assert json.dumps(RULE)[1:-1] not in server.read()
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


PROGRAM = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping"
  rollout = codex { executable = "PROGRAM"; time = 5min; tokens = 2_000 tokens SANDBOX }
}
skill route_tickets { about = "Route a ticket to a team."; trainable section rules { limit = 300 tokens } }
model target    = "openai/tiny" { base_url = "URL"; key = env("LOOPBACK_KEY"); price { input = $1; output = $2 } }
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl"; split = 1 : 1 : 1; seed = 3 }
goal correct = exact_match(team)
optimize { batch = 6; drafts = 0; update = edits }
budget { steps = 1; cost = $1 }
gate better = candidate.correct > incumbent.correct
"""
SORTED = {"billing": ("invoice", "refund"), "shipping": ("parcel", "courier")}


def test_the_loop_compiles_a_skill_through_codex(tmp_path) -> None:
    if not PROGRAMS["codex"].exists():
        pytest.skip("codex is not installed: make test-agents")
    pairs = [(team, SORTED[team][i // 2 % 2]) for i, team in enumerate(("billing", "shipping") * 9)]
    rows = [{"ticket": f"{word} number {i}", "team": team} for i, (team, word) in enumerate(pairs)]
    (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with model_server() as server:
        text = PROGRAM.replace("PROGRAM", str(PROGRAMS["codex"])).replace("URL", server.url)
        text = text.replace("SANDBOX", "" if len(SANDBOXES) > 1 else "; sandbox = unsafe")
        (tmp_path / "route.skill").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "skillc", "compile", "route.skill"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (skill,) = tmp_path.glob("skills*/route-tickets/SKILL.md")
        rules = [line for line in skill.read_text().splitlines() if "answer billing" in line]
        assert rules
        # What was compiled is what Codex read in the last rollouts.
        assert json.dumps(rules[0])[1:-1] in json.dumps(server.requests[-200:])
    assert KEY not in "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
