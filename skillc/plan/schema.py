"""The plan: a program with every default filled in, frozen, and the same bytes for the same meaning.

Quantities are exact (`Fraction`) and in base units: tokens, seconds, dollars, shares of 1.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from skillc.gates.terms import Term
from skillc.language.templates import fill, places_in


class Frozen(BaseModel):
    """Base of all plan data: immutable, and no key that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# ---- task -----------------------------------------------------------------------------------------


class TypePlan(Frozen):
    """A field's type; `labels` in their declared order, `item` for lists, `optional` for `... | none`."""

    kind: Literal["text", "bool", "number", "integer", "json", "file", "image", "labels", "list"]
    labels: tuple[str, ...] = ()
    item: TypePlan | None = None
    optional: bool = False


class FieldPlan(Frozen):
    """An input, an output, or a data column. `column` is its name in the data file, `limit` in tokens."""

    name: str
    type: TypePlan
    column: str
    about: str | None = None
    limit: int | None = None


class RolloutPlan(Frozen):
    """How one rollout runs. `settings` passes on what later kinds need."""

    kind: str = "predict"
    arguments: tuple[JsonValue, ...] = ()
    settings: dict[str, JsonValue] = {}


class TaskPlan(Frozen):
    """What goes in, what comes out, and how."""

    inputs: tuple[FieldPlan, ...]
    outputs: tuple[FieldPlan, ...]
    rollout: RolloutPlan = RolloutPlan()


# ---- skill ----------------------------------------------------------------------------------------


class SectionPlan(Frozen):
    """A section of the skill: its initial text, its limit in tokens, and its heading where it is not its name."""

    name: str
    mode: Literal["frozen", "trainable", "slow"]
    text: str = ""
    limit: int | None = None
    title: str | None = None


class SkillPlan(Frozen):
    """The document to train. `artifact` is the name by Agent Skills rules: `route_tickets` becomes `route-tickets`.

    `present` says how to take the rules; None where the sections are all that the target reads.
    """

    name: str
    artifact: str
    about: str
    about_trainable: bool = False
    sections: tuple[SectionPlan, ...]
    title: str | None = None
    frontmatter: str = ""
    load: Literal["always", "on_demand"] = "always"
    present: Literal["advice", "rules"] | None = "rules"


DEFAULT_REPLY = 4096

# ---- models ---------------------------------------------------------------------------------------


class PricePlan(Frozen):
    """Dollars per million tokens, as declared; `call` in dollars a call, its tokens aside."""

    input: Fraction
    output: Fraction
    cached: Fraction | None = None
    call: Fraction = Fraction(0)


class PacingPlan(Frozen):
    """How fast a role's endpoint is called, which no outcome depends on.

    Attributes:
        concurrency: the most calls in flight at once; None leaves it to how the endpoint fares.
        rpm: the most requests a minute.
        tpm: the most tokens a minute, sent and received.
        timeout: seconds that one attempt may take.
        down: seconds for which an endpoint that answered before may stay out of reach.
    """

    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    timeout: Fraction = Fraction(300)
    down: Fraction = Fraction(300)


class AnswerPlan(Frozen):
    """Where an answer stands in what a command gives.

    Attributes:
        kind: all of its output, the text at a path of JSON, what follows a marker, a match, or a file it writes.
        path: of `json`: names and indices.
        text: the marker, the regular expression, or the file's name within the working folder.
    """

    kind: Literal["stdout", "json", "after", "match", "file"] = "stdout"
    path: tuple[str | int, ...] = ()
    text: str = ""


class ExecPlan(Frozen):
    """The command that answers for a model.

    Attributes:
        command: its words, with places such as `{prompt}` in them.
        answer: where its answer stands.
        folder: the folder in which it runs, as written; None is an empty one for each call.
        environment: names of variables that it is given.
    """

    command: tuple[str, ...]
    answer: AnswerPlan = AnswerPlan()
    folder: str | None = None
    environment: tuple[str, ...] = ()

    @property
    def places(self) -> frozenset[str]:
        """The names in braces."""
        return frozenset(place for word in self.command for place in places_in(word))

    @property
    def shown(self) -> str:
        """The command on one line."""
        return " ".join(word if re.fullmatch(r"[\w@%+=:,./{}-]+", word) else shlex.quote(word) for word in self.command)

    def filled(self, value: Callable[[str], str]) -> list[str]:
        """The words with a value at each place, which stays within its word."""
        return [fill(word, value) for word in self.command]


class ModelPlan(Frozen):
    """One role's model with its own settings; no role takes anything from another silently.

    Attributes:
        model: `provider/name`, as litellm reads it; empty while `model_env` is not looked up.
        model_env: the environment variable that holds the name, until it is looked up.
        parameters: sent with each call (`temperature`, `max_tokens`, ...).
        max_reply: the most tokens one reply may have, which is what the ledger reserves.
        key_env: name of the environment variable that holds the key; the key itself is in no plan.
        base_url: address of the endpoint, as written.
        base_url_env: or the environment variable that holds it.
        price: as declared; None means litellm's table.
        serve: settings of a server that skillc starts.
        exec: the command that answers, for models of the provider `exec`.
        backend: the function of the user's own that answers, as `module:function`.
        pacing: how fast it may be called.
    """

    role: str
    model: str
    model_env: str | None = None
    parameters: dict[str, JsonValue] = {}
    max_reply: int = DEFAULT_REPLY
    key_env: str | None = None
    base_url: str | None = None
    base_url_env: str | None = None
    price: PricePlan | None = None
    serve: dict[str, JsonValue] | None = None
    exec: ExecPlan | None = None
    backend: str | None = None
    pacing: PacingPlan = PacingPlan()


# ---- data -----------------------------------------------------------------------------------------


class SplitPlan(Frozen):
    """Sizes of train, validation and test (the last may be 0), as shares or as counts of examples."""

    unit: Literal["share", "examples"] = "share"
    parts: tuple[Fraction, ...] = (Fraction(2), Fraction(1), Fraction(2))


class DataPlan(Frozen):
    """Where examples come from: one `source` that is split, or files for the sides. Paths are as written."""

    source: str | None = None
    train: str | None = None
    validation: str | None = None
    test: str | None = None
    fields: tuple[FieldPlan, ...] = ()
    split: SplitPlan | None = None
    group: str | None = None
    seed: int = 0


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


# ---- loop -----------------------------------------------------------------------------------------


class SchedulePlan(Frozen):
    """The edit budget per step: from `start` at the first step to `end` at the last; `model` lets the optimizer say."""

    kind: Literal["constant", "linear", "cosine", "model"] = "cosine"
    start: int = 8
    end: int = 4


class OptimizePlan(Frozen):
    """The mechanisms of the loop, each with its switch.

    Attributes:
        batch: training examples a step.
        edits: the edit budget per step.
        minibatch: trajectories one reflection sees.
        samples: rollouts per example.
        candidates: candidates a step that are raced against each other.
        drafts: whole-section drafts of a step that is not spent on edits; 0 spends all steps on edits.
        screen: examples on which each edit is tried alone; 0 turns it off.
        control: whether a failure that an unrelated edit cures too counts for nothing in the screen.
        together: whether edits that cure nothing alone are screened together.
        replay: earlier failures that the batch of a step takes in again.
        retries: smaller patches that are tried after a rejection.
        wave: rollouts sent at once while a gate is decided; None means a tenth of the validation split, 8 to 32.
        speculate: whether the incumbent runs the next batch while a gate is decided.
        accept: whether the gates decide, or each candidate is taken.
        rollback: with `accept = always`: a fall below the best by more than this share of the goal's range goes back to
            it; None never does.
        update: edits on rules, a section rewritten from suggestions, or all trainable sections rewritten.
        tidy: whether rules without support are taken out at epoch ends, and the rest is written shorter.
        accumulate: batches whose proposals are pooled for one candidate.
        sees: what the optimizer may look at.
        knowledge: whether the optimizer may use what it knows of the subject, or only what the examples show.
        successes: whether successes are reflected on too.
        lapses: whether a failure to follow the skill becomes a reminder in the section `reminders`.
        lookups: questions that one reflection may ask of the trajectories; 0 shows them whole.
        rule_counts: whether reflections count each rule as helpful or harmful.
        pairs: which longitudinal examples a slow update is shown.
        trajectory_limit: tokens of one trajectory that a reflection is shown.
    """

    method: Literal["skillc", "gepa", "miprov2", "one_shot"] = "skillc"
    batch: int = 40
    edits: SchedulePlan = SchedulePlan()
    minibatch: int = 8
    samples: int = 1
    candidates: int = 1
    drafts: int = 3
    screen: int = 3
    control: bool = True
    together: bool = True
    replay: int = 20
    retries: int = 0
    wave: int | None = None
    speculate: bool = True
    accept: Literal["gates", "always"] = "gates"
    rollback: Fraction | None = None
    update: Literal["edits", "rewrite_section", "rewrite_all"] = "rewrite_section"
    tidy: bool = False
    accumulate: int = 1
    sees: tuple[Literal["gold", "feedback", "trajectory"], ...] = ("gold", "feedback", "trajectory")
    knowledge: Literal["open", "examples"] = "open"
    successes: bool = False
    lapses: bool = False
    lookups: int = 0
    rule_counts: bool = False
    rejected_buffer: bool = True
    slow_update: bool = True
    slow_update_samples: int = 20
    pairs: Literal["mixed", "changed", "unchanged"] = "mixed"
    meta_skill: bool = True
    trajectory_limit: int = 1500


class BudgetPlan(Frozen):
    """Caps only. None means no cap; time in seconds, cost in dollars, patience in steps, min_gain in goal points."""

    epochs: int | None = None
    steps: int | None = None
    calls: int | None = None
    tokens: int | None = None
    cost: Fraction | None = None
    time: Fraction | None = None
    patience: int | None = None
    min_gain: Fraction = Fraction(0)


class Plan(Frozen):
    """The whole program. Two programs that mean the same have equal plans and equal hashes.

    `metrics` stand so that each comes after those that it reads; exactly one is the goal. `rubrics` holds the texts
    for judges by name. `required_verdict` is the verdict that delivers the skill; None delivers it with any.
    """

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
    rubrics: dict[str, str] = {}
    required_verdict: Literal["improved"] | None = None

    @property
    def goal(self) -> MetricPlan:
        """The metric that is optimised."""
        return next(m for m in self.metrics if m.goal)

    def metric(self, name: str) -> MetricPlan:
        """The metric of a name."""
        return next(m for m in self.metrics if m.name == name)
