"""The rules about money before anything is spent: what is an error, what a warning, and what the caps admit at once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from forked import command
from whole_runs import PROGRAM, STRICT, Models, compiled, no_wait, planned_job, questions, reply

from skillc.diagnostics.diagnostic import Severity
from skillc.errors import SkillcError
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.roles import resolve_roles

STEPS = ("budget.steps=4",)


def codes(folder: Path, *settings: str, program: str = PROGRAM) -> dict[str, Severity]:
    job = planned_job(folder, examples=80, program=program, settings=(*STEPS, *settings))
    return {d.code: d.severity for d in (*job.planned.diagnostics, *job.estimated.diagnostics)}


@pytest.mark.parametrize("cap", ["calls", "tokens", "cost"])
def test_only_a_cap_below_the_least_is_an_error_and_one_below_the_estimate_a_warning(tmp_path: Path, cap: str) -> None:
    bounds = planned_job(tmp_path, examples=80, settings=STEPS).estimated.bounds
    least, estimate = (getattr(spend, cap) for spend in (bounds.minimum.total, bounds.total.estimate))
    assert least < estimate

    def setting(value: Fraction | int, up: int) -> str:
        if cap == "cost":
            return f"budget.cost=${float(value) + up * 1e-6:.6f}"
        return f"budget.{cap}={int(value) + up}"

    below = codes(tmp_path, setting(least, -1))
    assert below["SK501"] is Severity.ERROR
    between = codes(tmp_path, setting(least, 1))
    assert "SK501" not in between
    assert between["SK551"] is Severity.WARNING
    enough = codes(tmp_path, setting(estimate, 1))
    assert not {"SK501", "SK551"} & set(enough)


def test_the_least_is_what_a_run_of_three_decisions_needs_in_calls(tmp_path: Path) -> None:
    """A run with that many calls, where all is measured at once, gets through: the message promises no more."""
    job = planned_job(tmp_path / "plan", examples=80, settings=STEPS)
    least = job.estimated.bounds.minimum.total.calls
    run = compiled(planned_job(tmp_path / "run", examples=80, settings=(*STEPS, f"budget.calls={least}")), Models())
    assert run.compiled.trained.state.decisions >= 1
    assert run.client.ledger.charged.spent.calls <= least


def test_a_price_that_nobody_knows_is_an_error_under_a_cap_on_cost_alone(tmp_path: Path) -> None:
    unknown = PROGRAM.replace("price { input = $1; output = $4 }", "")
    assert codes(tmp_path, "budget.cost=$5", program=unknown)["SK651"] is Severity.ERROR
    assert "SK651" not in codes(tmp_path, "budget.tokens=9M", program=unknown)
    job = planned_job(tmp_path, examples=80, program=unknown, settings=("budget.cost=$5",))
    with pytest.raises(SkillcError, match="the budget caps the cost, and the price of `openai/stub`") as refused:
        resolve_roles(job.planned.plan)
    assert "price { input" in str(refused.value.hint)


def test_a_local_model_is_free_unless_the_program_says_otherwise(tmp_path: Path) -> None:
    local = PROGRAM.replace('"openai/stub"', '"hosted_vllm/stub"')
    free = local.replace("price { input = $1; output = $4 }", "")
    priced = planned_job(tmp_path / "priced", examples=80, program=local, settings=STEPS).estimated.bounds
    assert (
        planned_job(tmp_path / "free", examples=80, program=free, settings=STEPS)
        .estimated.bounds.stage("baseline")
        .bound.most.cost
        == 0
    )
    assert priced.stage("baseline").bound.most.cost
    assert "SK651" not in codes(tmp_path, "budget.cost=$5", program=free)


@pytest.mark.parametrize("cap", ["tokens=40_000", "cost=$0.5", "calls=30"])
def test_the_caps_admit_at_least_as_many_calls_at_once_as_the_plan_says(
    tmp_path: Path, cap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of the largest size that the plan reckons with, all asked for at the same time, and not paced."""
    monkeypatch.setattr("skillc.models.pace.START", 500)
    job = planned_job(tmp_path, examples=80, settings=(*STEPS, f"budget.{cap}"))
    plan, bounds = job.planned.plan, job.estimated.bounds
    admitted = bounds.in_flight["target"]
    assert admitted is not None
    flying, gate = [0, 0], threading.Event()

    async def transport(sent: Any) -> Any:
        flying[0] += 1
        while not gate.is_set():
            await asyncio.sleep(0.002)
        return reply("right", (9, 1))

    # A token of the language's counter is seven letters; a prompt of so many tokens has about five bytes a token.
    largest = (bounds.held["target"].prompt // 5) * 4

    async def scenario() -> None:
        client = Client(plan, transport=transport, concurrency=500, sleep=no_wait)
        calls = [
            client.complete(Call("target", "rollout", (Message("user", f"{i} ".ljust(largest, "x")),)))
            for i in range(admitted + 5)
        ]
        tasks = [asyncio.ensure_future(call) for call in calls]
        # The calls may run on a loop of another thread, so turns of this one prove nothing.
        for _ in range(200):
            await asyncio.sleep(0.005)
            if flying[0] >= admitted:
                break
        flying[1] = flying[0]
        gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        client.close()

    asyncio.run(scenario())
    assert flying[1] >= admitted
    assert any(f"{admitted} of `target`" in line for line in _plan_text(job).splitlines())


def _plan_text(job: Any) -> str:
    from skillc.budget.render import as_text

    return as_text(job.planned.plan, job.estimated.bounds)


def test_the_command_line_refuses_before_anything_is_written(tmp_path: Path) -> None:
    program = PROGRAM.replace("GATE", STRICT).replace("; GROUP", "")
    (tmp_path / "guess.skill").write_text(program)
    (tmp_path / "questions.jsonl").write_text(questions(80))
    done = subprocess.run(
        [*command(), "compile", "guess.skill", "--offline", "--set", "budget.calls=20"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode != 0
    assert "and a run with a result takes" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "skills").exists()
    done = subprocess.run(
        [*command(), "plan", "guess.skill", "--json", "--set", "budget.calls=2000"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    said = json.loads(done.stdout)
    assert said["in_flight"]["target"] == 2000
    assert 0 < said["smallest_gain"][0] <= said["smallest_gain"][1] < 0.5
    assert any("false accepts even if none of" in note for note in said["notes"])
