"""A skill that the target opens by itself, through the whole compile loop with the rulebook."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from skillc.artifacts.loading import load_program, module_of
from skillc.budget.bounds import Bounds
from skillc.document.skill_md import from_skill_md
from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.optimize.description import is_trained, opening_score, wanted
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Compiled, Job, compile_job
from skillc.pipeline.report import compile_json, compile_table
from skillc.pipeline.sanity import sanity_plan
from skillc.plan.lock import read_lock
from skillc.run.time_left import book_total
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Observation, ToolCall

ROOT = Path(__file__).resolve().parents[2]
SHORTER = ("budget.steps=2",)


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


def test_the_description_is_trained_apart_from_the_text(compiled) -> None:
    _, done, _ = compiled
    first, *others = done.trained.engine.observer._observer.decisions
    assert (first["trains"], first["result"]) == ("about", "accept")
    assert all("trains" not in record for record in others)
    assert [record["decision"] for record in (first, *others)] == [1, 2]
    state = done.trained.state
    assert state.initial.about == "How to answer a complaint about a parcel."
    assert "catalogue" in state.best.about
    assert len(state.best.about) <= 1024
    written = (done.artifact.parent / "SKILL.md").read_text()
    assert from_skill_md(written).about == state.best.about
    assert state.best.sections[0].rules


def test_the_lock_and_the_report_have_all_three_arms(compiled) -> None:
    folder, done, _ = compiled
    test = json.loads((folder / "skills" / "parcel-complaints.lock").read_text())["test"]
    assert test["none"]["mean"] < test["always_read"]["mean"]
    assert test["none"]["mean"] < test["best"]["mean"]
    assert test["always_read"]["n"] == test["best"]["n"] == len(done.trained.engine.dataset.test)
    opened = test["opened"]
    assert (opened["hits"], opened["strays"]) == (opened["wanted"], 0)
    assert opened["precision"] == opened["recall"] == 1
    said = shown(done)
    assert "compiled skill, always read" in said
    assert "worth     text +" in said
    assert "precision 100.0 %, recall 100.0 % on test" in said
    assert compile_json(done)["test"] == test


def test_a_test_split_without_near_misses_is_unverified_and_never_perfect(compiled) -> None:
    _, done, _ = compiled
    engine, best = done.trained.engine, done.trained.state.best
    condition = wanted(engine.plan)
    kinds = {True: [], False: []}
    for example in engine.dataset.test:
        kinds[engine.rollouts.holds(condition, example)].append(example)
    for examples, missing in ((kinds[True], "no near miss"), (kinds[False], "no example of the skill")):
        score = opening_score(engine, best, examples, condition)
        assert (score.verified, score.precision, score.recall) == (False, None, None)
        tested = replace(done.tested, opened=(score, score))
        assert f"opened    unverified: test has {missing}" in shown(replace(done, tested=tested))


def shown(done: Compiled) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(compile_table(done, "correct"))
    return console.file.getvalue()


def test_the_trigger_is_measured_with_the_text_nowhere_in_sight(compiled) -> None:
    """The first reply of every rollout that opens the skill was given before the text was read."""
    _, done, _ = compiled
    engine, best = done.trained.engine, done.trained.state.best
    for example in engine.dataset.validation:
        steps = engine.rollouts.known(best, example).trajectory.steps
        read = [i for i, step in enumerate(steps) if isinstance(step, Observation)]
        opened = [i for i, step in enumerate(steps) if isinstance(step, ToolCall)]
        assert [i - 1 for i in read] == opened
        always = engine.always_read.known(best, example).trajectory
        assert not opened_skills(always)


def test_the_same_compile_again_decides_alike_and_writes_the_same_bytes(compiled) -> None:
    folder, done, _ = compiled
    files = ("parcel-complaints.lock", "parcel-complaints.history.jsonl", "parcel-complaints/SKILL.md")
    before = [(folder / "skills" / name).read_bytes() for name in files]
    again, _, notes = compile_example(folder)
    assert again.lock == done.lock
    assert [(folder / "skills" / name).read_bytes() for name in files] == before
    assert book_total(again.spent, "charged") == book_total(done.spent, "charged")
    assert not [note for note in notes if "starts anew" in note]


def test_a_cap_in_the_middle_of_the_description_delivers_what_was_accepted(tmp_path) -> None:
    folder = tmp_path / "parcels"
    shutil.copytree(ROOT / "examples" / "parcels", folder, ignore=shutil.ignore_patterns(".skillc", "skills"))
    done, _, _ = compile_example(folder, ("budget.steps=2", "budget.calls=620"))
    assert done.trained.stopped == "calls"
    assert done.lock.charged.calls <= 620
    assert done.trained.state.initial.about == "How to answer a complaint about a parcel."
    assert read_lock(folder / "skills" / "parcel-complaints.lock").verdict in ("unverified", "no significant gain")


def test_a_sanity_check_trains_the_text_alone(compiled) -> None:
    folder, _, _ = compiled
    own = sanity_plan(plan_file(folder / "parcels.skill").plan, 12)
    assert [gate.name for gate in own.gates] == ["better"]
    assert not is_trained(own)
