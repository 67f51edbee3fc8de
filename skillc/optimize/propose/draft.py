"""Drafts: rewrite sections from cases, try them on cases unseen by their author, and revise the best.

A draft is converted to edits rule by rule, so that limits, trust regions, history and the rejected-edit buffer treat
it as any other candidate. Of several drafts of a step, the best on its unseen cases is revised once with the results
of its trial, and goes to the gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from types import MappingProxyType

from pydantic import JsonValue

from skillc.budget.steps import FURTHER_LIMIT, JUDGES, MOST_FAILURES, MOST_RIGHT
from skillc.dataclass import dataclass
from skillc.document.edits import Edit, apply_edits
from skillc.document.markdown import Refusal, rule_words
from skillc.document.rewrites import WantedRule
from skillc.document.skill import Document, digest, tokens
from skillc.models.concurrency import gather
from skillc.optimize.engine import Engine, Position, RejectedEdit, SearchState, goal_change
from skillc.optimize.from_sessions import has_sessions, refused
from skillc.optimize.gate.decide import Patch
from skillc.optimize.propose.cases import (
    Measured,
    briefing,
    calls_on,
    confusion,
    failures_of,
    first_sentences,
    further_examples,
    held_out,
    ids_by_tag,
    looks_things_up,
    near_successes,
    successes_of,
    successful_reruns,
    trajectory_views,
    visible_gold,
    visible_inputs,
)
from skillc.optimize.propose.prompting import CaseView, DraftRequest, TrajectoryView, draft_messages
from skillc.optimize.propose.proposals import wording
from skillc.optimize.propose.replies import RewriteReply
from skillc.optimize.rollouts import Outcome, is_failure
from skillc.optimize.screen.candidates import (
    apply_and_report,
    ask_for_sections,
    edits_to_sections,
    first_fitting,
    writable_sections,
)
from skillc.optimize.scripts import changes_script, without_scripts
from skillc.outcomes import Example

# Tokens of what the rejected-edit buffer holds of a draft's analysis.
_ANALYSIS = 120


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """A draft with its trial on cases unseen by its author.

    Attributes:
        edits: against the incumbent.
        text: the incumbent with these edits.
        shown: the cases that it was written from.
        failures: unseen failures of the incumbent in the trial.
        rights: unseen successes of the incumbent in the trial.
        cured, broke: ids of the improved and worsened cases.
        unexplained: ids of the cases without a rule.
        analysis: its author's explanation of the answers.
        read: ids of all training examples that its author could read.
        refused: the edits that no skill may learn from a session, with the reason; they are not among `edits`.
        cited: ids of the cases that a rule comes from, as its author says, by `rule_words` of its text.
    """

    edits: tuple[Edit, ...]
    text: Document
    shown: tuple[Measured, ...]
    failures: tuple[Example, ...] = ()
    rights: tuple[Example, ...] = ()
    cured: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    analysis: str = ""
    read: frozenset[str] = frozenset()
    refused: tuple[tuple[str, str], ...] = ()
    cited: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def worth(self) -> Fraction:
        """Cured less broken, as a share of the unseen cases."""
        tried = len(self.failures) + len(self.rights)
        return Fraction(len(self.cured) - len(self.broke), tried) if tried else Fraction(0)

    def trial(self) -> dict[str, JsonValue]:
        """Return values of the trial for the history."""
        return {
            "tokens": tokens(self.text),
            "cured": len(self.cured),
            "of_failures": len(self.failures),
            "broke": len(self.broke),
            "of_rights": len(self.rights),
        }


async def draft(
    engine: Engine, state: SearchState, measured: Sequence[Measured], position: Position
) -> tuple[Patch | None, tuple[str, ...], list[RejectedEdit]]:
    """Draft a candidate from the measured batch of a step.

    Returns:
        The candidate, the cases without a rule, and the versions of scripts that failed their tests.

    Raises:
        BudgetReached, PermanentFailure: from the models.
    """
    failures, rights = failures_of(engine.plan, measured), successes_of(engine.plan, measured)
    if all(example.id in state.counters.unexplained for example, _ in failures):
        return None, (), []
    # One draft is enough if each would see all failures.
    count = engine.plan.optimize.drafts if held_out(failures) else 1
    writers = [_Writer(engine, state, measured, failures, rights, position, k) for k in range(count)]
    engine.observer.stage("draft", len(writers))
    written = [each for each in await gather([writer.write() for writer in writers]) if each is not None]
    passing, failed = await _behind_tests(engine, state, written)
    if written and not passing:
        # The gates record the first draft, so that the step counts as one that tried something.
        return _patch(state, written[0], [], written[0].text, revised=False), (), failed
    written = passing
    distinct = list({digest(each.text): each for each in reversed(written)}.values())[::-1]
    tried = await _tried(engine, state, distinct)
    if not tried:
        return None, (), failed
    best = max(tried, key=lambda each: (each.worth, -tokens(each.text)))
    final = await writers[0].revise(best)
    verdict = await engine.scripts.check(final.text)
    if not verdict.passed:
        failed += [] if verdict.unmeasured else _failed_scripts(state, final, verdict.problem)
        final = best
    trials: list[JsonValue] = [{**each.trial(), "chosen": each is best} for each in tried]
    # Once for each author, because two of them are enough to leave a case out.
    unexplained = tuple(name for each in written for name in dict.fromkeys(each.unexplained))
    unexplained += tuple(name for name in dict.fromkeys(final.unexplained) if name not in best.unexplained)
    edits = first_fitting(engine, state, final.edits) or final.edits
    patch = _patch(state, replace(final, edits=edits), trials, best.text, revised=final is not best)
    return patch, unexplained, failed


async def _behind_tests(
    engine: Engine, state: SearchState, written: Sequence[SkillDraft]
) -> tuple[list[SkillDraft], list[RejectedEdit]]:
    """Return the drafts without the scripts that fail their tests, and these scripts with what failed."""
    left, failed = list[SkillDraft](), list[RejectedEdit]()
    for each in written:
        verdict = await engine.scripts.check(each.text)
        if verdict.passed:
            left.append(each)
            continue
        if not verdict.unmeasured:
            failed += _failed_scripts(state, each, verdict.problem)
        edits = without_scripts(state.incumbent, each.edits)
        if edits:
            left.append(replace(each, edits=edits, text=apply_edits(state.incumbent, edits).document))
    return left, failed


def _failed_scripts(state: SearchState, draft: SkillDraft, problem: str) -> list[RejectedEdit]:
    return [RejectedEdit(wording(edit), problem) for edit in draft.edits if changes_script(state.incumbent, edit)]


def _patch(state: SearchState, final: SkillDraft, trials: list[JsonValue], tried: Document, *, revised: bool) -> Patch:
    document, edits = apply_and_report(state.incumbent, final.edits)
    record: dict[str, JsonValue] = {"maker": "draft", "drafts": trials, "revised": revised, "edits": edits}
    if final.refused:
        record["fates"] = [{"edit": edit, "fate": "refused", "why": why} for edit, why in final.refused]
    trial = ""
    if final.failures or final.rights:
        trial = (
            f", cured {len(final.cured)} of {len(final.failures)} and broke {len(final.broke)} of {len(final.rights)}"
        )
        trial += " training cases before its revision" if revised else " training cases"
    text = f"a draft of {tokens(document)} tokens{trial}"
    text += f"; its analysis: {first_sentences(final.analysis, _ANALYSIS)}" if final.analysis else ""
    changes = dict.fromkeys(final.cured, 1) | dict.fromkeys(final.broke, -1)
    read, cited = final.read, final.cited
    return Patch(final.edits, document, record, text, trial=changes, tried=tried, whole=True, read=read, cited=cited)


async def _tried(engine: Engine, state: SearchState, drafts: Sequence[SkillDraft]) -> list[SkillDraft]:
    """Try the drafts on their unseen cases; an unmeasured case counts as unchanged."""
    cells = sum(len(each.failures) + len(each.rights) for each in drafts)
    if cells:
        engine.observer.stage("screen", cells)
        await gather(
            [engine.rollouts.measure(each.text, (*each.failures, *each.rights), stage="screen") for each in drafts]
        )
    found = []
    for each in drafts:
        changes = {
            e.id: goal_change(engine, state.incumbent, each.text, e) or 0 for e in (*each.failures, *each.rights)
        }
        cured = tuple(name for name, change in changes.items() if change > 0)
        broke = tuple(name for name, change in changes.items() if change < 0)
        found.append(replace(each, cured=cured, broke=broke))
    return found


class _Writer:
    """One author, with the cases that it sees and those held out."""

    def __init__(
        self,
        engine: Engine,
        state: SearchState,
        measured: Sequence[Measured],
        failures: Sequence[Measured],
        rights: Sequence[Measured],
        position: Position,
        ordinal: int,
    ) -> None:
        self._engine, self._state, self._position, self._ordinal = engine, state, position, ordinal
        self._measured = measured
        held = held_out(failures, ordinal)
        seen = [pair for pair in failures if pair not in held]
        self._held, self._seen = [*held, *seen[MOST_FAILURES:]][:JUDGES], seen[:MOST_FAILURES]
        shown = min(MOST_RIGHT, 2 * len(rights) // 3) if held else MOST_RIGHT
        self._right = near_successes(engine, self._seen, rights, shown)
        unseen = [pair for pair in rights if pair not in self._right]
        self._checks = near_successes(engine, self._seen, unseen, JUDGES // 2) if held else []
        self._mostly_right = len(rights) > len(failures)
        self._sections = writable_sections(engine, state.incumbent)
        self._with_calls = looks_things_up(engine.plan, measured)

    async def write(self) -> SkillDraft | None:
        """Write a draft from the visible cases, None if the optimizer gave no valid one."""
        plan = self._engine.plan
        otherwise = successful_reruns(self._engine, self._state.incumbent, self._seen)
        wrong, right = self._views("t", self._seen, otherwise), self._views("k", self._right)
        hidden = [example.id for example, _ in (*self._held, *self._checks)]
        shown = [*self._seen, *self._right]
        beside = [*hidden, *(e.id for e, _ in shown), *self._state.counters.unexplained]
        cases = self._further(beside, self._state.incumbent)
        request = DraftRequest(
            written=self._sections,
            wrong=wrong,
            right=right,
            cases=self._cases(cases, self._state.incumbent),
            confusion=confusion(plan, self._measured),
            kept_back=bool(self._held),
            mostly_right=self._mostly_right,
            cite=has_sessions(self._engine),
        )
        messages = draft_messages(briefing(self._engine, self._state), request)
        reply = await self._ask(messages, self._state.incumbent, self._ordinal)
        if reply is None:
            return None
        found, edits = reply
        edits, bad = self._allowed(edits, self._state.incumbent)
        if not edits:
            return None
        return SkillDraft(
            edits,
            apply_edits(self._state.incumbent, edits).document,
            tuple(shown),
            tuple(example for example, _ in self._held),
            tuple(example for example, _ in self._checks),
            unexplained=_named(found, self._seen, cases),
            analysis=found.analysis,
            read=frozenset(each.id for each in (*(e for e, _ in shown), *cases)),
            refused=bad,
            cited=_cited(found, self._seen, self._right, cases),
        )

    async def revise(self, best: SkillDraft) -> SkillDraft:
        """Revise a draft by the results of its trial, if there were failures."""
        engine, plan = self._engine, self._engine.plan
        trial = [(e, o) for e in (*best.failures, *best.rights) if (o := engine.rollouts.known(best.text, e))]
        failed = failures_of(plan, trial)
        if not failed:
            return best
        engine.observer.stage("draft", 1)
        right = successes_of(plan, trial)
        there = {example.id for example, _ in trial}
        cases = [example for example, _ in best.shown]
        beside = [*there, *(example.id for example in cases), *self._state.counters.unexplained]
        cases = self._by_answer([*cases, *self._further(beside, best.text)])
        cases = cases if "gold" in plan.optimize.sees and engine.dataset.answered else []
        request = DraftRequest(
            written=self._sections,
            wrong=self._views("t", failed),
            right=self._views("k", right),
            cases=self._cases(cases, best.text),
            tried=True,
            mostly_right=self._mostly_right,
            refused=best.refused,
            cite=has_sessions(engine),
        )
        messages = draft_messages(briefing(engine, replace(self._state, incumbent=best.text)), request)
        reply = await self._ask(messages, best.text, engine.plan.optimize.drafts)
        if reply is None:
            return best
        found, edits = reply
        edits, bad = self._allowed(edits, best.text)
        wanted = apply_edits(best.text, edits).document
        against = _edits_between(self._state.incumbent, wanted, self._sections)
        if against is None:
            return best
        text = apply_edits(self._state.incumbent, against).document
        named = (*best.unexplained, *_named(found, failed, cases))
        analysis = found.analysis or best.analysis
        read = best.read.union(there, (each.id for each in cases))
        bad = (*best.refused, *bad)
        final = replace(best, edits=against, text=text, unexplained=named, analysis=analysis, read=read, refused=bad)
        # A rule with new words has the cases that its reply names, not those of the rule that it replaces.
        own = _cited(found, failed, right, cases)
        return replace(final, cited={**best.cited, **{key: ids | best.cited.get(key, ids) for key, ids in own.items()}})

    def _allowed(
        self, edits: tuple[Edit, ...], skill: Document
    ) -> tuple[tuple[Edit, ...], tuple[tuple[str, str], ...]]:
        """Return the edits of a skill without those that it may not learn from a session, and these with the reason."""
        bad = refused(self._engine, edits, skill)
        for why in bad.values():
            self._engine.observer.note(f"draft: {why}")
        return tuple(edit for edit in edits if edit not in bad), tuple((wording(e), why) for e, why in bad.items())

    async def _ask(
        self, messages: Sequence[Mapping[str, str]], skill: Document, ordinal: int
    ) -> tuple[RewriteReply, tuple[Edit, ...]] | None:
        sample = (self._position.epoch, self._position.step, ordinal)
        asked = await ask_for_sections(self._engine, skill, self._sections, messages, stage="draft", sample=sample)
        if asked is None:
            return None
        reply, edits = asked
        if isinstance(edits, Refusal):
            self._engine.observer.note(f"draft: {edits.reason}")
            return None
        return reply, edits

    def _views(
        self, letter: str, pairs: Sequence[Measured], right: Mapping[str, Outcome] = MappingProxyType({})
    ) -> list[TrajectoryView]:
        plan = self._engine.plan
        return trajectory_views(plan, pairs, limit=plan.optimize.trajectory_limit, letter=letter, right=right)

    def _further(self, shown: Sequence[str], skill: Document) -> list[Example]:
        calls = (lambda example: self._calls(example, skill)) if self._with_calls else None
        return self._by_answer(further_examples(self._engine, shown, FURTHER_LIMIT, calls))

    def _calls(self, example: Example, skill: Document) -> str | None:
        earlier = self._state.memory.met.get(example.id)
        skills = [skill, self._state.incumbent, *([earlier] if earlier is not None else [])]
        return calls_on(self._engine, skills, example)

    def _by_answer(self, examples: Sequence[Example]) -> list[Example]:
        """Group examples by right answer."""
        return sorted(examples, key=lambda example: visible_gold(self._engine.plan, example) or "")

    def _cases(self, examples: Sequence[Example], skill: Document) -> list[CaseView]:
        plan, views = self._engine.plan, []
        for tag, example in _tagged(examples):
            outcome = self._engine.rollouts.known(skill, example)
            failed = is_failure(plan, outcome) if outcome is not None else None
            inputs = visible_inputs(example, plan.optimize.trajectory_limit)
            right = None if failed is None else not failed
            calls = self._calls(example, skill) if self._with_calls else None
            views.append(CaseView(tag, inputs, visible_gold(plan, example) or "", right, calls))
        return views


def _tagged(examples: Sequence[Example]) -> list[tuple[str, Example]]:
    return [(f"c{i}", example) for i, example in enumerate(examples, 1)]


def _cited(
    reply: RewriteReply, failures: Sequence[Measured], rights: Sequence[Measured], cases: Sequence[Example]
) -> dict[str, frozenset[str]]:
    """Return the cases that the rules of a reply name, by `rule_words` of the rule's text."""
    ids = {**ids_by_tag(failures), **ids_by_tag(rights, "k"), **{tag: each.id for tag, each in _tagged(cases)}}
    found = dict[str, frozenset[str]]()
    for rule in (rule for section in reply.sections for rule in section.rules if rule.text and rule.cases):
        words = rule_words(rule.text)
        found[words] = found.get(words, frozenset()) | {ids[tag] for tag in rule.cases if tag in ids}
    return found


def _named(reply: RewriteReply, failures: Sequence[Measured], cases: Sequence[Example]) -> tuple[str, ...]:
    ids = {**ids_by_tag(failures), **{tag: example.id for tag, example in _tagged(cases)}}
    return tuple(ids[tag] for tag in reply.unexplained if tag in ids)


def _edits_between(before: Document, after: Document, sections: Sequence[str]) -> tuple[Edit, ...] | None:
    """Return the edits that turn some sections of one skill into those of another; None if there are none."""
    wanted = []
    for name in sections:
        old, new = before.section(name), after.section(name)
        if old is not None and new is not None and old.body != new.body:
            wanted.append((name, [WantedRule(r.text, r.topic or "", r.id, r.rationale, r.mark) for r in new.rules]))
    found = edits_to_sections(before, wanted)
    return None if isinstance(found, Refusal) else found
