"""The size of one call of each stage in tokens: at least, about, at most.

Tokens are counted by the language's counter. The ledger, which enforces caps, uses bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from skillc.artifact_paths import ABOUT_CHARACTERS
from skillc.budget.judging import judged
from skillc.budget.spend import CallSizes, CompanySize, Sizes, Spend, SpendBound, one_call
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
from skillc.dataclass import dataclass
from skillc.document.offer import most_opened, offer_text
from skillc.document.skill import Document, Mode, tokens
from skillc.language.kinds import default_of
from skillc.language.rollouts import ENVIRONMENT_DEFAULTS, HARBOR_DEFAULTS, REACT_DEFAULTS, is_agent
from skillc.plan.initial import initial_document, task_text
from skillc.plan.models import simulated_users
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
_A_TURN = 60
# A tool's texts, and a turn with its result.
_A_TOOL = 120
_A_STEP = 150
# Limits in tokens: the optimizer's memory, the rejected-edit buffer, and the effects of the last candidates.
MEMORY_LIMIT = 2_000
REJECTED_LIMIT = 4_000
EFFECTS_LIMIT = 1_500
# The decisions of an epoch, in the question for the memory.
DECISIONS_LIMIT = 4_000
_A_LOOKUP = 80
_A_HIT = 100
# The optimizer reads the skill with ids and rationales, about twice the tokens.
_ANNOTATED = 2
# Steps whose rejected edits a prompt is assumed to show.
_REMEMBERED = 40
# The assumed size of a section without a limit.
OPEN_SECTION = 2_000

_BYTES_A_TOKEN = 5
# What a rollout of an agent is assumed to use where the program declares no maximum: about, and at most.
_AGENT_TOKENS = 50_000, 500_000
# The share of an agent's tokens that are replies.
_AGENT_REPLIES = Fraction(1, 10)
_REASONED = frozenset({"chain_of_thought", "react", "code", "harbor"})
# Rollouts whose calls repeat the steps before.
_WITH_STEPS = frozenset({"react", "code", "harbor"})


class CallSizer:
    """Size the calls of a run of `steps` steps; roles without a price have an unknown cost."""

    def __init__(self, plan: Plan, sizes: Sizes, prices: Mapping[str, PricePlan | None], steps: int = 0) -> None:
        self._plan, self._sizes, self._prices, self._steps = plan, sizes, prices, steps
        self._skill = _skill_tokens(plan)

    def all(self) -> CallSizes:
        """The size of each kind of call."""
        optimize = self._plan.optimize
        edits = most_edits(self._plan)
        lists = -(-step_size(self._plan) // optimize.minibatch) + optimize.accumulate
        lists += -(-optimize.replay // optimize.minibatch) + 1 if optimize.replay else 0
        listed, most_listed = 4 * edits * _AN_EDIT, (lists + 1) * edits * _AN_EDIT
        epoch = steps_per_epoch(self._plan, self._sizes.train)
        company = self._sizes.company
        reads = _reads(self._plan, company, *self._skill)
        low, _, _ = self._skill
        return CallSizes(
            rollout=self.rollout(reads),
            first=self.rollout(_reads(self._plan, company, low, low, low), initial=True),
            always_read=self.rollout(_beside(self._plan, company, *self._skill)),
            bare=self.rollout(_beside(self._plan, company, *[count_tokens(task_text(self._plan.task))] * 3)),
            reflect=self._asked(optimize.minibatch, *self._looked_up(), reply=edits * _AN_EDIT + 40),
            aggregate=self._asked(MOST_CITED, listed, most_listed, reply=2 * edits * _AN_EDIT),
            select=self._asked(0, listed, most_listed, reply=20),
            rewrite=self._asked(0, edits * _AN_EDIT, reply=self._rewritten()),
            draft=self._asked(MOST_FAILURES + MOST_RIGHT, FURTHER_LIMIT, reply=self._rewritten() + _ANALYSIS),
            slow_update=self._asked(
                min(optimize.slow_update_samples, self._sizes.train), reply=max(self._limits("slow"), default=0)
            ),
            meta_skill=self._asked(0, min(epoch * _A_DECISION, DECISIONS_LIMIT), DECISIONS_LIMIT, reply=300),
            tidy=self._asked(0, reply=sum(self._limits("trainable"))),
            propose=self._proposed(),
            judged=self._judged(initial=True),
        )

    def _proposed(self) -> SpendBound:
        """A question of another method: a batch for one rewrite, 3 examples for GEPA, 10 with notes for MIPROv2."""
        optimize, longest = self._plan.optimize, self._plan.models["optimizer"].max_reply
        shown = {"gepa": GEPA_MINIBATCH, "miprov2": DESCRIBED}.get(optimize.method, optimize.batch)
        noted = DESCRIPTIONS * longest if optimize.method == "miprov2" else 0
        limits = self._limits("trainable", "slow")
        reply = sum(limits) if optimize.method == "one_shot" else max(limits, default=0)
        return self._asked(min(shown, self._sizes.train), 0, noted, reply=reply // 2)

    def rollout(self, reads: TargetReads, *, initial: bool = False) -> SpendBound:
        """A rollout with the judges of its metrics, and a further call for each skill that the target opens.

        The `initial` skill is not compared with itself.
        """
        low, middle, high = reads.low, reads.middle, reads.high
        inputs, outputs, model = self._sizes.inputs, self._sizes.outputs, self._plan.models["target"]
        rollout, price = self._plan.task.rollout, self._prices.get("target")
        if is_agent(rollout.kind):
            return _by_agent(rollout.settings, price) + self._judged(initial)
        turns = _turns(self._plan) + reads.openings
        about = _about_turns(self._plan, turns) + (1 if reads.openings else 0)
        least = 2 if rollout.kind == "react" and not rollout.native_calls else 1
        history, most_history = self._history(turns) if rollout.kind not in _WITH_STEPS else _seen(self._plan)
        reasons = rollout.kind in _REASONED or rollout.with_tools is not None
        reply = outputs.mean + _AROUND_REPLY + (_REASONING if reasons else 0)
        given, most_given = inputs.mean + self._sizes.images.mean, inputs.most + self._sizes.images.most
        answered = SpendBound(
            one_call(LEAST_AROUND_ROLLOUT + low + inputs.mean, min(max(outputs.mean, 1), model.max_reply), price),
            one_call(_AROUND_ROLLOUT + middle + given + history, min(reply, model.max_reply), price),
            one_call(_AROUND_ROLLOUT + high + most_given + most_history, model.max_reply, price),
        ).times(least, min(max(about, least), turns), turns)
        for role in simulated_users(self._plan):
            answered += self._talked(role, _environment(self._plan, "turns"))
        return answered + self._judged(initial)

    def arm(self, skill: Document | None) -> SpendBound:
        """A rollout with a skill as it is, None for no skill."""
        if skill is None:
            bare = count_tokens(task_text(self._plan.task))
            return self.rollout(_beside(self._plan, self._sizes.company, bare, bare, bare))
        size = tokens(skill)
        return self.rollout(_reads(self._plan, self._sizes.company, size, size, size, skill))

    def _history(self, turns: int) -> tuple[int, int]:
        """Tokens that a call of an environment reads besides skill and inputs, about and at most."""
        if self._plan.task.rollout.kind != "environment":
            return 0, 0
        history, observation = _environment(self._plan, "history"), _environment(self._plan, "observation")
        tools, most_tools = _in_turn(self._plan)
        return min(history, turns * _A_TURN) // 2 + _A_TURN + tools, history + 2 * observation + most_tools

    def _talked(self, role: str, turns: int) -> SpendBound:
        """The calls of a simulated user: its first words, and a reply to each action, at most tried twice."""
        model, price = self._plan.models.get(role), self._prices.get(role)
        longest = model.max_reply if model is not None else _A_TURN
        heard = turns * (_environment(self._plan, "observation") + longest)
        about = one_call(_A_VERDICT + turns * _A_TURN // 2, _A_TURN, price)
        most = one_call(_A_VERDICT + self._sizes.inputs.most + heard, longest, price)
        return SpendBound(about, about, most).times(0, 1 + turns // 2, 2 * (1 + turns))

    def _judged(self, initial: bool = False) -> SpendBound:
        return judged(self._plan, self._sizes, self._prices, initial=initial)

    def of_judge(self, role: str) -> CallSizes:
        """The part of a judge's role in each kind of call; nothing in questions to the optimizer."""
        each = judged(self._plan, self._sizes, self._prices, role=role)
        first, none = judged(self._plan, self._sizes, self._prices, role=role, initial=True), SpendBound()
        return CallSizes(each, first, each, each, none, none, none, none, none, none, none, none, none, judged=first)

    def _asked(self, trajectories: int, extra: int = 0, most_extra: int = 0, *, reply: int) -> SpendBound:
        """A question to the optimizer about some trajectories, with the skill and the rejected edits."""
        plan, sizes, price = self._plan, self._sizes, self._prices.get("optimizer")
        limit, longest = plan.optimize.trajectory_limit, plan.models["optimizer"].max_reply
        low, middle, high = self._skill
        # With several samples a failure may be shown in two rollouts.
        rollouts = min(2, plan.optimize.samples)
        one = sizes.inputs.mean + (1 + rollouts) * sizes.outputs.mean + _A_TRAJECTORY
        shown = min(sizes.inputs.most, limit * len(plan.task.inputs))
        many = plan.skill.load == "on_demand" or is_agent(plan.task.rollout.kind)
        reply_limit = limit if many else min(plan.models["target"].max_reply, limit)
        answers = 2 * rollouts * reply_limit + 2 * sizes.outputs.most
        rejected, most_rejected = self._rejected()
        about = _AROUND_QUESTION + _ANNOTATED * middle + rejected + extra + trajectories * one
        most = (
            _AROUND_QUESTION + _ANNOTATED * high + most_rejected + max(extra, most_extra) + MEMORY_LIMIT + EFFECTS_LIMIT
        )
        # The largest question repeats one whose reply was invalid, and contains that reply.
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
        """Tokens of a reflection's lookups with their results, about and at most."""
        optimize = self._plan.optimize
        largest = max(optimize.trajectory_limit, optimize.batch * _A_HIT) + _A_LOOKUP
        return optimize.lookups * (4 * _A_HIT + _A_LOOKUP) // 2, optimize.lookups * largest

    def _rewritten(self) -> int:
        """Tokens of the rewritten sections."""
        limits = self._limits("trainable")
        return sum(limits) if self._plan.optimize.update == "rewrite_all" else max(limits, default=0)

    def _limits(self, *modes: Mode) -> list[int]:
        return [s.limit or OPEN_SECTION for s in self._plan.skill.sections if s.mode in modes]


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


@dataclass(frozen=True, slots=True)
class TargetReads:
    """Tokens of skills in one call of a rollout: at least, about, at most.

    Attributes:
        openings: the most further calls, each after a skill was opened.
    """

    low: int
    middle: int
    high: int
    openings: int = 0


def _reads(
    plan: Plan, company: CompanySize, low: int, middle: int, high: int, skill: Document | None = None
) -> TargetReads:
    """Return what the target reads of a skill of at least, about, at most so many tokens, by default the initial one.

    A skill that it opens by itself is in no first call, and the last one repeats every reply before.
    """
    if plan.skill.load == "always":
        return _beside(plan, company, low, middle, high)
    own = count_tokens(offer_text([skill or initial_document(plan)]))
    listed = company.listed + company.read + count_tokens(task_text(plan.task)) + own
    opened = most_opened(1 + company.offered)
    longest = listed + (ABOUT_CHARACTERS if plan.skill.about_trainable else 0)
    said = opened * (plan.models["target"].max_reply + _AROUND_ROLLOUT)
    most = longest + high + (opened - 1) * company.longest + said
    return TargetReads(listed, listed + middle, most, opened)


def _beside(plan: Plan, company: CompanySize, low: int, middle: int, high: int) -> TargetReads:
    """Return what the target reads of a text that it always reads, and of the other skills."""
    always, opened = company.listed + company.read, most_opened(company.offered)
    said = opened * (company.longest + plan.models["target"].max_reply + _AROUND_ROLLOUT)
    return TargetReads(always + low, always + middle, always + high + said, opened)


def most_calls(plan: Plan, sizes: Sizes) -> int:
    """Return the most calls of the target in one rollout."""
    return _turns(plan) + _reads(plan, sizes.company, 0, 0, 0).openings


def _seen(plan: Plan) -> tuple[int, int]:
    """Tokens of tools and earlier turns in a call of an agent, about and at most, as a mean over its calls."""
    rollout = plan.task.rollout
    if rollout.kind not in _WITH_STEPS:
        return 0, 0
    texts, turns = _tool_texts(rollout.settings), _turns(plan)
    shown = "result" if rollout.kind == "react" else "output"
    result = rollout.settings.get(shown, default_of("task", "rollout", shown))
    step = int(str(result)) + plan.models["target"].max_reply
    return texts + turns // 4 * _A_STEP, 4 * texts + turns * step // 2


def _tool_texts(settings: Mapping[str, object]) -> int:
    """Tokens of what a prompt says of an agent's tools."""
    tools = settings.get("tools")
    return (len(tools) if isinstance(tools, list) else 0) * _A_TOOL


def _in_turn(plan: Plan) -> tuple[int, int]:
    """Tokens of tools and of their results in the present turn of an environment, about and at most."""
    settings = plan.task.rollout.with_tools
    if settings is None:
        return 0, 0
    texts, calls = _tool_texts(settings) + _A_TOOL, _of_react(settings, "calls")
    most = 4 * texts + calls * (_of_react(settings, "result") + plan.models["target"].max_reply)
    return texts + calls // 2 * _A_STEP, most


def _of_react(settings: Mapping[str, object], name: str) -> int:
    return int(str(settings.get(name, REACT_DEFAULTS[name])))


def _about_turns(plan: Plan, turns: int) -> int:
    """The model calls of one rollout, about, of `turns` at most; with tools in an environment two in a turn."""
    if plan.task.rollout.kind == "environment" and plan.task.rollout.with_tools is not None:
        return min(turns, _environment(plan, "turns"))
    return -(-turns // 2)


def _turns(plan: Plan) -> int:
    """The most model calls of one rollout; a target with tools or code is asked for its answer after its last turn."""
    rollout = plan.task.rollout
    if rollout.kind == "environment":
        tools = rollout.with_tools
        return _environment(plan, "turns") * (1 if tools is None else _of_react(tools, "calls") + 1)
    if rollout.kind == "react":
        return _of_react(rollout.settings, "turns") + 1
    if rollout.kind == "code":
        return int(str(rollout.settings.get("rounds", default_of("task", "rollout", "rounds")))) + 1
    turns = rollout.settings.get("turns", HARBOR_DEFAULTS["turns"] if rollout.kind == "harbor" else None)
    return turns if isinstance(turns, int) and turns > 0 else 1


def _environment(plan: Plan, name: str) -> int:
    """A setting of an environment, with its default."""
    value = plan.task.rollout.settings.get(name, ENVIRONMENT_DEFAULTS[name])
    return value if isinstance(value, int) else 0


def _by_agent(settings: Mapping[str, object], price: PricePlan | None) -> SpendBound:
    """A rollout of an agent, which is one call however often it calls its model; at most what it declares."""
    declared, dollars = settings.get("tokens"), settings.get("cost")
    about, most = _AGENT_TOKENS
    if isinstance(declared, int):
        about, most = min(about, declared), declared
    replies = round(about * _AGENT_REPLIES)
    middle = one_call(about - replies, replies, price)
    largest = max((one_call(most, 0, price), one_call(0, most, price)), key=lambda spend: spend.cost or 0)
    if isinstance(dollars, int | float) and price is not None:
        largest = replace(largest, cost=Fraction(str(dollars)))
        middle = replace(middle, cost=min(middle.cost or Fraction(0), Fraction(str(dollars))))
    return SpendBound(Spend(1, 0, 0, None if price is None else Fraction(0)), middle, largest)


def dearest_rollout(plan: Plan, sizes: Sizes, prices: Mapping[str, PricePlan | None]) -> Fraction | None:
    """The largest cost of a rollout in dollars, each of its calls as reserved; None if the price is unknown.

    It has the longest example, a skill at its limits, and the longest reply.
    """
    price = prices.get("target")
    if price is None:
        return None
    if is_agent(plan.task.rollout.kind):
        return _by_agent(plan.task.rollout.settings, price).most.cost
    seen = _seen(plan)[1] + _in_turn(plan)[1]
    most = _AROUND_ROLLOUT + _reads(plan, sizes.company, *_skill_tokens(plan)).high + sizes.inputs.most + seen
    cost = reservation(plan, "target", one_call(most, 0, price), price).cost
    if cost is None:
        return None
    return (cost + sizes.images.most * price.input / 1_000_000) * most_calls(plan, sizes)


def reservation(plan: Plan, role: str, largest: Spend, price: PricePlan | None) -> Spend:
    """The reservation of one call, about: a token for each byte of the prompt, and the longest reply.

    That of an agent's rollout is its declared maximum.
    """
    if role == "target" and is_agent(plan.task.rollout.kind):
        return largest
    return one_call(largest.prompt * _BYTES_A_TOKEN, plan.models[role].max_reply, price)
