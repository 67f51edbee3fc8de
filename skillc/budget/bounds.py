"""Bounds on what a compile spends, stage by stage: the least, an estimate, the most. Needs no model and no network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction

from skillc.budget.call_sizes import CallSizer, most_edits, reservation
from skillc.budget.null_arm import Turn, null_arm_stage, null_arm_turn, placed
from skillc.budget.spend import CallSizes, Least, Sizes, Spend, SpendBound, Stage, one_call
from skillc.budget.steps import (
    JUDGES,
    SHELF,
    epochs_of,
    merge_calls,
    method_least,
    method_stages,
    most_merge_calls,
    most_screened,
    open_ended,
    patience_of,
    right_cases,
    slow_update_examples,
    step_size,
    steps_of,
    steps_per_epoch,
    wave_size,
)
from skillc.dataclass import dataclass
from skillc.gates.stages import reads_batch
from skillc.gates.terms import MetricTerm, calls
from skillc.language.commands import COMMANDS
from skillc.language.rollouts import is_agent
from skillc.plan.judges import judges_of, reads_judge
from skillc.plan.models import OPTIMIZER, TARGET, judges
from skillc.plan.schema import RULEBOOK, ModelPlan, Plan, PricePlan

STAGE = "preflight"
FLIPS = "flip_rate"

# Providers that are not reached over a network, so that there is nothing to try.
_HERE = frozenset({RULEBOOK, COMMANDS})
_OWN = {"role", "price", "pacing"}
# Tokens of the question, about and with what a provider adds at most; of the reply, about.
_QUESTION, _MOST_QUESTION, _REPLY = 12, 64, 4


def preflight_groups(models: Mapping[str, ModelPlan]) -> tuple[tuple[str, ...], ...]:
    """Group the roles whose models the preflight tries; roles that would send the same request share a group."""
    groups: dict[str, list[str]] = {}
    for role, model in models.items():
        # skillc waits for a server that it starts until it answers, and does not try functions of the user.
        if model.provider not in _HERE and model.serve is None and model.backend is None:
            groups.setdefault(model.model_dump_json(exclude=_OWN), []).append(role)
    return tuple(tuple(roles) for roles in groups.values())


def tried_models(plan: Plan) -> Mapping[str, ModelPlan]:
    """Return the models that the preflight may try: not the target of an agent, which may speak another protocol."""
    by_agent = is_agent(plan.task.rollout.kind)
    return {role: model for role, model in plan.models.items() if not (by_agent and role == "target")}


def preflight_stage(models: Mapping[str, ModelPlan], prices: Mapping[str, PricePlan | None]) -> Stage | None:
    """One call for each model to try; None if there is none. A resumed run tries them again."""
    groups = preflight_groups(models)
    if not groups:
        return None
    first = [(models[group[0]], prices.get(group[0])) for group in groups]
    bound = SpendBound(
        sum((one_call(_QUESTION, 1, price) for _, price in first), Spend()),
        sum((one_call(_QUESTION, min(_REPLY, model.max_reply), price) for model, price in first), Spend()),
        sum((one_call(_MOST_QUESTION, model.max_reply, price) for model, price in first), Spend()),
    )
    alone = len(groups) == len(groups[0]) == 1
    return Stage(STAGE, groups[0][0] if alone else "all", bound)


# Decisions of the shortest run with a result (docs/design/budgets.md).
LEAST_DECISIONS = 3

# Assumptions of the estimates: a third of a batch fails, twice as many edits are screened as a candidate may carry, a
# quarter of the candidates is accepted, and the gates of a rejected one are decided on half of its rollouts (0.3 to 0.6
# in simulations).
FAILING = Fraction(1, 3)
ACCEPTED = Fraction(1, 4)
SCREENED = 2
EARLY = Fraction(1, 2)
_GATED = ACCEPTED + (1 - ACCEPTED) * EARLY
_REASKED = 2
# Candidates of one tidying: two, and one of them again with fewer edits.
_TIDYINGS = 3

FREE = PricePlan(input=Fraction(0), output=Fraction(0))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on what a compile spends.

    Attributes:
        sizes: of the data.
        steps: the most steps of the run.
        open_ended: whether neither epochs nor steps are capped, so that other caps end the run.
        expected_steps: steps of the estimate; in an open-ended run as many as the caps pay.
        wave: concurrent rollouts while a gate is decided.
        patience: steps without an accept that end the run; None for no limit.
        stages: in the order of the loop.
        minimum: the least of a run with a result.
        held: the reservation of the largest call of each role, about.
        in_flight: for each role the number of its largest calls that the caps admit at once; None without such a cap.
        prices: dollars per million tokens by role; None if unknown.
        judged: the part of each judge in the stages, by role.
        null_arm: when the initial skill is measured again; None if it is not.
    """

    sizes: Sizes
    steps: int
    open_ended: bool
    expected_steps: int
    wave: int
    patience: int | None
    stages: tuple[Stage, ...]
    minimum: Least
    held: Mapping[str, Spend]
    in_flight: Mapping[str, int | None]
    prices: Mapping[str, PricePlan | None]
    judged: Mapping[str, tuple[Stage, ...]] = field(default_factory=dict)
    null_arm: Turn | None = None

    @property
    def judges(self) -> Mapping[str, SpendBound]:
        """The part of each judge in the total, by role."""
        return {
            role: sum((stage.bound for stage in stages), SpendBound()) for role, stages in sorted(self.judged.items())
        }

    @property
    def total(self) -> SpendBound:
        """All stages together, caps on calls, tokens and cost aside."""
        return sum((stage.bound for stage in self.stages), SpendBound())

    def stage(self, name: str) -> Stage:
        """The stage of a name."""
        return next(stage for stage in self.stages if stage.name == name)


def bounds(plan: Plan, sizes: Sizes, prices: Mapping[str, PricePlan | None]) -> Bounds:
    """The bounds of a compile, at `prices` in dollars per million tokens by role, None if unknown.

    A price that the program declares takes precedence, and the rulebook is free.
    """
    known = {role: _price(plan, role, prices) for role in plan.models}
    steps = steps_of(plan, sizes.train)
    sizer = CallSizer(plan, sizes, known, steps)
    whole = sizer.all()
    counter = _Counter(plan, sizes, whole)
    expected = counter.affordable(steps)
    tried = preflight_stage(tried_models(plan), known)
    by_judge = {role: sizer.of_judge(role) for role in judges(plan)}
    largest = {role: counter.largest(role) for role in plan.models}
    for role, each in by_judge.items():
        if role not in (TARGET, OPTIMIZER):
            most = each.rollout.most
            largest[role] = Spend(1, most.prompt // max(1, most.calls), most.reply // max(1, most.calls))
    held = {role: reservation(plan, role, largest[role], known[role]) for role in plan.models}
    stages = (*([tried] if tried else []), *counter.stages(steps, expected))
    again = sizes.validation * plan.optimize.samples
    null = null_arm_turn(plan, whole.first.times(*[again] * 3), stages)

    def with_null_arm(stages: tuple[Stage, ...], each: CallSizes) -> tuple[Stage, ...]:
        return stages if null is None else placed(stages, null_arm_stage(each.first, again, null), null)

    return Bounds(
        sizes=sizes,
        steps=steps,
        open_ended=open_ended(plan),
        expected_steps=expected,
        wave=wave_size(plan, sizes.validation),
        patience=patience_of(plan, sizes.train),
        stages=with_null_arm(stages, whole),
        minimum=replace(counter.least(steps), preflight=tried.bound.least if tried else Spend()),
        held=held,
        in_flight={role: _in_flight(plan, spend) for role, spend in held.items()},
        prices=known,
        judged={
            role: with_null_arm(_Counter(plan, sizes, each).stages(steps, expected), each)
            for role, each in by_judge.items()
        },
        null_arm=null,
    )


def _price(plan: Plan, role: str, prices: Mapping[str, PricePlan | None]) -> PricePlan | None:
    model = plan.models[role]
    if model.price is not None:
        return model.price
    return FREE if model.provider == RULEBOOK else prices.get(role)


def _in_flight(plan: Plan, held: Spend) -> int | None:
    admitted = []
    if plan.budget.calls is not None:
        admitted.append(plan.budget.calls)
    if plan.budget.tokens is not None:
        admitted.append(plan.budget.tokens // max(1, held.tokens))
    if plan.budget.cost is not None and held.cost:
        admitted.append(int(plan.budget.cost / held.cost))
    return min(admitted, default=None)


class _Counter:
    def __init__(self, plan: Plan, sizes: Sizes, each: CallSizes) -> None:
        self._plan, self._sizes, self._each = plan, sizes, each
        self._optimize = plan.optimize
        self._batch = min(step_size(plan), sizes.train)
        self._again = min(plan.optimize.replay, sizes.train - self._batch)
        self._validation = sizes.validation * plan.optimize.samples
        staged = {gate.stage for gate in plan.gates if gate.for_ is None}
        self._gates_on_batch = any(reads_batch(gate.term) for gate in plan.gates if gate.for_ is None)
        self._gates_on_validation = "validation" in staged

    def largest(self, role: str) -> Spend:
        """The largest call of a role."""
        each = self._each
        asked: tuple[SpendBound, ...] = (each.reflect, each.aggregate, each.rewrite, each.slow_update, each.meta_skill)
        asked += (each.draft,) if self._optimize.drafts else ()
        asked += (each.tidy,) if self._optimize.tidy else ()
        if self._optimize.method != "skillc":
            asked = (each.propose,)
        if role == "optimizer":
            return max((bound.most for bound in asked), key=lambda spend: spend.prompt)
        return each.rollout.most

    def least(self, steps: int) -> Least:
        """The least of a run with a result; its batches are as small as the last of an epoch."""
        if self._optimize.method != "skillc":
            return method_least(self._plan, self._sizes, self._each)
        rollout, decisions = self._each.rollout.least, min(LEAST_DECISIONS, steps)
        repeats = decisions * self._batch > self._sizes.train
        batch = self._sizes.train // steps_per_epoch(self._plan, self._sizes.train)
        return Least(
            baseline=rollout * self._validation,
            once=rollout * (min(self._seen(decisions), self._sizes.train) if repeats else 0),
            decisions=decisions,
            rollouts=rollout * (0 if repeats else batch),
            reflections=self._each.reflect.least * self._parts(batch, 0)[0],
            on_batch=rollout * (batch if self._gates_on_batch else 0),
            validation=rollout * (self._validation if self._gates_on_validation else 0),
            test=rollout * (2 * self._sizes.test * self._optimize.samples),
        )

    def affordable(self, steps: int) -> int:
        """Steps of the estimate: all, or as many as the caps pay if nothing else ends the run."""
        if not open_ended(self._plan):
            return steps
        budget = self._plan.budget

        def fits(count: int) -> bool:
            spent = sum((stage.bound.estimate for stage in self.stages(steps, count)), Spend())
            return not (
                (budget.calls is not None and spent.calls > budget.calls)
                or (budget.tokens is not None and spent.tokens > budget.tokens)
                or (budget.cost is not None and spent.cost is not None and spent.cost > budget.cost)
            )

        low, high = min(LEAST_DECISIONS, steps), steps
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low

    def stages(self, steps: int, expected: int) -> tuple[Stage, ...]:
        """All stages: the least for a few decisions, the estimate for `expected` steps, the most for `steps`."""
        each, optimize, sizes = self._each, self._optimize, self._sizes
        if optimize.method != "skillc":
            return method_stages(self._plan, sizes, each, self.least(steps))
        least, parts = self.least(steps), self._parts(self._batch, self._again)
        merging = merge_calls(*self._failing_and_not(self._batch, self._again)), most_merge_calls(parts[2])
        # Deletions of harmful rules are screened too, as many as a candidate may carry.
        screened, screened_most = self._screened(parts[2] + (1 if optimize.rule_counts else 0))
        turns = 1 + optimize.lookups
        tried, most_tried = self._tried()
        test = 2 * sizes.test
        asked = 1 if optimize.edits.kind == "model" else 0
        written = optimize.candidates if optimize.update != "edits" else 0
        again = steps * _REASKED
        # A step is spent on drafts or on edits; about half of them on each where both are made.
        drafting = -(-expected // 2) if optimize.drafts else 0
        editing = expected - drafting
        judged = optimize.drafts * (JUDGES + JUDGES // 2)
        # Drafts of a step with one revision.
        drafts = optimize.drafts + 1 if optimize.drafts else 0
        found = [
            Stage("baseline", "target", each.first.times(*[self._validation] * 3)),
            self._second_measurement(),
            Stage("reference", "target", each.first.times(0, *self._referred(expected))),
            Stage("rollout", "target", each.rollout.times(0, *self._rolled_out(steps, expected))),
            Stage("draft", "optimizer", each.draft.times(0, drafting * drafts, again * drafts)),
            Stage(
                "reflect",
                "optimizer",
                each.reflect.times(0, editing * parts[1] * (1 + optimize.lookups // 2), again * parts[2] * turns),
            ),
            Stage("aggregate", "optimizer", each.aggregate.times(0, editing * merging[0], again * merging[1])),
            Stage(
                "screen",
                "target",
                each.rollout.times(0, editing * screened + drafting * judged, steps * max(screened_most, judged)),
            ),
            Stage("select", "optimizer", each.select.times(0, editing * asked, again * asked)),
            Stage("rewrite", "optimizer", each.rewrite.times(0, editing * written, again * written)),
            Stage("gate", "target", each.rollout.times(0, expected * tried, steps * most_tried)),
            self._slow_update(steps, expected),
            self._tidy(steps, expected),
            self._meta_skill(steps, expected),
            Stage("final test", "target", each.rollout.times(0, test * optimize.samples, test * optimize.samples)),
            Stage("no skill", "target", each.bare.times(0, *[(sizes.validation + sizes.test) * optimize.samples] * 2)),
            Stage("always read", "target", self._always_read()),
        ]
        known = {
            "baseline": least.baseline,
            "rollout": least.once + least.rollouts * least.decisions,
            "reflect": least.reflections * least.decisions,
            "gate": (least.on_batch + least.validation) * least.decisions,
            "final test": least.test,
        }
        found = [replace(s, bound=replace(s.bound, least=known.get(s.name, s.bound.least))) for s in found]
        return tuple(stage for stage in found if stage.bound.most.calls)

    def _second_measurement(self) -> Stage:
        """The initial skill judged again, or rolled out again, for `flip_rate`; what fails is tried three times."""
        read = {
            call.arguments[0] for each in self._plan.requires for call in calls(each.term) if call.function == FLIPS
        }
        wanted = [metric for metric in self._plan.metrics if MetricTerm(metric.name) in read]
        size, found = self._sizes.validation, SpendBound()
        if any(reads_judge(self._plan, metric) for metric in wanted):
            found += self._each.judged.times(size, size, 3 * size)
        if not all(reads_judge(self._plan, metric) for metric in wanted):
            found += self._each.first.times(size, size, size)
        return Stage("second measurement", "target", found)

    def _referred(self, expected: int) -> tuple[int, int]:
        """Rollouts of the initial skill on training examples that judges compare others with, about and at most."""
        if not any(judge.against == "initial" for judge in judges_of(self._plan)):
            return 0, 0
        train = self._sizes.train
        return max(0, min(self._seen(expected), train) - self._batch), train * self._optimize.samples

    def _always_read(self) -> SpendBound:
        """The compiled skill on validation and test as if it were always read, if it is opened on demand."""
        if self._plan.skill.load == "always":
            return SpendBound()
        examples = (self._sizes.validation + self._sizes.test) * self._optimize.samples
        return self._each.always_read.times(0, examples, examples)

    def _parts(self, batch: int, again: int) -> tuple[int, int, int]:
        """Reflections of a step over `batch` examples and `again` earlier failures: at least, about, at most.

        Each batch has separate minibatches of failures and of successes, and so have the earlier failures.
        """
        size = self._optimize.minibatch
        each = [min(self._optimize.batch, batch - i) for i in range(0, batch, self._optimize.batch)]
        each += [again] if again else []
        most = sum(-(-part // size) for part in each)
        about = sum(self._failing_and_not(batch, again))
        if not self._optimize.successes:
            return 1, about, most
        return -(-batch // size), about, most + sum(part > 1 for part in each)

    def _failing_and_not(self, batch: int, again: int) -> tuple[int, int]:
        """Minibatches of failures and of successes in a step, about; earlier failures are assumed to fail again."""
        size, successes = self._optimize.minibatch, 0
        failures = -(-again // size)
        for start in range(0, batch, self._optimize.batch):
            part = min(self._optimize.batch, batch - start)
            failing = -(-part * FAILING.numerator // FAILING.denominator)
            failures += -(-failing // size)
            successes += -(-(part - failing) // size) if self._optimize.successes else 0
        return failures, successes

    def _screened(self, reflections: int) -> tuple[int, int]:
        """Rollouts of the screen of one step, about and at most."""
        optimize, carried = self._optimize, most_edits(self._plan)
        if not optimize.screen:
            return 0, 0
        most = most_screened(optimize, reflections * carried + SHELF, self._batch + self._again)
        each = (
            SCREENED * (optimize.screen + right_cases(optimize.screen)) + 2 * optimize.control + 3 * optimize.together
        )
        return min(carried * each, most), most

    def _rolled_out(self, steps: int, expected: int) -> tuple[int, int]:
        """Training rollouts, earlier failures included, about and at most; an unchanged incumbent repeats none.

        At most, every batch that was prefetched is wasted, as its skill was replaced.
        """
        again = max(0, expected - 1) * self._again * ACCEPTED, max(0, steps - 1) * self._again
        ahead = max(0, steps - 1) * self._batch if self._optimize.speculate else 0
        # A failure is tried again in further samples.
        further = self._optimize.samples - 1
        about, most = self._seen(expected) + again[0], self._seen(steps) + again[1]
        return round(about * (1 + FAILING * further)), most * (1 + further) + ahead

    def _seen(self, steps: int) -> int:
        """Training rollouts of some steps; the last batch of an epoch may be smaller."""
        epochs, rest = divmod(steps, steps_per_epoch(self._plan, self._sizes.train))
        return epochs * self._sizes.train + rest * self._batch

    def _tried(self) -> tuple[int, int]:
        """Rollouts of the gates of one step, about and at most; an accept completes its validation.

        Retries of failed calls do not count, as only a reply is charged.
        """
        optimize = self._optimize
        gated = self._gates_on_batch and optimize.accept == "gates"
        on_batch = self._batch + self._again if gated else 0
        decided = optimize.candidates + optimize.retries * (1 - ACCEPTED)
        most = (on_batch + self._validation) * (optimize.candidates + optimize.retries)
        return round((on_batch + self._validation * self._share()) * decided), most

    def _share(self) -> Fraction:
        """The share of the validation split that a candidate takes, about."""
        if self._optimize.accept == "always":
            return Fraction(1)
        return _GATED if self._gates_on_validation else ACCEPTED

    def _epoch_ends(self, steps: int) -> int:
        return steps // steps_per_epoch(self._plan, self._sizes.train)

    def _slow_update(self, steps: int, expected: int) -> Stage:
        """The same examples under two skills, a question for each slow section, and the gates of each answer."""
        sections = sum(section.mode == "slow" for section in self._plan.skill.sections)
        if not (sections and self._optimize.slow_update):
            return Stage("slow update", "both", SpendBound())
        shown = min(self._optimize.slow_update_samples, self._sizes.train)
        gated = shown if any(reads_batch(gate.term) for gate in self._plan.gates) else 0
        rollouts = 2 * shown + sections * gated
        most_rollouts = 2 * slow_update_examples(self._plan, self._sizes.train) + sections * gated
        about, most = self._epoch_ends(expected), self._epoch_ends(steps)
        tested = self._each.rollout.times(
            0,
            about * (rollouts + round(sections * self._validation * _GATED)),
            most * (most_rollouts + sections * self._validation),
        )
        asked = self._each.slow_update.times(0, about * sections, most * sections * _REASKED)
        return Stage("slow update", "both", tested + asked)

    def _tidy(self, steps: int, expected: int) -> Stage:
        """At each epoch's end and before the final test: one question, two candidates, and one of them made smaller."""
        optimize = self._optimize
        if not (optimize.tidy and optimize.accept == "gates"):
            return Stage("tidy", "both", SpendBound())
        about, most = self._epoch_ends(expected), self._epoch_ends(steps) + 1
        tested = self._each.rollout.times(
            0, about * round(self._validation * (1 + EARLY)), most * _TIDYINGS * self._validation
        )
        return Stage("tidy", "both", tested + self._each.tidy.times(0, about, most * _REASKED))

    def _meta_skill(self, steps: int, expected: int) -> Stage:
        """One question at each epoch's end but the last."""
        if not self._optimize.meta_skill:
            return Stage("meta skill", "optimizer", SpendBound())
        last = epochs_of(self._plan) - 1
        about, most = min(self._epoch_ends(expected), last), min(self._epoch_ends(steps), last)
        return Stage("meta skill", "optimizer", self._each.meta_skill.times(0, about, most * _REASKED))
