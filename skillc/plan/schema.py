"""The plan: a program with every default filled in, as frozen data.

Quantities are exact (`Fraction`) and in base units: tokens, seconds, dollars, shares of 1.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from skillc.gates.noisy import rates_of
from skillc.gates.terms import Term
from skillc.gates.units import SHARE, unit_of_metric
from skillc.language.commands import fill_placeholders, json_path, placeholders
from skillc.language.kinds import default_of
from skillc.language.loop import BudgetPlan, EvolvePlan, OptimizePlan
from skillc.language.rollouts import ONE_TURN
from skillc.stats.error_rates import ErrorRates


class Frozen(BaseModel):
    """Base of all plan data: immutable, without undeclared keys.

    Attributes:
        LATER: fields that a digest leaves out while they are None or empty: programs without them keep their digest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    LATER: ClassVar[frozenset[str]] = frozenset()


# ---- task -----------------------------------------------------------------------------------------


class TypePlan(Frozen):
    """A field's type; `labels` in their declared order, `item` for lists, `optional` for `... | none`."""

    kind: Literal["text", "bool", "number", "integer", "json", "file", "image", "labels", "list"]
    labels: tuple[str, ...] = ()
    item: TypePlan | None = None
    optional: bool = False

    @property
    def file_kind(self) -> Literal["file", "image"] | None:
        """What its values are paths of, alone or in a list; None for other types."""
        inner = self.item if self.kind == "list" and self.item is not None else self
        return inner.kind if inner.kind == "file" or inner.kind == "image" else None

    @property
    def text(self) -> str:
        """The type in the notation of the language: `"billing" | "shipping"`, `list[text]`, `number | none`."""
        if self.kind == "labels":
            text = " | ".join(json.dumps(label, ensure_ascii=False) for label in self.labels)
        else:
            text = f"list[{self.item.text}]" if self.item is not None else self.kind
        return f"{text} | none" if self.optional else text


CutPart = Literal["start", "middle", "end"]


class FieldPlan(Frozen):
    """An input, an output, or a data column. `column` is its name in the data file, `limit` in tokens.

    `cut` is the part of an input that is left out where it exceeds `limit`; None sends the whole value. `pixels` is the
    longest side of its images; None sends them as they are.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"cut", "pixels"})

    name: str
    type: TypePlan
    column: str
    about: str | None = None
    limit: int | None = None
    cut: CutPart | None = None
    pixels: int | None = None


class RolloutPlan(Frozen):
    """How one rollout runs; `settings` are those of the kind."""

    kind: str = default_of("task", "rollout")
    arguments: tuple[JsonValue, ...] = ()
    settings: dict[str, JsonValue] = {}

    @property
    def one_turn(self) -> bool:
        """Whether the model answers one prompt, so that it reads files as texts; others have a workspace."""
        return self.kind in ONE_TURN

    @property
    def with_tools(self) -> Mapping[str, JsonValue] | None:
        """The settings of an agent with tools, `react` or an environment's `agent = react`; None for any other."""
        if self.kind == "react":
            return self.settings
        agent = self.settings.get("agent") if self.kind == "environment" else None
        if agent == "react":
            return {}
        return agent if isinstance(agent, dict) and agent.get("kind") == "react" else None

    @property
    def native_calls(self) -> bool:
        """Whether an agent calls tools by the provider's API."""
        return self.kind == "react" and self.settings.get("tool_calls") == "native"


class ExecutorPlan(Frozen):
    """The Ray cluster that rollouts run on; it changes no outcome.

    Attributes:
        address: of the cluster; None starts one on this machine.
        workers: processes with the kind of rollout; None for one on each CPU of the cluster.
    """

    address: str | None = None
    workers: int | None = None


class TaskPlan(Frozen):
    """Inputs, outputs, how a rollout runs, and where: in this process, or on a cluster."""

    LATER: ClassVar[frozenset[str]] = frozenset({"executor"})

    inputs: tuple[FieldPlan, ...]
    outputs: tuple[FieldPlan, ...]
    rollout: RolloutPlan = RolloutPlan()
    executor: ExecutorPlan | None = None


# ---- skill ----------------------------------------------------------------------------------------


class TestsPlan(Frozen):
    """The tests of a script, in a file or a folder beside the program.

    Attributes:
        path: of the file or folder, relative to the program.
        command: what runs them; empty for the test functions and `unittest` cases of Python files.
        shown: whether the optimizer reads their source.
        sandbox: its word, or a block with its word as `kind`; None for the best that works here.
        python: the interpreter; None is that of skillc, or of the image.
        reads: further files and folders that they may read.
    """

    __test__: ClassVar[bool] = False

    path: str
    command: tuple[str, ...] = ()
    shown: bool = False
    sandbox: JsonValue = None
    python: str | None = None
    reads: tuple[str, ...] = ()


class SectionPlan(Frozen):
    """A section of the skill: its initial text, its limit in tokens, and its heading if other than its name.

    `file` is its file in the skill's folder, and `about` when to read it; None for a section in SKILL.md. `rename` is
    whether its lines may rename tools; None for sections that are not about tools. A script has `tests`; without a text
    it begins with the file of its path in the folder of kept files.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"file", "about", "rename", "tests"})

    name: str
    mode: Literal["frozen", "trainable", "slow"]
    text: str = ""
    limit: int | None = None
    title: str | None = None
    file: str | None = None
    about: str | None = None
    rename: bool | None = None
    tests: TestsPlan | None = None


class SkillPlan(Frozen):
    """The document to train. `artifact` is the name by the rules of Agent Skills: `route_tickets`, `route-tickets`.

    `beside` names folders of skills that the target may open too, which no compile changes.
    `present` determines the lead of the rules; None if the target reads the sections only. `files` is the folder with
    the files that belong to the skill unchanged, relative to the program.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"files", "beside"})

    name: str
    artifact: str
    about: str
    about_trainable: bool = False
    sections: tuple[SectionPlan, ...]
    title: str | None = None
    frontmatter: str = ""
    load: Literal["always", "on_demand"] = default_of("skill", "load")
    beside: tuple[str, ...] = ()
    present: Literal["advice", "rules"] | None = default_of("skill", "present")
    files: str | None = None

    @property
    def renames_tools(self) -> bool:
        """Whether its texts may rename the tools of the agent."""
        return any(section.rename for section in self.sections)


def artifact_name(name: str) -> str:
    """The name by the rules of Agent Skills: `route_tickets` becomes `route-tickets`, without stray hyphens."""
    return "-".join(part for part in name.lower().replace("-", "_").split("_") if part)


# ---- models ---------------------------------------------------------------------------------------


class PricePlan(Frozen):
    """Dollars per million tokens, as declared; `call` in dollars a call, without its tokens."""

    input: Fraction
    output: Fraction
    cached: Fraction | None = None
    call: Fraction = default_of("model", "price", "call")


class PacingPlan(Frozen):
    """The pacing of calls of a role, which changes no outcome.

    Attributes:
        concurrency: the most calls in flight; None adapts it to the endpoint.
        rpm: the most requests a minute.
        tpm: the most tokens a minute, sent and received.
        timeout: of one attempt, in seconds.
        down: seconds for which an endpoint that has answered before may be unreachable.
    """

    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    timeout: Fraction = default_of("model", "timeout")
    down: Fraction = default_of("model", "down")


class AnswerPlan(Frozen):
    """The location of the answer in a command's output.

    Attributes:
        kind: the whole output, the text at a path of JSON, the text after a marker, a match, or a file that it writes.
        path: of `json`: names and indices.
        text: the marker, the regular expression, or the name of the file in the working folder.
    """

    kind: Literal["stdout", "json", "after", "match", "file"] = "stdout"
    path: tuple[str | int, ...] = ()
    text: str = ""

    @classmethod
    def of(cls, kind: str, argument: str) -> AnswerPlan:
        """The location that a program writes as `json(".result")` or `after("Answer:")`."""
        given = {"path": json_path(argument) or ()} if kind == "json" else {"text": argument}
        return cls.model_validate({"kind": kind, **given})


class ExecPlan(Frozen):
    """The command that answers for a model.

    Attributes:
        command: its words, with placeholders such as `{prompt}`.
        answer: the location of the answer in its output.
        folder: its working folder, as written; None is a new empty one for each call.
        environment: names of the environment variables that it receives.
    """

    command: tuple[str, ...]
    answer: AnswerPlan = AnswerPlan()
    folder: str | None = None
    environment: tuple[str, ...] = ()

    @property
    def places(self) -> frozenset[str]:
        """The names in braces."""
        return frozenset(place for word in self.command for place in placeholders(word))

    @property
    def shown(self) -> str:
        """The command on one line."""
        return " ".join(word if re.fullmatch(r"[\w@%+=:,./{}-]+", word) else shlex.quote(word) for word in self.command)

    def filled(self, value: Callable[[str], str]) -> list[str]:
        """The words with a value at each place, which stays within its word."""
        return [fill_placeholders(word, value) for word in self.command]


RULEBOOK = "rulebook"
"""The provider of the embedded model."""


def provider_of(model: str) -> str:
    """Return `openai` for `openai/gpt-5.5`; a bare name is OpenAI's, as litellm reads it."""
    provider, slash, _ = model.partition("/")
    return provider if slash or not model else "openai"


class ModelPlan(Frozen):
    """The model of a role; no setting is shared between roles.

    Attributes:
        model: `provider/name` in litellm's notation; empty until `model_env` is resolved.
        model_env: the environment variable with the name, until resolved.
        parameters: sent with each call (`temperature`, `max_tokens`, ...).
        max_reply: the most tokens of a reply, which the ledger reserves.
        key_env: the environment variable with the key; no plan contains the key.
        base_url: address of the endpoint, as written.
        base_url_env: or the environment variable with it.
        price: as declared; None uses litellm's table.
        serve: settings of a server that skillc starts.
        exec: the command that answers, for models of the provider `exec`.
        backend: the user's function that answers, as `module:function`.
        pacing: of its calls.
    """

    role: str
    model: str
    model_env: str | None = None
    parameters: dict[str, JsonValue] = {}
    max_reply: int = default_of("model", "max_reply")
    key_env: str | None = None
    base_url: str | None = None
    base_url_env: str | None = None
    price: PricePlan | None = None
    serve: dict[str, JsonValue] | None = None
    exec: ExecPlan | None = None
    backend: str | None = None
    pacing: PacingPlan = PacingPlan()

    @property
    def provider(self) -> str:
        """The provider in `provider/name`."""
        return provider_of(self.model)

    @property
    def bare_name(self) -> str:
        """The name behind the provider."""
        return self.model.partition("/")[2]


# ---- data -----------------------------------------------------------------------------------------


class SplitPlan(Frozen):
    """Sizes of train, validation and test (the last may be 0), as shares or as counts of examples."""

    unit: Literal["share", "examples"] = "share"
    parts: tuple[Fraction, ...] = tuple(map(Fraction, default_of("data", "split")))


class DataPlan(Frozen):
    """The source of the examples: one `source` that is split, or a file for each side. Paths are as written."""

    source: str | None = None
    train: str | None = None
    validation: str | None = None
    test: str | None = None
    fields: tuple[FieldPlan, ...] = ()
    split: SplitPlan | None = None
    group: str | None = None
    seed: int = default_of("data", "seed")


# ---- metrics and gates ----------------------------------------------------------------------------

TermField = Annotated[Term, Field(discriminator="kind")]


class MetricPlan(Frozen):
    """A metric of one rollout, with its finite range, in base units."""

    name: str
    term: TermField
    unit: str = ""
    low: Fraction
    high: Fraction
    goal: bool = False
    declared: bool = True

    @property
    def rates(self) -> ErrorRates | None:
        """The declared error rates of a noisy signal; None for any other metric."""
        return rates_of(self.term)

    @property
    def shown_unit(self) -> str:
        """The unit that its mean is shown in: per cent for a share, also for a corrected signal, else its own."""
        return SHARE if self.rates is not None else unit_of_metric(self.unit, self.low, self.high)

    @property
    def widest(self) -> Fraction:
        """The largest mean gain that is possible: that of shares for a corrected signal, else the range."""
        return Fraction(1) if self.rates is not None else self.high - self.low


class GatePlan(Frozen):
    """A condition on a candidate. `stage` is the cheapest evidence that can decide it."""

    name: str
    term: TermField
    text: str
    stage: Literal["text", "batch", "validation"]
    for_: Literal["slow"] | None = None


class RequirePlan(Frozen):
    """A condition that is decided once, on the baseline, before the first step."""

    name: str
    term: TermField
    text: str


class CriterionPlan(Frozen):
    """One quality that a judge looks at.

    Attributes:
        name: empty for the only one of a rubric that is a text.
        question: what is asked; with levels, the text before them.
        levels: each number with its meaning, the best first; empty for a question answered by yes (1) or no (0).
        weight: its share in the score.
    """

    name: str = ""
    question: str = ""
    levels: tuple[tuple[int, str], ...] = ()
    weight: Fraction = Fraction(1)

    def score(self, level: int) -> Fraction:
        """The score of a level, from 0 to 1."""
        if not self.levels:
            return Fraction(level)
        high, low = self.levels[0][0], self.levels[-1][0]
        return Fraction(level - low, high - low)


class RubricPlan(Frozen):
    """The criteria of a judge, and what it reads besides inputs and output.

    `each` is the column whose statements about an example are its criteria; there are no others then.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"each"})

    criteria: tuple[CriterionPlan, ...]
    each: str | None = None
    sees: tuple[Literal["gold", "trajectory"], ...] = ()


class Plan(Frozen):
    """The whole program; equivalent programs have equal plans and digests.

    In `metrics` each comes after those that it reads, and exactly one is the goal. `rubrics` contains those of
    judges by name. `required_verdict` is required for delivery; None delivers with any verdict. `others` are the
    skills of the program that this compile does not train. `evolve` has the settings of its nights, which change no
    compile.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"others", "evolve"})

    language: int = 1
    task: TaskPlan
    skill: SkillPlan
    models: dict[str, ModelPlan]
    data: DataPlan
    metrics: tuple[MetricPlan, ...]
    optimize: OptimizePlan = OptimizePlan()
    budget: BudgetPlan
    gates: tuple[GatePlan, ...]
    requires: tuple[RequirePlan, ...] = ()
    rubrics: dict[str, RubricPlan] = {}
    required_verdict: Literal["improved"] | None = None
    others: tuple[SkillPlan, ...] = ()
    evolve: EvolvePlan | None = None

    @property
    def goal(self) -> MetricPlan:
        """The metric that is optimised."""
        return next(m for m in self.metrics if m.goal)

    def metric(self, name: str) -> MetricPlan:
        """The metric of a name."""
        return next(m for m in self.metrics if m.name == name)
