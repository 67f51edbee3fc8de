"""What is spent: calls, tokens, dollars, by stage; and the sizes of the data that they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from skillc.gates.stages import OTHER, SMALLEST_GROUP
from skillc.plan.schema import ModelPlan, PricePlan

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Spend:
    """Calls, tokens in prompts and in replies, and dollars; `cost` is None where a price is not known."""

    calls: int = 0
    prompt: int = 0
    reply: int = 0
    cost: Fraction | None = Fraction(0)

    @property
    def tokens(self) -> int:
        """Tokens sent and received."""
        return self.prompt + self.reply

    def __add__(self, other: Spend) -> Spend:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Spend(self.calls + other.calls, self.prompt + other.prompt, self.reply + other.reply, cost)

    def __mul__(self, times: int) -> Spend:
        if times == 0:
            return Spend()
        cost = None if self.cost is None else self.cost * times
        return Spend(self.calls * times, self.prompt * times, self.reply * times, cost)


def total(spends: Iterable[Spend]) -> Spend:
    """The sum."""
    result = Spend()
    for spend in spends:
        result += spend
    return result


def one_call(prompt: int, reply: int, price: PricePlan | None) -> Spend:
    """One call; `price` is None where it is not known."""
    cost = None if price is None else price.call + (prompt * price.input + reply * price.output) / _MILLION
    return Spend(1, prompt, reply, cost)


def price_hint(model: ModelPlan) -> str:
    """Say how to declare a price that is not known."""
    if model.exec is not None:
        return "declare the most that one call costs: `price { call = $0.05 }`"
    return "declare it in dollars per million tokens: `price { input = $1; output = $4 }`, or `$0`"


@dataclass(frozen=True, slots=True)
class SpendBound:
    """The least that something may spend, an estimate, and the most."""

    least: Spend = Spend()
    estimate: Spend = Spend()
    most: Spend = Spend()

    def __add__(self, other: SpendBound) -> SpendBound:
        return SpendBound(self.least + other.least, self.estimate + other.estimate, self.most + other.most)

    def times(self, least: int, estimate: int, most: int) -> SpendBound:
        """So many times the least, so many times the estimate, so many times the most."""
        return SpendBound(self.least * least, self.estimate * estimate, self.most * most)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the loop, over the whole run.

    Attributes:
        role: whose calls it makes: `target`, `optimizer`, `both`, or `all`.
    """

    name: str
    role: str
    bound: SpendBound

    @property
    def each_step(self) -> bool:
        """Whether it grows with the number of steps."""
        return self.name not in ("preflight", "baseline", "final test", "no skill")


@dataclass(frozen=True, slots=True)
class Least:
    """The least a run with something to show must pay: a baseline, whole decisions, the final test of two skills.

    Before it each model that is reached over a network is tried once.

    Attributes:
        once: training rollouts where the decisions go through the training split more than once: an incumbent that
            stays is not run again on what it is known for. `rollouts` is then nothing.
    """

    baseline: Spend
    once: Spend
    decisions: int
    rollouts: Spend
    reflections: Spend
    on_batch: Spend
    validation: Spend
    test: Spend
    preflight: Spend = field(default_factory=Spend)

    @property
    def decision(self) -> Spend:
        """One whole decision."""
        return self.rollouts + self.reflections + self.on_batch + self.validation

    @property
    def total(self) -> Spend:
        """All of it."""
        return self.preflight + self.baseline + self.once + self.decision * self.decisions + self.test


@dataclass(frozen=True, slots=True)
class Extent:
    """Tokens of one kind of text over the examples, by the counter of the language: rounded-up mean, and the most."""

    mean: int = 0
    most: int = 0

    @classmethod
    def of(cls, counts: Iterable[int]) -> Extent:
        """The extent of some counts; 0 where there are none."""
        known = list(counts)
        return cls(-(-sum(known) // len(known)), max(known)) if known else cls()


@dataclass(frozen=True, slots=True)
class Sizes:
    """The data in numbers.

    Attributes:
        train: examples to learn from.
        validation: examples that gates are decided on.
        test: examples of the final test; 0 where there is none.
        groups: split groups on test.
        values: for each field that a gate names, how many validation examples have each value.
        inputs: tokens of an example's inputs.
        outputs: tokens of an example's right answer.
    """

    train: int
    validation: int
    test: int
    groups: int = 0
    values: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    inputs: Extent = Extent()
    outputs: Extent = Extent()

    def smallest_group(self, field: str) -> tuple[str, int] | None:
        """Name and size of the smallest group that `by = field` makes on validation; None where nothing is known.

        Values with fewer than 20 examples are one group, `other` (docs/design/gates.md).
        """
        counts = self.values.get(field)
        if not counts:
            return None
        groups = [(size, name) for name, size in counts.items() if size >= SMALLEST_GROUP]
        pooled = sum(size for size in counts.values() if size < SMALLEST_GROUP)
        if pooled:
            groups.append((pooled, OTHER))
        size, name = min(groups)
        return name, size


@dataclass(frozen=True, slots=True)
class CallSizes:
    """One call of each kind.

    Attributes:
        rollout: a whole rollout with the judges of its metrics, under some skill of the run.
        first: one under the initial skill.
        bare: one without any skill.
        propose: a question of a peer's method for a whole new text.
    """

    rollout: SpendBound
    first: SpendBound
    bare: SpendBound
    reflect: SpendBound
    aggregate: SpendBound
    select: SpendBound
    rewrite: SpendBound
    draft: SpendBound
    slow_update: SpendBound
    meta_skill: SpendBound
    tidy: SpendBound
    propose: SpendBound
