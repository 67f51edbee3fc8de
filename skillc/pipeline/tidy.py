"""`skillc tidy`: remove unsupported rules from a compiled or hand-written skill, under the gates for tidying.

The stage is that of `tidy = on`. The support of a rule is measured against the same skill without any rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.artifact_paths import SKILL_FILE
from skillc.conflict import refuse_unmerged
from skillc.dataclass import dataclass
from skillc.document.folder import read_linked, texts_in_one, with_scripts
from skillc.document.skill import Document, Rule, tokens
from skillc.document.skill_md import as_declared
from skillc.document.tool_lines import knowing_tools
from skillc.errors import SkillcError
from skillc.json_values import rounded
from skillc.models.client import Client
from skillc.optimize.engine import Engine, Position, score_arm
from skillc.optimize.gate.decide import DOWN, ENDS, cut_off
from skillc.optimize.gate.gate import measure_validation
from skillc.optimize.host import Observer
from skillc.optimize.loop.baseline import baseline, first_state, try_again
from skillc.optimize.loop.train import TrainResult, batches_of
from skillc.optimize.strategies.tidy import rule_support, tidy_incumbent
from skillc.outcomes import ArmScore
from skillc.pipeline.compile import Compiled, Job, open_run, search_and_test
from skillc.pipeline.report import compile_json, compile_table, percent, spent_lines
from skillc.plan.initial import initial_skill
from skillc.plan.lock import has_digest, read_lock
from skillc.provenance.quarantine import check_adoptable
from skillc.run.folder import finish_run
from skillc.run.stop import Stop
from skillc.syntax.files import read_source

TIDIED = "tidied"
_ENDS = {
    TIDIED: "no shorter skill without a loss was found",
    "interrupted": "interrupted; the same command resumes",
    DOWN: "a model is unreachable; the same command resumes",
}


@dataclass(frozen=True, slots=True)
class TidyResult:
    """The result of a tidying.

    Attributes:
        after: the skill after; the same if nothing was accepted.
        validation: the goal of both.
        tried: the decisions, one line per candidate.
        stopped: `tidied`, or why it ended early.
        compiled: the written and tested skill; None if nothing changed.
    """

    before: Document
    after: Document
    validation: tuple[ArmScore, ArmScore]
    tried: tuple[str, ...]
    stopped: str
    compiled: Compiled | None
    spent: dict[str, JsonValue]

    @property
    def left_out(self) -> tuple[Rule, ...]:
        """The removed rules."""
        return tuple(rule for rule in self.before.rules if self.after.rule(rule.id) is None)

    @property
    def written(self) -> tuple[Rule, ...]:
        """The rewritten rules, some of them joined from several."""
        known = {(rule.id, rule.text) for rule in self.before.rules}
        return tuple(rule for rule in self.after.rules if (rule.id, rule.text) not in known)


def skill_to_tidy(job: Job, file: Path | None) -> Document:
    """Read the compiled skill of a job, or the one in a file.

    Raises:
        SkillcError: it is missing or unreadable, has no rules, or does not match the program's sections.
    """
    paths = job.paths
    path = paths.skill if file is None else file / "SKILL.md" if file.is_dir() else file
    if file is None and not path.exists():
        raise SkillcError("the program is not compiled yet", hint="compile it, or name a skill with `--skill`")
    text = read_source(path).text
    refuse_unmerged(path, text, paths.of_folder(path.parent))
    check_adoptable(paths if file is None else paths.of_folder(path.parent))
    lock = read_lock(paths.lock) if file is None and paths.lock.exists() else None
    own = lock is not None and has_digest(path.read_bytes(), lock.files.get(paths.key(path)))
    try:
        whole = texts_in_one(text.encode(), read_linked(path, text)).decode() if path.name == SKILL_FILE else text
        skill = as_declared(whole, initial_skill(job.planned.plan, job.planned.root), own=own)
        skill = with_scripts(skill, path.parent if path.name == SKILL_FILE else None)
    except SkillcError as problem:
        raise SkillcError(f"`{path}`: {problem.message}", hint=problem.hint) from problem
    if not any(section.rules for section in skill.sections if not section.is_script):
        raise SkillcError(f"`{path}` has no rules in a trainable section, so there is nothing to tidy")
    return skill


Search: TypeAlias = Callable[[Document, Engine, Document], Awaitable[TrainResult]]
"""Shortens a skill; gets it, the engine and the program's skill."""


def tidy_job(job: Job, skill: Document, observer: Observer, client: Client, stop: Stop | None = None) -> TidyResult:
    """Tidy a skill; if a change was accepted, write the skill with its lock and history as a compile does.

    Raises:
        SkillcError: models, data, metrics or files cannot be used.
        BudgetReached: the caps do not admit the first measurements.
        EndpointUnreachable: a model was unreachable before the skill was measured.
    """
    return shorten(job, skill, _search, observer, client, stop)


def shorten(
    job: Job,
    skill: Document,
    search: Search,
    observer: Observer,
    client: Client,
    stop: Stop | None = None,
    *,
    task: str = "",
    done: str = TIDIED,
) -> TidyResult:
    """Shorten a skill by a search; if a change was accepted, test and write the skill as a compile does.

    `task` identifies the search, `done` is its reason when nothing ended it early.

    Raises:
        SkillcError, BudgetReached, EndpointUnreachable: as `tidy_job`.
    """
    with open_run(job, observer, client, stop, start=skill, task=task) as run:
        skill = knowing_tools(skill, run.session.tool_names)
        trained, tested = asyncio.run(search_and_test(run, partial(search, skill), unless=skill))
        run.record.settle()
        compiled = None if tested is None else run.finish(trained, tested)
        if compiled is None and trained.stopped == done:
            finish_run(run.folder, run.info)
        examples, goal = trained.engine.dataset.validation, job.planned.plan.goal.name
        before, after = (score_arm(trained.engine, each, examples, goal) for each in (skill, trained.state.best))
        lines = [
            f"{record.get('maker')}: {record['result']}, {record['reason']}" for record in run.session.watch.decisions
        ]
        spent = client.ledger.snapshot()
    return TidyResult(skill, trained.state.best, (before, after), tuple(lines), trained.stopped, compiled, spent)


async def measured_engine(
    engine: Engine, initial: Document, skills: Sequence[Document], *, reserve: bool = True
) -> tuple[Engine, tuple[str, ...]]:
    """Return the engine with the baseline and some skills measured on validation, and the quarantined ids.

    Gates decide: with `accept = always` any shorter skill would be accepted. `reserve` sets the final test's budget
    aside before the skills are measured.
    """
    optimize = replace(engine.plan.optimize, accept="gates")
    engine = replace(engine, plan=engine.plan.model_copy(update={"optimize": optimize}))
    engine, quarantined = await baseline(engine, initial)
    if reserve:
        engine.reserve.set_aside()
    for each in skills:
        await measure_validation(engine, each, stage="baseline")
        await try_again(engine, each)
    return engine, quarantined


async def _search(skill: Document, engine: Engine, initial: Document) -> TrainResult:
    """Tidy a skill, compared with itself without any rules."""
    sections = (replace(s, rules=()) if s.rules and not s.is_script else s for s in skill.sections)
    bare = replace(skill, sections=tuple(sections))
    engine, quarantined = await measured_engine(engine, initial, [skill, bare])
    _note_harm(engine, skill, bare)
    await engine.rollouts.measure(skill, batches_of(engine, 1)[0], stage="rollout")
    state = replace(first_state(engine, initial), incumbent=skill, best=skill)
    try:
        place = Position(epoch=1, step=0, total=None, kind="tidy")
        tidied = await tidy_incumbent(engine, state, rule_support(engine, state, bare), place)
        return TrainResult(tidied, engine, TIDIED, quarantined)
    except ENDS as end:
        cut = cut_off(engine, state, end)
        return TrainResult(cut.state, engine, cut.reason, quarantined)


def _note_harm(engine: Engine, skill: Document, bare: Document) -> None:
    examples, goal = engine.dataset.validation, engine.plan.goal.name
    with_rules, without = (score_arm(engine, each, examples, goal) for each in (skill, bare))
    if with_rules.mean is not None and without.mean is not None and with_rules.mean < without.mean:
        engine.observer.note(
            f"the rules are harmful: {percent(with_rules.mean)} on validation, {percent(without.mean)} without rules"
        )


def tidy_json(found: TidyResult) -> dict[str, JsonValue]:
    """Return the object that `tidy --json` prints."""
    return {
        "format_version": 1,
        "changed": found.compiled is not None,
        "tokens": {"before": tokens(found.before), "after": tokens(found.after)},
        "validation": {
            name: rounded(each.mean) for name, each in zip(("before", "after"), found.validation, strict=True)
        },
        "rules": {"before": len(found.before.rules), "after": len(found.after.rules)},
        "left_out": [rule.text for rule in found.left_out],
        "written": [rule.text for rule in found.written],
        "tried": list(found.tried),
        "stopped": found.stopped,
        "spent": found.spent,
        "compiled": None if found.compiled is None else compile_json(found.compiled),
    }


def tidy_report(found: TidyResult, goal: str) -> RenderableType:
    """Return the report of a tidying for a terminal."""
    before, after = found.validation
    lines = [f"tried     {line}" for line in found.tried]
    if found.compiled is None:
        why = _ENDS.get(found.stopped, f"the budget's `{found.stopped}` was reached")
        lines += [f"tidied    nothing: {why}; no file was changed", *spent_lines(found.spent)]
        return Text("\n".join(lines))
    lines += [f"left out  {rule.text}" for rule in found.left_out]
    lines += [f"written   {rule.text}" for rule in found.written]
    lines += [
        f"rules     {len(found.before.rules)} before, {len(found.after.rules)} after",
        f"tokens    {tokens(found.before):,} before, {tokens(found.after):,} after",
        f"{goal:<9} {percent(before.mean)} before, {percent(after.mean)} after, on validation",
    ]
    return Group(Text("\n".join(lines)), compile_table(found.compiled, goal))
