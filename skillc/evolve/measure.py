"""Model work of a night: measure skills on rows, and compile from the current skill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from skillc.artifact_paths import ArtifactPaths
from skillc.budget.bounds import bounds
from skillc.data.dataset import Dataset, sizes_of
from skillc.dataclass import dataclass
from skillc.document.folder import read_linked, texts_in_one, with_scripts
from skillc.document.skill import Document, digest
from skillc.document.skill_md import as_declared
from skillc.document.tool_lines import knowing_tools
from skillc.errors import SkillcError
from skillc.evaluate.measuring import until_stopped, with_retries
from skillc.evaluate.skills import read_arm
from skillc.frontend import Estimated, Planned
from skillc.language.loop import BudgetPlan
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.models.ledger import NANO_PER_DOLLAR, Caps, Ledger, Spending
from skillc.models.prices import price_table
from skillc.optimize.engine import Engine, unexplained_examples
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import Observer
from skillc.optimize.loop.train import TrainResult
from skillc.optimize.methods.run import train_by_method
from skillc.outcomes import Example
from skillc.pipeline.compile import Job, StoppedEarly, open_run, search_and_test
from skillc.plan.initial import initial_skill
from skillc.plan.lock import Lock
from skillc.plan.schema import Plan
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.syntax.files import read_source

Open = Callable[[Plan], AbstractContextManager[tuple[Observer, Client, Stop]]]
"""Opens the models of a plan under its caps, with progress for the user and the request to stop."""
_NAMES = ("calls", "tokens", "nano", "judge_calls", "judge_nano")
"""Names in records of what `Spending` counts."""
# Rows measured at once under one skill.
_TOGETHER = 32


class NightStoppedError(SkillcError):
    """The night was interrupted, or a model is unreachable. The same command resumes it."""

    def __init__(self, why: str) -> None:
        what = "interrupted" if why == "interrupted" else "a model stayed out of reach"
        super().__init__(f"{what}; the night is not finished", hint="run the same command to resume it")
        self.status = 130 if why == "interrupted" else 3


@dataclass(slots=True)
class NightBudget:
    """Remaining budget of a night.

    Attributes:
        plan: the program; the caps of `budget` and of `evolve` hold for the whole night, the lower one of each.
        spent: what all steps were charged.
        began: by the clock of this process.
    """

    plan: Plan
    spent: Spending = Spending()
    began: float = field(default_factory=monotonic)

    def add(self, step: Mapping[str, int]) -> None:
        """Count what a step was charged, as `charged` returns it."""
        self.spent = self.spent.plus(Spending(*(step.get(name, 0) for name in _NAMES)))

    def as_json(self) -> dict[str, Any]:
        """Return what was spent, and the caps of the night: None where there is none."""
        whole = self._whole()
        caps = dict(zip(_NAMES, Caps.of(whole), strict=True))
        return {
            **dict(zip(_NAMES, self.spent, strict=True)),
            "caps": {**caps, "seconds": None if whole.time is None else int(whole.time)},
        }

    def _whole(self) -> BudgetPlan:
        """Return the budget with the caps of the night."""
        own, night = self.plan.budget, self.plan.evolve
        if night is None:
            return own
        least = {name: _least(getattr(own, name), getattr(night, name)) for name in ("calls", "cost", "time")}
        return replace(own, **least)

    def capped(self) -> Plan | None:
        """Return the plan, capped by what is left for the night; None if nothing is left."""
        whole = self._whole()
        spent: dict[str, int | Fraction] = dict(self.spent._asdict())
        spent |= {name: Fraction(self.spent._asdict()[name], NANO_PER_DOLLAR) for name in ("cost", "judge_cost")}
        spent["time"] = Fraction(monotonic() - self.began).limit_denominator(1000)
        left = {name: cap - used for name, used in spent.items() if (cap := getattr(whole, name)) is not None}
        if any(value <= 0 for value in left.values()):
            return None
        return self.plan.model_copy(update={"budget": replace(whole, **left)})


def _least(one: Any, other: Any) -> Any:
    given = [each for each in (one, other) if each is not None]
    return min(given) if given else None


@dataclass(frozen=True, slots=True)
class Scores:
    """The goal of skills on examples, in millionths; None where it is not measured.

    Attributes:
        by_skill: for each skill its scores by the id of the example.
        stopped: the cap that ended it early, or None.
    """

    by_skill: tuple[Mapping[str, int | None], ...]
    spent: Mapping[str, int]
    stopped: str | None


def measure(
    planned: Planned, capped: Plan, skills: Sequence[Document], examples: Sequence[Example], open_: Open, stage: str
) -> Scores:
    """Measure skills side by side on examples, in order, until all are measured or a cap is reached.

    Raises:
        NightStoppedError: the user interrupted it, or a model is unreachable.
        SkillcError: models or metrics cannot be used.
    """
    plan = capped
    samples = range(plan.optimize.samples)
    with open_(plan) as (observer, client, stop):
        session, meter = Session(plan, client, observer, stop), Meter(plan, planned.root, {})
        rollouts = session.rollouts(meter)

        def left(example: Example) -> bool:
            return any(rollouts.unmeasured(skill, [example], s) for skill in skills for s in samples)

        async def some(todo: Sequence[Example], _: int) -> None:
            # All skills on one example after the other, so that a cap leaves whole pairs.
            size = _TOGETHER
            for i in range(0, len(todo), size):
                for sample in samples:
                    for skill in skills:
                        await rollouts.measure(skill, todo[i : i + size], stage=stage, sample=sample)

        async def run() -> str | None:
            async with session.connected():
                work = with_retries(
                    session, examples, some, left, names=(stage, f"{stage}, failed rows again"), each=len(skills)
                )
                return await until_stopped(session, work)

        stopped = asyncio.run(run())
        if stopped in ("interrupted", DOWN):
            raise NightStoppedError(stopped)
        goal = plan.goal.name
        found = tuple(
            {each.id: _mean(rollouts.total(skill, each, goal, samples=len(samples)), len(samples)) for each in examples}
            for skill in skills
        )
        return Scores(found, charged(client.ledger), stopped)


def _mean(total: int | None, samples: int) -> int | None:
    return None if total is None else round(Fraction(total, samples))


def charged(ledger: Ledger) -> dict[str, int]:
    """Return the charges of a ledger, cache hits included: they are the same after a kill."""
    return dict(zip(_NAMES, ledger.charged.spent, strict=True))


# ---- skills ----------------------------------------------------------------------------------------


def measured_skill(plan: Plan, paths: ArtifactPaths) -> Document:
    """Return a compiled skill as the target reads it.

    Raises:
        SkillcError: it cannot be read.
    """
    skill = read_arm(plan, paths.folder / "SKILL.md", name=paths.name).skill
    assert skill is not None
    return skill


def declared_skill(planned: Planned, paths: ArtifactPaths) -> Document:
    """Return a compiled skill in the sections of the program, to compile from it.

    Raises:
        SkillcError: it cannot be read, or has sections that the program does not declare.
    """
    text = read_source(paths.skill).text
    whole = texts_in_one(text.encode(), read_linked(paths.skill, text)).decode()
    skill = as_declared(whole, initial_skill(planned.plan, planned.root), own=True)
    return with_scripts(skill, paths.skill.parent)


@dataclass(frozen=True, slots=True)
class Recompiled:
    """The result of a night's compile.

    Attributes:
        changed: whether a candidate passed the gates.
        lock: of the compiled skill; None if the budget ended before the current skill was measured.
        stopped: why the loop ended.
        left_out: arms of a compile that this one did not measure, since the challenge decides.
        spared: their rollouts.
        tried: candidates that the gates decided.
        unexplained: ids of training examples for which the optimizer found no rule.
    """

    changed: bool
    lock: Lock | None
    spent: Mapping[str, int]
    stopped: str
    left_out: tuple[str, ...] = ()
    spared: int = 0
    tried: int = 0
    unexplained: tuple[str, ...] = ()


def compile_from(
    planned: Planned, capped: Plan, dataset: Dataset, start: Document, output: Path, home: Path, open_: Open
) -> Recompiled:
    """Compile on train and validation from a skill, and write the result below `output`; nothing is tested.

    Arms that only the report of a compile shows are not measured: no skill, the skill always read, and the null arm
    unless the program asks for it with `null_arm = always`.

    Raises:
        NightStoppedError: the user interrupted it, or a model is unreachable.
        SkillcError: models, data, metrics or files cannot be used.
    """
    # The challenge on unused rows is the test, so the compile requires none.
    plan = capped.model_copy(update={"required_verdict": None})
    night = replace(planned, plan=plan)
    sizes = sizes_of(plan, dataset, planned.root)
    estimated = Estimated(dataset, sizes, bounds(plan, sizes, price_table(plan)), ())
    job = Job(night, estimated, output, home, force=True)
    null_arm = estimated.bounds.null_arm if plan.optimize.null_arm == "always" else None
    left_out = ["no skill"]
    left_out += ["the skill always read"] if plan.skill.load != "always" else []
    left_out += ["the null arm"] if null_arm != estimated.bounds.null_arm else []
    spared = len(left_out) * len(dataset.validation) * plan.optimize.samples

    async def search(engine: Engine, initial: Document, *, client: Client) -> TrainResult:
        engine = replace(engine, null_arm=null_arm)
        return await train_by_method(engine, knowing_tools(start, names), client)

    with open_(plan) as (observer, client, stop):
        try:
            with open_run(job, observer, client, stop, start=start, task="evolve") as run:
                names = run.session.tool_names
                trained, tested = asyncio.run(search_and_test(run, partial(search, client=client), other_arms=False))
                if trained.stopped in ("interrupted", DOWN):
                    raise NightStoppedError(trained.stopped)
                assert tested is not None
                compiled = run.finish(trained, tested)
        except (BudgetReached, StoppedEarly) as end:
            if stop.reason == "interrupted":
                raise NightStoppedError("interrupted") from end
            cap = end.cap if isinstance(end, BudgetReached) else "time"
            return Recompiled(False, None, charged(client.ledger), cap)
        except EndpointUnreachable as lost:
            raise NightStoppedError(DOWN) from lost
        if stop.reason == "interrupted" or client.lost is not None:
            raise NightStoppedError("interrupted" if client.lost is None else DOWN)
        changed = digest(compiled.trained.state.best) != digest(compiled.trained.state.initial)
        state, stopped = compiled.trained.state, compiled.trained.stopped
        named = tuple(each.id for each in unexplained_examples(compiled.trained.engine, state))
        return Recompiled(
            changed,
            compiled.lock,
            charged(client.ledger),
            stopped,
            tuple(left_out),
            spared,
            tried=state.accepted + len(state.decided),
            unexplained=named,
        )
