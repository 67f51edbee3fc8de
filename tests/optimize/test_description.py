"""The description of a skill as a task of its own: its right answers, its rollouts, its limits, its share of a run."""

import asyncio
from dataclasses import replace
from fractions import Fraction

import pytest

from skillc.artifact_paths import ABOUT_CHARACTERS
from skillc.document.edits import Add, Delete, Replace, apply_edits
from skillc.document.skill import document_of
from skillc.frontend import check_file, plan_file
from skillc.optimize.description import (
    LEAVE_IT,
    OPEN_IT,
    DescriptionRollouts,
    description_of,
    description_plan,
    is_trained,
    share_of_steps,
    wanted,
    with_description,
)
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example, Scored, Unmeasured
from skillc.plan.schema import SkillPlan
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory

SKILL = document_of("route-it", "Route a ticket. Open it for tickets.", [("rules", "trainable", "- Be kind.", None)])
PROGRAM = """language 1
task { input ticket: text; output team: "billing" | "shipping" }
skill route_it { ABOUT = "Route a ticket."; LOAD; SECTION }
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { train = "train.jsonl"; validation = "validation.jsonl"; field kind: text }
budget { CAPS }
goal correct = exact_match(team)
metric opens = opened(route_it)
gate better = candidate.correct > incumbent.correct
GATE
"""
FINDS = 'gate finds = recall(opens, kind == "ours") >= 90%'


def program(folder, **parts):
    text = PROGRAM
    given = {
        "ABOUT": "trainable about",
        "LOAD": "load = on_demand",
        "SECTION": "trainable section rules",
        "CAPS": "epochs = 3",
        "GATE": FINDS,
        **parts,
    }
    for name, value in given.items():
        text = text.replace(name, value)
    (folder / "p.skill").write_text(text)
    for side in ("train", "validation"):
        (folder / f"{side}.jsonl").write_text('{"ticket": "a", "team": "billing", "kind": "ours"}\n')
    return folder / "p.skill"


def plan(folder, **parts):
    return plan_file(program(folder, **parts)).plan


# ---- the document ---------------------------------------------------------------------------------


def test_the_sentences_of_a_description_are_its_rules() -> None:
    description = description_of(SKILL)
    assert [rule.text for rule in description.rules] == ["Route a ticket.", "Open it for tickets."]
    assert with_description(SKILL, description) == SKILL
    added = apply_edits(description, [Add("about", "Not for parcels.")]).document
    changed = with_description(SKILL, added)
    assert changed.about == "Route a ticket. Open it for tickets. Not for parcels."
    assert changed.sections == SKILL.sections


def test_no_edit_makes_a_description_longer_than_agents_read_or_empty() -> None:
    description = description_of(SKILL)
    first, second = (rule.id for rule in description.rules)
    long = apply_edits(description, [Replace(first, "x" * (ABOUT_CHARACTERS + 1))])
    assert not long.results[0].applied
    assert "its limit is 1024" in long.results[0].message
    gone = apply_edits(description, [Delete(first), Delete(second)])
    assert [result.applied for result in gone.results] == [True, False]
    assert "would be empty" in gone.results[1].message


# ---- the plan -------------------------------------------------------------------------------------


def test_what_is_wanted_is_the_condition_of_a_gate_on_this_skill(tmp_path) -> None:
    assert wanted(plan(tmp_path)) is not None
    assert is_trained(plan(tmp_path))
    assert wanted(plan(tmp_path, GATE="")) is None
    assert not is_trained(plan(tmp_path, ABOUT="about"))
    always = SkillPlan.model_validate({**plan(tmp_path).skill.model_dump(), "load": "always"})
    assert not is_trained(plan(tmp_path).model_copy(update={"skill": always}))


def test_the_task_of_the_loop_is_to_open_it_or_not(tmp_path) -> None:
    own = description_plan(plan(tmp_path), 2)
    assert [field.name for field in own.task.inputs] == ["ticket"]
    assert own.task.outputs[0].type.labels == (OPEN_IT, LEAVE_IT)
    assert own.goal.name == "opened_right"
    assert [gate.name for gate in own.gates] == ["better"]
    assert own.budget.steps == 2


@pytest.mark.parametrize(
    ("caps", "section", "share"),
    [
        ("epochs = 3", "trainable section rules", (1, 2)),
        ("steps = 1", "trainable section rules", (1, 0)),
        ("epochs = 3", 'frozen section rules = "Be kind."', (3, 0)),
    ],
)
def test_the_steps_are_shared_and_none_is_added(tmp_path, caps, section, share) -> None:
    assert share_of_steps(plan(tmp_path, CAPS=caps, SECTION=section), 1) == share


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"GATE": ""}, "no gate says where to open it"),
        ({"LOAD": "load = always", "GATE": "gate g = candidate.correct >= 10%"}, "the target always reads this skill"),
        ({}, None),
    ],
)
def test_a_description_that_nothing_trains_is_reported(tmp_path, parts, message) -> None:
    path = program(tmp_path, **parts)
    if "always" in str(parts):
        path.write_text(path.read_text().replace("metric opens = opened(route_it)\n", ""))
    found = [each.message for each in check_file(path).diagnostics if each.code == "SK419"]
    assert len(found) == (message is not None)
    assert message is None or message in found[0]


# ---- the rollouts ---------------------------------------------------------------------------------


class Played:
    """Rollouts of the program with the given steps."""

    def __init__(self, steps, cell) -> None:
        self.steps, self.cell, self.skills = steps, cell, []

    def known(self, skill, example, sample=0):
        self.skills.append(skill)
        return Outcome({"correct": self.cell}, Trajectory(self.steps, {"team": "billing"}, cost=7), "wrong team")

    async def measure(self, skill, examples, *, stage, sample=0, shown=True):
        return [self.known(skill, example, sample) for example in examples]


WRONG = Scored(0)


def decided(folder, steps, gold, cell=WRONG):
    own = plan(folder)
    base = Played(steps, cell)
    example = Example("1", {"ticket": "a"}, {"team": "billing"}, {"kind": "ours"}, "1")
    rollouts = DescriptionRollouts(base, SKILL, own, {"1": example})
    asked = replace(example, gold={"decision": gold})
    description = apply_edits(description_of(SKILL), [Add("about", "Not for parcels.")]).document
    (outcome,) = asyncio.run(rollouts.measure(description, [asked], stage="gate"))
    assert rollouts.known(description, asked) == outcome
    assert base.skills[0].about.endswith("Not for parcels.")
    return outcome


def call(name):
    return ToolCall("open_skill", {"name": name}), Observation("its text")


@pytest.mark.parametrize(
    ("steps", "gold", "right", "feedback"),
    [
        ((*call("route-it"), Message("x")), OPEN_IT, True, ""),
        ((*call("write-poems"), *call("route-it"), Message("x")), OPEN_IT, True, ""),
        ((*call("write-poems"), Message("x")), OPEN_IT, False, "it did not open the skill, but `write-poems`"),
        ((Message("x"),), OPEN_IT, False, "it did not open the skill"),
        ((Message("x"),), LEAVE_IT, True, ""),
        ((*call("route-it"),), LEAVE_IT, False, "it opened the skill where it should have left it closed"),
    ],
)
def test_a_rollout_is_right_if_any_of_its_calls_opened_the_skill(tmp_path, steps, gold, right, feedback) -> None:
    outcome = decided(tmp_path, steps, gold)
    assert outcome.cells["opened_right"] == Scored(MICRO * right)
    assert outcome.feedback == feedback
    assert outcome.answer == {"decision": OPEN_IT if ("route-it" in str(steps)) else LEAVE_IT}
    assert outcome.trajectory.cost == 7
    assert "its text" not in outcome.trajectory.reply


def test_an_unmeasured_rollout_is_no_decision(tmp_path) -> None:
    outcome = decided(tmp_path, (), OPEN_IT, Unmeasured("transport"))
    assert outcome.cells["opened_right"] == Unmeasured("transport")
    assert not outcome.measured


def test_the_goal_is_between_0_and_1(tmp_path) -> None:
    goal = description_plan(plan(tmp_path), 1).goal
    assert (goal.low, goal.high) == (Fraction(0), Fraction(1))
