"""A skill that the target opens by itself, through the whole compile loop with the rulebook."""

import json
import shutil
from pathlib import Path

import pytest

from skillc.artifacts.loading import load_program, module_of
from skillc.budget.bounds import Bounds
from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Compiled, Job, compile_job
from skillc.plan.lock import read_lock

ROOT = Path(__file__).resolve().parents[2]
SHORTER = ("budget.steps=1",)


def compile_example(folder: Path, settings: tuple[str, ...] = SHORTER) -> tuple[Compiled, Bounds, list[str]]:
    planned = plan_file(folder / "parcels.skill", settings=settings)
    estimated = estimate(planned)
    with Client(planned.plan, root=folder) as client:
        observer = SilentObserver()
        job = Job(planned, estimated, folder / "skills", folder / ".skillc")
        return compile_job(job, observer, client), estimated.bounds, observer.notes


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parcels") / "parcels"
    shutil.copytree(ROOT / "examples" / "parcels", folder, ignore=shutil.ignore_patterns(".skillc", "skills"))
    done, bounds, _ = compile_example(folder)
    return folder, done, bounds


def test_it_is_trained_through_what_it_opens(compiled) -> None:
    _, done, _ = compiled
    assert done.tested.verdict.verdict == "improved"
    for example in done.trained.engine.dataset.validation:
        outcome = done.trained.engine.rollouts.known(done.trained.state.best, example)
        calls = outcome.trajectory.calls()
        assert outcome.trajectory.turns == 1 + len(calls)
        assert len(outcome.trajectory.steps) == 1 + 3 * len(calls)


def test_the_further_calls_are_within_the_bounds_of_the_plan(compiled) -> None:
    _, done, bounds = compiled
    charged = done.lock.charged
    assert charged.calls <= bounds.total.most.calls
    assert charged.prompt_tokens <= bounds.total.most.prompt
    rollouts = bounds.stage("baseline").bound
    assert rollouts.most.calls == 2 * bounds.sizes.validation
    assert bounds.stage("no skill").bound.most.calls == bounds.sizes.validation + bounds.sizes.test


def test_the_compiled_skill_is_offered_where_it_is_loaded(compiled) -> None:
    folder, done, _ = compiled
    lock = read_lock(folder / "skills" / "parcel-complaints.lock")
    assert lock.verdict == done.lock.verdict
    program = module_of(load_program(folder / "parcels.skill"))
    assert program(message="The parcel with my cup arrived torn.").answer == "refund"
    said = program(message="The parcel with my cup arrived torn.").trajectory
    assert [call.arguments for call in said.calls()] == [{"name": "parcel-complaints"}]
    module = (folder / "skills" / "parcel_complaints.py").read_text()
    assert "import dspy" not in module
    assert "opens it by itself" in module


def test_the_data_of_the_example_is_what_its_script_makes() -> None:
    import runpy

    made = runpy.run_path(str(ROOT / "examples/parcels/make_data.py"))["messages"](7)
    lines = (ROOT / "examples/parcels/messages.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == made
