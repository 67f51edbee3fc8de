"""The settings of `optimize`, `budget` and `evolve`, each declared once.

One field defines a setting for the table of kinds, the plan, `--set`, hovers, costs and the documentation. Numbers are
in base units: seconds, dollars, tokens.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from skillc.dataclass import dataclass
from skillc.language.forms import DOLLARS, SCHEDULES, TEXT, TIME, Form, amount, count, number, setting, settings_of


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """The edit budget of a step, from `start` at the first to `end` at the last; for `model` the optimizer decides."""

    kind: Literal["constant", "linear", "cosine", "model"] = "cosine"
    start: int = 8
    end: int = 4

    def __str__(self) -> str:
        arguments = {"model": "", "constant": f"({self.start})"}
        return self.kind + arguments.get(self.kind, f"({self.start}, {self.end})")


@dataclass(frozen=True, slots=True)
class OptimizePlan:
    """The mechanisms of the loop, each with its switch."""

    method: Literal["skillc", "gepa", "miprov2", "one_shot"] = setting(
        "skillc",
        "the optimizer",
        details="`gepa` and `miprov2` run DSPy's optimizers, `one_shot` a single rewrite: on the same module, under "
        "the same ledger, cache, gates and verdict",
    )
    batch: int = setting(40, "training examples of a step", count("examples"), stages=("rollout",))
    edits: SchedulePlan = setting(
        SchedulePlan(),
        "the edit budget: the largest number of edits of a step",
        *SCHEDULES,
        stages=("screen", "select"),
        details="the edit budget of a step: a number, `linear(a, b)`, `cosine(a, b)`, or `model` to let the optimizer "
        "choose. `linear` and `cosine` move from `a` to `b` with the smaller of two shares: the steps done of those "
        "that `epochs` and `steps` allow, and the tokens used of the limits of the trainable sections. So the budget "
        "does not decay while the skill is empty. If only calls, tokens, cost or time are capped, the schedule has "
        "the steps of 4 epochs, because a raised cap must not change past decisions",
    )
    minibatch: int = setting(8, "trajectories in one reflection", count("examples"), stages=("reflect",))
    samples: int = setting(
        1,
        "rollouts per example",
        count(),
        details="rollouts per validation and test example, for models that answer by chance. A training example that "
        "fails is retried until it is right or the samples are used up; the right rollout is shown beside the wrong "
        "one",
    )
    candidates: int = setting(1, "candidates of a step, raced in lockstep", count(), stages=("gate",))
    drafts: int = setting(
        3,
        "whole-section drafts of a step that is not spent on edits",
        count(low=0),
        stages=("draft", "screen"),
        details="whole-section drafts of a step that is not spent on edits. Each is written from different failures, "
        "and the best is revised and gated. 0 spends all steps on edits",
    )
    screen: int = setting(
        3,
        "failures, of its author's and unseen ones, on which each edit is tried alone",
        count("examples", low=0),
        stages=("screen",),
        details="failures on which each edit is tried alone: one case from its own prompt (a third of them from six "
        "on), then unseen failures and own cases in turns. With 3 failures, 2 similar right cases are tried too. 0 "
        "turns the screen off",
    )
    control: bool = setting(
        True,
        "whether a cure counts only where an unrelated edit does not cure too",
        stages=("screen",),
        details="placebo control: a cure counts only if an unrelated edit does not cure the same example, a breakage "
        "only if it recurs beside an unrelated edit",
    )
    together: bool = setting(
        True,
        "whether edits that cure nothing alone are tried together",
        stages=("screen",),
        details="edits that cured nothing yet are tried together on all their cases, then alone on the cases that the "
        "group cures",
    )
    replay: int = setting(
        20, "earlier failures added to a batch", count("examples", low=0), stages=("rollout", "reflect")
    )
    retries: int = setting(
        0, "smaller patches tried after a rejection, without the edits that broke most", count(low=0), stages=("gate",)
    )
    wave: int | None = setting(
        None,
        "rollouts of a candidate sent at once",
        count("examples"),
        unset="a tenth of the validation split, 8 to 32",
        stages=("gate",),
    )
    speculate: bool = setting(
        True,
        "whether the next batch runs while a gate is decided",
        details="prefetch: after a step without an accept, roll out the next batch while a gate is decided, if it "
        "certainly fits under the caps",
    )
    accept: Literal["gates", "always"] = setting(
        "gates",
        "whether gates decide on candidates",
        stages=("gate",),
        details="`always` accepts each candidate after a complete validation, for comparison with the gates",
    )
    rollback: Fraction | None = setting(
        None,
        "with `accept = always`: the loss against the best skill that restores it",
        number(0, 1),
        details="with `accept = always`: restore the best skill if the goal falls by this share of its range",
    )
    update: Literal["edits", "rewrite_section", "rewrite_all"] = setting(
        "rewrite_section",
        "how a candidate is written",
        stages=("rewrite",),
        details="how the candidate is written from the edits that passed the screen. `rewrite_section`: the optimizer "
        "rewrites the section that most of them change, joins rules, and orders them; unchanged rules keep their ids, "
        "and the same gates decide. `rewrite_all`: it rewrites all trainable sections. `edits`: the edits are applied "
        "unchanged, which saves one optimizer call per step",
    )
    tidy: bool = setting(
        False,
        "whether rules without support are removed, and the rest shortened",
        stages=("tidy",),
        details="at epoch ends and before the final test, rules without support are removed and the rest is "
        "shortened, see [below](#tidying)",
    )
    accumulate: int = setting(1, "batches whose proposals are pooled for one candidate", count())
    sees: tuple[Literal["gold", "feedback", "trajectory"], ...] = setting(
        ("gold", "feedback", "trajectory"),
        "evidence shown to the optimizer",
        details="evidence shown to the optimizer; prompts contain nothing else",
    )
    knowledge: Literal["open", "examples"] = setting(
        "open",
        "the knowledge that the optimizer may use",
        details="`examples`: the optimizer writes only rules that the examples show, and uses no other knowledge of "
        "the subject",
    )
    successes: bool = setting(
        False,
        "whether successes are also reflected on",
        stages=("reflect",),
        details="on: also reflect on successes, in separate minibatches; in recorded runs with language models "
        "they proposed nothing that was kept",
    )
    lapses: bool = setting(
        False,
        "whether failures to follow the skill become reminders",
        details="a failure to follow a correct rule becomes a reminder in a separate section, not another rule",
    )
    lookups: int = setting(
        0,
        "questions that one reflection may ask of the trajectories",
        count(low=0),
        stages=("reflect",),
        details="questions that one reflection may ask of the trajectories: list, read in parts, search",
    )
    rule_counts: bool = setting(
        False,
        "whether rules are counted as helpful and harmful",
        details="count the examples on which each rule helped or misled, and show the counts beside the rules. A rule "
        "that harms more than it helps is proposed for deletion",
    )
    rejected_buffer: bool = setting(True, "whether the optimizer is shown the run's rejected edits, with the reasons")
    slow_update: bool = setting(
        True,
        "whether slow sections are rewritten at epoch ends",
        stages=("slow update",),
        details="`slow` sections are rewritten at epoch ends, from the same examples before and after the epoch",
    )
    slow_update_samples: int = setting(
        20, "examples that a slow update compares", count("examples", low=0), stages=("slow update",)
    )
    pairs: Literal["mixed", "changed", "unchanged"] = setting(
        "mixed",
        "examples that a slow update is shown",
        details="which of these examples the slow update is shown: all, only those that `changed`, or only those that "
        "stayed `unchanged`",
    )
    meta_skill: bool = setting(
        True,
        "whether the optimizer keeps a memory of what helped",
        stages=("meta skill",),
        details="the optimizer keeps a memory of what helped, across epochs, written from the fates of the epoch's "
        "edits. After an epoch without a gain it is told not to repeat itself; after one without a proposal it is not "
        "called",
    )
    null_arm: Literal["auto", "always", "never"] = setting(
        "auto",
        "whether the initial skill is measured twice and put through the gates against itself",
        stages=("null arm",),
        details="measure the initial skill on validation again and put it through the gates as a candidate against "
        "itself. This shows the gain that chance alone makes, and changes no decision. `auto`: only if it takes at "
        "most a tenth of the expected rollouts and the target is not the rulebook without noise. It runs before the "
        "first step if no cap can be reached, else at the end with the rest of the budget. See "
        "[noise](guides/noise.md)",
    )
    trajectory_limit: int = setting(
        1500, "tokens of one trajectory shown to a reflection", amount("tokens", low=1, whole=True)
    )


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """Caps on the spending of a run; None means no cap.

    Attributes:
        LATER: as of `skillc.plan.schema.Frozen`.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"judge_calls", "judge_cost"})

    epochs: int | None = setting(None, "passes over the training split", count("epochs"), ends_run=True)
    steps: int | None = setting(None, "steps of the loop", count("steps"), ends_run=True)
    calls: int | None = setting(None, "calls of any model", count(), ends_run=True, truncates=True)
    tokens: int | None = setting(None, "tokens sent and received", count("tokens"), ends_run=True, truncates=True)
    cost: Fraction | None = setting(None, "money at list price", DOLLARS, ends_run=True, truncates=True)
    judge_calls: int | None = setting(None, "calls of judges", count(), truncates=True)
    judge_cost: Fraction | None = setting(None, "money for judges at list price", DOLLARS, truncates=True)
    time: Fraction | None = setting(
        None, "wall-clock time; the run stops at a decision", TIME, ends_run=True, truncates=True
    )
    patience: int | None = setting(
        None,
        "steps without an accept before the run ends",
        amount("steps", low=0, whole=True),
        truncates=True,
        unset="an epoch, at least 8 steps",
        details="steps without an accept before the run ends; 0 runs all steps",
    )
    min_gain: Fraction = setting(
        Fraction(0), "the gain of an accept that resets the patience", number(0), truncates=True
    )


@dataclass(frozen=True, slots=True)
class EvolvePlan:
    """What a night of `skillc evolve` reads and may spend, and what it must prove over all nights."""

    sessions: tuple[str, ...] = setting(
        (),
        "where new sessions are: agents such as `claude-code`, files, folders",
        Form("list", items=(TEXT,)),
        unset="only what is in the store",
    )
    calls: int | None = setting(None, "calls of any model in one night", count(), unset="the cap of `budget`")
    cost: Fraction | None = setting(None, "money of one night at list price", DOLLARS, unset="the cap of `budget`")
    time: Fraction | None = setting(None, "wall-clock time of one night", TIME, unset="the cap of `budget`")
    error: Fraction = setting(
        Fraction(1, 20), "the probability of a single false accept over all nights together", number(0, 1)
    )
    drift: Fraction = setting(
        Fraction(1, 20), "the fall below the lock's score that rolls back, as a share of the goal's range", number(0, 1)
    )


OPTIMIZE = settings_of(OptimizePlan)
BUDGET = settings_of(BudgetPlan)
EVOLVE = settings_of(EvolvePlan)
CAPS = tuple(each.name for each in BUDGET if each.ends_run)
"""The caps that end a run."""
SPENDING_CAPS = ("calls", "tokens", "cost", "judge_calls", "judge_cost")
"""The caps that the ledger enforces."""
