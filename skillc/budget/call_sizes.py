"""The size of one call of each stage in tokens: at least, about, at most.

Counts are those of the language's own counter. The ledger, which no cap ever passes, uses bytes instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from skillc.budget.spend import CallSizes, Sizes, Spend, SpendBound, one_call
from skillc.budget.steps import (
    DESCRIBED,
    DESCRIPTIONS,
    FURTHER_LIMIT,
    GEPA_MINIBATCH,
    MOST_CITED,
    MOST_FAILURES,
    MOST_RIGHT,
    step_size,
    steps_per_epoch,
)
from skillc.document.skill import tokens
from skillc.plan.initial import initial_document, task_text
from skillc.plan.models import judges
from skillc.plan.schema import Plan, PricePlan
from skillc.tokens import A_HEADING, LEAST_AROUND_QUESTION, LEAST_AROUND_ROLLOUT, count_tokens

# Tokens around a prompt's own content, as measured on the compiled modules and on skillc's prompts.
_AROUND_ROLLOUT = 280
_AROUND_QUESTION = 1_700
_AROUND_REPLY = 20
_REASONING = 200
_AN_EDIT = 100
_ANALYSIS = 200
_A_REJECTED_EDIT = 40
_A_DECISION = 60
_A_TRAJECTORY = 100
_A_VERDICT = 150
# Tokens that a prompt shows of the optimizer's own memory, of the rejected-edit buffer, and of what the last candidates
# did.
MEMORY_LIMIT = 2_000
REJECTED_LIMIT = 4_000
EFFECTS_LIMIT = 1_500
# Tokens of an epoch's decisions that the question for a memory shows.
DECISIONS_LIMIT = 4_000
_A_LOOKUP = 80
_A_HIT = 100
# The optimizer reads the skill with ids and rationales.
_ANNOTATED = 2
# Steps whose rejected edits a prompt is taken to show.
_REMEMBERED = 40
# What a section without a limit is taken to grow to.
OPEN_SECTION = 2_000

_REASONED = frozenset({"chain_of_thought", "react", "code"})


def call_sizes(plan: Plan, sizes: Sizes, prices: Mapping[str, PricePlan | None], steps: int) -> CallSizes:
    """The size of each kind of call in a run of `steps` steps; roles without a price have an unknown cost."""
    return _Sizer(plan, sizes, prices, steps).all()


def rollout_size(plan: Plan, sizes: Sizes, prices: Mapping[str, PricePlan | None], skill: int) -> SpendBound:
    """One rollout of the target under instructions of so many tokens, with the judges of its metrics."""
    return _Sizer(plan, sizes, prices, 0).rollout(skill, skill, skill)


class _Sizer:
    def __init__(self, plan: Plan, sizes: Sizes, prices: Mapping[str, PricePlan | None], steps: int) -> None:
        self._plan, self._sizes, self._prices, self._steps = plan, sizes, prices, steps
        self._skill = _skill_tokens(plan)

    def all(self) -> CallSizes:
        optimize = self._plan.optimize
        edits = most_edits(self._plan)
        lists = -(-step_size(self._plan) // optimize.minibatch) + optimize.accumulate
        lists += -(-optimize.replay // optimize.minibatch) + 1 if optimize.replay else 0
        listed, most_listed = 4 * edits * _AN_EDIT, (lists + 1) * edits * _AN_EDIT
        epoch = steps_per_epoch(self._plan, self._sizes.train)
        low, _, _ = self._skill
        return CallSizes(
            rollout=self.rollout(*self._skill),
            first=self.rollout(low, low, low),
            bare=self.rollout(*[count_tokens(task_text(self._plan.task))] * 3),
            reflect=self._asked(optimize.minibatch, *self._looked_up(), reply=edits * _AN_EDIT + 40),
            aggregate=self._asked(MOST_CITED, listed, most_listed, reply=2 * edits * _AN_EDIT),
            select=self._asked(0, listed, most_listed, reply=20),
            rewrite=self._asked(0, edits * _AN_EDIT, reply=self._rewritten()),
            draft=self._asked(MOST_FAILURES + MOST_RIGHT, FURTHER_LIMIT, reply=self._rewritten() + _ANALYSIS),
            slow_update=self._asked(min(optimize.slow_update_samples, self._sizes.train), reply=self._slow_limit()),
            meta_skill=self._asked(0, min(epoch * _A_DECISION, DECISIONS_LIMIT), DECISIONS_LIMIT, reply=300),
            tidy=self._asked(0, reply=sum(self._open_limits())),
            propose=self._proposed(),
        )

    def _proposed(self) -> SpendBound:
        """A peer's question: a batch for a single rewrite, 3 examples for GEPA, 10 and all it noted for MIPROv2."""
        optimize, longest = self._plan.optimize, self._plan.models["optimizer"].max_reply
        shown = {"gepa": GEPA_MINIBATCH, "miprov2": DESCRIBED}.get(optimize.method, optimize.batch)
        noted = DESCRIPTIONS * longest if optimize.method == "miprov2" else 0
        limits = [s.limit or OPEN_SECTION for s in self._plan.skill.sections if s.mode != "frozen"]
        reply = sum(limits) if optimize.method == "one_shot" else max(limits, default=0)
        return self._asked(min(shown, self._sizes.train), 0, noted, reply=reply // 2)

    def rollout(self, low: int, middle: int, high: int) -> SpendBound:
        """A rollout under a skill of at least, about, at most so many tokens."""
        inputs, outputs, model = self._sizes.inputs, self._sizes.outputs, self._plan.models["target"]
        rollout, price = self._plan.task.rollout, self._prices.get("target")
        turns = _turns(rollout.settings)
        reply = outputs.mean + _AROUND_REPLY + (_REASONING if rollout.kind in _REASONED else 0)
        answered = SpendBound(
            one_call(LEAST_AROUND_ROLLOUT + low + inputs.mean, min(max(outputs.mean, 1), model.max_reply), price),
            one_call(_AROUND_ROLLOUT + middle + inputs.mean, min(reply, model.max_reply), price),
            one_call(_AROUND_ROLLOUT + high + inputs.most, model.max_reply, price),
        ).times(1, -(-turns // 2), turns)
        for role in judges(self._plan):
            answered += self._judged(role)
        return answered

    def _judged(self, role: str) -> SpendBound:
        sizes, price, longest = self._sizes, self._prices.get(role), self._plan.models["target"].max_reply
        about = one_call(_A_VERDICT + sizes.inputs.mean + sizes.outputs.mean, _A_VERDICT, price)
        model = self._plan.models.get(role)
        most = one_call(_A_VERDICT * 4 + sizes.inputs.most + longest, model.max_reply if model else _A_VERDICT, price)
        return SpendBound(about, about, most)

    def _asked(self, trajectories: int, extra: int = 0, most_extra: int = 0, *, reply: int) -> SpendBound:
        """A question to the optimizer about some trajectories, with the skill and what was rejected so far."""
        plan, sizes, price = self._plan, self._sizes, self._prices.get("optimizer")
        limit, longest = plan.optimize.trajectory_limit, plan.models["optimizer"].max_reply
        low, middle, high = self._skill
        # With several samples a failure may be shown in two rollouts.
        rollouts = min(2, plan.optimize.samples)
        one = sizes.inputs.mean + (1 + rollouts) * sizes.outputs.mean + _A_TRAJECTORY
        shown = min(sizes.inputs.most, limit * len(plan.task.inputs))
        answers = 2 * rollouts * min(plan.models["target"].max_reply, limit) + 2 * sizes.outputs.most
        rejected, most_rejected = self._rejected()
        about = _AROUND_QUESTION + _ANNOTATED * middle + rejected + extra + trajectories * one
        most = (
            _AROUND_QUESTION + _ANNOTATED * high + most_rejected + max(extra, most_extra) + MEMORY_LIMIT + EFFECTS_LIMIT
        )
        # The largest is a question that is asked again: it holds the reply that could not be used.
        most += longest
        return SpendBound(
            one_call(LEAST_AROUND_QUESTION + low + (one if trajectories else 0), 1, price),
            one_call(about, min(reply, longest), price),
            one_call(most + trajectories * max(one, shown + answers + _A_TRAJECTORY), longest, price),
        )

    def _rejected(self) -> tuple[int, int]:
        """Tokens of the rejected-edit buffer, halfway through the run and at most."""
        if not self._plan.optimize.rejected_buffer:
            return 0, 0
        edits = most_edits(self._plan)
        about = min(self._steps, _REMEMBERED) * edits * _A_REJECTED_EDIT // 2
        return min(about, REJECTED_LIMIT), REJECTED_LIMIT

    def _looked_up(self) -> tuple[int, int]:
        """Tokens of a reflection's lookups with their answers, halfway through and at most."""
        optimize = self._plan.optimize
        largest = max(optimize.trajectory_limit, optimize.batch * _A_HIT) + _A_LOOKUP
        return optimize.lookups * (4 * _A_HIT + _A_LOOKUP) // 2, optimize.lookups * largest

    def _rewritten(self) -> int:
        """Tokens of the sections that a rewrite writes anew."""
        limits = self._open_limits()
        return sum(limits) if self._plan.optimize.update == "rewrite_all" else max(limits, default=0)

    def _open_limits(self) -> list[int]:
        return [s.limit or OPEN_SECTION for s in self._plan.skill.sections if s.mode == "trainable"]

    def _slow_limit(self) -> int:
        limits = [section.limit or OPEN_SECTION for section in self._plan.skill.sections if section.mode == "slow"]
        return max(limits, default=0)


def most_edits(plan: Plan) -> int:
    """The largest edit budget of any step."""
    return max(plan.optimize.edits.start, plan.optimize.edits.end)


def _skill_tokens(plan: Plan) -> tuple[int, int, int]:
    """Tokens of the initial skill, of one halfway to its limits, and of one at its limits."""
    initial = initial_document(plan)
    start = tokens(initial)
    most = start if initial.rules else start + count_tokens(initial.lead)
    for section in initial.sections:
        if section.mode != "frozen":
            most += max(0, (section.limit or OPEN_SECTION + section.tokens) - section.tokens) + A_HEADING
    return start, (start + most) // 2, most


def _turns(settings: Mapping[str, object]) -> int:
    """The most model calls of one rollout."""
    for name in ("turns", "rounds"):
        turns = settings.get(name)
        if isinstance(turns, int) and turns > 0:
            return turns
    return 1


def dearest_rollout(plan: Plan, sizes: Sizes, prices: Mapping[str, PricePlan | None]) -> Fraction | None:
    """Dollars that one rollout costs at worst, each of its calls as it is reserved; None where the price is not known.

    The longest example under a skill at its limits, and the whole reply.
    """
    price = prices.get("target")
    if price is None:
        return None
    most = _AROUND_ROLLOUT + _skill_tokens(plan)[2] + sizes.inputs.most
    cost = reservation(plan, "target", one_call(most, 0, price), price).cost
    return None if cost is None else cost * _turns(plan.task.rollout.settings)


def reservation(plan: Plan, role: str, largest: Spend, price: PricePlan | None) -> Spend:
    """What one call of a role reserves, about: a token for each byte of the prompt, and the whole reply."""
    bytes_a_token = 5
    return one_call(largest.prompt * bytes_a_token, plan.models[role].max_reply, price)
