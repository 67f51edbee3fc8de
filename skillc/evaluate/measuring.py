"""Shared by `eval`, `recheck`, `noise` and `judge check`: models, examples, the spend bound, running and ending."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from pydantic import JsonValue

from skillc.budget.bounds import preflight_stage, tried_models
from skillc.budget.call_sizes import CallSizer
from skillc.budget.spend import SpendBound
from skillc.data.dataset import Dataset, sizes_of
from skillc.data.split import Side
from skillc.dataclass import dataclass
from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.evaluate.skills import SkillArm
from skillc.frontend import Planned
from skillc.gates import units
from skillc.models.backends.registry import connect
from skillc.models.client import Client
from skillc.models.endpoint import VLLM_PROVIDERS
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.models.prices import price_table
from skillc.models.serving.records import ServerSummary
from skillc.optimize.final import RETRIES, ComparisonArm
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import stop_reason
from skillc.optimize.rollouts import failure_kind
from skillc.outcomes import Example
from skillc.plan.lock import ModelLock
from skillc.plan.models import TARGET, judges, override_models, put_offline, simulated_users, with_used_models
from skillc.plan.schema import ModelPlan, Plan
from skillc.run.session import Session
from skillc.text import listed

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringJob:
    """A resolved measurement, with nothing sent.

    Attributes:
        planned: the user's program.
        plan: what runs: its models and judges, its samples.
        examples: those of the split that are measured.
        bound: of the spending, with an empty cache.
        notes: to report before anything is sent.
    """

    planned: Planned
    plan: Plan
    split: Side
    dataset: Dataset
    examples: tuple[Example, ...]
    bound: SpendBound
    notes: tuple[str, ...] = ()

    @property
    def program(self) -> Plan:
        """The user's plan."""
        return self.planned.plan

    @property
    def splits(self) -> str:
        """The name of what is measured, for events."""
        return self.split

    @property
    def root(self) -> Path:
        """The program's folder."""
        return self.planned.root

    @property
    def preflight_calls(self) -> int:
        """The calls that try the models first, one for each."""
        stage = preflight_stage(tried_models(self.plan), price_table(self.plan))
        return stage.bound.most.calls if stage is not None else 0


class Ending(TypedDict):
    """How a measurement ended, and what it spent; see `Measured`."""

    stopped: str | None
    spent: dict[str, JsonValue]
    served: tuple[ServerSummary, ...]
    lost: EndpointUnreachable | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of a measurement.

    Attributes:
        stopped: why it ended early: `interrupted`, `time`, a cap's name, or `down` for an unreachable model.
        served: reports of the servers that skillc ran.
        lost: the error of a model that became unreachable.
    """

    job: MeasuringJob
    stopped: str | None
    spent: dict[str, JsonValue]
    served: tuple[ServerSummary, ...] = ()
    lost: EndpointUnreachable | None = None


def ending(client: Client, stopped: str | None) -> Ending:
    """Return the end of a measurement for its result."""
    return {
        "stopped": stopped,
        "spent": client.ledger.snapshot(),
        "served": client.servers.summaries(),
        "lost": client.lost,
    }


# ---- models ---------------------------------------------------------------------------------------


def chosen_models(plan: Plan, texts: Sequence[str], *, offline: bool) -> tuple[ModelPlan, ...]:
    """Return the models that the user named, each once; by default the program's target.

    A role, or a model of a role, comes with its settings. Any other model replaces a role's as `compile --model` does:
    that of the target, or of the role in `role=provider/name`.

    Args:
        plan: the program.
        texts: `role`, `provider/name` or `role=provider/name`.
        offline: the rulebook replaces every model.

    Raises:
        SkillcError: a role does not exist, or a model has no provider.
    """
    found: dict[str, ModelPlan] = {}
    for model in [_chosen(plan, text.strip()) for text in texts] or [plan.models[TARGET]]:
        put = put_offline(plan.model_copy(update={"models": {model.role: model}})) if offline else None
        answers = model if put is None else put.models[model.role]
        # A replacement is called by its own name, or by the rulebook's.
        role = model.role if model.role in plan.models or put is None else answers.model
        answers = answers.model_copy(update={"role": role})
        found.setdefault(answers.model_dump_json(exclude={"role", "pacing"}), answers)
    return _distinct_roles(found.values())


def _chosen(plan: Plan, text: str) -> ModelPlan:
    role, equals, name = (part.strip() for part in text.partition("="))
    if equals and "/" not in role:
        return _in_place(plan, role, name)
    if "/" in text:
        same = [each for each in plan.models.values() if each.model == text]
        by_target = sorted(same, key=lambda each: each.role != TARGET)
        return by_target[0] if by_target else _in_place(plan, TARGET, text)
    if text not in plan.models:
        near = suggest(text, plan.models)
        roles = listed(plan.models)
        known = f"did you mean `{near}`?" if near else f"the program has {roles}"
        raise SkillcError(f"no model `{text}`", hint=f"{known}; name other models with their provider: `a/b`")
    return plan.models[text]


def _in_place(plan: Plan, role: str, name: str) -> ModelPlan:
    """Return another model in place of a role's, under its name; the role itself if it already has that model."""
    model = override_models(plan, {role: name}).models[role]
    return model if model == plan.models[role] else model.model_copy(update={"role": name})


def _distinct_roles(models: Iterable[ModelPlan]) -> tuple[ModelPlan, ...]:
    """Return the models with distinct roles, numbering repeated ones."""
    taken: Counter[str] = Counter()
    distinct = []
    for model in models:
        taken[model.role] += 1
        number = taken[model.role]
        distinct.append(model if number == 1 else model.model_copy(update={"role": f"{model.role} #{number}"}))
    return tuple(distinct)


def plan_with(
    plan: Plan, models: Sequence[ModelPlan], *, samples: int | None = None, judged_by: Iterable[str] | None = None
) -> Plan:
    """Return the plan with only these models, judges and simulated users, so that no other has to be configured.

    `judged_by` has the roles of the judges; None for all judges of the program.
    """
    others = (*(judges(plan) if judged_by is None else judged_by), *simulated_users(plan))
    kept = {role: plan.models[role] for role in others if role in plan.models}
    changes: dict[str, object] = {"models": {**kept, **{model.role: model for model in models}}}
    if samples is not None:
        changes["optimize"] = replace(plan.optimize, samples=samples)
    return plan.model_copy(update=changes)


def as_target(plan: Plan, model: ModelPlan) -> Plan:
    """Return the plan of a compile with a model as the target."""
    models = {**plan.models, TARGET: model.model_copy(update={"role": TARGET})}
    return with_used_models(plan.model_copy(update={"models": models}))


def check_places(plan: Plan, models: Sequence[ModelPlan], root: Path) -> None:
    """Refuse an undeclared model of a local server, which has no address.

    Raises:
        SkillcError: no server address is configured for it.
    """
    for model in models:
        if model.role in plan.models or model.provider not in VLLM_PROVIDERS:
            continue
        try:
            connect(model, os.environ, root)
        except SkillcError as problem:
            block = f'`model other = "{model.model}" {{ base_url = "http://localhost:8000/v1" }}`'
            hint = f"declare it in the program, {block} or with `serve = vllm {{}}`, and use `--model other`"
            raise SkillcError(problem.message, hint=hint) from None


def labels_of(models: Sequence[ModelPlan]) -> dict[str, str]:
    """Return each role's label in a table: the model's name, with the role where two share the name."""
    names = Counter(model.model for model in models)
    return {model.role: model.model if names[model.model] == 1 else f"{model.model} ({model.role})" for model in models}


def is_same(model: ModelPlan, locked: ModelLock) -> bool:
    """Return whether a model is the one in a lock, parameters included."""
    return (model.model, model.parameters) == (locked.model, locked.parameters)


# ---- examples and the spend bound -----------------------------------------------------------------


def examples_of(dataset: Dataset, split: Side) -> tuple[Example, ...]:
    """Return the examples of a split."""
    return {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}[split]


def spread_examples(dataset: Dataset, split: Side, count: int | None) -> tuple[Example, ...]:
    """Return so many examples of a split, evenly spread; all if there are fewer, or for None.

    Raises:
        SkillcError: the split is empty.
    """
    every = examples_of(dataset, split)
    if not every:
        raise SkillcError(f"the split `{split}` has no examples", hint="name another with `--split`")
    most = len(every) if count is None else min(count, len(every))
    return tuple(every[i * len(every) // most] for i in range(most))


def bound_of(
    plan: Plan, models: Sequence[ModelPlan], arms: Sequence[SkillArm], count: int, dataset: Dataset, root: Path
) -> SpendBound:
    """Return the bound of `count` rollouts of every arm with every model, with an empty cache.

    `plan` is the measurement's.
    """
    sizes, prices, whole = sizes_of(plan, dataset, root), price_table(plan), SpendBound()
    for model in models:
        sizer = CallSizer(as_target(plan, model), sizes, {**prices, TARGET: prices.get(model.role)})
        for arm in arms:
            whole += sizer.arm(arm.skill).times(*[count] * 3)
    return whole


def check_caps(
    plan: Plan, bound: SpendBound, *, what: str = "this evaluation", fewer: str = "fewer models or skills"
) -> None:
    """Refuse a measurement that cannot be completed under the caps; `what` and `fewer` name it and a fix in the error.

    Raises:
        SkillcError: with a sufficient setting.
    """
    least, about, budget = bound.least, bound.estimate, plan.budget
    found: tuple[str, str, str, str] | None = None
    if budget.calls is not None and least.calls > budget.calls:
        found = "calls", f"{least.calls:,}", f"{budget.calls:,}", str(least.calls)
    elif budget.tokens is not None and least.tokens > budget.tokens:
        takes, enough = f"about {units.tokens(about.tokens)}", str(units.rounded_up(about.tokens))
        found = "tokens", takes, units.tokens(budget.tokens), enough
    elif budget.cost is not None and least.cost is not None and least.cost > budget.cost:
        takes, cents = f"about {units.dollars(about.cost)}", units.cents_up(about.cost or least.cost)
        found = "cost", takes, units.dollars(budget.cost), cents
    if found is not None:
        name, takes, allowed, enough = found
        raise SkillcError(
            f"the budget cannot pay for {what}: it takes {takes} {name}, and {allowed} are allowed",
            hint=f"use `--set budget.{name}={enough}`, or {fewer}",
        )


# ---- run ------------------------------------------------------------------------------------------


async def until_stopped(session: Session, work: Coroutine[Any, Any, None]) -> str | None:
    """Do some work; return why it ended early, or None. The caller opens the session's connections."""
    try:
        with session.stop.cuts(clock=True):
            await work
    except BudgetReached as cap:
        return cap.cap
    except EndpointUnreachable:
        return DOWN
    except asyncio.CancelledError:
        return stop_reason(session.watch)
    return None


async def with_retries(
    session: Session,
    every: Sequence[T],
    measure: Callable[[Sequence[T], int], Awaitable[object]],
    failed: Callable[[T], bool],
    *,
    names: tuple[str, str],
    each: int = 1,
) -> None:
    """Measure everything, then retry failures up to twice.

    Args:
        session: has the observer and the stop request.
        every: what is measured.
        measure: measures some of it; gets the number of the attempt too, from 0.
        failed: whether one is still unmeasured.
        names: of the stage for the observer, and of its repeats.
        each: rollouts that one takes.

    Raises:
        CancelledError: a stop was requested between two attempts.
        PermanentFailure, BudgetReached, MetricError: from the measurement.
    """
    todo = every
    for attempt in range(1 + RETRIES):
        if not todo:
            return
        if session.stop.reason is not None:
            raise asyncio.CancelledError
        session.watch.stage(names[min(attempt, 1)], len(todo) * each)
        await measure(todo, attempt)
        todo = [one for one in every if failed(one)]


def failures_of(
    arms: Iterable[ComparisonArm], examples: Sequence[Example], samples: Iterable[int]
) -> tuple[dict[str, int], int]:
    """Return the number of rollouts that failed, by kind of failure, and the number of those that were not tried."""
    outcomes = [arm.rollouts.known(arm.skill, e, sample) for sample in samples for arm in arms for e in examples]
    kinds = Counter(kind for each in outcomes if each is not None and (kind := failure_kind(each)) is not None)
    return {kind: kinds[kind] for kind in sorted(kinds)}, outcomes.count(None)
