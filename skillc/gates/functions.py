"""The table of the functions of metrics and gates.

The checker reads the arguments, unit and range; `evaluate` decides on the evidence that `reads` names; `prove` reasons
with ranges and the effects of options; drawing, hover, completion and the reference show the rest. A new function of
gates is an entry here and an evaluator in `evaluate.py`. Third parties add functions by packages of `.skill` files
whose metrics call Python code through `python`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from skillc.dataclass import dataclass
from skillc.gates.intervals import POSITIVE, UNIT, Interval, clamp, maximum, minimum
from skillc.gates.terms import CallTerm, Constant, Operation, Term, WordTerm

_THIS = "0.1"


class Level(IntEnum):
    """Where a value is defined: in the program text, on one rollout, or for one skill on a split."""

    LITERAL = 0
    EXAMPLE = 1
    RUN = 2


Takes = Literal[
    "output",  # an output of the task
    "readable",  # a field that contains text
    "quantity",  # any number of the level of the call
    "literal",  # a literal number
    "share",  # a literal number without a unit
    "examples",  # a literal number of examples
    "texts",  # a list of quoted texts
    "phrases",  # quoted texts, or a field
    "quoted",  # a text in quotes
    "tool",  # the name of a tool, in quotes
    "passed",  # a field, a text or a number, passed to a function of the user
    "function",  # a text of the form module:function
    "metric",  # a metric, or an expression that makes one
    "mean",  # state.metric
    "state",  # candidate, incumbent, best, initial
    "candidate",  # the candidate alone
    "claim",  # a literal comparison of two means
    "field",  # a field to group examples by
    "condition",  # a condition on one rollout
    "judged",  # a rubric, or a text
    "model",  # a role
    "models",  # a list of roles
    "reference",  # gold, or initial: what a judge compares an output with
    "skill",  # a skill of the program
    "batch",  # the word batch
    "run",  # the word run
]


@dataclass(frozen=True, slots=True)
class BuiltinParameter:
    """A parameter of a builtin: positional, or `named` and written `name = value`.

    `rare` ones are left out of example calls.
    """

    name: str
    takes: Takes
    required: bool = True
    named: bool = False
    rare: bool = False


RangeRule = Callable[[Sequence[Interval]], Interval]
"""The range of a result from the ranges of the quantities among the arguments."""


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of the language.

    Attributes:
        level: `EXAMPLE` in metrics, `RUN` in gates; None for arithmetic, which has the level of its arguments.
        unit: of the result; None for the unit of the first argument.
        range: of the result, for any arguments.
        result: the range of the result, if it follows from those of the arguments.
        limit: the declaration that may bound the result: the `limit` of the field, the `turns` of a rollout, the limits
            of the sections that may change.
        many: whether the last positional parameter may repeat.
        rest: the kind of further positional arguments; None if there can be none.
        reads: the evidence that it needs: texts of skills, or scores on a split.
        about_candidate: whether it compares the candidate with the incumbent implicitly.
        lowered_by: options that lower the result or leave it unchanged.
        raised_by: options that raise it or leave it unchanged.
        share_of_tokens: whether it is a share of a number of tokens, which reports show with it.
        direction: 1 for the mean gain of the candidate over the incumbent, -1 for the mean loss, else 0.
        compares: whether it compares an output with the right answer, which each example then needs.
        since: the version of skillc that can run it; every version checks it.
    """

    name: str
    level: Level | None
    parameters: tuple[BuiltinParameter, ...]
    about: str
    unit: str | None = ""
    range: Interval = UNIT
    result: RangeRule | None = None
    limit: Literal["", "field", "turns", "calls", "change"] = ""
    many: bool = False
    rest: Takes | None = None
    reads: Literal["text", "scores"] = "scores"
    about_candidate: bool = False
    lowered_by: tuple[str, ...] = ()
    raised_by: tuple[str, ...] = ()
    share_of_tokens: bool = False
    direction: Literal[-1, 0, 1] = 0
    compares: bool = False
    since: str = _THIS

    def range_of(self, quantities: Sequence[Interval]) -> Interval:
        """The range of the result for the ranges of the quantities among the arguments."""
        return self.range if self.result is None else self.result(quantities)

    @property
    def later(self) -> bool:
        """Whether this version of skillc can check but not run it."""
        return self.since != _THIS

    @property
    def positional(self) -> tuple[BuiltinParameter, ...]:
        """The positional parameters."""
        return tuple(p for p in self.parameters if not p.named)

    @property
    def options(self) -> tuple[BuiltinParameter, ...]:
        """The named parameters."""
        return tuple(p for p in self.parameters if p.named)

    @property
    def usage(self) -> str:
        """An example call, for hints: `worst(state.metric, by = field)`."""
        parts = [_SHOWN.get(p.takes, p.name) + (", ..." if self.many else "") for p in self.positional]
        parts += ["..."] if self.rest else []
        parts += [f"{p.name} = {_SHOWN.get(p.takes, p.takes)}" for p in self.options if not p.rare]
        return f"{self.name}({', '.join(parts)})"


_SHOWN = {
    "mean": "candidate.metric",
    "claim": "candidate.metric > incumbent.metric",
    "function": '"module:function"',
    "texts": '["a", "b"]',
    "phrases": '["a", "b"]',
    "quoted": '"..."',
    "tool": '"tool"',
    "judged": "rubric",
    "model": "role",
    "models": "[role, role, role]",
    "reference": "initial",
    "literal": "number",
    "share": "share",
    "examples": "50 examples",
    "candidate": "candidate",
    "state": "state",
}


def _option(name: str, takes: Takes, *, required: bool = False, rare: bool = False) -> BuiltinParameter:
    return BuiltinParameter(name, takes, required, True, rare)


def _example(name: str, about: str, *parameters: BuiltinParameter, **more: Any) -> Builtin:
    return Builtin(name, Level.EXAMPLE, parameters, about, **more)


def _compare(name: str, about: str, *parameters: BuiltinParameter, **more: Any) -> Builtin:
    return _example(name, about, *parameters, compares=True, **more)


def _run(name: str, about: str, *parameters: BuiltinParameter, **more: Any) -> Builtin:
    return Builtin(name, Level.RUN, parameters, about, **more)


def _arithmetic(name: str, about: str, result: RangeRule, *operands: str, many: bool = False) -> Builtin:
    parameters = tuple(BuiltinParameter(operand, "quantity") for operand in operands)
    return Builtin(name, None, parameters, about, None, result=result, many=many)


def _width(quantities: Sequence[Interval]) -> Interval:
    """The range of a mean gain or loss: at most the width of the metric."""
    return Interval(Fraction(0), (quantities[0] - quantities[0]).high)


_OUTPUT = BuiltinParameter("output", "output")
_FIELD = BuiltinParameter("field", "readable")
_METRIC = BuiltinParameter("metric", "metric")
_STATE = BuiltinParameter("state", "state")
_CLAIM = BuiltinParameter("claim", "claim")
_PHRASES = BuiltinParameter("phrases", "phrases")
_TOOL = BuiltinParameter("tool", "tool")
_CONDITION = BuiltinParameter("condition", "condition")
_ON, _BY, _OVER = _option("on", "batch"), _option("by", "field"), _option("over", "run")

_EXAMPLE = (
    _compare("exact_match", "1 where the output equals the gold answer", _OUTPUT),
    _compare(
        "squad_match",
        "1 where the output has the gold answer's words, as SQuAD compares: without case, punctuation and articles",
        _OUTPUT,
    ),
    _compare(
        "anls",
        "similarity to the gold answer by edit distance, ignoring case; 0 where half of the longer text differs",
        _OUTPUT,
    ),
    _compare("f1", "overlap of the words, or of the items of a list, with the gold answer", _OUTPUT),
    _compare(
        "precision_of",
        "the share of the output's words, or of its items where it is a list, that the gold answer has too",
        _OUTPUT,
    ),
    _compare(
        "recall_of",
        "the share of the gold answer's words, or of its items where it is a list, that the output has too",
        _OUTPUT,
    ),
    _compare("contains", "1 where the output contains the gold answer", _OUTPUT),
    _example("mentions", "1 where a field contains at least one of the texts, ignoring case", _FIELD, _PHRASES),
    _example("covers", "the share of the texts that a field contains, ignoring case", _FIELD, _PHRASES),
    _compare(
        "quasi_exact_match",
        "1 where the output equals the gold answer as GAIA compares them: as numbers without `$`, `%` and commas, as "
        "lists element by element, or as texts without white space, punctuation and case",
        _OUTPUT,
    ),
    _compare(
        "numeric",
        "1 where the number in the output is the gold one, within a share of it or a distance",
        *(_OUTPUT, _option("tolerance", "share"), _option("within", "share")),
    ),
    _compare(
        "relative_error",
        "the distance of the number in the output from the gold one, as a share of it or of `scale`; at most 1",
        *(_OUTPUT, _option("scale", "share")),
    ),
    _compare(
        "ordinal_error",
        "the distance of the output from the gold answer in labels, as a share of all labels or of `most`; at most 1",
        *(_OUTPUT, _option("most", "share")),
    ),
    _example("valid_json", "1 where the output is a JSON object or list", _OUTPUT),
    _compare(
        "json_fields",
        "the share of the gold answer's fields that the output has right",
        *(_OUTPUT, _option("fields", "texts")),
    ),
    _example(
        "one_of",
        "1 where the output is one of the options; by default the declared labels",
        *(_OUTPUT, _option("options", "texts")),
    ),
    _example("tokens", "tokens of a field", _FIELD, unit="tokens", range=POSITIVE, limit="field"),
    _example("words", "words of a field", _FIELD, range=POSITIVE),
    _example("lines", "non-blank lines of a field", _FIELD, range=POSITIVE),
    _example(
        "python",
        "the result of your own function, between `low` and `high`; it is given the fields and texts after its name",
        *(BuiltinParameter("function", "function"), _option("low", "literal"), _option("high", "literal")),
        unit=None,
        rest="passed",
    ),
    _example(
        "judge",
        "the judgement of a model on the output by a rubric or a question, from 0 to 1; of several with `panel`; with "
        "`against` it is compared with the right answer or with the initial skill's output, in both orders",
        *(_OUTPUT, BuiltinParameter("rubric", "judged"), _option("model", "model")),
        *(_option("panel", "models", rare=True), _option("against", "reference", rare=True)),
    ),
    _example("reward", "the score that the environment gave the rollout; without one the run stops"),
    _example("turns", "turns of the rollout", unit="turns", range=POSITIVE, limit="turns"),
    _example("seconds", "time of the rollout", unit="s", range=POSITIVE),
    _example("cost", "list price of the rollout's calls", unit="$", range=POSITIVE),
    _example("used", "1 where the rollout called the tool", _TOOL),
    _example("calls", "how often the rollout called the tool", _TOOL, range=POSITIVE, limit="calls"),
    _example("order", "1 where the rollout called all of the tools, first in this order", _TOOL, many=True),
    _example(
        "file_contains",
        "the share of the texts that a file which the rollout wrote contains, ignoring case; 0 without the file",
        *(BuiltinParameter("path", "quoted"), _PHRASES),
    ),
    _example(
        "call_mentions",
        "1 where an argument of a tool call contains at least one of the texts, ignoring case; with `tool` only calls "
        "of that tool count",
        *(_PHRASES, _option("tool", "tool")),
    ),
    _example("opened", "1 where the target opened the skill", BuiltinParameter("skill", "skill")),
    _example(
        "noisy",
        "a signal between 0 and 1 that errs at known rates, corrected so that its mean is the share of right answers; "
        "with `positives` and `negatives`, the right and wrong answers on which the rates were measured, intervals "
        "include the error of the rates",
        BuiltinParameter("signal", "quantity"),
        *(_option("sensitivity", "share", required=True), _option("specificity", "share", required=True)),
        *(_option("positives", "examples", rare=True), _option("negatives", "examples", rare=True)),
    ),
)

_BOTH = (
    _arithmetic("min", "the smallest", minimum, "a", many=True),
    _arithmetic("max", "the greatest", maximum, "a", many=True),
    _arithmetic(
        "clamp", "`x`, but at least `low` and at most `high`", lambda each: clamp(*each), *("x", "low", "high")
    ),
)

_RUN = (
    _run(
        "improved",
        "mean gain where the candidate is better",
        *(_METRIC, _ON, _BY),
        unit=None,
        direction=1,
        result=_width,
        about_candidate=True,
        lowered_by=("by",),
    ),
    _run(
        "regressed",
        "mean loss where the candidate is worse",
        *(_METRIC, _ON, _BY),
        unit=None,
        direction=-1,
        result=_width,
        about_candidate=True,
        raised_by=("by",),
    ),
    _run(
        "worst",
        "the mean of the group that has the lowest",
        *(BuiltinParameter("mean", "mean"), _option("by", "field", required=True)),
        unit=None,
        result=lambda quantities: quantities[0],
        lowered_by=("by",),
    ),
    _run("tokens", "tokens of a skill", _STATE, unit="tokens", range=POSITIVE, reads="text"),
    _run(
        "change",
        "tokens deleted plus inserted, divided by the larger of the incumbent's tokens and the sum of section limits; "
        "what is inserted into a section counts by the share of its limit that the incumbent uses",
        BuiltinParameter("candidate", "candidate"),
        range=POSITIVE,
        limit="change",
        reads="text",
        about_candidate=True,
        share_of_tokens=True,
    ),
    _run(
        "overlap",
        "the share of a skill's trained words that occur, five in a row, in a training example's inputs or answers",
        _STATE,
        reads="text",
    ),
    _run("cost", "mean list price of a rollout", _STATE, unit="$", range=POSITIVE),
    _run("latency", "mean time of a rollout", _STATE, unit="s", range=POSITIVE, since="0.3"),
    _run("confidence", "confidence of a paired test that one mean is higher", _CLAIM, _OVER, lowered_by=("over",)),
    _run(
        "e_value",
        "the evidence for a comparison of two means, as what a bet on the paired differences multiplies its stake by; "
        "a false claim reaches 20 in at most 5 % of decisions, with `over = run` in at most 5 % of runs",
        *(_CLAIM, _OVER),
        range=POSITIVE,
        lowered_by=("over",),
    ),
    _run(
        "precision",
        "of the examples where the metric holds, the share on which the condition does",
        *(_METRIC, _CONDITION),
        about_candidate=True,
    ),
    _run(
        "recall",
        "of the examples where the condition holds, the share on which the metric does",
        *(_METRIC, _CONDITION),
        about_candidate=True,
    ),
    _run(
        "flip_rate",
        "the share of validation examples on which a second measurement of the initial skill differs: a metric that "
        "reads a judge is judged again, any other is rolled out again",
        _METRIC,
    ),
)


def _by_name(*groups: tuple[Builtin, ...]) -> Mapping[str, Builtin]:
    return MappingProxyType({each.name: each for group in groups for each in group})


EXAMPLE_FUNCTIONS = _by_name(_EXAMPLE, _BOTH)
RUN_FUNCTIONS = _by_name(_RUN, _BOTH)
CONDITIONAL = ("precision", "recall")
"""Functions that compare a metric with a condition on the data."""
NAMES = frozenset(EXAMPLE_FUNCTIONS) | frozenset(RUN_FUNCTIONS)


def lookup(name: str, level: Level) -> Builtin | None:
    """Look up a function of metrics (`EXAMPLE`) or of gates (`RUN`) by name."""
    return (RUN_FUNCTIONS if level is Level.RUN else EXAMPLE_FUNCTIONS).get(name)


# ---- terms over the table -------------------------------------------------------------------------


def is_claim_test(call: CallTerm) -> bool:
    """Whether a call tests a claim, that one mean is higher than another."""
    builtin = RUN_FUNCTIONS.get(call.function)
    return builtin is not None and any(parameter.takes == "claim" for parameter in builtin.parameters)


def is_on_batch(call: CallTerm) -> bool:
    """Whether a call reads the training batch: `on = batch`."""
    return call.option("on") == WordTerm("batch")


def multiplicity(claim: CallTerm, decisions: int) -> int:
    """The number of decisions that share the error of a claim: with `over = run` all of a run, else 1."""
    return decisions if claim.option("over") == WordTerm("run") else 1


def without_option(call: CallTerm, name: str) -> Term:
    """Drop an option of a call; if the function requires it, as `worst` requires `by`, return the first argument."""
    builtin = RUN_FUNCTIONS.get(call.function)
    if builtin is not None and any(each.name == name and each.required for each in builtin.options):
        return call.arguments[0]
    return CallTerm(call.function, call.arguments, tuple(option for option in call.options if option[0] != name))


def is_arithmetic(term: Term) -> bool:
    """Whether a term is an operator, `min`, `max` or `clamp` over its parts."""
    if isinstance(term, CallTerm):
        builtin = RUN_FUNCTIONS.get(term.function)
        return builtin is not None and builtin.level is None
    return isinstance(term, Operation)


def interval_of(term: Term, quantity: Callable[[Term], Interval]) -> Interval:
    """The interval of a number, computed from the intervals of its quantities.

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
