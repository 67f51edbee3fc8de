"""Codex, opencode, Hermes and Claude Code, each played by a small program with its documented interface."""

import json
import os
import subprocess
from dataclasses import replace

import pytest
from fake_agents import PRICE, URL, plan, run
from forked import command
from model_plans import model
from played_agents import FAULTS, PLAYED, play, write_program

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.tasks.agents import agent
from skillc.tasks.kind import Skill
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall

RULES = '- If the text mentions "invoice", answer billing.'
SKILL = Skill.of(document_of("route-tickets", "routes", [("rules", "trainable", RULES, None)]))
KEY = "sk-played-4711-4711"
TOOLS = {"codex": "shell", "opencode": "bash", "hermes": "terminal", "claude_code": "Bash"}


def declared(tmp_path, kind, load="always", **settings):
    play(tmp_path, kind)
    provider = "anthropic" if kind == "claude_code" else "openai"
    target = model(name=f"{provider}/tiny", base_url=URL, key_env="PLAYED_KEY", price=PRICE)
    prompt = "Sort this.\n\n## text\n{ticket}\n\n"
    environment = [{"function": "env", "arguments": ["FAULT"]}]
    given = {"executable": "./agent", "prompt": prompt, "environment": environment, "tokens": 1000, **settings}
    made = plan(kind=kind, target=target, **given)
    return made.model_copy(update={"skill": made.skill.model_copy(update={"load": load})})


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("PLAYED_KEY", KEY)
    monkeypatch.setenv("FAULT", "")


@pytest.mark.parametrize("kind", PLAYED)
def test_an_agent_gets_model_and_skill_and_its_events_are_read(tmp_path, kind) -> None:
    done = run(declared(tmp_path, kind), tmp_path, skill=SKILL)
    assert done.rollout.failure is None, done.rollout.detail
    assert done.rollout.prediction == {"team": "billing"}
    call, result, said, changed = done.trajectory.steps
    assert isinstance(call, ToolCall)
    assert (call.tool, call.arguments["command"]) == (TOOLS[kind], "touch made.txt")
    assert isinstance(result, Observation)
    assert not result.failed
    assert (said, changed) == (Message("billing"), FileChange("made.txt", "added", "made"))
    assert done.trajectory.turns == 2
    assert done.trajectory.tokens == done.client.ledger.charged.spent.tokens == 220
    assert done.client.ledger.charged.spent.cost == 200_000 + 40_000
    assert done.client.ledger.paid.lines[("target", "rollout")].cached == 80


@pytest.mark.parametrize("kind", PLAYED)
def test_without_a_skill_or_where_it_is_not_opened_the_answer_is_wrong(tmp_path, kind) -> None:
    for made, skill in ((declared(tmp_path, kind), None), (declared(tmp_path, kind, load="on_demand"), SKILL)):
        done = run(made, tmp_path, skill=skill)
        assert (done.rollout.failure, done.trajectory.reply) == (None, "unknown")
        assert done.rollout.prediction is None


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", PLAYED)
def test_a_fault_of_an_agent_is_unmeasured(tmp_path, kind, fault, monkeypatch) -> None:
    monkeypatch.setattr(agent, "_DEFAULTS", replace(agent._DEFAULTS, output=2**20))
    monkeypatch.setenv("FAULT", fault)
    done = run(declared(tmp_path, kind, time=0.4 if fault == "hang" else 60), tmp_path, skill=SKILL)
    assert done.rollout.failure == "agent"
    assert done.rollout.prediction is None
    assert KEY not in done.rollout.detail
    expected = {"failed": "stream disconnected", "killed": "SIGKILL", "hang": "longer than 0.4 s", "huge": "too much"}
    assert expected.get(fault, "") in done.rollout.detail
    assert done.client.ledger.charged.spent.calls == 1


def test_an_agent_without_an_address_that_it_can_call_is_an_error(tmp_path) -> None:
    made = declared(tmp_path, "codex")
    target = model(name="rulebook/v1", base_url=None, key_env=None)
    with pytest.raises(SkillcError, match="it has no address that it knows"):
        run(made.model_copy(update={"models": {**made.models, "target": target}}), tmp_path)


def test_another_version_than_the_declared_one_is_an_error(tmp_path) -> None:
    made = declared(tmp_path, "codex", version="1.2.3")
    play(tmp_path, "codex", "print('codex-cli 1.2.30')")
    with pytest.raises(SkillcError, match=r"version 1.2.3 is declared, and .* reports `codex-cli 1.2.30`"):
        run(made, tmp_path)
    play(tmp_path, "codex", "print('codex-cli v1.2.3 (today)'); sys.argv[1:2] == ['exec'] and sys.exit(1)")
    assert run(made, tmp_path).rollout.failure == "agent"


def compiled(folder, log, status=0, **environ):
    done = subprocess.run(
        [*command(), "compile", "things.skill"],
        cwd=folder,
        env={**os.environ, "PLAYED": str(log), "KILL_AT": "", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[] if k == "codex" else pytest.mark.thorough) for k in PLAYED])
def test_the_loop_compiles_a_skill_through_an_agent_and_resumes_it(tmp_path, kind) -> None:
    write_program(tmp_path, kind)
    log = tmp_path / "runs"
    compiled(tmp_path, log)
    (skill,) = tmp_path.glob("skills*/sort-things/SKILL.md")
    assert "answer fruit" in skill.read_text()
    lock = json.loads(next(tmp_path.glob("skills*/sort-things.lock")).read_text())
    runs = len(log.read_text().splitlines())
    assert runs > 10
    # What is recorded is not run again.
    again = compiled(tmp_path, log)
    assert len(log.read_text().splitlines()) == runs, again
    assert json.loads(next(tmp_path.glob("skills*/sort-things.lock")).read_text()) == lock


@pytest.mark.thorough
@pytest.mark.parametrize("at", [3, 11, 20, 34])
def test_a_compile_that_was_killed_resumes_to_the_same_skill_and_the_same_charges(tmp_path, at) -> None:
    found = []
    for name, kills in (("whole", ""), ("killed", str(at))):
        folder = tmp_path / name
        folder.mkdir()
        write_program(folder, "codex")
        if kills:
            compiled(folder, folder / "runs", status=-9, KILL_AT=kills)
            assert len((folder / "runs").read_text().splitlines()) >= at
        compiled(folder, folder / "runs")
        lock = json.loads(next(folder.glob("skills*/sort-things.lock")).read_text())
        (skill,) = folder.glob("skills*/sort-things/SKILL.md")
        found.append((skill.read_text(), lock["charged"]))
    assert found[0] == found[1]
