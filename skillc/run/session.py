"""One assembly of a run: client, stop request, record and observer, and the engine that works with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from skillc.budget.call_sizes import dearest_rollout
from skillc.budget.steps import decisions_of, wave_size
from skillc.data.dataset import Dataset
from skillc.document.skill import Document, digest
from skillc.frontend import Estimated
from skillc.metrics.meter import Meter, metric_sources
from skillc.models.backends.function import function_identities
from skillc.models.client import Client
from skillc.models.endpoint import Endpoint
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine, Reserve
from skillc.optimize.observer import Observer, Passing
from skillc.optimize.record import Record, Unrecorded
from skillc.optimize.rollouts import Rollouts
from skillc.plan.digest import DECISION_VERSION, run_parts
from skillc.plan.initial import initial_document
from skillc.plan.models import TARGET
from skillc.plan.schema import Plan
from skillc.program.rollout import RolloutRunner
from skillc.run.history import Decision, with_completion
from skillc.run.record import RunRecord
from skillc.run.stop import Stop
from skillc.store.run_store import RunStore


class RunObserver(Passing):
    """Passes reports to an observer, records each decision first, and adds the stop request.

    Attributes:
        decisions: so far, each with its whole validation once that is complete.
        notes: so far.
    """

    def __init__(self, observer: Observer, stop: Stop, record: RunRecord | None) -> None:
        super().__init__(observer)
        self._stop = stop
        self._record = record
        self.decisions: list[Decision] = []
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keep a note and pass it on."""
        self.notes.append(message)
        super().note(message)

    def decided(self, record: Decision) -> None:
        """Record a decision and pass it on."""
        if self._record is not None:
            self._record.decide(record)
        self.decisions.append(record)
        super().decided(record)

    def completed(self, record: Decision) -> None:
        """Record a completed validation and pass it on."""
        if self._record is not None:
            self._record.decide(record)
        self.decisions = with_completion(self.decisions, record)
        super().completed(record)

    def stop_wanted(self) -> str | None:
        """Return why the user, the clock or the observer wants the run to stop."""
        return self._stop.reason or super().stop_wanted()


class Session:
    """A client at work for one run.

    Args:
        plan: the program.
        client: answers the run's calls; its maker closes it.
        observer: hears of the run.
        stop: ends the run.
        record: answers what earlier sessions of the run have done; None keeps no record.

    Attributes:
        watch: the observer of everything in the run.
    """

    def __init__(
        self, plan: Plan, client: Client, observer: Observer, stop: Stop | None, record: RunRecord | None = None
    ) -> None:
        self.plan = plan
        self.client = client
        self.stop = stop or Stop()
        self.record = record
        self.watch = RunObserver(observer, self.stop, record)
        self._known: Record = record or Unrecorded()
        client.report_to(observer.note)
        client.time_by(self.stop)
        client.preload()

    def rollouts(self, meter: Meter, role: str = TARGET) -> Rollouts:
        """Return rollouts of the program's task with a role's model, scored by a meter."""
        return Rollouts(self.plan, RolloutRunner(self.plan, self.client, role=role), meter, self.watch, self._known)

    def optimizer(self) -> Optimizer:
        """Return the optimizer model."""
        return Optimizer(self.client, self.watch, self._known)

    def engine(
        self,
        dataset: Dataset,
        rollouts: Rollouts,
        reserve: Reserve,
        *,
        optimizer: Optimizer | None = None,
        estimated: Estimated | None = None,
    ) -> Engine:
        """Return what the loop works with.

        Args:
            dataset: the examples.
            rollouts: measure skills on them.
            reserve: what the budget keeps back for the final test.
            optimizer: by default the optimizer model.
            estimated: what calls are expected to cost, where a rollout makes the calls of the program's task.
        """
        return Engine(
            plan=self.plan,
            dataset=dataset,
            rollouts=rollouts,
            optimizer=optimizer or self.optimizer(),
            observer=self.watch,
            wave=wave_size(self.plan, len(dataset.validation)),
            planned=max(1, decisions_of(self.plan, len(dataset.train))),
            reserve=reserve,
            dearest=None if estimated is None else self._dearest(estimated),
            admits=_always if estimated is None else self._admits,
        )

    def _dearest(self, estimated: Estimated) -> int | None:
        """Return the nano-dollars that one rollout may cost at most; None where the price is not known."""
        cost = dearest_rollout(self.plan, estimated.sizes, estimated.bounds.prices)
        return None if cost is None else math.ceil(cost * 10**9)

    def _admits(self, rollouts: int) -> bool:
        """Return whether so many rollouts fit under the caps, each with a call of every model that judges."""
        calls = len([role for role in self.plan.models if role != "optimizer"])
        return self.client.ledger.charged.admits(rollouts * calls)


def _always(rollouts: int) -> bool:
    return True


@contextmanager
def recorded(store: RunStore, client: Client, salt: str) -> Iterator[RunRecord]:
    """Record what a client does in the store of a run, and answer from it what is recorded there.

    The client lets go of the store at the end, which may be closed then.

    Args:
        store: of the run.
        client: as yet without calls.
        salt: part of every cache key: another salt, fresh replies.

    Raises:
        SkillcError: the store cannot be read.
    """
    client.bind_store(store, salt)
    try:
        yield RunRecord(store, client)
    finally:
        client.bind_store(None, salt)


def parts_of_run(
    plan: Plan, root: Path, dataset: Dataset, endpoints: Mapping[str, Endpoint], start: Document | None = None
) -> dict[str, str]:
    """Return the digests of all that a run's decisions depend on, which name it.

    Args:
        plan: the program.
        root: its folder.
        dataset: its examples.
        endpoints: of the models, by role.
        start: the skill that the run begins with, where that is not the program's.
    """
    first = (initial_document(plan), start)
    return run_parts(
        plan,
        data_digest=dataset.digest,
        initial_skill=" ".join(digest(skill) for skill in first if skill is not None),
        metric_sources=metric_sources(plan, root),
        decision_version=DECISION_VERSION,
        model_sources=function_identities(endpoints),
    )
