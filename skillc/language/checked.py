"""The result of the check: entities with typed settings, metrics and gates as terms.

`plan/resolve.py` adds the defaults and makes the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from itertools import chain
from typing import Literal

from skillc.dataclass import dataclass
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
    """One setting of a block, and the settings of the block after its value: `serve = vllm { max_len = 8192 }`.

    The value of a setting that is only a block, such as `price { ... }`, is True. `words` are its modifiers:
    `("trainable",)` for `trainable about = "..."`.
    """

    value: Value
    source: Source
    span: Span
    block: Settings = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The word of its value, or the function of a call: `environment`; empty for any other value."""
        value = self.value
        return value.function if isinstance(value, Invocation) else value.text if isinstance(value, Word) else ""


Settings = Mapping[str, Setting]
"""The settings of a block by name."""


def value_of(settings: Settings, name: str) -> Value | None:
    """The value of a setting; None if it is not set."""
    setting = settings.get(name)
    return setting.value if setting is not None else None


def amount_of(settings: Settings, name: str) -> Fraction | None:
    """The number of a setting in its base unit; None if it is not set."""
    value = value_of(settings, name)
    return value.value if isinstance(value, Amount) else None


def count_of(settings: Settings, name: str) -> int | None:
    """A whole number, as the checker ensures; None if it is not set."""
    value = amount_of(settings, name)
    return int(value) if value is not None else None


def text_of(settings: Settings, name: str) -> str | None:
    """The quoted text of a setting; None if it is not set."""
    value = value_of(settings, name)
    return value if isinstance(value, str) else None


def word_of(settings: Settings, name: str) -> str | None:
    """The word of a setting, or the function of a call; None if it is not set."""
    setting = settings.get(name)
    return setting.word or None if setting is not None else None


def items_of(settings: Settings, name: str) -> tuple[Value, ...]:
    """The elements of a list; empty if it is not set."""
    value = value_of(settings, name)
    return value.items if isinstance(value, Items) else ()


def variable_of(value: Value | None) -> str | None:
    """The environment variable that `env("NAME")` names; None for any other value."""
    if isinstance(value, Invocation) and value.function == "env" and value.arguments:
        name = value.arguments[0]
        return name if isinstance(name, str) else None
    return None


# ---- types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a task or data field.

    `labels` are the declared labels of a `labels` type, in order, `item` is the element type of a list;
    `optional` marks `... | none`.
    """

    kind: Literal["text", "bool", "number", "integer", "json", "file", "image", "labels", "list"]
    labels: tuple[str, ...] = ()
    item: FieldType | None = None
    optional: bool = False

    @property
    def of_items(self) -> FieldType:
        """The type of the items of a list; any other type itself."""
        return self.item if self.kind == "list" and self.item is not None else self


# ---- entities -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entity:
    """An evaluated declaration; references to other declarations are resolved.

    At the top are `task`, `skill`, `model`, `data`, `rubric`, `optimize`, `budget`, and in a library `section`. The
    table of kinds (`kinds.py`) lists the settings of each. Their values:

    - `task.rollout`: `Word("predict")`, or `Invocation("environment", ("alfworld",))` with a block; a tool is
      `Invocation("python", ("module:function",))`
    - `skill.about`: the text. A `trainable about` is also a child of kind `about`, with its words and the text as value
    - `section`: its text is the `value`, None for an empty section; the one setting is `limit`. A section reused
      from another file or from a markdown skill has only its text
    - `model`: the `value` is `provider/name`; its settings replace those of a reused model. `key` and an address from
      the environment are `Invocation("env", ("NAME",))`; `serve` is `Word("vllm")` with a block of literals; `price` is
      True with a block of dollars per million tokens. Any other setting is a literal that is sent: a number in
      `Amount`, `str`, `bool`, `Word("none")`, `Items`, or True with a block
    - `data`: paths are `str`, `group` is `Word`, `split` is `Shares` with the unit `""` or `examples`
    - `optimize.edits`: `Invocation` of `constant`, `linear`, `cosine`, or `Word("model")`, or an `Amount`;
      `sees`: `Items` of words; switches: `bool`
    - every number is an `Amount` in the base unit of the setting, even if written without a unit

    Attributes:
        kind: the word of the kinds table: `task`, `input`, `output`, `skill`, `section`, `about`, `model`, `data`,
            `field`, `rubric`, `optimize`, `budget`.
        name: its name. A `budget` or `optimize` with a name is for reuse; the one without a name applies.
        words: the modifiers before the kind: `("trainable",)` for a trainable section.
        type: the declared type of an input, output or field.
        value: the value after `=`.
        settings: by name.
        children: the declarations in the block, in order: inputs and outputs, sections, fields.
    """

    kind: str
    name: str | None
    source: Source
    span: Span
    words: tuple[str, ...] = ()
    type: FieldType | None = None
    value: Value | None = None
    settings: Settings = field(default_factory=dict)
    children: tuple[Entity, ...] = ()
    doc: str | None = None

    @property
    def text(self) -> str:
        """Its value if that is a text, else empty."""
        return self.value if isinstance(self.value, str) else ""

    def children_of(self, kind: str) -> tuple[Entity, ...]:
        """The declarations of a kind in its block."""
        return of_kind(self.children, kind)


def is_trained(skill: Entity) -> bool:
    """Whether a part of a skill can be trained: a section, or its `about`."""
    return any({"trainable", "slow"} & set(child.words) for child in skill.children)


def of_kind(entities: Iterable[Entity], kind: str) -> tuple[Entity, ...]:
    """Select the declarations of a kind."""
    return tuple(each for each in entities if each.kind == kind)


@dataclass(frozen=True, slots=True)
class CheckedMetric:
    """A metric or the goal. `low` or `high` is None if the range has no such bound.

    `declared` is False for an expression as an argument of a gate, `strict(0.9 * a + 0.1 * b)`, which is named by its
    canonical text.
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
    """A gate or a `require`. `text` is the source of its expression, on one line."""

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
    """A `require` without a value: the verdict that is required to deliver the skill."""

    verdict: Literal["improved"]
    source: Source
    span: Span


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part of a program that this version can't run, the version that can, and a hint."""

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
        metrics: each after those that it reads.
        gates: gates and requires, in the order of the file.
        diagnostics: in the order of the file, then those of other files.
        library: whether the file only contains declarations for other programs.
        suppressed: findings that comments of the program suppress.
        unsupported: parts that this version can't compile; each is also an error, except in a library.
        required: the verdict required to deliver the skill; None if every verdict does.
        rubrics: those of modules that judges use and that are more than a text, by module and name.
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
    rubrics: Mapping[str, Entity] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the program has errors and can't be compiled."""
        return any(d.severity is Severity.ERROR for d in self.diagnostics)

    @property
    def broken(self) -> bool:
        """Whether the program has errors other than unsupported parts, so that it has no plan.

        Programs with unsupported parts (SK605) can be compared and examined.
        """
        return any(d.severity is Severity.ERROR and d.code != LATER_VERSION for d in self.diagnostics)

    def place_of(self, kind: str, name: str | None, setting: str | None = None) -> tuple[Source, Span] | None:
        """The place of a declaration, or of its setting if it has it; None without the declaration."""
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


def fields_of(entities: Iterable[Entity]) -> dict[str, Entity]:
    """The fields of task and data by name; the first of two with one name."""
    found: dict[str, Entity] = {}
    for entity in entities:
        for child in entity.children if entity.kind in ("task", "data") else ():
            found.setdefault(child.name or "", child)
    return found
