"""What the checker hands on: entities with typed settings, metrics and gates as terms. No syntax is left in it.

`plan/resolve.py` reads these, fills in the defaults, and makes the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Literal

from skillc.diagnostics.diagnostic import LATER_VERSION, Diagnostic, Severity, Suppressed
from skillc.gates.terms import Term
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

# ---- values of settings ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a base unit: share and number "", tokens, s, $, bytes, examples, steps, epochs, turns, rounds."""

    value: Fraction
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word: `on_demand`, `predict`, `customer`."""

    text: str


@dataclass(frozen=True, slots=True)
class Invocation:
    """A word with arguments: `cosine(4, 2)`, `env("NAME")`, `environment("alfworld")`."""

    function: str
    arguments: tuple[Value, ...] = ()
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list, `[a, b]`."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """A ratio, `2 : 1 : 2`."""

    parts: tuple[Amount, ...]


Value = Amount | Word | str | bool | Invocation | Items | Shares


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a block, its place, and the settings of the block behind it: `serve = vllm { max_len = 8192 }`.

    The value of a setting that is a block alone, such as `price { ... }`, is True. `words` are those in front of it:
    `("trainable",)` for `trainable about = "..."`.
    """

    value: Value
    source: Source
    span: Span
    block: Mapping[str, Setting] = field(default_factory=dict)
    words: tuple[str, ...] = ()


# ---- types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a task or data field.

    `labels` holds the declared labels of a `labels` type in their order, `item` the element type of a list;
    `optional` marks `... | none`.
    """

    kind: Literal["text", "bool", "number", "integer", "json", "file", "image", "labels", "list"]
    labels: tuple[str, ...] = ()
    item: FieldType | None = None
    optional: bool = False


# ---- entities -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entity:
    """One declaration with its meaning. References to other declarations are followed, and no syntax is left.

    At the top stand `task`, `skill`, `model`, `data`, `rubric`, `optimize`, `budget`, and in a library `section`.
    What each one has is the table of kinds (`kinds.py`). Settings hold:

    - `task.rollout`: `Word("predict")`, or `Invocation("environment", ("alfworld",))` with a block; a tool is
      `Invocation("python", ("module:function",))`
    - `skill.about`: the text. A `trainable about` is a child of kind `about` too, with its words and the text as value
    - `section`: its text is the `value`, None where it begins empty; the one setting is `limit`. A section taken
      from another file or from a markdown skill brings its text alone
    - `model`: the `value` is `provider/name`; settings of a reused model are merged with its own, whole setting by
      setting. `key` and an address from the environment are `Invocation("env", ("NAME",))`; `serve` is `Word("vllm")`
      with a block of plain literals; `price` is True with a block of dollars per million tokens. Any other setting is a
      plain literal to be sent: a number in `Amount`, `str`, `bool`, `Word("none")`, `Items`, or True with a block
    - `data`: paths are `str`, `group` is `Word`, `split` is `Shares` with the unit `""` or `examples`
    - `optimize.edits`: `Invocation` of `constant`, `linear`, `cosine`, or `Word("model")`, or an `Amount`;
      `sees`: `Items` of words; switches: `bool`
    - every number is an `Amount` in the setting's own base unit, whether or not the unit was written

    Attributes:
        kind: the word of the kinds table: `task`, `input`, `output`, `skill`, `section`, `about`, `model`, `data`,
            `field`, `rubric`, `optimize`, `budget`.
        name: its name. A `budget` or `optimize` with a name is there to be reused; the one without is in force.
        words: the words in front of kind and name: `("trainable",)` for a trainable section.
        type: the declared type of an input, output or field.
        value: what stands after `=`.
        settings: by name.
        children: what the block declares, in order: inputs and outputs, sections, fields.
    """

    kind: str
    name: str | None
    source: Source
    span: Span
    words: tuple[str, ...] = ()
    type: FieldType | None = None
    value: Value | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    children: tuple[Entity, ...] = ()
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedMetric:
    """A metric or the goal, of example level. `low` or `high` is None where the range is open.

    `declared` is False for an expression written as a gate's argument, `strict(0.9 * a + 0.1 * b)`: it is given its
    canonical text as a name.
    """

    name: str
    term: Term
    unit: str
    low: Fraction | None
    high: Fraction | None
    goal: bool
    declared: bool
    source: Source
    span: Span
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedGate:
    """A gate or a `require`, of run level. `text` is the expression as written, on one line."""

    name: str
    term: Term
    kind: Literal["gate", "require"]
    for_: Literal["slow"] | None
    text: str
    source: Source
    span: Span
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedVerdict:
    """A `require` without a value: the verdict that delivers the skill, and where the program asks for it."""

    verdict: Literal["improved"]
    source: Source
    span: Span


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part of a program that this version can't run: what it is, its place, the version that runs it, the way out."""

    what: str
    source: Source
    span: Span
    version: str
    hint: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A program after checking.

    Attributes:
        program: the syntax tree of the main file.
        version: of the language.
        entities: in the order of the file.
        metrics: so that each comes after those that it reads.
        gates: gates and requires, in the order of the file.
        diagnostics: in the order of the file, those of other files behind.
        library: whether the file only declares what others use, so that there is nothing to compile.
        suppressed: what comments of the program keep out of `diagnostics`.
        unsupported: what this version can't compile; each is an error among the diagnostics, except in a library.
        required: the verdict that delivers the skill; None if any does.
    """

    program: nodes.Program
    version: int
    entities: tuple[Entity, ...]
    metrics: tuple[CheckedMetric, ...]
    gates: tuple[CheckedGate, ...]
    diagnostics: tuple[Diagnostic, ...]
    library: bool = False
    suppressed: tuple[Suppressed, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    required: CheckedVerdict | None = None

    @property
    def failed(self) -> bool:
        """Whether an error was found, so that the program can't be compiled."""
        return any(d.severity is Severity.ERROR for d in self.diagnostics)

    @property
    def broken(self) -> bool:
        """Whether an error leaves the meaning open, so that there is no plan.

        What only a later version can run (SK605) has a meaning: such programs are compared and examined.
        """
        return any(d.severity is Severity.ERROR and d.code != LATER_VERSION for d in self.diagnostics)

    def place_of(self, kind: str, name: str | None, setting: str | None = None) -> tuple[Source, Span] | None:
        """Return the place of a declaration, or of one of its settings if it has it; None without the declaration."""
        if kind in ("gate", "require"):
            gates = (gate for gate in self.gates if gate.kind == kind and gate.name == name)
            required = self.required if kind == "require" and self.required and self.required.verdict == name else None
            found: CheckedGate | CheckedMetric | CheckedVerdict | None = next(gates, required)
            return (found.source, found.span) if found is not None else None
        if kind in ("metric", "goal"):
            found = next((metric for metric in self.metrics if metric.name == name), None)
            return (found.source, found.span) if found is not None else None
        declared = chain(self.entities, *(each.children for each in self.entities))
        entity = next((each for each in declared if each.kind == kind and each.name == name), None)
        if entity is None:
            return None
        written = entity.settings.get(setting or "", entity)
        return written.source, written.span


def amount_of(settings: Mapping[str, Setting], name: str) -> Fraction | None:
    """The number of a setting in its base unit; None if it is not set."""
    setting = settings.get(name)
    return setting.value.value if setting is not None and isinstance(setting.value, Amount) else None


def fields_of(entities: Iterable[Entity]) -> dict[str, Entity]:
    """The fields of task and data by name; the first of two with one name."""
    found: dict[str, Entity] = {}
    for entity in entities:
        for child in entity.children if entity.kind in ("task", "data") else ():
            found.setdefault(child.name or "", child)
    return found
