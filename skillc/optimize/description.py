"""Train the description of a skill that is opened on demand. It uses the same loop as the skill's text.

The loop sees a classification task. The inputs are those of the program's task. The answer is whether the target opened
the skill. The right answer is a condition on the data that a gate names, as in `recall(opened(skill), condition)`. The
rollouts are the program's, and candidates differ only in the description. The skill counts as opened even if the target
opens another skill first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.artifact_paths import ABOUT_CHARACTERS
from skillc.budget.steps import steps_of, steps_per_epoch
from skillc.dataclass import dataclass
from skillc.document.skill import Document, Rule, Section, new_id
from skillc.gates.evaluate import decide
from skillc.gates.functions import CONDITIONAL
from skillc.gates.intervals import Truth
from skillc.gates.terms import CallTerm, FieldTerm, MeanTerm, MetricTerm, Operation, Term, WordTerm
from skillc.metrics.triggers import conditions
from skillc.optimize.engine import Engine, SearchState
from skillc.optimize.gate.gate import evidence, skills_by_name, text_evidence
from skillc.optimize.host import ForwardingObserver, Observer
from skillc.optimize.loop.baseline import first_state
from skillc.optimize.loop.train import COMPLETED, TrainResult, train
from skillc.optimize.null_arm import measure_null_arm
from skillc.optimize.rollouts import Outcome, Rollouts
from skillc.outcomes import MICRO, Cell, Example, Scored, Unmeasured
from skillc.plan.schema import (
    FieldPlan,
    GatePlan,
    MetricPlan,
    Plan,
    RolloutPlan,
    SectionPlan,
    TypePlan,
)
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Message

OPEN_IT, LEAVE_IT = "open it", "leave it closed"
SECTION = "about"
_DECISION = "decision"
_METRIC = "opened_right"
_TOKENS = 256
_HOW = (
    "The target reads the text of the section `about` as the description of this skill, in a list with other skills, "
    "and decides from it alone whether to open the skill. Its rules are the sentences of that description. Write what "
    "the skill is for, when to open it and when to leave it closed, in plain sentences, as short as they can be. The "
    "labels of the decision are only for you: the description says what the skill is of use for, and what not."
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


# ---- the parts that are trained -------------------------------------------------------------------


def wanted(plan: Plan) -> Term | None:
    """Return the condition for opening the skill, from the first gate that names one; None if none does."""
    if plan.skill.load != "on_demand":
        return None
    opened = CallTerm("opened", (WordTerm(plan.skill.name),))
    for call in conditions(gate.term for gate in plan.gates):
        metric = call.arguments[0]
        if isinstance(metric, MetricTerm) and plan.metric(metric.name).term == opened:
            return call.arguments[1]
    return None


def is_trained(plan: Plan) -> bool:
    """Return whether the plan trains the description."""
    return plan.skill.about_trainable and plan.optimize.method == "skillc" and wanted(plan) is not None


def has_trained_sections(plan: Plan) -> bool:
    """Return whether the plan trains anything besides the description."""
    return any(section.mode != "frozen" for section in plan.skill.sections)


def description_of(document: Document) -> Document:
    """Return a document with one rule for each sentence of a skill's description."""
    taken: set[str] = set()
    rules: list[Rule] = []
    for sentence in filter(None, _SENTENCE.split(" ".join(document.about.split()))):
        rules.append(Rule(new_id(SECTION, sentence, taken), sentence, mark=""))
        taken.add(rules[-1].id)
    about = Section(SECTION, "trainable", rules=tuple(rules), limit=_TOKENS, characters=ABOUT_CHARACTERS)
    return Document(document.name, "", (Section("how_it_is_read", "frozen", _HOW), about))


def with_description(document: Document, description: Document) -> Document:
    """Return the skill with the text of `description` as its description; the inverse of `description_of`."""
    about = " ".join(" ".join(rule.text.split()) for rule in description.rules)
    return replace(document, about=about[:ABOUT_CHARACTERS].rstrip() or document.about)


# ---- the task of the loop -------------------------------------------------------------------------


def description_plan(plan: Plan, steps: int, kept: Sequence[GatePlan] = ()) -> Plan:
    """Return the plan that trains the description of a plan's skill in `steps` steps.

    A candidate must be right more often than the incumbent, and must still pass the gates `kept`.
    """
    label = TypePlan(kind="labels", labels=(OPEN_IT, LEAVE_IT))
    about = f"whether the assistant should open the skill `{plan.skill.artifact}`"
    name = _free(_DECISION, [field.name for field in (*plan.task.inputs, *plan.task.outputs)])
    output = FieldPlan(name=name, type=label, column=name, about=about)
    metric = goal_name(plan)
    one = CallTerm("exact_match", (FieldTerm(name),))
    better = Operation(">", (MeanTerm("candidate", metric), MeanTerm("incumbent", metric)))
    goal = MetricPlan(name=metric, term=one, low=Fraction(0), high=Fraction(1), goal=True)
    read = {call.arguments[0].name for gate in kept for call in conditions([gate.term])}  # type: ignore[union-attr]
    section = SectionPlan(name=SECTION, mode="trainable", limit=_TOKENS)
    return plan.model_copy(
        update={
            "task": plan.task.model_copy(update={"outputs": (output,), "rollout": RolloutPlan()}),
            "skill": plan.skill.model_copy(update={"sections": (section,), "present": None}),
            "metrics": (*(each for each in plan.metrics if each.name in read and not each.goal), goal),
            "gates": (GatePlan(name="better", term=better, text="opened right more often", stage="validation"), *kept),
            "requires": (),
            "optimize": replace(plan.optimize, lapses=False),
            "budget": replace(plan.budget, steps=steps),
        }
    )


def goal_name(plan: Plan) -> str:
    """Return the name of the metric that is 1 where the skill was opened as it should be."""
    return _free(_METRIC, [metric.name for metric in plan.metrics])


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


class DescriptionRollouts(Rollouts):
    """Rollouts of a program, scored on whether the target opened the skill.

    Args:
        rollouts: of the program.
        skill: the skill whose description changes.
        plan: of the program.
        examples: of the program, by id. The examples that the loop sees have other right answers.
    """

    def __init__(self, rollouts: Rollouts, skill: Document, plan: Plan, examples: dict[str, Example]) -> None:
        self._rollouts, self._skill, self._plan, self._examples = rollouts, skill, plan, examples
        self._whole: dict[int, tuple[Document, Document]] = {}
        self._task = description_plan(plan, 1)

    def holds(self, condition: Term, example: Example) -> bool:
        """As `Rollouts.holds`."""
        return self._rollouts.holds(condition, self._examples[example.id])

    def judged(self) -> tuple[int, int, int]:
        """As `Rollouts.judged`."""
        return self._rollouts.judged()

    def known(self, skill: Document | None, example: Example, sample: int = 0) -> Outcome | None:
        """As `Rollouts.known`."""
        found = self._rollouts.known(self._with(skill), self._examples[example.id], sample)
        return self._decision(example, found) if found is not None else None

    async def measure(
        self, skill: Document | None, examples: Sequence[Example], *, stage: str, sample: int = 0, shown: bool = True
    ) -> list[Outcome]:
        """As `Rollouts.measure`."""
        whole = [self._examples[example.id] for example in examples]
        found = await self._rollouts.measure(self._with(skill), whole, stage=stage, sample=sample, shown=shown)
        return [self._decision(example, outcome) for example, outcome in zip(examples, found, strict=True)]

    def _with(self, skill: Document | None) -> Document | None:
        if skill is None:
            return None
        if id(skill) not in self._whole:
            # The description is kept alive: its id is not reused.
            self._whole[id(skill)] = (skill, with_description(self._skill, skill))
        return self._whole[id(skill)][1]

    def _decision(self, example: Example, outcome: Outcome) -> Outcome:
        """Convert a rollout to the decision whether to open the skill; an unmeasured rollout stays unmeasured."""
        (output,) = self._task.task.outputs
        opened = opened_skills(outcome.trajectory)
        answer: dict[str, JsonValue] = {output.name: OPEN_IT if self._skill.name in opened else LEAVE_IT}
        right = answer == example.gold
        cells: dict[str, Cell] = dict(outcome.cells)
        failed = next((cell for cell in outcome.cells.values() if isinstance(cell, Unmeasured)), None)
        cells[self._task.goal.name] = failed or Scored(MICRO * right)
        said = (Message(str(answer[output.name])),)
        trajectory = replace(outcome.trajectory, steps=said, answer=answer, problem=None)
        return Outcome(cells, trajectory, "" if right else _wrong(self._skill.name, opened))


def _wrong(name: str, opened: Sequence[str]) -> str:
    if name in opened:
        return "it opened the skill where it should have left it closed"
    others = [each for each in opened if each != name]
    return "it did not open the skill" + (f", but `{others[0]}`" if others else "")


# ---- the run --------------------------------------------------------------------------------------


def share_of_steps(plan: Plan, train_size: int) -> tuple[int, int]:
    """Return the number of steps that train the description, and the number that train the text.

    The description gets a third of the steps, at most one epoch. It gets all steps if nothing else is trained.
    """
    total = steps_of(plan, train_size)
    if not has_trained_sections(plan):
        return total, 0
    first = min(max(1, total // 3), steps_per_epoch(plan, train_size), total)
    return first, total - first


class _OfDescription(ForwardingObserver):
    """Observer that marks decisions on the description in the history."""

    def decided(self, record: object) -> None:
        super().decided({**record, "trains": SECTION})  # type: ignore[dict-item]


async def train_with_description(engine: Engine, initial: Document) -> TrainResult:
    """Train the description, then the text of the skill with the best description.

    Raises:
        BudgetReached, EndpointUnreachable, PermanentFailure, MetricError, SkillcError: as `train`.
    """
    plan = engine.plan
    first, others = share_of_steps(plan, len(engine.dataset.train))
    found = await _train_description(engine, initial, first)
    start = with_description(initial, found.state.best) if found.state.accepted else initial
    if found.stopped not in COMPLETED or not others:
        state = replace(found.state, initial=initial, incumbent=start, best=start)
        known = {example.id for example in found.engine.dataset.validation}
        kept = tuple(example for example in engine.dataset.validation if example.id in known)
        engine = replace(engine, dataset=replace(engine.dataset, validation=kept))
        return TrainResult(_own(engine, state), engine, found.stopped, found.quarantined)
    rest = replace(engine, plan=plan.model_copy(update={"budget": replace(plan.budget, steps=others)}))
    trained = await train(rest, start, begun=replace(found.state, initial=initial))
    return replace(trained, engine=replace(trained.engine, plan=plan))


def _own(engine: Engine, state: SearchState) -> SearchState:
    """Convert the final state of the description's search to a state of the program's search."""
    return replace(
        first_state(engine, state.incumbent),
        initial=state.initial,
        decisions=state.decisions,
        accepted=state.accepted,
        patience=state.patience,
    )


async def _train_description(engine: Engine, initial: Document, steps: int) -> TrainResult:
    plan, condition = engine.plan, wanted(engine.plan)
    assert condition is not None
    dataset = engine.dataset
    every = {example.id: example for example in (*dataset.train, *dataset.validation)}
    rollouts = DescriptionRollouts(engine.rollouts, initial, plan, every)
    own = description_plan(plan, steps, await _met(engine, initial))
    if engine.null_arm == "first":
        await measure_null_arm(engine, initial)
    (output,) = own.task.outputs

    def asked(examples: Sequence[Example]) -> tuple[Example, ...]:
        return tuple(
            replace(e, gold={output.name: OPEN_IT if engine.rollouts.holds(condition, e) else LEAVE_IT})
            for e in examples
        )

    observer: Observer = _OfDescription(engine.observer)
    inner = replace(
        engine,
        plan=own,
        dataset=replace(dataset, train=asked(dataset.train), validation=asked(dataset.validation)),
        rollouts=rollouts,
        observer=observer,
        tools=(),
        null_arm=None,
    )
    return await train(inner, description_of(initial))


async def _met(engine: Engine, initial: Document) -> tuple[GatePlan, ...]:
    """Return the gates on precision and recall that the initial skill passes, which every description must pass too."""
    found = []
    for sample in range(engine.plan.optimize.samples):
        await engine.rollouts.measure(initial, engine.dataset.validation, stage="baseline", sample=sample)
    state = first_state(engine, initial)
    seen = evidence(engine, skills_by_name(state, initial), (), text_evidence(engine, {}, None))
    for gate in engine.plan.gates:
        only = {call.function for call in _calls(gate.term)} <= set(CONDITIONAL)
        if only and any(True for _ in conditions([gate.term])) and decide(gate.term, seen) is Truth.TRUE:
            found.append(gate)
    return tuple(found)


def _calls(term: Term) -> list[CallTerm]:
    """Return the calls of run level in a gate, without those in conditions."""
    if isinstance(term, CallTerm):
        return [term]
    if isinstance(term, MeanTerm):
        return [CallTerm("mean", ())]
    return [call for operand in getattr(term, "operands", ()) for call in _calls(operand)]


# ---- precision and recall of opening ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpeningScore:
    """Counts of wanted and unwanted openings of a skill, over all measured rollouts of a split.

    Attributes:
        hits: rollouts in which it was opened and should be.
        wanted: rollouts in which it should be opened.
        strays: rollouts in which it was opened but should stay closed.
        others: rollouts in which it should stay closed.
    """

    hits: int
    wanted: int
    strays: int
    others: int

    @property
    def verified(self) -> bool:
        """Whether there are rollouts of both kinds; otherwise the shares are meaningless."""
        return self.wanted > 0 and self.others > 0

    @property
    def precision(self) -> Fraction | None:
        """The share of openings that were wanted; 0 if it was never opened, None unless `verified`."""
        return Fraction(self.hits, max(1, self.hits + self.strays)) if self.verified else None

    @property
    def recall(self) -> Fraction | None:
        """The share of the wanted openings that happened; None unless `verified`."""
        return Fraction(self.hits, self.wanted) if self.verified else None


def opening_score(engine: Engine, skill: Document, examples: Sequence[Example], condition: Term) -> OpeningScore:
    """Count the openings of a skill on measured examples; it should be opened where `condition` holds."""
    counts = {True: [0, 0], False: [0, 0]}
    for example in examples:
        for sample in range(engine.plan.optimize.samples):
            outcome = engine.rollouts.known(skill, example, sample)
            if outcome is None or not outcome.measured:
                continue
            count = counts[engine.rollouts.holds(condition, example)]
            count[0] += skill.name in opened_skills(outcome.trajectory)
            count[1] += 1
    return OpeningScore(*counts[True], *counts[False])
