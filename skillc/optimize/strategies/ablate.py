"""Ablation: leave out each rule of a skill, and drop the rules whose removal loses nothing.

Rules are tried in sequence against the current skill, so that only one of two redundant rules is dropped. Rules that
are not known to have cured anything are tried first, as one block. If no example loses, the block is dropped; else it
is split by the words of the lost examples. The gates for tidying decide. A rule is measured until the rest of
validation cannot change its decision. After all decisions, the remaining rules are measured until the rest cannot
change the claims about them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from skillc.dataclass import dataclass
from skillc.document.edits import Delete
from skillc.document.skill import Document, Rule, tokens
from skillc.models.concurrency import gather
from skillc.optimize.engine import Engine, Position, SearchState
from skillc.optimize.gate.credit import Flips, attribute_flips, flips
from skillc.optimize.gate.decide import Patch, committed, settle
from skillc.optimize.gate.pool import REQUEUES, Cell
from skillc.optimize.screen.candidates import apply_and_report
from skillc.optimize.strategies.tidy import has_rules, tidy_gates
from skillc.outcomes import MICRO
from skillc.stats.family import is_claim_settled
from skillc.stats.verdict import PairedScore
from skillc.text import shown

STAGE = "ablate"
# A block is split after one loss per this many rules, or after this part of the split.
_RULES_PER_LOSS, _SHARE = 3, 4
# Characters of a rule in the history.
_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Trial:
    """Trial of leaving out one or more rules: the skill with and without them.

    Attributes:
        rules: one rule, or a block that was dropped at once.
        dropped: whether the gates accepted the skill without them.
    """

    rules: tuple[Rule, ...]
    skill: Document
    without: Document
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """Input of an ablation.

    Attributes:
        rules: in the order of the trials.
        cured: by id of a rule, the validation examples that its edit cured when it was accepted.
        drop: whether to drop rules; otherwise each is only measured against the whole skill.
    """

    rules: tuple[Rule, ...]
    cured: Mapping[str, frozenset[str]]
    drop: bool = True


def removable_rules(skill: Document) -> tuple[Rule, ...]:
    """Return the rules of a skill that can be left out, in order, without the lines of scripts."""
    return tuple(rule for section in skill.sections if has_rules(section) for rule in section.rules)


def rule_tokens(skill: Document, rule: Rule) -> int:
    """Return the number of tokens that a rule adds to the skill."""
    return tokens(skill) - tokens(_without(skill, [rule]))


def in_order(skill: Document, rules: Sequence[Rule], cured: Mapping[str, frozenset[str]]) -> tuple[Rule, ...]:
    """Sort rules by trial order: fewest cures first; ties go to the longer rule."""
    return tuple(sorted(rules, key=lambda rule: (len(cured.get(rule.id, ())), -rule_tokens(skill, rule))))


async def leave_out(engine: Engine, state: SearchState, task: Task, trials: list[Trial]) -> SearchState:
    """Try the rules of the incumbent, which is measured on validation; append each trial to `trials`.

    It first decides which rules to drop, then measures the others until the claims about them are settled. A cap thus
    costs claims before it costs decisions.

    Raises:
        CutOff: a cap, an unreachable model or the user ended it; an unfinished trial is the last in `trials`.
    """
    if task.drop:
        state = await _drop(engine, state, task, trials)
    else:
        trials += [_trial(state.incumbent, [rule]) for rule in task.rules]
    goal, seed = engine.plan.goal, engine.plan.data.seed
    with committed(engine, state):
        for trial in trials:
            if trial.dropped:
                continue

            def is_settled(trial: Trial = trial) -> bool:
                return _is_decided(engine, trial) and is_claim_settled(
                    pairs_of(engine, trial), len(task.rules), low=goal.low, high=goal.high, seed=seed
                )

            first = task.cured.get(trial.rules[0].id, frozenset())
            await _measure(engine, trial, _ordered(engine, trial.skill, first, failures_first=True), is_settled)
    return state


async def _drop(engine: Engine, state: SearchState, task: Task, trials: list[Trial]) -> SearchState:
    """Drop the rules whose removal loses nothing."""
    suspects = tuple(rule for rule in task.rules if not task.cured.get(rule.id))
    rest = [rule for rule in task.rules if rule not in suspects]
    # Each block, with the examples lost without the larger block it came from: they are the most decisive.
    todo = [_Block(suspects)] if suspects else []
    todo += [_Block((rule,), task.cured[rule.id]) for rule in rest]
    position = Position(epoch=1, step=0, total=None, kind=STAGE)
    while todo:
        block = todo.pop(0)
        trial = _trial(state.incumbent, block.rules)
        alone = len(block.rules) == 1
        if alone:
            trials.append(trial)
        with committed(engine, state):
            order = _ordered(engine, state.incumbent, block.first, failures_first=alone)
            if alone:
                await _measure(engine, trial, order, partial(_is_decided, engine, trial))
            elif (lost := await _first_losses(engine, trial, order)).broke:
                todo = [*_parts(engine, state, trial, lost), *todo]
                continue
            position = replace(position, step=position.step + 1)
            after = await _decided(engine, state, trial, position)
        accepted = after.accepted > state.accepted
        state = after
        if alone:
            trials[-1] = replace(trial, dropped=accepted)
        elif accepted:
            trials.append(replace(trial, dropped=True))
        else:
            # A gate such as a trust region refuses so many at once.
            todo = [*block.halves(block.first), *todo]
    return state


@dataclass(frozen=True, slots=True)
class _Block:
    """Rules that are left out together, and the examples that are measured first."""

    rules: tuple[Rule, ...]
    first: frozenset[str] = frozenset()

    def halves(self, first: frozenset[str]) -> tuple[_Block, _Block]:
        """Return both halves, with the examples that are measured first."""
        middle = len(self.rules) // 2
        return _Block(self.rules[:middle], first), _Block(self.rules[middle:], first)


async def _first_losses(engine: Engine, trial: Trial, order: Sequence[Cell]) -> Flips:
    """Measure a trial until it has enough losses; return the changes so far, of the whole split if nothing is lost.

    More losses set apart more rules at once, so a quarter of the split is measured unless there are enough before.
    """
    enough = max(1, len(trial.rules) // _RULES_PER_LOSS)

    def found() -> Flips:
        # What is lost without the rules.
        return flips(engine, trial.without, trial.skill)

    def done() -> bool:
        changed = found()
        few = len(changed.broke) < enough and changed.known * _SHARE < len(engine.dataset.validation)
        return bool(changed.broke) and not few

    await _measure(engine, trial, order, done)
    return found()


def _parts(engine: Engine, state: SearchState, trial: Trial, lost: Flips) -> list[_Block]:
    """Split a block whose removal loses something: separate the rules that share words with the lost examples."""
    edits = [Delete(rule.id) for rule in trial.rules]
    found, _ = attribute_flips(engine, state, edits, trial.without, lost)
    first = frozenset(lost.broke)
    needed = [rule for rule, part in zip(trial.rules, found, strict=True) if part.broke]
    others = tuple(rule for rule in trial.rules if rule not in needed)
    if not needed or not others:
        return list(_Block(trial.rules).halves(first))
    return [_Block(others, first), *(_Block((rule,), first) for rule in needed)]


def _trial(skill: Document, rules: Sequence[Rule]) -> Trial:
    return Trial(tuple(rules), skill, _without(skill, rules))


def _is_decided(engine: Engine, trial: Trial) -> bool:
    """Return whether the missing scores cannot change whether the goal is lower without the rules."""
    least, most = _total(engine, pairs_of(engine, trial))
    return least > 0 or most <= 0


async def _decided(engine: Engine, state: SearchState, trial: Trial, position: Position) -> SearchState:
    """Decide by the gates for tidying whether some rules are dropped."""
    pairs = pairs_of(engine, trial)
    measured = [(p.initial, p.best) for p in pairs if p.initial is not None and p.best is not None]
    gained = sum(without > with_ for without, with_ in measured)
    lost = sum(without < with_ for without, with_ in measured)
    counts = f"{gained} gained and {lost} lost of {len(measured)} measured validation rollouts"
    without = "without it" if len(trial.rules) == 1 else f"without these {len(trial.rules)} rules"
    # The history keeps the rule's text, because the rule is gone from the skill.
    edits = tuple(Delete(rule.id, f"{shown(rule.text, _SHOWN)}; {without}: {counts}") for rule in trial.rules)
    document, changed = apply_and_report(state.incumbent, edits)
    text = f"the skill without {', '.join(rule.id for rule in trial.rules)}"
    patch = Patch(edits, document, {"maker": "prune", "edits": changed}, text)
    return await settle(engine, state, [patch], (), position, gates=tidy_gates(engine, state), retries=0)


def pairs_of(engine: Engine, trial: Trial) -> tuple[PairedScore, ...]:
    """Return the scores on validation without the rules of a trial, and with them."""
    goal = engine.plan.goal.name
    return tuple(
        PairedScore(
            example.group,
            engine.rollouts.score(trial.without, example, goal, sample),
            engine.rollouts.score(trial.skill, example, goal, sample),
        )
        for example in engine.dataset.validation
        for sample in range(engine.plan.optimize.samples)
    )


def completions(
    engine: Engine, pairs: Sequence[PairedScore]
) -> tuple[tuple[PairedScore, ...], tuple[PairedScore, ...]]:
    """Complete the missing scores so that the rules add the least, and so that they add the most."""
    low, high = (round(end * MICRO) for end in (engine.plan.goal.low, engine.plan.goal.high))

    def filled(without: int, with_: int) -> tuple[PairedScore, ...]:
        return tuple(
            replace(
                pair,
                initial=without if pair.initial is None else pair.initial,
                best=with_ if pair.best is None else pair.best,
            )
            for pair in pairs
        )

    return filled(high, low), filled(low, high)


def _total(engine: Engine, pairs: Sequence[PairedScore]) -> tuple[int, int]:
    """Return the least and the greatest sum of what the rules add."""
    least, most = (sum((pair.best or 0) - (pair.initial or 0) for pair in each) for each in completions(engine, pairs))
    return least, most


async def _measure(engine: Engine, trial: Trial, cells: Sequence[Cell], done: Callable[[], bool]) -> None:
    """Measure the skill without some rules in waves until `enough`; retry unmeasured cells twice."""
    skill = trial.without
    for _ in range(1 + REQUEUES):
        missing = [
            (example, sample) for example, sample in cells if not engine.rollouts.is_measured(skill, example, [sample])
        ]
        if not missing or done():
            return
        engine.observer.stage(STAGE, len(missing))
        for start in range(0, len(missing), engine.wave):
            wave = missing[start : start + engine.wave]
            await gather([engine.rollouts.measure(skill, [e], stage=STAGE, sample=sample) for e, sample in wave])
            if done():
                return


def _ordered(engine: Engine, skill: Document, cured: frozenset[str], *, failures_first: bool) -> list[Cell]:
    """Return the cells of validation in measuring order: the cured examples first, because they are the most decisive.

    A failure can't be lost, so it decides nothing about a loss somewhere; what may still be gained there keeps open
    whether anything is lost on the whole.
    """
    goal, seed = engine.plan.goal, engine.plan.data.seed

    def key(cell: Cell) -> tuple[int, bytes]:
        example, sample = cell
        score = engine.rollouts.score(skill, example, goal.name, sample)
        fails = score is None or score < goal.high * MICRO
        rank = 0 if example.id in cured else 1 + (fails != failures_first)
        return rank, hashlib.sha256(f"{seed}\0{example.id}\0{sample}".encode()).digest()

    samples = range(engine.plan.optimize.samples)
    return sorted(((example, sample) for example in engine.dataset.validation for sample in samples), key=key)


def _without(skill: Document, rules: Sequence[Rule]) -> Document:
    return apply_and_report(skill, [Delete(rule.id) for rule in rules])[0]
