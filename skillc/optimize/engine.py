"""The run context shared by all stages, and the search state between two decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from skillc.budget.null_arm import Turn
from skillc.data.dataset import Dataset
from skillc.dataclass import dataclass
from skillc.document.edits import Edit
from skillc.document.skill import Document, digest
from skillc.gates.stages import gates_for
from skillc.optimize.ask import Optimizer
from skillc.optimize.host import Observer, Reserve
from skillc.optimize.propose.near import Near
from skillc.optimize.propose.proposals import Proposal
from skillc.optimize.rollouts import NO_PREFETCH, Prefetcher, Rollouts, is_failure
from skillc.optimize.schedule import Patience
from skillc.optimize.scripts import UNTESTED, TestedScripts
from skillc.outcomes import MICRO, ArmScore, Example, measured_mean
from skillc.plan.schema import GatePlan, Plan
from skillc.tokens import count_tokens
from skillc.tools.tool import Tool

if TYPE_CHECKING:
    from skillc.optimize.null_arm import NullArm
    from skillc.optimize.strategies.acceptance import Acceptance
    from skillc.optimize.strategies.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Engine:
    """Immutable run context.

    Attributes:
        wave: rollouts of one candidate that are sent at once.
        planned: the most decisions of the run.
        max_rollout_cost: the highest possible cost of a rollout in nano-dollars; None if the price is unknown.
        admits: returns whether a number of further rollouts fits under the caps in the worst case.
        ahead: prefetches the rollouts of the next batch.
        tools: the tools of the agent.
        always_read: measures skills as if they were always read; None if they are.
        scripts: tests the scripts of the skill.
        null_arm: when the null arm is measured; None if it is not.
        near: finds training examples with similar text.
        mechanisms: the optional mechanisms that the plan turns on.
        acceptance: how candidates are decided.
    """

    plan: Plan
    dataset: Dataset
    rollouts: Rollouts
    optimizer: Optimizer
    observer: Observer
    wave: int
    planned: int
    reserve: Reserve
    max_rollout_cost: int | None = None
    admits: Callable[[int], bool] = lambda rollouts: True
    ahead: Prefetcher = NO_PREFETCH
    tools: tuple[Tool, ...] = ()
    always_read: Rollouts | None = None
    scripts: TestedScripts = UNTESTED
    null_arm: Turn | None = None
    near: Near = field(init=False, repr=False, compare=False)
    mechanisms: tuple[Mechanism, ...] = field(init=False, repr=False, compare=False)
    acceptance: Acceptance = field(init=False, repr=False, compare=False)

    @property
    def step_gates(self) -> tuple[GatePlan, ...]:
        """The gates that decide the candidates of steps."""
        return gates_for(self.plan.gates, slow=False)

    def __post_init__(self) -> None:
        # Modules of strategies import this one, so they are imported inside the methods.
        from skillc.optimize.strategies.acceptance import acceptance_of
        from skillc.optimize.strategies.registry import mechanisms_of

        object.__setattr__(self, "near", Near(self.dataset.train))
        object.__setattr__(self, "mechanisms", mechanisms_of(self.plan))
        object.__setattr__(self, "acceptance", acceptance_of(self.plan))


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the run; epoch and step count from 1.

    `total` is the maximum number of steps; None if neither epochs nor steps are capped.
    """

    epoch: int
    step: int
    total: int | None
    kind: str = "step"

    def __str__(self) -> str:
        if self.kind in ("step", "ablate"):
            return f"{self.kind} {self.step}" + (f"/{self.total}" if self.total is not None else "")
        return f"{self.kind} {self.epoch}"


@dataclass(frozen=True, slots=True)
class RejectedEdit:
    """An entry of the rejected-edit buffer: what was tried, and why it failed."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class EditEffect:
    """What an edit of a candidate, or a whole draft, changed.

    Attributes:
        text: the edit in words.
        fate: how it ended, with its counts.
        better, worse: training cases whose score it raised and lowered, a line each.
    """

    text: str
    fate: str = ""
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateEffect:
    """How a candidate was decided, and what its parts did."""

    outcome: str
    parts: tuple[EditEffect, ...]

    @property
    def tokens(self) -> int:
        """Estimate its tokens in a prompt."""
        texts = (text for part in self.parts for text in (part.text, part.fate, *part.better, *part.worse))
        return count_tokens("\n".join([self.outcome, *texts]))


@dataclass(frozen=True, slots=True)
class UndecidedPatch:
    """A patch whose gates stayed undecided; it is tried once more at the end of the epoch."""

    edits: tuple[Edit, ...]
    position: Position
    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchMemory:
    """Results of earlier steps that prompts and screens use.

    Attributes:
        rejected: the rejected-edit buffer.
        meta: the optimizer's own memory.
        shelf: proposals that wait for the next step, with their evidence.
        failures: training examples that the incumbent of their step failed, the latest first.
        effects: what the last candidates changed on training cases, the newest first.
        met: by training example, the incumbent when it was last in a batch.
        again: changes on cases of this step's batch since an earlier incumbent.
        proven: ids of rules that cured a training failure unseen by their author.
    """

    rejected: tuple[RejectedEdit, ...] = ()
    meta: str = ""
    shelf: tuple[Proposal, ...] = ()
    failures: tuple[Example, ...] = ()
    effects: tuple[CandidateEffect, ...] = ()
    met: Mapping[str, Document] = field(default_factory=dict)
    again: CandidateEffect | None = None
    proven: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Counters:
    """Event counts of the search.

    Attributes:
        screened: number of screenings, by digest of the edits.
        lost: by maker of candidates (`draft`, `edits`), the number of its steps since its last accept.
        unexplained: by training example, the number of authors that found no rule for it.
        flips: by validation example, the number of unaccepted candidates whose score differed from the incumbent's.
    """

    screened: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    unexplained: Mapping[str, int] = field(default_factory=dict)
    flips: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchState:
    """Immutable search state between two decisions. Every step takes one and returns the next.

    Attributes:
        incumbent: the last accepted skill, the base of new candidates.
        best: the accepted skill with the highest goal; ties go to fewer tokens, then to the earlier skill.
        undecided: patches that are tried once more at the end of the epoch.
        decided: rejections by (incumbent, candidate), reused for repeated candidates.
        whole: the last accepted skill that was a draft or rewrite, not an edit; None for the initial skill.
        mechanism_state: private state of each optional mechanism, by its name.
        null_arm: the null arm, if it was measured before the first decision.
    """

    initial: Document
    incumbent: Document
    best: Document
    patience: Patience
    decisions: int = 0
    accepted: int = 0
    undecided: tuple[UndecidedPatch, ...] = ()
    decided: Mapping[tuple[str, str], Mapping[str, JsonValue]] = field(default_factory=dict)
    whole: Document | None = None
    memory: SearchMemory = field(default_factory=SearchMemory)
    counters: Counters = field(default_factory=Counters)
    mechanism_state: Mapping[str, Any] = field(default_factory=dict)
    null_arm: NullArm | None = None

    def with_memory(self, **changes: Any) -> SearchState:
        """Return the state with changes of its memory."""
        return replace(self, memory=replace(self.memory, **changes))

    def with_counters(self, **changes: Any) -> SearchState:
        """Return the state with changes of its counters."""
        return replace(self, counters=replace(self.counters, **changes))

    def with_mechanism_state(self, name: str, value: Any) -> SearchState:
        """Return the state with the private state of a mechanism."""
        return replace(self, mechanism_state={**self.mechanism_state, name: value})


def decision_record(state: SearchState, position: Position, **values: JsonValue) -> dict[str, JsonValue]:
    """Return the history entry of a decision: number, position, incumbent and further values."""
    return {
        "decision": state.decisions + 1,
        "place": str(position),
        "epoch": position.epoch,
        "kind": position.kind,
        "incumbent": digest(state.incumbent),
        **values,
    }


def mean_score(engine: Engine, skill: Document | None, metric: str) -> Fraction | None:
    """Return the mean of a metric over the measured validation examples; None if none is measured."""
    return score_arm(engine, skill, engine.dataset.validation, metric).mean


def score_arm(engine: Engine, skill: Document | None, examples: Iterable[Example], metric: str) -> ArmScore:
    """Return the measured mean of a metric of a skill on some examples."""
    samples = engine.plan.optimize.samples
    totals = (engine.rollouts.total(skill, example, metric, samples=samples) for example in examples)
    return measured_mean(totals, samples=samples)


def goal_change(engine: Engine, before: Document, after: Document, example: Example, sample: int = 0) -> int | None:
    """Return the change of the goal between two skills in millionths, None if either is unmeasured."""
    goal = engine.plan.goal.name
    old, new = (engine.rollouts.score(skill, example, goal, sample) for skill in (before, after))
    return None if old is None or new is None else new - old


def failing_examples(engine: Engine, skill: Document, examples: Iterable[Example]) -> list[Example]:
    """Return the examples on which the skill's goal was measured and is below its best value, in order."""
    known = ((example, engine.rollouts.known(skill, example)) for example in examples)
    return [example for example, outcome in known if outcome is not None and is_failure(engine.plan, outcome)]


def unexplained_examples(engine: Engine, state: SearchState) -> list[Example]:
    """Return the training examples for which an author found no rule and that the best skill is not known to answer."""
    named = state.counters.unexplained
    return [each for each in engine.dataset.train if each.id in named and not is_right(engine, state.best, each)]


def is_right(engine: Engine, skill: Document, example: Example) -> bool:
    """Return whether every sample of an example was measured and has the goal's best value."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal
    total = engine.rollouts.total(skill, example, goal.name, samples=samples)
    return total is not None and total >= goal.high * MICRO * samples
