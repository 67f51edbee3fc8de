"""Progress of a run: keep the last reports, and print plain lines or nothing. `skillc/watch` draws them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Self, TypeAlias

from pydantic import JsonValue
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from skillc.dataclass import dataclass
from skillc.diagnostics.render import printable
from skillc.gates import units
from skillc.language.loop import BudgetPlan
from skillc.optimize.host import TESTS, CandidateProgress, Observer
from skillc.run.time_left import FINAL, ExpectedCalls, RunUsage, TimeLeft, describe_seconds_left, role_totals
from skillc.text import counted

if TYPE_CHECKING:
    from skillc.optimize.engine import Position

Snapshot: TypeAlias = Callable[[], Mapping[str, JsonValue]]
InFlight: TypeAlias = Callable[[], Mapping[str, int]]

_STYLE = {"accept": "green", "reject": "red", "beaten": "dim", "undecided": "yellow", "rollback": "yellow"}
# Stages that count calls of the optimizer, not rollouts.
_CALLS = ("draft", "reflect", "aggregate", "edit budget", "rewrite", "tidy", "meta skill")
# Minimum seconds between two lines on the progress of one stage.
QUIET_FOR = 30.0
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Limits of a run, known before it starts.

    Attributes:
        epochs: None if epochs are not capped.
        expected: calls that the plan expects; None for no estimate of the time left.
    """

    epochs: int | None = None
    budget: BudgetPlan = field(default_factory=BudgetPlan)
    expected: ExpectedCalls | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The last reports of a run.

    Attributes:
        seen: the last evidence on the candidates, `first_seen` the first.
    """

    place: str = ""
    epoch: int = 0
    stage: str = "starting"
    done: int = 0
    total: int = 0
    waiting: str | None = None
    incumbent: JsonValue = None
    edits: tuple[tuple[str, ...], ...] = ()
    seen: tuple[CandidateProgress, ...] = ()
    first_seen: tuple[CandidateProgress, ...] = ()

    def at_step(self, place: str, epoch: int, incumbent: JsonValue) -> Status:
        """Return the status at a step; a new one drops the last candidates."""
        fresh = replace(self, place=place, epoch=epoch, incumbent=incumbent)
        return fresh if place == self.place else replace(fresh, edits=(), seen=(), first_seen=())

    def with_candidates(self, edits: Sequence[Sequence[str]]) -> Status:
        """Return the status with new candidates, each with its edits."""
        return replace(self, edits=tuple(tuple(each) for each in edits), seen=(), first_seen=())

    def with_evidence(self, seen: Sequence[CandidateProgress]) -> Status:
        """Return the status with the evidence on its candidates."""
        return replace(self, seen=tuple(seen), first_seen=self.first_seen or tuple(seen))

    def in_stage(self, name: str, total: int) -> Status:
        """Return the status at the start of a stage."""
        return replace(self, place="" if name in FINAL else self.place, stage=name, done=0, total=total)

    def completed(self, goal: JsonValue) -> Status:
        """Return the status with the whole validation of a new incumbent."""
        return replace(self, incumbent=goal, seen=(), first_seen=())


class Progress(Observer):
    """Keeps the status of a run and displays nothing, for `--quiet`.

    Args:
        spent: reads the ledger's snapshot.
        in_flight: reads the calls in flight by role.
        clock: a monotonic clock in seconds; for display only.
    """

    def __init__(
        self,
        facts: RunFacts,
        *,
        spent: Snapshot,
        in_flight: InFlight | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.facts = facts
        self.status = Status()
        self.in_flight: InFlight = in_flight or dict
        self._snapshot = spent
        self._spent = RunUsage()
        self._clock = clock
        self._time = TimeLeft(facts.expected, facts.budget, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop displaying."""

    # ---- what the loop reports ----

    def step(self, place: Position, incumbent: JsonValue) -> None:
        """Keep the place and the incumbent's goal; drop the last candidates."""
        if place.kind == "step":
            self._time.step(place.step, self.spent())
        before = self.status.place
        self.status = self.status.at_step(str(place), place.epoch, incumbent)
        if self.status.place != before:
            self.changed("step")

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Keep the candidates' edits."""
        self.status = self.status.with_candidates(edits)
        self.changed("candidates")

    def seen(self, candidates: Sequence[CandidateProgress]) -> None:
        """Keep the evidence on the candidates."""
        self.status = self.status.with_evidence(candidates)
        self.changed("seen")

    def stage(self, name: str, total: int) -> None:
        """Keep the stage's name and amount of work."""
        self._time.stage(name, self.spent())
        self.status = self.status.in_stage(name, total)
        self.changed("stage")

    def advance(self, count: int = 1) -> None:
        """Count finished work, up to the total."""
        if not self._time.started:
            self._time.elapsed(self.spent())
        self.status = replace(self.status, done=min(self.status.total, self.status.done + count))
        self.changed("advance")

    def waiting(self, text: str | None) -> None:
        """Set the reason why the whole run waits; None when it continues."""
        still = text is not None and self.status.waiting is not None
        self.status = replace(self.status, waiting=text)
        self.changed("still waiting" if still else "waiting")

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Keep the new incumbent's goal."""
        self.status = self.status.completed(record["goal"])

    def changed(self, what: str) -> None:
        """Display the status; `what` is the method that changed it, or `still waiting`."""

    # ---- figures ----

    def spent(self) -> RunUsage:
        """Read the spending so far; the live area calls this from its own thread."""
        with suppress(RuntimeError):  # The ledger may be adding a stage.
            self._spent = RunUsage.read(self._snapshot())
        return self._spent

    def spent_by_role(self) -> dict[str, RunUsage]:
        """Read the charged usage of each role."""
        with suppress(RuntimeError):
            return role_totals(self._snapshot())
        return {}

    def spent_parts(self) -> list[str]:
        """Return the spending against each cap: `1,204 of 3,000 calls`."""
        spent, caps = self.spent(), self.facts.budget
        parts = usage_parts(spent, caps)
        elapsed = self._time.elapsed(spent)
        if elapsed is not None and elapsed >= _MINUTE:
            parts.append(f"{elapsed / 60:.0f}{_of(caps.time, lambda seconds: f'{float(seconds / 60):.3g}')} min")
        return parts

    def left(self) -> str | None:
        """Return the estimated time left in words, None without an estimate."""
        seconds = self.seconds_left()
        return None if seconds is None else describe_seconds_left(seconds)

    def seconds_left(self) -> float | None:
        """Return the estimated time left in seconds, None without an estimate."""
        return self._time.seconds(self.spent())

    def epoch_text(self) -> str:
        """Return `epoch 2/4`, or `epoch 2` if epochs are not capped."""
        of = f"/{self.facts.epochs}" if self.facts.epochs is not None else ""
        return f"epoch {self.status.epoch}{of}"


class LineProgress(Progress):
    """Prints a line for each step, stage, decision and note, and from time to time in a long stage."""

    def __init__(
        self,
        console: Console,
        facts: RunFacts,
        *,
        spent: Snapshot,
        in_flight: InFlight | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(facts, spent=spent, in_flight=in_flight, clock=clock)
        self._console = console
        self._printed = clock()
        self._is_partial = False

    def note(self, message: str) -> None:
        """Print the note."""
        self.print(Text(f"note: {message}", style="yellow"))

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Print one line; on a narrow terminal the reason is wrapped below it."""
        goal = record.get("goal")
        self._is_partial = isinstance(goal, dict) and isinstance(goal.get("candidate"), list)
        line, why = decision_line(record), _why(record)
        if not (why and self._console.is_terminal and line.cell_len > self._console.width):
            self.print(line)
            return
        self.print(line[: len(line) - len(why)])
        self._console.print(Padding(Text(why, style="dim"), (0, 0, 0, 17 if self._console.width > 60 else 4)))

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Print the result on the whole validation split if the decision was made on part of it."""
        super().completed(record)
        if self._is_partial:
            self.print(Text(" " * 27).append(f"= {percent(record['goal'])} on all of validation", style="dim"))

    def changed(self, what: str) -> None:
        """Print a line for a step, a stage and a wait; for progress and evidence from time to time."""
        status = self.status
        if what == "step":
            self._line(self.epoch_text(), [f"incumbent {percent(status.incumbent).strip()}", *self._figures()])
        elif what == "stage" and status.total:
            edits = sum(map(len, status.edits)) if status.stage == "gate" else 0
            more = [counted(edits, "edit")] if edits else []
            self._line(status.stage, [_work(status.stage, status.total), *more])
        elif status.waiting and (what == "waiting" or (what == "still waiting" and self._quiet_for_long())):
            self._line("waiting", [one_line(status.waiting)])
        elif what == "advance" and self._quiet_for_long():
            far = f"{status.done:,} of {_work(status.stage, status.total)}"
            self._line(status.stage, [far, *(evidence_text(each, status) for each in status.seen), *self._figures()])

    def print(self, line: Text) -> None:
        """Print a line without wrapping it."""
        self._printed = self._clock()
        self._console.print(line, soft_wrap=True)

    def _quiet_for_long(self) -> bool:
        return self._clock() - self._printed >= QUIET_FOR

    def _figures(self) -> list[str]:
        left = self.left()
        return ["spent " + ", ".join(self.spent_parts()), *([left] if left else [])]

    def _line(self, what: str, parts: Sequence[str]) -> None:
        where = f"{self.status.place:<14} {what:<10}" if self.status.place else f"{what:<14}"
        self.print(Text(f"  {where} {', '.join(parts)}", style="dim"))


# ---- texts ----------------------------------------------------------------------------------------


def usage_parts(spent: RunUsage, caps: BudgetPlan) -> list[str]:
    """Return calls, tokens and cost, each against its cap."""
    cost = "an unknown price" if spent.cost is None else f"${spent.cost / 1e9:,.2f}"
    return [
        f"{spent.calls:,}{_of(caps.calls, '{:,}'.format)} calls",
        f"{units.tokens(spent.tokens)}{_of(caps.tokens, units.tokens)} tokens",
        cost + _of(caps.cost, units.dollars),
    ]


def _of(cap: int | Fraction | None, shown: Callable[..., str]) -> str:
    return "" if cap is None else f" of {shown(cap)}"


def _work(stage: str, total: int) -> str:
    is_call = stage in _CALLS or (stage == "slow update" and total == 1)
    return counted(total, "call" if is_call else "rollout")


def evidence_text(seen: CandidateProgress, status: Status) -> str:
    """Render partial evidence: gains, losses and the interval, never a mean."""
    many = f" {seen.candidate}" if len(status.edits) > 1 else ""
    known = f"incumbent {percent(status.incumbent).strip()}, candidate{many} +{seen.gains} −{seen.losses}"
    known += f" on {seen.evaluated} of {seen.of}"
    if isinstance(seen.goal, list):
        low, high = (percent(end).strip() for end in seen.goal)
        return f"{known}: {low} to {high}"
    return known if seen.goal is None else f"{known}: {percent(seen.goal).strip()}"


def decision_line(record: Mapping[str, JsonValue]) -> Text:
    """Render a decision: place, result, the goal before and after, the evidence, the reason."""
    result = str(record["result"])
    pool = record.get("pool")
    place = one_line(str(record["place"]))
    place += f" #{pool.get('candidate')}" if isinstance(pool, dict) else ""
    line = Text(f"  {place:<14} ", no_wrap=True, overflow="ellipsis")
    line.append(f"{result:<10}", style=_STYLE.get(result, ""))
    goal = record.get("goal")
    if isinstance(goal, dict):
        after = f" → {percent(goal.get('candidate'))}" if result == "accept" else ""
        line.append(f"{percent(goal.get('incumbent'))}{after}".ljust(17))
    if record.get("of") and record.get("blame") != TESTS:
        line.append(f" +{record['gains']} −{record['losses']} on {record['evaluated']} of {record['of']}", style="dim")
    why = _why(record)
    if why:
        line.append(f"   {why}", style="dim")
    return line


def _why(record: Mapping[str, JsonValue]) -> str:
    """Return the failed gate with its values, or another reason."""
    brief = f": {record['brief']}" if record.get("brief") else ""
    if record.get("blame"):
        if record["blame"] == TESTS:
            return one_line(str(record["reason"]))
        return one_line(f"gate `{record['blame']}` failed{brief}")
    if record["result"] in ("empty", "undecided", "beaten", "rollback"):
        return one_line(f"{record.get('reason', '')}{brief}")
    return ""


def one_line(text: str) -> str:
    """Return a text from a model or a file as one line that cannot move the cursor."""
    return printable(" ".join(text.split()))


def percent(value: JsonValue) -> str:
    """Render a mean in percent; of an interval its lower end."""
    if isinstance(value, list):
        return f"{percent(value[0]).rstrip(' %')}+ %"
    return f"{float(value) * 100:5.1f} %" if isinstance(value, str | int | float) else "–"
