"""Pending and running work of a run over time."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from skillc.document.skill import Document
from skillc.models.backends.openai import send
from skillc.models.pacing import _PREFETCHING
from skillc.optimize.ask import Optimizer
from skillc.optimize.host import SilentObserver
from skillc.optimize.rollouts import Outcome, Rollouts
from skillc.outcomes import Example

# The rollout that a request belongs to.
_KEY: ContextVar[Any] = ContextVar("line_key", default=None)


@dataclass
class Watch:
    """Notes of one run.

    Attributes:
        demand: (moment, change) of the number of calls that the loop has asked for and not yet got.
        stages: (moment, stage) as the loop announces them.
        sent: by the name of each request, the rollout that it belongs to; None for the optimizer's.
        early: rollouts that were asked for ahead of need.
        used: those of them that were then asked for in earnest.
    """

    demand: list[tuple[float, int]] = field(default_factory=list)
    stages: list[tuple[float, str]] = field(default_factory=list)
    sent: dict[str, Any] = field(default_factory=dict)
    early: set[Any] = field(default_factory=set)
    used: set[Any] = field(default_factory=set)

    def ask(self, count: int) -> None:
        """So many calls more are wanted; fewer, where it is negative."""
        if count:
            self.demand.append((time.perf_counter(), count))

    async def transport(self, arguments: Mapping[str, Any]) -> Any:
        """Litellm, with a name on each request that the server notes."""
        return await send({**arguments, "extra_body": {"user": self.named()}})

    def named(self) -> str:
        """The name of the next request."""
        name = str(len(self.sent))
        self.sent[name] = _KEY.get()
        return name

    def wasted(self, name: str) -> bool:
        """Whether a request was made ahead of need, and nobody needed it."""
        key = self.sent[name]
        return key in self.early and key not in self.used


def watched(watch: Watch) -> tuple[type[Rollouts], type[Optimizer], SilentObserver]:
    """Pipeline classes that report their calls to the watch, and an observer that reports stages."""

    class WatchedRollouts(Rollouts):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self._wanted: Counter[Any] = Counter()

        async def measure(
            self,
            skill: Document | None,
            examples: Sequence[Example],
            *,
            stage: str,
            sample: int = 0,
            shown: bool = True,
        ) -> list[Outcome]:
            keys = [(self._read(skill).key, example.id, sample) for example in examples]
            if _PREFETCHING.get():
                watch.early |= {key for key in keys if key not in self._known}
            else:
                watch.used |= watch.early & set(keys)
            todo = [key for key in keys if (known := self._known.get(key)) is None or not known.measured]
            self._wanted.update(todo)
            watch.ask(len(todo))
            return await super().measure(skill, examples, stage=stage, sample=sample, shown=shown)

        async def _one(self, key: Any, run: Any, *, shown: bool) -> Outcome:
            token = _KEY.set(key)
            try:
                return await super()._one(key, run, shown=shown)
            finally:
                _KEY.reset(token)
                if self._wanted[key]:
                    self._wanted[key] -= 1
                    watch.ask(-1)

    class WatchedOptimizer(Optimizer):
        async def ask(self, *arguments: Any, **named: Any) -> Any:
            watch.ask(1)
            try:
                return await super().ask(*arguments, **named)
            finally:
                watch.ask(-1)

    class Stages(SilentObserver):
        def stage(self, name: str, total: int) -> None:
            watch.stages.append((time.perf_counter(), name))

    return WatchedRollouts, WatchedOptimizer, Stages()


@dataclass(frozen=True, slots=True)
class Fill:
    """How full the line was. Call-seconds are calls in flight, as the server sees them, times seconds.

    Attributes:
        useful: call-seconds of calls whose outcome was used.
        wasted: those of speculation that was thrown away.
        ready: call-seconds that could have been: the calls that were wanted, at most the limit, over the same time.
        crowded: seconds in which at least the limit were wanted.
        crowded_useful: useful call-seconds in that time.
        seconds: from the first call that was wanted to the last answer.
        calls: that were useful.
        thrown: that were not.
        lost: ready less useful call-seconds, by the stage that the loop had announced last.
    """

    limit: int
    useful: float
    wasted: float
    ready: float
    crowded: float
    crowded_useful: float
    seconds: float
    calls: int
    thrown: int
    lost: Mapping[str, float]

    @property
    def share(self) -> float:
        """Useful calls in flight while ready work exists, as a share of what the limit and the work admit."""
        return self.useful / self.ready

    @property
    def crowded_share(self) -> float | None:
        """The same where at least the limit were ready, None where that never was."""
        return self.crowded_useful / (self.limit * self.crowded) if self.crowded else None

    @property
    def mean(self) -> float:
        """Useful calls in flight, over the whole time."""
        return self.useful / self.seconds


def fill(watch: Watch, visits: Sequence[tuple[str, float, float]], limit: int) -> Fill:
    """Integrates what was wanted and what was under way, up to the end of the last step.

    Where less was wanted than was under way, as while the last bytes of an answer are read, it counts as wanted.
    """
    end = next(when for when, stage in watch.stages if stage == "no skill")
    visits = [visit for visit in visits if visit[1] < end]
    changes = [(when, by, 0, 0) for when, by in watch.demand if when < end]
    for name, came, left in visits:
        waste = watch.wasted(name)
        changes += [(came, 0, not waste, waste), (left, 0, -(not waste), -waste)]
    changes.sort(key=lambda change: change[0])
    begins = [when for when, _ in watch.stages]
    wanted = useful = wasted = 0
    sums: defaultdict[str, float] = defaultdict(float)
    lost: defaultdict[str, float] = defaultdict(float)
    for (when, more, more_useful, more_wasted), (until, *_) in pairwise(changes):
        wanted, useful, wasted = wanted + more, useful + more_useful, wasted + more_wasted
        span, could = until - when, min(max(wanted, useful), limit)
        sums["useful"] += useful * span
        sums["wasted"] += wasted * span
        sums["ready"] += could * span
        if wanted >= limit:
            sums["crowded"] += span
            sums["crowded useful"] += useful * span
        stage = watch.stages[bisect_right(begins, when) - 1][1] if when >= begins[0] else "start"
        lost[stage] += (could - useful) * span
    thrown = sum(watch.wasted(name) for name, _, _ in visits)
    return Fill(
        limit=limit,
        useful=sums["useful"],
        wasted=sums["wasted"],
        ready=sums["ready"],
        crowded=sums["crowded"],
        crowded_useful=sums["crowded useful"],
        seconds=changes[-1][0] - changes[0][0],
        calls=len(visits) - thrown,
        thrown=thrown,
        lost=dict(lost),
    )
