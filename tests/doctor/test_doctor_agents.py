"""The lines of `skillc doctor` about a program's agent."""

import pytest
from model_plans import plan_of

from skillc.doctor.checks import check_agent
from skillc.plan.schema import Plan, RolloutPlan


def plan(kind: str, *arguments: str, **settings: str) -> Plan:
    made = plan_of()
    rollout = RolloutPlan(kind=kind, arguments=arguments, settings=settings)
    return made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})


def levels(made: Plan, root, path: str = "/usr/bin:/bin") -> dict[str, str]:  # type: ignore[no-untyped-def]
    return {found.what: found.level for found in check_agent(made, root, {"PATH": path})}


def test_the_program_of_an_agent_is_reported(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "codex").write_text("#!/bin/sh\n")
    (tmp_path / "codex").chmod(0o755)
    assert levels(plan("codex"), tmp_path, str(tmp_path)) == {"codex": "ok"}
    assert levels(plan("codex", executable="./codex"), tmp_path) == {"codex": "ok"}
    assert levels(plan("codex"), tmp_path) == {"codex": "missing"}
    assert levels(plan("command", "{here}/codex {prompt}"), tmp_path) == {"command": "ok"}


@pytest.mark.parametrize("kind", ["predict", "react"])
def test_other_kinds_have_no_such_lines(kind, tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert levels(plan(kind), tmp_path) == {}
