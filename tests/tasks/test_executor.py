"""`executor = ray`: what the plan and the run's identity make of it; the cluster itself is tested in tests_ray."""

import importlib.util

import pytest
from model_plans import Scripted, plan_of

from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.models.client import Client
from skillc.plan.digest import plan_digest
from skillc.plan.schema import ExecutorPlan
from skillc.tasks.runner import RolloutRunner

PROGRAM = """language 1
task {{ {executor} input ticket: text; output team: text }}
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
skill route {{ about = "Route."; trainable section rules }}
data {{ source = "t.csv" }}
goal correct = exact_match(team)
gate better = candidate.correct > incumbent.correct
budget {{ steps = 1 }}
"""


def planned(folder, executor):
    path = folder / "route.skill"
    path.write_text(PROGRAM.format(executor=executor))
    return plan_file(path).plan


def test_where_rollouts_run_is_no_part_of_a_programs_identity(tmp_path):
    far = planned(tmp_path, 'executor = ray { address = "auto"; workers = 3 };')
    assert far.task.executor == ExecutorPlan(address="auto", workers=3)
    near = planned(tmp_path, "executor = local;")
    assert near.task.executor is None
    assert plan_digest(far) == plan_digest(near) == plan_digest(planned(tmp_path, ""))


def test_without_ray_the_message_names_the_extra(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else found(name, *more))
    plan = plan_of()
    plan = plan.model_copy(update={"task": plan.task.model_copy(update={"executor": ExecutorPlan()})})
    with (
        Client(plan, transport=Scripted()) as client,
        pytest.raises(SkillcError, match="needs the package `ray`") as raised,
    ):
        RolloutRunner(plan, client)
    assert raised.value.hint == 'pip install "skillc[ray]"'
