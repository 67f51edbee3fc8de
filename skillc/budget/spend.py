"""Calls, tokens and dollars, by stage, and the sizes of the data that they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.gates.stages import OTHER, SMALLEST_GROUP
from skillc.plan.schema import ModelPlan, PricePlan

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Spend:
    """Calls, tokens of prompts and of replies, and dollars; `cost` is None if a price is unknown."""

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


def one_call(prompt: int, reply: int, price: PricePlan | None) -> Spend:
    """The spend of one call; its cost is None if `price` is."""
    cost = None if price is None else price.call + (prompt * price.input + reply * price.output) / _MILLION
    return Spend(1, prompt, reply, cost)


def price_hint(model: ModelPlan) -> str:
    """How to declare an unknown price."""
    if model.exec is not None:
        return "declare the most that one call costs: `price { call = $0.05 }`"
    return "declare it in dollars per million tokens: `price { input = $1; output = $4 }`, or `$0`"


@dataclass(frozen=True, slots=True)
class SpendBound:
    """The least spend, an estimate, and the most."""

    least: Spend = Spend()
    estimate: Spend = Spend()
    most: Spend = Spend()

    def __add__(self, other: SpendBound) -> SpendBound:
        return SpendBound(self.least + other.least, self.estimate + other.estimate, self.most + other.most)

    def times(self, least: int, estimate: int, most: int) -> SpendBound:
        """Multiply each bound by its number of calls."""
        return SpendBound(self.least * least, self.estimate * estimate, self.most * most)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the loop, over the whole run.

    Attributes:
        role: the role that it calls: `target`, `optimizer`, `both`, or `all`.
    """

    name: str
    role: str
    bound: SpendBound

    @property
    def each_step(self) -> bool:
        """Whether it grows with the number of steps."""
        once = ("preflight", "baseline", "null arm", "second measurement", "reference")
        return self.name not in (*once, "final test", "no skill", "always read")


@dataclass(frozen=True, slots=True)
class Least:
    """The least of a run with a result: a baseline, a few decisions, the final test of two skills.

    Attributes:
        once: all training rollouts, if the decisions pass through the training split more than once: an unchanged
            incumbent repeats none. `rollouts` is then nothing.
        preflight: one call for each model that is reached over a network.
    """

    baseline: Spend
    decisions: int
    rollouts: Spend
    reflections: Spend
    validation: Spend
    test: Spend
    once: Spend = Spend()
    on_batch: Spend = Spend()
    preflight: Spend = Spend()

    @property
    def decision(self) -> Spend:
        """One whole decision."""
        return self.rollouts + self.reflections + self.on_batch + self.validation

    @property
    def total(self) -> Spend:
        """The whole run."""
        return self.preflight + self.baseline + self.once + self.decision * self.decisions + self.test


@dataclass(frozen=True, slots=True)
class Extent:
    """Tokens of one kind of text over the examples: the mean, rounded up, and the most."""

    mean: int = 0
    most: int = 0

    @classmethod
    def of(cls, counts: Iterable[int]) -> Extent:
        """The extent of some counts; 0 without counts."""
        known = list(counts)
        return cls(-(-sum(known) // len(known)), max(known)) if known else cls()


@dataclass(frozen=True, slots=True)
class CompanySize:
    """Tokens of the skills beside the one that is trained.

    Attributes:
        offered: how many the target may open.
        listed: tokens of their names and descriptions.
        longest: tokens of the longest of their texts.
        read: tokens of the texts that the target always reads.
    """

    offered: int = 0
    listed: int = 0
    longest: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """The data in numbers.

    Attributes:
        train: examples of train.
        validation: examples of validation.
        test: examples of test; 0 without one.
        groups: split groups on test.
        values: the number of validation examples by value, for each field that a gate names.
        inputs: tokens of the inputs of an example.
        outputs: tokens of the right answer of an example.
        company: the skills beside the one that is trained.
        images: tokens of the images of an example, as the target's provider charges them; the most is a bound.
        cuts: by input, the number of examples whose value was cut, and the tokens left out of one.
        statements: by column that a rubric asks about, the statements of an example and their tokens.
    """

    train: int
    validation: int
    test: int
    groups: int = 0
    values: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    inputs: Extent = Extent()
    outputs: Extent = Extent()
    company: CompanySize = CompanySize()
    images: Extent = Extent()
    cuts: Mapping[str, tuple[int, Extent]] = field(default_factory=dict)
    statements: Mapping[str, tuple[Extent, Extent]] = field(default_factory=dict)

    def smallest_group(self, field: str) -> tuple[str, int] | None:
        """Name and size of the smallest group of `by = field` on validation; None if no sizes are known.

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
        always_read: one under some skill of the run that the target always reads.
        bare: one without any skill.
        propose: a question of a peer's method for a whole new text.
        judged: the judges of a rollout of the initial skill alone.
    """

    rollout: SpendBound
    first: SpendBound
    always_read: SpendBound
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
    judged: SpendBound = SpendBound()
