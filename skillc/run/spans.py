"""The spans of a run above its rollouts: run, stage, step, and the stages of a step.

A run has the stages `baseline`, `train` and `final test`, and `train` has the steps. A step has stages too, such as
`rollout` and `gate`. Rollouts and calls are children of the innermost of these that is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pydantic import JsonValue

from skillc.optimize.engine import Position
from skillc.optimize.host import ForwardingObserver, Observer
from skillc.plan.schema import Plan
from skillc.redaction import Redactor
from skillc.telemetry.spans import NO_SPAN, Span, Value, active, current, make_current, span

TRAIN = "train"
_BEFORE_AND_AFTER = ("baseline", "no skill", "final test")


class TracingObserver(ForwardingObserver):
    """Observer that opens and closes spans on the events of a run, and forwards all events."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self._run = self._stage = self._step = self._part = NO_SPAN
        self._stage_name = self._place = ""

    @contextmanager
    def run(self, plan: Plan, hide: Redactor) -> Iterator[None]:
        """Record what happens inside as the span of a run."""
        if active() is None:
            yield
            return
        attributes: dict[str, Value] = {"skillc.skill.name": plan.skill.artifact, "skillc.goal": plan.goal.name}
        for role, model in plan.models.items():
            attributes[f"skillc.model.{role}"] = model.model
        with span(f"run {plan.skill.artifact}", attributes, hide=hide) as opened:
            self._run = opened
            try:
                yield
            finally:
                self._leave_stage()
                self._run = NO_SPAN

    def step(self, position: Position, incumbent: JsonValue) -> None:
        """Open the span of a step, unless it is open."""
        if self._run is not NO_SPAN and self._opened(str(position)):
            attributes: dict[str, Value] = {"skillc.epoch": position.epoch, "skillc.step": position.step}
            self._step = self._start(position.kind, self._stage, {**attributes, "skillc.place": str(position)})
        super().step(position, incumbent)

    def stage(self, name: str, total: int) -> None:
        """Open the span of a stage, or of a part of the open step."""
        if self._run is not NO_SPAN:
            attributes: dict[str, Value] = {"skillc.total": total}
            if name.startswith(_BEFORE_AND_AFTER) or self._step is NO_SPAN:
                self._leave_stage()
                self._stage, self._stage_name = self._start(f"stage {name}", self._run, attributes), name
            else:
                self._part.end()
                self._part = self._start(f"stage {name}", self._step, attributes)
        super().stage(name, total)

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Note the decision on the span of its step."""
        if self._step is not NO_SPAN:
            names = ("decision", "result", "kind", "candidate", "blame")
            found = {f"skillc.{name}": record.get(name) for name in names}
            self._step.set({name: value for name, value in found.items() if isinstance(value, str | int) and value})
        super().decided(record)

    def _opened(self, place: str) -> bool:
        """Enter the stage `train`; return whether a step must be opened."""
        if self._stage_name != TRAIN:
            self._leave_stage()
            self._stage, self._stage_name = self._start(f"stage {TRAIN}", self._run, {}), TRAIN
        if self._place == place and self._step is not NO_SPAN:
            return False
        self._leave_step()
        self._place = place
        return True

    def _start(self, name: str, parent: Span, attributes: Mapping[str, Value]) -> Span:
        tracer = active()
        opened = tracer.start(name, attributes, parent=parent) if tracer is not None else NO_SPAN
        make_current(opened)
        return opened

    def _leave_step(self) -> None:
        self._part.end()
        self._step.end()
        self._part = self._step = NO_SPAN
        self._place = ""

    def _leave_stage(self) -> None:
        self._leave_step()
        self._stage.end()
        self._stage, self._stage_name = NO_SPAN, ""
        if current() is not self._run:
            make_current(self._run)
