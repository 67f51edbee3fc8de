"""The functions of `language 1`: where each may be called, what it takes, and what comes out.

Data for the checker, completion and the reference. The functions of third parties come by `use`: a package carries
`.skill` files whose metrics call its Python functions through `python`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Literal

from skillc.gates.ranges import POSITIVE, UNIT, Range

_THIS = "0.1"


class Level(IntEnum):
    """Where a value is known: from the text, on one rollout, or for one skill on a split."""

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
class Parameter:
    """A parameter of a builtin. A required one is positional; an optional one is written `name = value`."""

    name: str
    takes: Takes
    required: bool = True
    named: bool = False


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of the language.

    Attributes:
        level: `EXAMPLE` in metrics, `RUN` in gates; None for plain arithmetic, which is of its arguments' level.
        unit: of the result; None where it follows from the arguments, as the range then does too.
        many: whether the last positional parameter may repeat.
        rest: what further positional arguments are, where there may be any.
        reads_candidate: whether it speaks of the candidate without naming it.
        since: the version of skillc that runs it; it is checked in all versions.
    """

    name: str
    level: Level | None
    parameters: tuple[Parameter, ...]
    about: str
    unit: str | None = ""
    range: Range = UNIT
    many: bool = False
    rest: Takes | None = None
    reads_candidate: bool = False
    since: str = _THIS

    @property
    def later(self) -> bool:
        """Whether only a later version of skillc runs it."""
        return self.since != _THIS

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """The parameters that are given by position."""
        return tuple(p for p in self.parameters if not p.named)

    @property
    def options(self) -> tuple[Parameter, ...]:
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


def _given(name: str, takes: Takes) -> Parameter:
    return Parameter(name, takes)


def _option(name: str, takes: Takes, *, required: bool = False) -> Parameter:
    return Parameter(name, takes, required, named=True)


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
    Builtin("tokens", Level.EXAMPLE, (_given("field", "readable"),), "tokens of a field", "tokens", POSITIVE),
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
    Builtin("turns", Level.EXAMPLE, (), "turns that the rollout took", "turns", POSITIVE, since="0.5"),
    Builtin("seconds", Level.EXAMPLE, (), "time that the rollout took", "s", POSITIVE, since="0.5"),
    Builtin("opened", Level.EXAMPLE, (_given("skill", "skill"),), "1 where the target opened the skill", since="0.5"),
)

_BOTH = (
    Builtin("min", None, (_given("a", "quantity"),), "the smallest", None, many=True),
    Builtin("max", None, (_given("a", "quantity"),), "the greatest", None, many=True),
    Builtin(
        "clamp",
        None,
        (_given("x", "quantity"), _given("low", "quantity"), _given("high", "quantity")),
        "`x`, but at least `low` and at most `high`",
        None,
    ),
)

_RUN = (
    Builtin("improved", Level.RUN, _MOVED, "mean gain where the candidate is better", None, reads_candidate=True),
    Builtin("regressed", Level.RUN, _MOVED, "mean loss where the candidate is worse", None, reads_candidate=True),
    Builtin(
        "worst",
        Level.RUN,
        (_given("mean", "mean"), _option("by", "field", required=True)),
        "the mean of the group that has the lowest",
        None,
    ),
    Builtin("tokens", Level.RUN, (_given("state", "state"),), "tokens of a skill", "tokens", POSITIVE),
    Builtin(
        "change",
        Level.RUN,
        (_given("candidate", "candidate"),),
        "tokens deleted plus inserted, divided by the larger of the incumbent's tokens and the sum of section limits; "
        "what is inserted into a section counts by the share of its limit that the incumbent uses",
        "",
        POSITIVE,
        reads_candidate=True,
    ),
    Builtin(
        "overlap",
        Level.RUN,
        (_given("state", "state"),),
        "the share of a skill's trained words that stand, five in a row, in a training example's inputs or answers",
        "",
    ),
    Builtin("cost", Level.RUN, (_given("state", "state"),), "mean list price of a rollout", "$", POSITIVE),
    Builtin("latency", Level.RUN, (_given("state", "state"),), "mean time of a rollout", "s", POSITIVE, since="0.3"),
    Builtin(
        "confidence",
        Level.RUN,
        (_given("claim", "claim"), _option("over", "run")),
        "how sure a paired test is of a comparison of two means",
    ),
    Builtin(
        "e_value",
        Level.RUN,
        (_given("claim", "claim"), _option("over", "run")),
        "the evidence for a comparison of two means, as what a bet on the paired differences multiplies its stake by; "
        "a false claim reaches 20 in at most 5 % of decisions, with `over = run` in at most 5 % of runs",
        "",
        POSITIVE,
    ),
    Builtin(
        "precision",
        Level.RUN,
        (_given("metric", "metric"), _given("condition", "condition")),
        "of the examples where the metric holds, the share on which the condition does",
        reads_candidate=True,
        since="0.5",
    ),
    Builtin(
        "recall",
        Level.RUN,
        (_given("metric", "metric"), _given("condition", "condition")),
        "of the examples where the condition holds, the share on which the metric does",
        reads_candidate=True,
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
    """The function that a name stands for in a metric (`EXAMPLE`) or in a gate (`RUN`)."""
    return (RUN_FUNCTIONS if level is Level.RUN else EXAMPLE_FUNCTIONS).get(name)
