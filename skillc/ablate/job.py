"""Choose the rules that are left out, run the ablation, and judge what each rule adds as one family."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.document.edits import Add, Replace
from skillc.document.skill import Document, Rule
from skillc.errors import SkillcError
from skillc.json_values import canonical
from skillc.models.client import Client
from skillc.optimize.engine import Engine
from skillc.optimize.gate.decide import ENDS, cut_off
from skillc.optimize.host import Observer
from skillc.optimize.loop.baseline import first_state
from skillc.optimize.loop.train import TrainResult
from skillc.optimize.strategies.ablate import (
    Task,
    Trial,
    completions,
    in_order,
    leave_out,
    pairs_of,
    removable_rules,
    rule_tokens,
)
from skillc.pipeline.compile import Job
from skillc.pipeline.tidy import TidyResult, measured_engine, shorten
from skillc.plan.schema import Plan
from skillc.review.decisions import decisions_of
from skillc.run.history import read_history
from skillc.run.stop import Stop
from skillc.stats.family import Finding, Member, judge_family
from skillc.stats.verdict import judge
from skillc.text import counted

ABLATED = "ablated"


@dataclass(frozen=True, slots=True)
class AblateOptions:
    """The user's options.

    Attributes:
        rules: the most rules that are left out; None for all.
        keep: numbers of rules that stay, in the order of the skill, from 1.
        dry_run: only measure what each rule adds to the whole skill.
    """

    rules: int | None = None
    keep: tuple[int, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What a rule adds.

    Attributes:
        number: of the rule in the skill, from 1.
        tokens: how many tokens shorter the skill is without it.
        finding: what the test of the family claims.
        member: the test; None without a measurement.
        adds: the least and the greatest mean difference on the whole split; equal if all of it was measured.
        interval: of the difference, for every completion of what was not measured.
        measured: examples without the rule, `of` how many.
        dropped: whether the gates accepted the skill without it.
        kept: whether the user keeps it.
        together: numbers of the rules of its block, if several were dropped at once: `member` is that of all.
    """

    number: int
    rule: Rule
    tokens: int
    finding: Finding = "not measured"
    member: Member | None = None
    adds: tuple[Fraction, Fraction] | None = None
    interval: tuple[Fraction, Fraction] | None = None
    measured: int = 0
    of: int = 0
    dropped: bool = False
    kept: bool = False
    together: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ablation:
    """The result of an ablation.

    Attributes:
        rules: in the order of the skill.
        tests: claims that share the level: the rules that were to be measured.
        shortened: the skill before and after, and its test.
    """

    rules: tuple[RuleResult, ...]
    tests: int
    dry_run: bool
    shortened: TidyResult

    @property
    def dropped(self) -> tuple[RuleResult, ...]:
        """The rules that were dropped."""
        return tuple(each for each in self.rules if each.dropped)


def task_of(job: Job, skill: Document, options: AblateOptions) -> Task:
    """Return the rules in the order in which they are tried.

    Raises:
        SkillcError: `keep` names no rule, or all of them.
    """
    rules = removable_rules(skill)
    for number in options.keep:
        if not 1 <= number <= len(rules):
            raise SkillcError(
                f"no rule {number} to keep: the skill has {counted(len(rules), 'rule')}",
                hint="`skillc ablate PROGRAM --dry-run` prints their numbers",
            )
    kept = {rules[number - 1].id for number in options.keep}
    left = [rule for rule in rules if rule.id not in kept]
    if not left:
        raise SkillcError("`--keep` names every rule, so there is nothing to leave out")
    cured = cured_by_edits(read_history(job.paths.history), rules)
    return Task(in_order(skill, left, cured)[: options.rules], cured, drop=not options.dry_run)


def cured_by_edits(lines: Sequence[Mapping[str, object]], rules: Sequence[Rule]) -> dict[str, frozenset[str]]:
    """Return by id of a rule the validation examples that its text cured when it was accepted, by a history."""
    texts = {rule.text: rule.id for rule in rules}
    found: dict[str, frozenset[str]] = {}
    for decision in decisions_of(lines):  # type: ignore[arg-type]  # lines of JSON
        for each in decision.edits if decision.accepted else ():
            rule = texts.get(each.edit.text) if isinstance(each.edit, Add | Replace) else None
            if rule is not None and each.credit is not None:
                found[rule] = frozenset(each.credit.cured_ids)
    return found


def check_caps(job: Job, capped: Plan, *, dry_run: bool) -> None:
    """Refuse caps on calls that cannot pay for the skill, one rule and the final test.

    Raises:
        SkillcError: with a sufficient number of calls.
    """
    dataset, samples, calls = job.estimated.dataset, job.planned.plan.optimize.samples, capped.budget.calls
    least = samples * (3 * len(dataset.validation) + (0 if dry_run else 2 * len(dataset.test)))
    if calls is not None and calls < least:
        what = "initial skill, compiled skill and one rule on validation" + ("" if dry_run else ", and the final test")
        raise SkillcError(
            f"{calls:,} calls cannot pay for an ablation: {what} take at least {least:,} calls",
            hint=f"use `--calls {least}` or more; cached replies count as well",
        )


def ablate_job(
    job: Job, skill: Document, options: AblateOptions, observer: Observer, client: Client, stop: Stop | None = None
) -> Ablation:
    """Leave out the rules of a skill; if some were dropped, test and write the skill as a compile does.

    Raises:
        SkillcError: an option names no rule, or models, data, metrics or files cannot be used.
        BudgetReached: the caps do not admit the first measurements.
        EndpointUnreachable: a model was unreachable before the skill was measured.
    """
    task = task_of(job, skill, options)
    trials: list[Trial] = []
    judged: list[_Judged] = []

    async def search(skill: Document, engine: Engine, initial: Document) -> TrainResult:
        engine, quarantined = await measured_engine(engine, initial, [skill], reserve=task.drop)
        state = replace(first_state(engine, initial), incumbent=skill, best=skill)
        reason = ABLATED
        try:
            state = await leave_out(engine, state, task, trials)
        except ENDS as end:
            cut = cut_off(engine, state, end)
            state, reason = cut.state, cut.reason
        judged.extend(_judged(engine, trials, len(task.rules)))
        return TrainResult(state, engine, reason, quarantined)

    shortened = shorten(job, skill, search, observer, client, stop, task=_digest(task), done=ABLATED)
    return Ablation(_results(skill, judged, options), len(task.rules), options.dry_run, shortened)


def _digest(task: Task) -> str:
    """Identify what is done to the skill; a dry run asks for the same rollouts."""
    rules = [[rule.id, sorted(task.cured.get(rule.id, ()))] for rule in task.rules]
    return hashlib.sha256(canonical(["ablate", rules]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Judged:
    """A trial with its test, and bounds of what its rules add."""

    trial: Trial
    member: Member
    adds: tuple[Fraction, Fraction]
    interval: tuple[Fraction, Fraction] | None
    of: int


def _judged(engine: Engine, trials: Sequence[Trial], tests: int) -> list[_Judged]:
    """Judge all trials as one family; rules that were not tried count as tests."""
    family = {str(i): pairs_of(engine, trial) for i, trial in enumerate(trials)}
    left = tests - sum(len(trial.rules) for trial in trials)
    for i in range(left if trials else 0):
        family[f"left {i}"] = tuple(replace(pair, initial=None) for pair in family["0"])
    goal, seed, samples = engine.plan.goal, engine.plan.data.seed, engine.plan.optimize.samples
    members = judge_family(family, low=goal.low, high=goal.high, seed=seed, samples=samples, rates=goal.rates)
    found = []
    for i, trial in enumerate(trials):
        pairs, member = family[str(i)], members[str(i)]
        ends = [
            judge(
                each,
                low=goal.low,
                high=goal.high,
                look=1,
                seed=seed,
                samples=samples,
                level=member.verdict.alpha,
                rates=goal.rates,
            )
            for each in completions(engine, pairs)
        ]
        least, most = (each.gain or Fraction(0) for each in ends)
        low, high = (each.interval for each in ends)
        both = None if low is None or high is None else (low[0], high[1])
        found.append(_Judged(trial, member, (least, most), both, len(pairs) // samples))
    return found


def _results(skill: Document, judged: Sequence[_Judged], options: AblateOptions) -> tuple[RuleResult, ...]:
    """Return the result of each rule, in the order of the skill."""
    rules = removable_rules(skill)
    numbers = {rule.id: i for i, rule in enumerate(rules, 1)}
    of = {rule.id: each for each in judged for rule in each.trial.rules}
    results = []
    for number, rule in enumerate(rules, 1):
        result = RuleResult(number, rule, rule_tokens(skill, rule), kept=number in options.keep)
        found = of.get(rule.id)
        if found is not None and found.member.verdict.n:
            block = tuple(sorted(numbers[each.id] for each in found.trial.rules))
            result = replace(
                result,
                finding=found.member.finding,
                member=found.member,
                adds=found.adds,
                interval=found.interval,
                measured=found.member.verdict.n,
                of=found.of,
                dropped=found.trial.dropped,
                together=block if len(block) > 1 else (),
            )
        results.append(result)
    return tuple(results)
