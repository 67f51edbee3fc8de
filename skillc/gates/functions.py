"""The functions of metrics and gates: one entry each, with all that the rest of skillc needs to know of them.

The checker reads the arguments, unit and range; `evaluate` decides on what `reads` names; `prove` reasons with ranges
and with what options do; drawing, hover, completion and the reference show the rest. A new function of gates is an
entry here and an evaluator in `evaluate.py`. Third parties add functions by packages of `.skill` files whose metrics
call Python code through `python`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

from skillc.gates.intervals import POSITIVE, UNIT, Interval, clamp, maximum, minimum
from skillc.gates.terms import CallTerm, Constant, Operation, Term, WordTerm

_THIS = "0.1"


class Level(IntEnum):
    """Where a value is known: in the program text, on one rollout, or for one skill on a split."""

    LITERAL = 0
    EXAMPLE = 1
    RUN = 2


Takes = Literal[
    "output",  # an output of the task
    "readable",  # a field that holds text
    "quantity",  # any number of the level of the call
    "literal",  # a number that is written out
    "share",  # a number without a unit that is written out
    "texts",  # a list of quoted texts
    "phrases",  # texts in quotes, or what a field holds
    "passed",  # a field, a text or a number that a function of the user's own is told
    "function",  # a text of the form module:function
    "metric",  # a metric, or an expression that makes one
    "mean",  # state.metric
    "state",  # candidate, incumbent, best, initial
    "candidate",  # the candidate alone
    "claim",  # a written comparison of two means
    "field",  # a field that examples can be grouped by
    "condition",  # a condition on one rollout
    "judged",  # a rubric, or a text of its own
    "model",  # a role
    "skill",  # a skill of the program
    "batch",  # the word batch
    "run",  # the word run
]


@dataclass(frozen=True, slots=True)
class BuiltinParameter:
    """A parameter of a builtin. A required one is positional; an optional one is written `name = value`."""

    name: str
    takes: Takes
    required: bool = True
    named: bool = False


Result = Callable[[Sequence[Interval]], Interval]


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of the language.

    Attributes:
        level: `EXAMPLE` in metrics, `RUN` in gates; None for plain arithmetic, which is of its arguments' level.
        unit: of the result; None for that of the first argument.
        range: of the result, whatever the arguments.
        result: the range of the result from those of the quantities that it is given, where it follows from them.
        limit: what the program may declare to bound the result: the `limit` of the field, the `turns` of a rollout, the
            limits of the sections that may change.
        many: whether the last positional parameter may repeat.
        rest: what further positional arguments are, where there may be any.
        reads: what a gate must see to decide it: the texts of skills, or scores on a split.
        about_candidate: whether it compares the candidate with the incumbent without naming either.
        lowered_by: options that never raise the result.
        raised_by: options that never lower it.
        share_of_tokens: whether it is a share of a number of tokens, which reports show with it.
        direction: 1 for the mean gain of the candidate over the incumbent, -1 for the mean loss, else 0.
        since: the version of skillc that runs it; it is checked in all versions.
    """

    name: str
    level: Level | None
    parameters: tuple[BuiltinParameter, ...]
    about: str
    unit: str | None = ""
    range: Interval = UNIT
    result: Result | None = None
    limit: Literal["", "field", "turns", "change"] = ""
    many: bool = False
    rest: Takes | None = None
    reads: Literal["text", "scores"] = "scores"
    about_candidate: bool = False
    lowered_by: tuple[str, ...] = ()
    raised_by: tuple[str, ...] = ()
    share_of_tokens: bool = False
    direction: Literal[-1, 0, 1] = 0
    since: str = _THIS

    def range_of(self, quantities: Sequence[Interval]) -> Interval:
        """The range of the result, from those of the quantities among the arguments."""
        return self.range if self.result is None else self.result(quantities)

    @property
    def later(self) -> bool:
        """Whether only a later version of skillc can run it."""
        return self.since != _THIS

    @property
    def positional(self) -> tuple[BuiltinParameter, ...]:
        """The parameters that are given by position."""
        return tuple(p for p in self.parameters if not p.named)

    @property
    def options(self) -> tuple[BuiltinParameter, ...]:
        """The parameters that are given by name."""
        return tuple(p for p in self.parameters if p.named)

    @property
    def usage(self) -> str:
        """How it is called, for hints: `worst(state.metric, by = field)`."""
        parts = [_SHOWN.get(p.takes, p.name) + (", ..." if self.many else "") for p in self.positional]
        parts += ["..."] if self.rest else []
        parts += [f"{p.name} = {_SHOWN.get(p.takes, p.takes)}" for p in self.options]
        return f"{self.name}({', '.join(parts)})"


_SHOWN = {
    "mean": "candidate.metric",
    "claim": "candidate.metric > incumbent.metric",
    "function": '"module:function"',
    "texts": '["a", "b"]',
    "phrases": '["a", "b"]',
    "judged": "rubric",
    "model": "role",
    "literal": "number",
    "share": "share",
    "candidate": "candidate",
    "state": "state",
}


def _given(name: str, takes: Takes) -> BuiltinParameter:
    return BuiltinParameter(name, takes)


def _option(name: str, takes: Takes, *, required: bool = False) -> BuiltinParameter:
    return BuiltinParameter(name, takes, required, named=True)


def _first(quantities: Sequence[Interval]) -> Interval:
    return quantities[0]


def _width(quantities: Sequence[Interval]) -> Interval:
    """The range of a mean gain or loss: at most the width of the metric's own."""
    return Interval(Fraction(0), (quantities[0] - quantities[0]).high)


_OUTPUT = (_given("output", "output"),)
_MOVED = (_given("metric", "metric"), _option("on", "batch"), _option("by", "field"))

_EXAMPLE = (
    Builtin("exact_match", Level.EXAMPLE, _OUTPUT, "1 where the output equals the gold answer"),
    Builtin("f1", Level.EXAMPLE, _OUTPUT, "overlap of the words, or of the items of a list, with the gold answer"),
    Builtin(
        "precision_of",
        Level.EXAMPLE,
        _OUTPUT,
        "the share of the output's words, or of its items where it is a list, that the gold answer has too",
    ),
    Builtin(
        "recall_of",
        Level.EXAMPLE,
        _OUTPUT,
        "the share of the gold answer's words, or of its items where it is a list, that the output has too",
    ),
    Builtin("contains", Level.EXAMPLE, _OUTPUT, "1 where the output contains the gold answer"),
    Builtin(
        "mentions",
        Level.EXAMPLE,
        (_given("field", "readable"), _given("phrases", "phrases")),
        "1 where a field holds at least one of the texts, ignoring case",
    ),
    Builtin(
        "covers",
        Level.EXAMPLE,
        (_given("field", "readable"), _given("phrases", "phrases")),
        "the share of the texts that a field holds, ignoring case",
    ),
    Builtin(
        "numeric",
        Level.EXAMPLE,
        (*_OUTPUT, _option("tolerance", "share"), _option("within", "share")),
        "1 where the number in the output is the gold one, within a share of it or a distance",
    ),
    Builtin(
        "relative_error",
        Level.EXAMPLE,
        (*_OUTPUT, _option("scale", "share")),
        "how far the number in the output lies from the gold one, as a share of it or of `scale`; at most 1",
    ),
    Builtin(
        "ordinal_error",
        Level.EXAMPLE,
        (*_OUTPUT, _option("most", "share")),
        "how many labels the output lies from the gold one in their order, as a share of all or of `most`; at most 1",
    ),
    Builtin("valid_json", Level.EXAMPLE, _OUTPUT, "1 where the output is a JSON object or list"),
    Builtin(
        "json_fields",
        Level.EXAMPLE,
        (*_OUTPUT, _option("fields", "texts")),
        "the share of the gold answer's fields that the output has right",
    ),
    Builtin(
        "one_of",
        Level.EXAMPLE,
        (*_OUTPUT, _option("options", "texts")),
        "1 where the output is one of the options; by default the declared labels",
    ),
    Builtin(
        "tokens", Level.EXAMPLE, (_given("field", "readable"),), "tokens of a field", "tokens", POSITIVE, limit="field"
    ),
    Builtin("words", Level.EXAMPLE, (_given("field", "readable"),), "words of a field", "", POSITIVE),
    Builtin("lines", Level.EXAMPLE, (_given("field", "readable"),), "its lines that are not blank", "", POSITIVE),
    Builtin(
        "python",
        Level.EXAMPLE,
        (_given("function", "function"), _option("low", "literal"), _option("high", "literal")),
        "what a function of yours gives, between `low` and `high`; it is told the fields and texts behind its name",
        None,
        rest="passed",
    ),
    Builtin(
        "judge",
        Level.EXAMPLE,
        (_given("output", "output"), _given("rubric", "judged"), _option("model", "model", required=True)),
        "what a model says of the output by a rubric or a question",
        since="0.5",
    ),
    Builtin("reward", Level.EXAMPLE, (), "what the environment gave for the rollout", since="0.5"),
    Builtin("turns", Level.EXAMPLE, (), "turns that the rollout took", "turns", POSITIVE, limit="turns", since="0.5"),
    Builtin("seconds", Level.EXAMPLE, (), "time that the rollout took", "s", POSITIVE, since="0.5"),
    Builtin("opened", Level.EXAMPLE, (_given("skill", "skill"),), "1 where the target opened the skill", since="0.5"),
)

_BOTH = (
    Builtin("min", None, (_given("a", "quantity"),), "the smallest", None, result=minimum, many=True),
    Builtin("max", None, (_given("a", "quantity"),), "the greatest", None, result=maximum, many=True),
    Builtin(
        "clamp",
        None,
        (_given("x", "quantity"), _given("low", "quantity"), _given("high", "quantity")),
        "`x`, but at least `low` and at most `high`",
        None,
        result=lambda quantities: clamp(*quantities),
    ),
)

_RUN = (
    Builtin(
        "improved",
        Level.RUN,
        _MOVED,
        "mean gain where the candidate is better",
        None,
        direction=1,
        result=_width,
        about_candidate=True,
        lowered_by=("by",),
    ),
    Builtin(
        "regressed",
        Level.RUN,
        _MOVED,
        "mean loss where the candidate is worse",
        None,
        direction=-1,
        result=_width,
        about_candidate=True,
        raised_by=("by",),
    ),
    Builtin(
        "worst",
        Level.RUN,
        (_given("mean", "mean"), _option("by", "field", required=True)),
        "the mean of the group that has the lowest",
        None,
        result=_first,
        lowered_by=("by",),
    ),
    Builtin("tokens", Level.RUN, (_given("state", "state"),), "tokens of a skill", "tokens", POSITIVE, reads="text"),
    Builtin(
        "change",
        Level.RUN,
        (_given("candidate", "candidate"),),
        "tokens deleted plus inserted, divided by the larger of the incumbent's tokens and the sum of section limits; "
        "what is inserted into a section counts by the share of its limit that the incumbent uses",
        "",
        POSITIVE,
        limit="change",
        reads="text",
        about_candidate=True,
        share_of_tokens=True,
    ),
    Builtin(
        "overlap",
        Level.RUN,
        (_given("state", "state"),),
        "the share of a skill's trained words that stand, five in a row, in a training example's inputs or answers",
        reads="text",
    ),
    Builtin("cost", Level.RUN, (_given("state", "state"),), "mean list price of a rollout", "$", POSITIVE),
    Builtin("latency", Level.RUN, (_given("state", "state"),), "mean time of a rollout", "s", POSITIVE, since="0.3"),
    Builtin(
        "confidence",
        Level.RUN,
        (_given("claim", "claim"), _option("over", "run")),
        "how sure a paired test is of a comparison of two means",
        lowered_by=("over",),
    ),
    Builtin(
        "e_value",
        Level.RUN,
        (_given("claim", "claim"), _option("over", "run")),
        "the evidence for a comparison of two means, as what a bet on the paired differences multiplies its stake by; "
        "a false claim reaches 20 in at most 5 % of decisions, with `over = run` in at most 5 % of runs",
        "",
        POSITIVE,
        lowered_by=("over",),
    ),
    Builtin(
        "precision",
        Level.RUN,
        (_given("metric", "metric"), _given("condition", "condition")),
        "of the examples where the metric holds, the share on which the condition does",
        about_candidate=True,
        since="0.5",
    ),
    Builtin(
        "recall",
        Level.RUN,
        (_given("metric", "metric"), _given("condition", "condition")),
        "of the examples where the condition holds, the share on which the metric does",
        about_candidate=True,
        since="0.5",
    ),
    Builtin(
        "flip_rate",
        Level.RUN,
        (_given("metric", "metric"),),
        "the share of examples on which a second measurement differs",
        since="0.5",
    ),
)


def _by_name(*groups: tuple[Builtin, ...]) -> Mapping[str, Builtin]:
    return MappingProxyType({each.name: each for group in groups for each in group})


EXAMPLE_FUNCTIONS = _by_name(_EXAMPLE, _BOTH)
RUN_FUNCTIONS = _by_name(_RUN, _BOTH)
NAMES = frozenset(EXAMPLE_FUNCTIONS) | frozenset(RUN_FUNCTIONS)


def lookup(name: str, level: Level) -> Builtin | None:
    """Look up a function of metrics (`EXAMPLE`) or of gates (`RUN`) by name."""
    return (RUN_FUNCTIONS if level is Level.RUN else EXAMPLE_FUNCTIONS).get(name)


# ---- terms over the table -------------------------------------------------------------------------


def is_claim_test(call: CallTerm) -> bool:
    """Whether a call judges a claim, that one mean is above another."""
    builtin = RUN_FUNCTIONS.get(call.function)
    return builtin is not None and any(parameter.takes == "claim" for parameter in builtin.parameters)


def is_on_batch(call: CallTerm) -> bool:
    """Whether a call is of the training batch: `on = batch`."""
    return call.option("on") == WordTerm("batch")


def multiplicity(claim: CallTerm, decisions: int) -> int:
    """The decisions that share the error of a claim: with `over = run` all of the run, else this one."""
    return decisions if claim.option("over") == WordTerm("run") else 1


def without_option(call: CallTerm, name: str) -> Term:
    """The call without an option; its first argument where the function needs that option, as `worst` needs `by`."""
    builtin = RUN_FUNCTIONS.get(call.function)
    if builtin is not None and any(each.name == name and each.required for each in builtin.options):
        return call.arguments[0]
    return CallTerm(call.function, call.arguments, tuple(option for option in call.options if option[0] != name))


def is_arithmetic(term: Term) -> bool:
    """Whether a term is arithmetic over its parts: an operator, `min`, `max` or `clamp`."""
    if isinstance(term, CallTerm):
        builtin = RUN_FUNCTIONS.get(term.function)
        return builtin is not None and builtin.level is None
    return isinstance(term, Operation)


def interval_of(term: Term, quantity: Callable[[Term], Interval]) -> Interval:
    """The interval of a number, from those of the quantities that it is composed of.

    Raises:
        TypeError: the term is a condition.
    """
    if isinstance(term, Constant):
        return Interval.point(term.value)
    if not is_arithmetic(term):
        return quantity(term)
    assert isinstance(term, CallTerm | Operation)
    if isinstance(term, CallTerm):
        return RUN_FUNCTIONS[term.function].range_of([interval_of(each, quantity) for each in term.arguments])
    inner = [interval_of(each, quantity) for each in term.operands]
    match term.operator:
        case "negate":
            return -inner[0]
        case "+":
            return sum(inner[1:], inner[0])
        case "-":
            return inner[0] - inner[1]
        case "*":
            return inner[0] * inner[1]
        case "/":
            return inner[0] / inner[1]
    raise TypeError(f"not a number: {term}")
