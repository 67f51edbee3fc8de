"""`rollout = command("...")`: the folders, the account and the failures that all agents share."""

import asyncio
import os
from dataclasses import replace

import pytest
from fake_agents import SANDBOXES, SKILL, is_alive, plan, program, run
from model_plans import Scripted, model

from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, PermanentFailure
from skillc.models.ledger import Spending
from skillc.tasks.agents import agent
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall

REPORTING = """
import json, os, pathlib, sys
prompt, skill, report = sys.argv[1:]
assert "my invoice" in prompt and "billing" in pathlib.Path(skill).read_text()
pathlib.Path("out.txt").write_text("done")
pathlib.Path("given.txt").write_text("changed")
pathlib.Path("binary").write_bytes(b"\\xff\\0")
pathlib.Path("gone.txt").unlink()
steps = [["call", "shell", {"cmd": "ls"}], ["observation", "given.txt", False]]
usage = {"input": 100, "cached": 40, "output": 10}
pathlib.Path(report).write_text(json.dumps({"usage": usage, "turns": 3, "steps": steps}))
print("thinking\\nbilling")
"""
TALKING = "print('billing')"


def command(folder, code, *words, **settings):
    program(folder, code)
    return plan(arguments=(" ".join(["{here}/agent", *words]),), **settings)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_command_gets_prompt_skill_and_files_and_its_report_is_read(tmp_path, sandbox) -> None:
    files = tmp_path / "cases" / "1"
    files.mkdir(parents=True)
    (files / "given.txt").write_text("as it was")
    (files / "gone.txt").write_text("x")
    made = command(
        tmp_path, REPORTING, "{prompt}", "{skill}", "{report}", sandbox=sandbox, files="cases/{id}", tokens=1000
    )
    done = run(made, tmp_path)
    assert done.rollout.failure is None, done.rollout.detail
    assert done.rollout.prediction == {"team": "billing"}
    assert done.trajectory.steps == (
        ToolCall("shell", {"cmd": "ls"}),
        Observation("given.txt"),
        Message("thinking\nbilling"),
        FileChange("binary", "added", None),
        FileChange("given.txt", "changed", "changed"),
        FileChange("gone.txt", "removed"),
        FileChange("out.txt", "added", "done"),
    )
    # A dollar per million tokens sent, two per million received.
    assert (done.trajectory.turns, done.trajectory.tokens, done.trajectory.cost) == (3, 110, 120_000)
    charged = done.client.ledger.charged
    assert charged.spent == Spending(1, 110, 120_000)
    assert charged.reserved == done.client.ledger.paid.reserved == Spending()
    assert done.client.ledger.paid.lines[("target", "rollout")].cached == 40
    assert (files / "given.txt").read_text() == "as it was"
    assert bool(done.notes) == (sandbox == "unsafe")


def test_each_rollout_has_its_own_workspace_and_home_and_both_are_gone_afterwards(tmp_path) -> None:
    code = """
import os, pathlib
assert not pathlib.Path("mine").exists() and not pathlib.Path.home().joinpath("mine").exists()
pathlib.Path("mine").touch(); pathlib.Path.home().joinpath("mine").touch()
print(pathlib.Path.home())
"""
    done = run(command(tmp_path, code), tmp_path, rollouts=4)
    places = {each.trajectory.reply for each in done.all}
    assert len(places) == 4
    assert not any(map(os.path.exists, places))


def test_the_prompt_is_on_standard_input_without_a_placeholder_and_links_are_not_followed(tmp_path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    code = f"import os, sys; os.symlink({str(tmp_path / 'secret')!r}, 'link'); print(sys.stdin.read())"
    done = run(command(tmp_path, code, prompt="Say {ticket}. {question}"), tmp_path)
    assert done.trajectory.reply.startswith("Say my invoice. ")
    assert done.trajectory.steps[-1] == FileChange("link", "added", None)


def test_the_answer_is_taken_from_where_the_program_says(tmp_path) -> None:
    code = """print('{"result": "shipping"}')"""
    done = run(command(tmp_path, code, answer={"function": "json", "arguments": [".result"]}), tmp_path)
    assert done.rollout.prediction == {"team": "shipping"}


def test_a_wrong_answer_is_a_score(tmp_path) -> None:
    done = run(command(tmp_path, "print('I do not know')"), tmp_path)
    assert done.rollout.failure is None
    assert "no valid `team`" in done.trajectory.problem


FAULTS = {
    "status": ("import sys; print('billing'); sys.exit('broken pipe')", "it exited with status 1: broken pipe"),
    "nothing": ("import sys; sys.stderr.write('server is down')", "ended without an answer: server is down"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    "no report": ("import sys; open(sys.argv[1], 'w').write('{'); print('billing')", "its report is no JSON"),
    "error": ("""import sys; open(sys.argv[1], 'w').write('{"error": "quota"}'); print('billing')""", "quota"),
    "no steps": ("""import sys; open(sys.argv[1], 'w').write('{"steps": [3]}'); print('billing')""", "the steps"),
    "huge": ("import sys\nwhile True: sys.stdout.write('x' * 2**20)", "it printed too much"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_unmeasured_and_charged_its_reservation(tmp_path, fault, monkeypatch) -> None:
    monkeypatch.setattr(agent, "_DEFAULTS", replace(agent._DEFAULTS, output=2**20))
    code, detail = FAULTS[fault]
    done = run(command(tmp_path, code, "{report}", tokens=50), tmp_path)
    assert done.rollout.failure == "agent"
    assert detail in done.rollout.detail
    assert done.client.ledger.charged.spent == Spending(1, 50, 100_000)
    assert done.client.ledger.charged.lines[("target", "rollout")].bounds == 1


def test_a_hang_ends_at_the_time_limit_with_all_processes(tmp_path) -> None:
    code = f"""
import os, pathlib, time
if os.fork() == 0:
    os.setsid()
pathlib.Path({str(tmp_path)!r}, f"pid{{os.getpid()}}").touch()
time.sleep(600)
"""
    done = run(command(tmp_path, code, time=0.5), tmp_path)
    assert (done.rollout.failure, done.rollout.detail) == ("agent", "it ran longer than 0.5 s")
    pids = [int(path.name[3:]) for path in tmp_path.glob("pid*")]
    assert len(pids) == 2
    assert not any(map(is_alive, pids))


def test_a_key_that_an_agent_prints_when_it_fails_is_redacted(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TOOL_TOKEN", "hunter2-hunter2")
    code = "import os, sys; sys.exit('cannot log in with ' + os.environ['TOOL_TOKEN'])"
    made = command(tmp_path, code, environment=[{"function": "env", "arguments": ["TOOL_TOKEN"]}])
    assert run(made, tmp_path).rollout.detail.endswith("cannot log in with [secret TOOL_TOKEN]")


def test_what_an_agent_prints_and_writes_of_a_secret_is_in_no_trajectory(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TOOL_TOKEN", "hunter2-hunter2")
    code = "import os; key = os.environ['TOOL_TOKEN']; open('key.txt', 'w').write(key); print('billing', key)"
    made = command(tmp_path, code, environment=[{"function": "env", "arguments": ["TOOL_TOKEN"]}])
    trajectory = run(made, tmp_path).rollout.trajectory
    assert trajectory.reply == "billing [secret TOOL_TOKEN]"
    assert FileChange("key.txt", "added", "[secret TOOL_TOKEN]") in trajectory.steps
    assert "hunter2" not in str(trajectory)


# ---- the account ----


def test_a_cap_admits_as_many_rollouts_as_their_reservations_fit(tmp_path) -> None:
    made = command(tmp_path, TALKING, tokens=100, budget={"tokens": 250})
    done = run(made, tmp_path, rollouts=4)
    # Nothing is reported, so that each counts its whole reservation.
    assert [isinstance(each, BudgetReached) for each in done.all].count(True) == 2
    assert done.client.ledger.charged.spent == Spending(2, 200, 400_000)


def test_what_is_not_used_is_free_for_the_next_rollout(tmp_path) -> None:
    code = """import sys; open(sys.argv[1], 'w').write('{"usage": {"input": 10}}'); print('billing')"""
    done = run(command(tmp_path, code, "{report}", tokens=100, budget={"tokens": 130}), tmp_path, rollouts=4)
    assert [each.failure for each in done.all] == [None] * 4
    assert done.client.ledger.charged.spent.tokens == 40


@pytest.mark.parametrize("cap", [{"tokens": 1000}, {"cost": 1}])
def test_a_cap_without_a_declared_maximum_is_an_error(tmp_path, cap) -> None:
    with pytest.raises(SkillcError, match="no rollout of the agent has a declared maximum"):
        run(command(tmp_path, TALKING, budget=cap), tmp_path)


def test_more_than_the_declared_maximum_stops_the_run(tmp_path) -> None:
    code = """import sys; open(sys.argv[1], 'w').write('{"usage": {"input": 101}}'); print('billing')"""
    made = command(tmp_path, code, "{report}", tokens=100)
    with pytest.raises(PermanentFailure, match="used 101 tokens in one rollout; 100 were reserved"):
        run(made, tmp_path)


def test_recorded_charges_are_charged_again_as_they_were(tmp_path) -> None:
    code = """import sys; open(sys.argv[1], 'w').write('{"usage": {"input": 7, "output": 3}}'); print('billing')"""
    made = command(tmp_path, code, "{report}", tokens=100)
    first = Client(made, transport=Scripted(), root=tmp_path)
    with first.recorded() as charges:
        run(made, tmp_path, client=first)
    with Client(made, transport=Scripted(), root=tmp_path) as again:
        asyncio.run(again.charge(charges))
    assert again.ledger.charged.as_json() == first.ledger.charged.as_json()


def test_a_cost_that_is_reported_counts_where_the_price_is_unknown(tmp_path) -> None:
    code = """import sys; open(sys.argv[1], 'w').write('{"usage": {"input": 7}, "cost": 0.25}'); print('billing')"""
    made = command(tmp_path, code, "{report}", target=model(name="openai/nobody-knows"))
    done = run(made, tmp_path)
    assert done.trajectory.cost == 250_000_000
    assert done.client.ledger.charged.as_json()["total"]["cost_nano"] == 250_000_000


# ---- before the first rollout ----


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arguments": ("no-such-agent {prompt}",)}, "the program `no-such-agent` was not found"),
        ({"arguments": ("{here}/plain",)}, "cannot be executed"),
        ({"environment": [{"function": "env", "arguments": ["NOT_SET"]}]}, "needs `NOT_SET`"),
        ({"reads": ["nowhere"]}, "does not exist"),
        ({"hosts": ["localhost:80"], "sandbox": "bubblewrap"}, "can reach port 80"),
    ],
)
def test_what_this_machine_lacks_is_an_error_at_the_start(tmp_path, settings, message) -> None:
    (tmp_path / "plain").write_text("")
    if settings.get("sandbox", "unsafe") not in SANDBOXES:
        pytest.skip("bubblewrap does not work here")
    with pytest.raises(SkillcError, match=message):
        run(plan(**{"arguments": ("true",), **settings}), tmp_path)


def test_files_that_are_missing_name_the_example(tmp_path) -> None:
    with pytest.raises(SkillcError, match="the files of example `7`, does not exist"):
        run(command(tmp_path, TALKING, files="cases/{id}"), tmp_path, example="7")


def test_the_program_and_the_files_belong_to_the_run(tmp_path) -> None:
    from skillc.tasks.kind import find_kind

    made = command(tmp_path, TALKING, files="cases/{id}")
    (tmp_path / "cases").mkdir()
    kind = find_kind(made)
    seen = {kind.source(made, tmp_path)}
    (tmp_path / "cases" / "1").write_text("x")
    seen.add(kind.source(made, tmp_path))
    program(tmp_path, "print('shipping')")
    seen.add(kind.source(made, tmp_path))
    assert len(seen) == 3
    assert run(made, tmp_path, skill=None).rollout.prediction == {"team": "shipping"}
    assert SKILL.document.name
