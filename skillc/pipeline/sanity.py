"""`skillc compile --sanity`: check on a few examples and calls that feedback reaches the skill.

The loop trains and validates on the same few training examples, where even a memorizing skill improves. The check finds
a broken stage, but never shows that the skill is good: the verdict is always `unverified`, and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.dataclass import dataclass
from skillc.document.edits import apply_edits
from skillc.document.skill import Document, digest
from skillc.document.tool_lines import knowing_tools
from skillc.errors import SkillcError
from skillc.frontend import Estimated, Planned
from skillc.gates.functions import CONDITIONAL, is_claim_test
from skillc.gates.terms import Operation, Term, calls
from skillc.language.loop import SPENDING_CAPS
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.optimize.ask import Messages, Optimizer
from skillc.optimize.engine import Engine, SearchState, is_right, mean_score
from skillc.optimize.host import NoReserve, Observer, stop_reason
from skillc.optimize.loop.train import TrainResult, train
from skillc.optimize.propose.proposals import read_edit
from skillc.optimize.propose.replies import ProposedEdit, ReflectReply, Reply
from skillc.optimize.schedule import seed_for, shuffled
from skillc.plan.initial import initial_skill
from skillc.plan.schema import Plan
from skillc.run.session import RunObserver, Session
from skillc.run.stop import Stop

EXAMPLES = 12
STEPS = 2
CALLS = 160

R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class Funnel:
    """Counts of each stage, in the order of the loop.

    Attributes:
        failures: examples that the initial skill fails.
        asked: requested reflections.
        answered: readable replies to them.
        edits: edits in those replies.
        fitting: edits that can be applied to the skill.
        curing: edits that passed the screen.
        candidates: candidates at the gates.
        accepted: accepted candidates.
    """

    failures: int
    asked: int = 0
    answered: int = 0
    edits: int = 0
    fitting: int = 0
    curing: int = 0
    candidates: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class SanityResult:
    """The result of a sanity check.

    Attributes:
        broken: the first stage that nothing passed: `reflect`, `edit`, `screen` or `gate`; None if the skill improved
            or there was nothing to learn.
        before: the goal's mean on the examples under the initial skill.
        after: under the best one.
    """

    examples: int
    funnel: Funnel
    broken: str | None
    message: str
    hint: str | None
    before: Fraction | None
    after: Fraction | None
    skill: Document
    changed: bool
    stopped: str
    spent: dict[str, JsonValue]


class _CountingOptimizer(Optimizer):
    """The optimizer model; counts its reflections and keeps their edits."""

    def __init__(self, client: Client, observer: Observer) -> None:
        super().__init__(client, observer)
        self.asked = 0
        self.answered = 0
        self.edits: list[ProposedEdit] = []

    async def ask(self, kind: type[R], messages: Messages, *, stage: str, **options: Any) -> R | None:
        reply = await super().ask(kind, messages, stage=stage, **options)
        if stage == "reflect":
            self.asked += 1
            self.answered += reply is not None
            self.edits += reply.edits if isinstance(reply, ReflectReply) else ()
        return reply


def plan_for_sanity(planned: Planned, estimated: Estimated) -> Planned:
    """Return the program with the plan of its sanity check."""
    count = min(EXAMPLES, len(estimated.dataset.train))
    return replace(planned, plan=sanity_plan(planned.plan, count))


def sanity_plan(plan: Plan, examples: int) -> Plan:
    """Return the plan of a sanity check: two steps on one batch, few calls, no mechanism that spans steps.

    A gate on confidence or an e-value requires only its claim. Requires are left out.
    """
    optimize = replace(
        plan.optimize,
        batch=examples,
        wave=examples,
        samples=1,
        candidates=1,
        drafts=0,
        update="edits",
        retries=0,
        accumulate=1,
        speculate=False,
        accept="gates",
        slow_update=False,
        tidy=False,
        meta_skill=False,
    )
    most = CALLS if plan.budget.calls is None else min(CALLS, plan.budget.calls)
    # Text alone is trained here, and a dozen examples may have no near miss.
    gates = [gate for gate in plan.gates if not any(call.function in CONDITIONAL for call in calls(gate.term))]
    gates = [gate.model_copy(update={"term": _plain(gate.term)}) for gate in gates]
    budget = replace(plan.budget, epochs=STEPS, steps=STEPS, calls=most, patience=None, min_gain=Fraction(0))
    changed = {"optimize": optimize, "budget": budget, "gates": tuple(gates), "requires": (), "required_verdict": None}
    return plan.model_copy(update=changed)


def _plain(term: Term) -> Term:
    """Replace a gate's confidence requirement by its claim: a dozen examples cannot reach the confidence."""
    if not isinstance(term, Operation):
        return term
    if term.operator in ("and", "or", "not"):
        return Operation(term.operator, tuple(_plain(operand) for operand in term.operands))
    sure = next((call for call in calls(term) if is_claim_test(call)), None)
    return term if sure is None else sure.arguments[0]


def sanity_data(dataset: Dataset, seed: int) -> Dataset:
    """Draw a few training examples by the seed, to train and to validate on; validation and test are not used."""
    few = tuple(shuffled(dataset.train, seed_for(seed, "sanity"))[:EXAMPLES])
    return Dataset(train=few, validation=few, test=(), digest=dataset.digest)


def check_sanity(
    planned: Planned, estimated: Estimated, observer: Observer, client: Client, stop: Stop | None = None
) -> SanityResult:
    """Run the check; `planned` has the plan of `sanity_plan`, which the client's budget is made from.

    Raises:
        SkillcError: models, data or metrics cannot be used.
        BudgetReached: the caps do not even admit the baseline.
        EndpointUnreachable: a model stayed unreachable.
    """
    plan = planned.plan
    session = Session(plan, client, observer, stop)
    tap = _CountingOptimizer(client, session.watch)
    rollouts = session.rollouts(Meter(plan, planned.root, estimated.dataset.places))
    engine = session.engine(sanity_data(estimated.dataset, plan.data.seed), rollouts, NoReserve(), optimizer=tap)
    initial = knowing_tools(initial_skill(plan, planned.root), session.tool_names)
    trained = asyncio.run(_train(engine, session, initial))
    if client.lost is not None:
        raise client.lost
    state, goal = trained.state, plan.goal.name
    funnel = _funnel(trained, tap, session.watch.decisions)
    broken, message, hint = _diagnosis(trained, funnel, tap, session.watch)
    return SanityResult(
        examples=len(trained.engine.dataset.validation),
        funnel=funnel,
        broken=broken,
        message=message,
        hint=hint,
        before=mean_score(trained.engine, state.initial, goal),
        after=mean_score(trained.engine, state.best, goal),
        skill=state.best,
        changed=digest(state.best) != digest(state.initial),
        stopped=trained.stopped,
        spent=client.ledger.snapshot(),
    )


async def _train(engine: Engine, session: Session, initial: Document) -> TrainResult:
    try:
        async with session.connected():
            with session.stop.cuts(clock=True):
                return await train(engine, initial)
    except asyncio.CancelledError:
        message = f"stopped ({stop_reason(engine.observer)}) before the initial skill was measured"
        raise SkillcError(message, hint="run the same command to start anew") from None


def _funnel(trained: TrainResult, tap: _CountingOptimizer, decisions: Sequence[Mapping[str, JsonValue]]) -> Funnel:
    engine, state = trained.engine, trained.state
    met = [record for record in decisions if record["result"] in ("accept", "reject", "undecided")]
    return Funnel(
        failures=sum(not is_right(engine, state.initial, example) for example in engine.dataset.validation),
        asked=tap.asked,
        answered=tap.answered,
        edits=len(tap.edits),
        fitting=len(tap.edits) - len(_refusals(state, tap.edits)),
        curing=sum(_count(record, "proposed") - _count(record, "screened_out") for record in decisions),
        candidates=len(met),
        accepted=sum(record["result"] == "accept" for record in met),
    )


def _count(record: Mapping[str, JsonValue], name: str) -> int:
    value = record.get(name)
    return len(value) if isinstance(value, list) else value if isinstance(value, int) else 0


def _refusals(state: SearchState, edits: Sequence[ProposedEdit]) -> list[str]:
    """Return why neither the initial nor the best skill can take an edit."""
    reasons = []
    for proposed in edits:
        edit = read_edit(proposed)
        if edit is None:
            reasons.append(f"an edit `{proposed.op}` has no rule, section or text")
            continue
        reports = [apply_edits(skill, (edit,)).results[0] for skill in (state.initial, state.best)]
        if not any(report.applied for report in reports):
            reasons.append(reports[0].message)
    return reasons


def _diagnosis(
    trained: TrainResult, funnel: Funnel, tap: _CountingOptimizer, watch: RunObserver
) -> tuple[str | None, str, str | None]:
    """Return the broken stage, the diagnosis and the fix."""
    count = len(trained.engine.dataset.validation)
    stopped = f"; the cap on {trained.stopped} stopped the run" if trained.stopped in _CAPS else ""
    if not funnel.failures:
        hint = "nothing to learn: compile, or check again with another `data.seed`"
        return None, f"the initial skill is right on all {count} examples", hint
    if funnel.accepted:
        return None, "feedback reaches the skill: it changed and improved on these examples", None
    if not funnel.asked:
        hint = "weaken the gates: even a skill without errors on these examples would fail them"
        return "gate", f"no candidate can pass the gates on {count} examples, so none was made", hint
    if not funnel.answered:
        last = f"; the last: {watch.notes[-1]}" if watch.notes else ""
        hint = "check that `model optimizer` answers and that its `max_tokens` leave room for the reply"
        return "reflect", f"none of {funnel.asked} reflections had a readable reply{last}{stopped}", hint
    if not funnel.edits:
        hint = "check that the metric gives feedback and that the optimizer `sees` it"
        return "reflect", f"the optimizer proposed no edit in {funnel.answered} replies{stopped}", hint
    if not funnel.fitting:
        reason = _refusals(trained.state, tap.edits)[0]
        hint = "raise the `limit` of the section, or use another model as the optimizer"
        return "edit", f"none of {funnel.edits} edits fits the skill; the first: {reason}", hint
    if not funnel.candidates and not funnel.curing:
        hint = "check that the target follows the skill: its answers did not change"
        return "screen", f"none of {funnel.edits} edits cured a failure{stopped}", hint
    if not funnel.candidates:
        return "edit", f"{funnel.fitting} edits fit the skill, but none became a candidate{stopped}", None
    return _at_the_gates(trained.engine.plan, watch.decisions, funnel, stopped)


_CAPS = (*SPENDING_CAPS, "time")


def _at_the_gates(
    plan: Plan, decisions: Sequence[Mapping[str, JsonValue]], funnel: Funnel, stopped: str
) -> tuple[str, str, str]:
    last = next(record for record in reversed(decisions) if record["result"] in ("reject", "undecided"))
    seen = f"{last['gains']} examples gained and {last['losses']} lost of {last['evaluated']}"
    message = f"none of {funnel.candidates} candidates was accepted; the last: {last['reason']}"
    message = message if "gained" in message else f"{message} ({seen})"
    gate = next((gate for gate in plan.gates if gate.name == last["blame"]), None)
    if gate is not None and gate.stage == "text":
        hint = f"`{gate.name}` reads only the text; weaken it if it is too strict for a first edit"
    else:
        hint = "check that the edits match the feedback; `--json` prints the stages"
    return "gate", message + stopped, hint
