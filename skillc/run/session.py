"""Assembly of a run: its record, observer and client, and the engine of the loop."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from skillc.budget.call_sizes import dearest_rollout, most_calls
from skillc.budget.steps import decisions_of, wave_size
from skillc.data.dataset import Dataset
from skillc.document.skill import Document, digest
from skillc.errors import SkillcError
from skillc.frontend import Estimated
from skillc.json_values import canonical
from skillc.metrics.judging.judges import Judges
from skillc.metrics.meter import Meter, metric_sources
from skillc.models.backends.function import function_identities
from skillc.models.calls import Usage
from skillc.models.client import Charge, Client
from skillc.models.endpoint import Endpoint
from skillc.models.ledger import Spending
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine
from skillc.optimize.host import ForwardingObserver, Observer, Record, Reserve, Unrecorded, Value, Work
from skillc.optimize.rollouts import Rollouts
from skillc.optimize.scripts import UNTESTED, TestedScripts
from skillc.outcomes import Example
from skillc.plan.company import company_of
from skillc.plan.digest import DECISION_VERSION, digest_of_tests, run_parts
from skillc.plan.initial import initial_skill
from skillc.plan.judges import judges_of
from skillc.plan.models import TARGET, simulated_users
from skillc.plan.schema import Plan
from skillc.run.history import Decision, with_completion
from skillc.run.recalled import Recalled, record_key
from skillc.run.spans import TracingObserver
from skillc.run.stop import Stop
from skillc.store import RunStore
from skillc.tasks.kind import Skill, find_kind
from skillc.tasks.runner import Rollout, RolloutRunner
from skillc.tasks.script_tests import ScriptTests
from skillc.tools.tool import Tool


class RunRecord:
    """Record of outcomes and decisions: answers repeated work, and compares repeated decisions with the recorded ones.

    Args:
        client: the client that recorded calls are charged to.

    Raises:
        SkillcError: the store cannot be read.
    """

    def __init__(self, store: RunStore, client: Client) -> None:
        self._store = store
        self._client = client
        self._decisions = store.decisions()
        self._decided = 0
        self._step = RecordedWave(store, client)

    def wave(self) -> RecordedWave:
        """As `Record.wave`."""
        return RecordedWave(self._store, self._client)

    def step(self) -> RecordedWave:
        """As `Record.step`; `decide` closes it."""
        return self._step

    def settle(self) -> None:
        """Close the open step and sync the store."""
        self._step.close()
        self._store.sync()

    def decide(self, decision: Decision) -> None:
        """Record a decision and everything it is based on, or compare it with the recorded one.

        Raises:
            SkillcError: an earlier session of this run decided differently, or the store cannot be written.
        """
        self._step.close()
        self._decided += 1
        if self._decided > len(self._decisions):
            self._store.add_decision(decision)
        elif canonical(self._decisions[self._decided - 1]) != canonical(decision):
            completed = decision.get("completed")
            number = f"decision {decision.get('decision')}"
            name = number if completed is None else f"the validation after decision {completed}"
            raise SkillcError(
                f"{name} differs from the one that this run recorded before in `{self._store.path}`",
                hint="a model or its server gives other answers now; remove the run's folder to start anew",
            )


class RecordedWave:
    """One wave of a run's work."""

    def __init__(self, store: RunStore, client: Client) -> None:
        self._store = store
        self._client = client
        self._failed: list[tuple[bytes, Value, Any]] = []

    async def once(self, key: Sequence[JsonValue], work: Work) -> Value:
        """As `Wave.once`; a recorded value is charged again with its recorded charges."""
        name = record_key(key)
        known = self._store.recall(name)
        if known is not None:
            await self._client.charge([_charge(entry) for entry in known.charges])
            value: Value = known.value
            return value
        with self._client.recorded() as charges:
            value, whole = await work()
        outcome = (name, value, [[*c.where, c.reserved, c.usage.counts, c.usage.bound, c.cost] for c in charges])
        if whole:
            self._store.add_outcome(*outcome)
        else:
            self._failed.append(outcome)
        return value

    def close(self) -> None:
        """Record the failures, because they are used from now on."""
        for outcome in self._failed:
            self._store.add_outcome(*outcome)
        self._failed.clear()


def _charge(entry: Sequence[Any]) -> Charge:
    role, stage, reserved, usage, bound, cost = entry
    return Charge((role, stage), Spending(*reserved), Usage.of(usage, bound), cost)


@contextmanager
def open_record(store: RunStore, client: Client, salt: str) -> Iterator[RunRecord]:
    """Open a record that stores a client's work in a run's store, and answers recorded work from it.

    Args:
        store: of the run; may be closed afterwards.
        client: without calls so far.
        salt: part of every cache key; a new salt asks for fresh replies.

    Raises:
        SkillcError: the store cannot be read.
    """
    client.bind_store(store, salt)
    try:
        yield RunRecord(store, client)
    finally:
        client.bind_store(None, salt)


class RunObserver(ForwardingObserver):
    """Observer that records each decision, forwards all reports, and adds the stop request.

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
        """Return why the user, the deadline or the observer asks the run to stop."""
        return self._stop.reason or super().stop_wanted()


class Session:
    """A client together with the observer and record of one run.

    Args:
        client: answers the run's calls; its maker closes it.
        observer: receives the reports of the run.
        record: answers work of earlier sessions of the run, or of other runs; None keeps no record.

    Attributes:
        watch: the observer of everything in the run.
    """

    def __init__(
        self,
        plan: Plan,
        client: Client,
        observer: Observer,
        stop: Stop | None,
        record: RunRecord | Recalled | None = None,
    ) -> None:
        self.plan = plan
        self.client = client
        self.stop = stop or Stop()
        self._traced = TracingObserver(observer)
        self.watch = RunObserver(self._traced, self.stop, record if isinstance(record, RunRecord) else None)
        self._record: Record = record or Unrecorded()
        self._runners: list[RolloutRunner] = []
        client.pacing.report = observer.note
        client.clock = self.stop
        client.preload()

    def rollouts(
        self,
        meter: Meter,
        role: str = TARGET,
        plan: Plan | None = None,
        *,
        first_sample: int = 0,
        most: int | None = None,
    ) -> Rollouts:
        """Return rollouts of the program's task, or that of another plan, with a role's model, scored by a meter.

        Their sample numbers start at `first_sample`, so that other runs do not get the same cached replies. At most
        `most` of them are in flight at once; None sets no limit.
        """
        plan = plan or self.plan
        runner = RolloutRunner(plan, self.client, role=role, root=meter.root, most=most)
        self._runners.append(runner)

        async def run(skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
            return await runner(skill, example, first_sample + sample, stage)

        judges = Judges(plan, self.client, first_sample=first_sample)
        return Rollouts(
            plan,
            run if first_sample else runner,
            meter,
            self.watch,
            self._record,
            judges=judges,
            initial=initial_skill(plan, meter.root) if judges.compares_with_initial else None,
        )

    def always_read(self, meter: Meter) -> Rollouts | None:
        """Return rollouts whose target always reads the skill; None if it does so anyway."""
        if self.plan.skill.load == "always":
            return None
        skill = self.plan.skill.model_copy(update={"load": "always"})
        return self.rollouts(meter, plan=self.plan.model_copy(update={"skill": skill}))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the task's agent."""
        return next((runner.tools for runner in self._runners), ())

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the agent's tools in the program."""
        return tuple(tool.name for tool in self.tools)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """On exit, close the connections opened inside and stop the processes that rollouts started."""
        async with self.client.connected():
            try:
                with self.traced():
                    yield
            finally:
                for runner in self._runners:
                    await runner.close()

    def traced(self) -> AbstractContextManager[None]:
        """Record what happens inside as the span of this run; `connected` does so."""
        return self._traced.run(self.plan, self.client.hide)

    def optimizer(self) -> Optimizer:
        """Return the optimizer model."""
        return Optimizer(self.client, self.watch, self._record)

    def engine(
        self,
        dataset: Dataset,
        rollouts: Rollouts,
        reserve: Reserve,
        *,
        optimizer: Optimizer | None = None,
        estimated: Estimated | None = None,
        always_read: Rollouts | None = None,
    ) -> Engine:
        """Return the engine of the loop.

        Args:
            dataset: the examples.
            rollouts: measure skills on them.
            reserve: the part of the budget that is kept for the final test.
            optimizer: by default the optimizer model.
            estimated: the expected cost of calls, if rollouts make the calls of the program's task.
            always_read: as in `Engine`.
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
            tools=self.tools,
            always_read=always_read,
            scripts=self._scripts(rollouts.root),
            max_rollout_cost=None if estimated is None else self._dearest(estimated),
            admits=(lambda rollouts: True)
            if estimated is None
            else partial(self._admits, most_calls(self.plan, estimated.sizes)),
        )

    def _scripts(self, root: Path) -> TestedScripts:
        """Return the tests of the program's scripts.

        Raises:
            SkillcError: tests cannot be read, or the sandbox that they need does not work here.
        """
        if not any(section.tests is not None for section in self.plan.skill.sections):
            return UNTESTED
        return TestedScripts(ScriptTests(self.plan, root, self.client.pacing.report, self.client.hide), self._record)

    def _dearest(self, estimated: Estimated) -> int | None:
        """Return the highest cost of one rollout in nano-dollars; None if a price is unknown."""
        cost = dearest_rollout(self.plan, estimated.sizes, estimated.bounds.prices)
        return None if cost is None else math.ceil(cost * 10**9)

    def _admits(self, each: int, rollouts: int) -> bool:
        """Return whether some rollouts fit under the caps, each with its own calls and those of judges and users.

        A judge can be asked twice for its verdict.
        """
        judged = 2 * sum(judge.calls for judge in judges_of(self.plan))
        calls = each + judged + len(list(simulated_users(self.plan)))
        return self.client.ledger.charged.admits(rollouts * calls)


def parts_of_run(
    plan: Plan,
    root: Path,
    dataset: Dataset,
    endpoints: Mapping[str, Endpoint],
    start: Document | None = None,
    task: str = "",
) -> dict[str, str]:
    """Return the digests of all inputs that a run's decisions depend on. They identify the run.

    `start` is the initial skill, unless it is the program's. `task` is a digest of the work, unless it follows from the
    plan.
    """
    first = [digest(skill) for skill in (initial_skill(plan, root), start) if skill is not None]
    return run_parts(
        plan,
        data_digest=dataset.digest,
        initial_skill=" ".join([*first, task]).strip(),
        metric_sources=metric_sources(plan, root),
        decision_version=DECISION_VERSION,
        model_sources=function_identities(endpoints),
        rollout_source=" ".join([find_kind(plan).source(plan, root), *company_of(plan, root).digests]).strip(),
        tests=digest_of_tests(plan, root),
    )
