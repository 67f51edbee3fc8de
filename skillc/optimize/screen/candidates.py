"""Make candidates of the screened edits: choose the edits of each within the edit budget, and write it.

With `update = rewrite_...` sections are rewritten from the chosen edits. A rewrite is expressed as edits against the
incumbent, so that limits, locked sections, history and the rejected-edit buffer work as for any other patch.
Reminders are not rewritten: they are edits in every mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from skillc.document.change import describe_opposite
from skillc.document.edits import START, Add, Edit, Move, Replace, apply_edits, edit_to_json
from skillc.document.markdown import Refusal
from skillc.document.rewrites import WantedRule, edits_to
from skillc.document.skill import Document, digest
from skillc.models.concurrency import gather
from skillc.optimize.engine import Engine, Position, SearchState
from skillc.optimize.from_sessions import refused
from skillc.optimize.gate.decide import Patch
from skillc.optimize.gate.pool import passes_text_gates
from skillc.optimize.propose.cases import briefing
from skillc.optimize.propose.prompting import budget_messages, rewrite_messages
from skillc.optimize.propose.proposals import Proposal, edit_view, without_tags
from skillc.optimize.propose.replies import BudgetReply, MalformedReply, RewriteReply
from skillc.optimize.scripts import changes_script
from skillc.plan.schema import GatePlan
from skillc.text import listed

# Proposals that are chosen together or not at all.
_Unit = tuple[Proposal, ...]


def select(incumbent: Document, proposals: Sequence[Proposal], budget: int) -> list[Proposal]:
    """Choose at most `budget` compatible proposals; those that need each other are chosen together.

    The next proposal is the one with the largest marginal gain minus its breakage. Ties go to more support, then to the
    optimizer's order. An author's own case is worth a quarter of an unseen failure, so a general edit precedes a
    memorized one. Proposals that add nothing are skipped. If no proposal cures, unscreened proposals are chosen by
    support. Of two proposals on one rule the better is chosen. A proposal that does not apply is skipped.
    """
    left = _units([proposal for proposal in proposals if proposal.verdict == "cures"])
    chosen: list[Proposal] = []
    reached: dict[str, int] = {}
    while left:
        unit = max(left, key=lambda unit: (_more(unit, reached), max(p.support for p in unit)))
        left.remove(unit)
        if _more(unit, reached) <= 0:
            break
        if _fits(incumbent, chosen, unit, budget):
            chosen += unit
            reached |= {example: max(gain, reached.get(example, 0)) for example, gain in _gains(unit).items()}
    if chosen:
        return chosen
    unscreened = (proposal for proposal in proposals if proposal.verdict == "unscreened")
    for proposal in sorted(unscreened, key=lambda p: -p.support):
        if _fits(incumbent, chosen, (proposal,), budget):
            chosen.append(proposal)
    return chosen


def _units(proposals: Sequence[Proposal]) -> list[_Unit]:
    """Return each proposal with those that it needs, if all of them are present."""
    by_edit = {proposal.edit: proposal for proposal in proposals}
    units: dict[frozenset[Proposal], _Unit] = {}
    for proposal in proposals:
        if all(edit in by_edit for edit in proposal.needs):
            unit = (proposal, *(by_edit[edit] for edit in proposal.needs))
            units.setdefault(frozenset(unit), unit)
    return list(units.values())


def _gains(unit: Iterable[Proposal]) -> dict[str, int]:
    """Return the worth of the unit by example: the highest credit of its proposals."""
    gains: dict[str, int] = {}
    for proposal in unit:
        for example, gain in proposal.worth.items():
            gains[example] = max(gain, gains.get(example, 0))
    return gains


def _more(unit: _Unit, reached: Mapping[str, int]) -> int:
    """Return what the unit adds to the reached gains, less what it broke, in millionths."""
    added = sum(max(0, gain - reached.get(example, 0)) for example, gain in _gains(unit).items())
    return added - max(proposal.harm for proposal in unit)


def _fits(incumbent: Document, chosen: Sequence[Proposal], unit: _Unit, budget: int) -> bool:
    if len(chosen) + len(unit) > budget:
        return False
    together = (*chosen, *unit)
    touched = [p.edit.rule for p in together if not isinstance(p.edit, Add)]
    if len(set(touched)) < len(touched):
        return False
    reports = apply_edits(incumbent, [p.edit for p in together]).results
    return all(report.applied for report in reports[len(chosen) :])


Bundle = list[Proposal]


def bundles(
    incumbent: Document, proposals: Sequence[Proposal], budget: int, count: int, known: Collection[str] = ()
) -> list[Bundle]:
    """Choose at most `count` bundles with distinct texts, the best first, each of at most `budget` edits.

    After the selection itself come those without one of its edits, the weakest first: once with the next edit instead,
    once without. A bundle whose text was rejected before (`known` digests) is skipped, unless it is the only one. A
    bundle keeps the order of the proposals: the screen measures the worth of an edit, not the position of its rule.
    """
    best = select(incumbent, proposals, budget)
    found: list[Bundle] = []
    seen = {digest(incumbent)}
    for chosen in _candidates(incumbent, proposals, budget, best):
        bundle = _in_order(incumbent, proposals, chosen)
        text = digest(apply_edits(incumbent, [proposal.edit for proposal in bundle]).document)
        # The selection itself is tried even if the target reads the same text: the gates decide.
        if bundle and text not in known and (not found or text not in seen):
            found.append(bundle)
            seen.add(text)
        if len(found) >= count:
            break
    return found or ([_in_order(incumbent, proposals, best)] if best else [])


def _in_order(incumbent: Document, proposals: Sequence[Proposal], bundle: Bundle) -> Bundle:
    """Sort a bundle by the order of the proposals; unchanged if an edit does not apply in that order.

    Edits that add at the start are reversed, so that the first is on top.
    """
    ordered = [proposal for proposal in proposals if proposal in bundle]
    start = [p for p in ordered if isinstance(p.edit, Add | Move) and p.edit.after == START]
    ordered = [*start[::-1], *(p for p in ordered if p not in start)]
    reports = apply_edits(incumbent, [proposal.edit for proposal in ordered]).results
    return ordered if all(report.applied for report in reports) else bundle


def _candidates(incumbent: Document, proposals: Sequence[Proposal], budget: int, best: Bundle) -> Iterator[Bundle]:
    yield best
    for out in reversed(best):
        yield select(incumbent, [proposal for proposal in proposals if proposal is not out], budget)
        yield [proposal for proposal in best if proposal is not out and out.edit not in proposal.needs]


async def choose_budget(
    engine: Engine, state: SearchState, proposals: Sequence[Proposal], budget: int, position: Position
) -> int:
    """Return the edit budget of the step: the scheduled number, or the model's choice with the schedule `model`."""
    if engine.plan.optimize.edits.kind != "model" or not proposals:
        return budget
    engine.observer.stage("edit budget", 1)
    messages = budget_messages(
        briefing(engine, state), edits=[edit_view(proposal) for proposal in proposals], most=budget
    )
    reply = await engine.optimizer.ask(BudgetReply, messages, stage="select", sample=(position.epoch, position.step, 0))
    return budget if reply is None else max(0, min(budget, reply.edits))


async def write_patches(
    engine: Engine,
    state: SearchState,
    pool: Sequence[Sequence[Proposal]],
    position: Position,
    record: Mapping[str, JsonValue],
) -> list[Patch]:
    """Write the candidates of a step at once; `record` contains further values for the history."""
    if engine.plan.optimize.update != "edits":
        engine.observer.stage("rewrite", len(pool))
    return await gather([write_patch(engine, state, each, position, record, ordinal=i) for i, each in enumerate(pool)])


async def write_patch(
    engine: Engine,
    state: SearchState,
    chosen: Sequence[Proposal],
    position: Position,
    record: Mapping[str, JsonValue],
    *,
    ordinal: int = 0,
) -> Patch:
    """Write one candidate from the chosen proposals, best first; `ordinal` is its number in the step."""
    if engine.plan.optimize.update != "edits":
        reminding = [p for p in chosen if _alone(engine, section_of(state.incumbent, p))]
        suggested = [p for p in chosen if p not in reminding]
        edits = await _rewritten(engine, state, suggested, position, ordinal) if suggested else None
        if edits is not None and not refused(engine, edits, state.incumbent):
            every = (*edits, *(p.edit for p in reminding))
            document, entries = apply_and_report(state.incumbent, every)
            record = {**record, "suggestions": [p.to_json() for p in suggested], "edits": entries}
            return Patch(every, document, record, proposals=(*suggested, *reminding), whole=True)
    return edits_patch(engine, state, chosen, record)


def edits_patch(
    engine: Engine, state: SearchState, chosen: Sequence[Proposal], record: Mapping[str, JsonValue]
) -> Patch:
    """Return the candidate made by the edits of some proposals; `record` is as in `write_patches`."""
    applied = apply_edits(state.incumbent, [p.edit for p in chosen])
    labels = [label for field in engine.plan.task.outputs for label in field.type.labels]
    entries: list[JsonValue] = [
        {
            **proposal.to_json(),
            "report": report.message,
            "rule": report.rule,
            **opposite_note(state.incumbent, proposal.edit, labels),
        }
        for proposal, report in zip(chosen, applied.results, strict=True)
    ]
    edits = tuple(proposal.edit for proposal in chosen)
    return Patch(edits, applied.document, {**record, "edits": entries}, proposals=tuple(chosen))


def opposite_note(incumbent: Document, edit: Edit, labels: Sequence[str]) -> dict[str, JsonValue]:
    """Return the history's note on an edit that may turn a rule into its opposite."""
    if not isinstance(edit, Replace) or (rule := incumbent.rule(edit.rule)) is None or changes_script(incumbent, edit):
        return {}
    note = describe_opposite(rule.text, edit.text, labels)
    return {"opposite": note} if note else {}


def apply_and_report(skill: Document, edits: Sequence[Edit]) -> tuple[Document, list[JsonValue]]:
    """Return the skill with edits, and the history's entry on each."""
    applied = apply_edits(skill, edits)
    entries: list[JsonValue] = [
        {**edit_to_json(edit), "report": report.message, "rule": report.rule}
        for edit, report in zip(edits, applied.results, strict=True)
    ]
    return applied.document, entries


def section_of(skill: Document, proposal: Proposal) -> str | None:
    """Return the section that a proposal changes."""
    if isinstance(proposal.edit, Add):
        return proposal.edit.section
    section = skill.section_of(proposal.edit.rule)
    return section.name if section else None


async def _rewritten(
    engine: Engine, state: SearchState, suggested: Sequence[Proposal], position: Position, ordinal: int
) -> tuple[Edit, ...] | None:
    """Return the edits of a rewrite, None if the optimizer gave no valid one."""
    sections = sections_to_rewrite(engine, state.incumbent, suggested)
    views = [edit_view(proposal) for proposal in suggested]
    messages = rewrite_messages(briefing(engine, state), edits=views, rewritten=sections)
    sample = (position.epoch, position.step, ordinal)
    asked = await ask_for_sections(engine, state.incumbent, sections, messages, stage="rewrite", sample=sample)
    if asked is None:
        return None
    _, edits = asked
    if isinstance(edits, Refusal):
        engine.observer.note(f"rewrite: {edits.reason}; the edits are made as they were chosen")
        return None
    return edits


async def ask_for_sections(
    engine: Engine,
    skill: Document,
    sections: Sequence[str],
    messages: Sequence[Mapping[str, str]],
    *,
    stage: str,
    sample: tuple[int, ...],
) -> tuple[RewriteReply, tuple[Edit, ...] | Refusal] | None:
    """Ask for new texts of some sections of a skill; `stage` and `sample` are as in `Optimizer.ask`.

    Returns:
        The reply with its edits, or why it is refused; None if no reply could be read. A reply without sections is
        valid: nothing has to change.
    """

    def check(reply: RewriteReply) -> None:
        edits = read_rewrite(skill, reply, sections)
        if reply.sections and isinstance(edits, Refusal):
            raise MalformedReply(edits.reason)

    reply = await engine.optimizer.ask(RewriteReply, messages, stage=stage, sample=sample, check=check)
    return None if reply is None else (reply, read_rewrite(skill, reply, sections))


def writable_sections(engine: Engine, skill: Document) -> list[str]:
    """Return the sections that may be rewritten: the trainable ones that no mechanism owns."""
    trainable = [section.name for section in skill.sections if section.mode == "trainable"]
    return [name for name in trainable if not _alone(engine, name)]


def _alone(engine: Engine, section: str | None) -> bool:
    return section is not None and any(mechanism.owns_section(section) for mechanism in engine.mechanisms)


def sections_to_rewrite(engine: Engine, skill: Document, suggested: Sequence[Proposal]) -> list[str]:
    """Return all writable sections for `rewrite_all`, the one with most suggestions for `rewrite_section`."""
    found = writable_sections(engine, skill)
    if engine.plan.optimize.update == "rewrite_all":
        return found
    counts = Counter(section_of(skill, proposal) for proposal in suggested)
    return [max(found, key=lambda name: counts[name])]


def read_rewrite(skill: Document, reply: RewriteReply, sections: Sequence[str]) -> tuple[Edit, ...] | Refusal:
    """Convert a rewrite to edits, or return why it is rejected: wrong section, above a limit, no change."""
    wanted = []
    for part in reply.sections:
        if part.section not in sections:
            return Refusal(f"section `{part.section}` was not to be rewritten, but {listed(sections)}")
        rules = [
            WantedRule(
                rule.text, rule.topic, rule.rule if rule.rule in skill.ids else None, without_tags(rule.rationale)
            )
            if rule.text
            else WantedRule(rule=rule.rule, topic=rule.topic)
            for rule in part.rules
        ]
        wanted.append((part.section, rules))
    return edits_to_sections(skill, wanted)


def edits_to_sections(
    skill: Document, wanted: Iterable[tuple[str, Sequence[WantedRule]]]
) -> tuple[Edit, ...] | Refusal:
    """Return the edits that give sections of a skill these rules, or why they do not apply."""
    edits: list[Edit] = []
    document = skill
    for section, rules in wanted:
        found = edits_to(document, section, rules)
        if isinstance(found, Refusal):
            return found
        edits += found
        document = apply_edits(document, found).document
    return tuple(edits) or Refusal("the rewrite changes nothing")


def first_fitting(
    engine: Engine, state: SearchState, edits: Sequence[Edit], gates: Sequence[GatePlan] | None = None
) -> tuple[Edit, ...]:
    """Return as many of the first edits as pass the gates on texts, such as a trust region.

    The gates are by default those of the plan for steps.
    """
    for count in range(len(edits), 0, -1):
        if passes_text_gates(engine, state, apply_edits(state.incumbent, edits[:count]).document, gates):
            return tuple(edits[:count])
    return ()
