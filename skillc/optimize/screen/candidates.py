"""Make candidates of the screened edits: choose those of each within the edit budget, and write it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from skillc.document.change import describe_opposite
from skillc.document.edits import START, Add, Edit, Move, Replace, apply_edits, edit_to_json
from skillc.document.markdown import Refusal
from skillc.document.rewrites import WantedRule, edits_to
from skillc.document.skill import Document, digest
from skillc.optimize.engine import Engine, Position, SearchState
from skillc.optimize.gate.decide import Patch
from skillc.optimize.gate.pool import passes_text_gates
from skillc.optimize.propose.cases import briefing
from skillc.optimize.propose.prompting import budget_messages, rewrite_messages
from skillc.optimize.propose.proposals import Proposal, edit_view, without_tags
from skillc.optimize.propose.replies import BudgetReply, MalformedReply, RewriteReply
from skillc.optimize.rollouts import gather
from skillc.plan.schema import GatePlan
from skillc.text import listed

# Proposals that are taken together or not at all.
_Unit = tuple[Proposal, ...]


def select(incumbent: Document, proposals: Sequence[Proposal], budget: int) -> list[Proposal]:
    """At most `budget` proposals that fit together; those that need each other come together or not at all.

    Next is always what is worth most beyond what is chosen before it, less what it broke; then what has more support,
    then the optimizer's own order. An author's own case is worth a quarter of an unseen failure, so a memorised edit
    comes behind a general one. What is worth nothing more is left out. What could not be screened makes up a candidate
    only where nothing is known to cure, by support. Of two proposals on one rule the better stays; one that the
    document refuses beside those before it takes no place.
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
    """Each proposal with those that it needs; one that needs what is not there is left out."""
    by_edit = {proposal.edit: proposal for proposal in proposals}
    units: dict[frozenset[Proposal], _Unit] = {}
    for proposal in proposals:
        if all(edit in by_edit for edit in proposal.needs):
            unit = (proposal, *(by_edit[edit] for edit in proposal.needs))
            units.setdefault(frozenset(unit), unit)
    return list(units.values())


def _gains(unit: Iterable[Proposal]) -> dict[str, int]:
    """By example what the unit is worth: the most that one of its proposals was credited with."""
    gains: dict[str, int] = {}
    for proposal in unit:
        for example, gain in proposal.worth.items():
            gains[example] = max(gain, gains.get(example, 0))
    return gains


def _more(unit: _Unit, reached: Mapping[str, int]) -> int:
    """What the unit adds to what is reached already, less what it broke, in millionths."""
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
    """At most `count` bundles whose texts all differ, the best first; none where no proposal is fit to be tried.

    A bundle is in the order of the proposals: the screen says what an edit is worth, not where its rule belongs.

    After the selection itself come those without one of its edits, the weakest first: once with the next edit in its
    place, once with none. A bundle whose text was rejected before is left out, unless it is the only one.

    Args:
        incumbent: the skill that is changed.
        proposals: with what the screen found.
        budget: the most edits of a bundle.
        count: the most bundles.
        known: digests of the skills that were rejected against this incumbent.
    """
    best = select(incumbent, proposals, budget)
    found = _distinct(incumbent, proposals, budget, count, known)
    return found or ([_in_order(incumbent, proposals, best)] if best else [])


def _in_order(incumbent: Document, proposals: Sequence[Proposal], bundle: Bundle) -> Bundle:
    """A bundle as its edits are to be made; as it is where the document refuses one of them in that order.

    What goes to the start is put there from the last to the first, so that the first is on top.
    """
    ordered = [proposal for proposal in proposals if proposal in bundle]
    start = [p for p in ordered if isinstance(p.edit, Add | Move) and p.edit.after == START]
    ordered = [*start[::-1], *(p for p in ordered if p not in start)]
    reports = apply_edits(incumbent, [proposal.edit for proposal in ordered]).results
    return ordered if all(report.applied for report in reports) else bundle


def _distinct(
    incumbent: Document, proposals: Sequence[Proposal], budget: int, count: int, known: Collection[str]
) -> list[Bundle]:
    found: list[Bundle] = []
    seen = {digest(incumbent)}
    for chosen in _candidates(incumbent, proposals, budget):
        bundle = _in_order(incumbent, proposals, chosen)
        text = digest(apply_edits(incumbent, [proposal.edit for proposal in bundle]).document)
        # The selection itself is tried even where it changes nothing that the target sees: the gates say so.
        if bundle and text not in known and (not found or text not in seen):
            found.append(bundle)
            seen.add(text)
        if len(found) >= count:
            break
    return found


def _candidates(incumbent: Document, proposals: Sequence[Proposal], budget: int) -> Iterator[Bundle]:
    best = select(incumbent, proposals, budget)
    yield best
    for out in reversed(best):
        yield select(incumbent, [proposal for proposal in proposals if proposal is not out], budget)
        yield [proposal for proposal in best if proposal is not out and out.edit not in proposal.needs]


async def choose_budget(
    engine: Engine, state: SearchState, proposals: Sequence[Proposal], budget: int, position: Position
) -> int:
    """How many edits this step may make; the scheduled number unless the schedule is `model` and the model answers."""
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
    shown: Mapping[str, JsonValue],
) -> list[Patch]:
    """Write the candidates of a step, all at once; `shown` is what the history tells besides."""
    if engine.plan.optimize.update != "edits":
        engine.observer.stage("rewrite", len(pool))
    return await gather([write_patch(engine, state, each, position, shown, ordinal=i) for i, each in enumerate(pool)])


async def write_patch(
    engine: Engine,
    state: SearchState,
    chosen: Sequence[Proposal],
    position: Position,
    shown: Mapping[str, JsonValue],
    *,
    ordinal: int = 0,
) -> Patch:
    """The candidate of a step, with what the history tells of it.

    Args:
        engine: the surroundings.
        state: its incumbent is what is changed.
        chosen: what the candidate shall do, the best first.
        position: where in the run.
        shown: what the history tells besides.
        ordinal: of the candidate, where a step has several.
    """
    if engine.plan.optimize.update != "edits":
        reminding = [p for p in chosen if _alone(engine, section_of(state.incumbent, p))]
        suggested = [p for p in chosen if p not in reminding]
        edits = await _rewritten(engine, state, suggested, position, ordinal) if suggested else None
        if edits is not None:
            return _rewrite_patch(state, edits, suggested, reminding, shown)
    applied = apply_edits(state.incumbent, [p.edit for p in chosen])
    labels = [label for field in engine.plan.task.outputs for label in field.type.labels]
    told: list[JsonValue] = [
        {
            **proposal.to_json(),
            "report": report.message,
            "rule": report.rule,
            **opposite_note(state.incumbent, proposal.edit, labels),
        }
        for proposal, report in zip(chosen, applied.results, strict=True)
    ]
    edits = tuple(proposal.edit for proposal in chosen)
    return Patch(edits, applied.document, {**shown, "edits": told}, proposals=tuple(chosen))


def opposite_note(incumbent: Document, edit: Edit, labels: Sequence[str]) -> dict[str, JsonValue]:
    """What the history points out of an edit that may turn a rule into its opposite."""
    rule = incumbent.rule(edit.rule) if isinstance(edit, Replace) else None
    note = describe_opposite(rule.text, edit.text, labels) if rule is not None and isinstance(edit, Replace) else None
    return {"opposite": note} if note else {}


def _rewrite_patch(
    state: SearchState,
    edits: Sequence[Edit],
    suggested: Sequence[Proposal],
    reminding: Sequence[Proposal],
    shown: Mapping[str, JsonValue],
) -> Patch:
    every = (*edits, *(p.edit for p in reminding))
    document, told = apply_and_report(state.incumbent, every)
    suggestions: list[JsonValue] = [p.to_json() for p in suggested]
    record: dict[str, JsonValue] = {**shown, "suggestions": suggestions, "edits": told}
    return Patch(every, document, record, proposals=(*suggested, *reminding), whole=True)


def apply_and_report(skill: Document, edits: Sequence[Edit]) -> tuple[Document, list[JsonValue]]:
    """The skill with edits, and what the history records of each."""
    applied = apply_edits(skill, edits)
    told: list[JsonValue] = [
        {**edit_to_json(edit), "report": report.message, "rule": report.rule}
        for edit, report in zip(edits, applied.results, strict=True)
    ]
    return applied.document, told


def section_of(skill: Document, proposal: Proposal) -> str | None:
    """The section that a proposal changes."""
    if isinstance(proposal.edit, Add):
        return proposal.edit.section
    section = skill.section_of(proposal.edit.rule)
    return section.name if section else None


async def _rewritten(
    engine: Engine, state: SearchState, suggested: Sequence[Proposal], position: Position, ordinal: int
) -> tuple[Edit, ...] | None:
    """The edits of a rewrite, None where the optimizer gave none that fits."""
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
    """Ask for sections of a skill written anew.

    Args:
        engine: the surroundings.
        skill: what the reply changes.
        sections: the sections that it may hold.
        messages: the prompt.
        stage: the stage that asks, for the ledger.
        sample: (epoch, step, ordinal), as for every question to the optimizer.

    Returns:
        The reply with the edits that it amounts to, or why it cannot be taken; None where no reply could be read. A
        reply without a section is an answer: nothing is to be changed.
    """

    def check(reply: RewriteReply) -> None:
        edits = read_rewrite(skill, reply, sections)
        if reply.sections and isinstance(edits, Refusal):
            raise MalformedReply(edits.reason)

    reply = await engine.optimizer.ask(RewriteReply, messages, stage=stage, sample=sample, check=check)
    return None if reply is None else (reply, read_rewrite(skill, reply, sections))


def writable_sections(engine: Engine, skill: Document) -> list[str]:
    """The sections that may be written anew: the trainable ones but those that edits of a mechanism alone fill."""
    trainable = [section.name for section in skill.sections if section.mode == "trainable"]
    return [name for name in trainable if not _alone(engine, name)]


def _alone(engine: Engine, section: str | None) -> bool:
    return section is not None and any(mechanism.owns_section(section) for mechanism in engine.mechanisms)


def sections_to_rewrite(engine: Engine, skill: Document, suggested: Sequence[Proposal]) -> list[str]:
    """`rewrite_all`: every trainable section but the reminders; `rewrite_section`: the one with most suggestions."""
    found = writable_sections(engine, skill)
    if engine.plan.optimize.update == "rewrite_all":
        return found
    counts = Counter(section_of(skill, proposal) for proposal in suggested)
    return [max(found, key=lambda name: counts[name])]


def read_rewrite(skill: Document, reply: RewriteReply, sections: Sequence[str]) -> tuple[Edit, ...] | Refusal:
    """The edits that a rewrite amounts to, or why it cannot be: another section, over a limit, nothing changed."""
    edits: list[Edit] = []
    document = skill
    for part in reply.sections:
        if part.section not in sections:
            asked = listed(sections)
            return Refusal(f"section `{part.section}` was not to be rewritten, but {asked}")
        wanted = [
            WantedRule(
                rule.text, rule.topic, rule.rule if rule.rule in skill.ids else None, without_tags(rule.rationale)
            )
            if rule.text
            else WantedRule(rule=rule.rule, topic=rule.topic)
            for rule in part.rules
        ]
        found = edits_to(document, part.section, wanted)
        if isinstance(found, Refusal):
            return found
        edits += found
        document = apply_edits(document, found).document
    if not edits:
        return Refusal("the rewrite changes nothing")
    return tuple(edits)


def first_fitting(
    engine: Engine, state: SearchState, edits: Sequence[Edit], gates: Sequence[GatePlan] | None = None
) -> tuple[Edit, ...]:
    """Return as many of the first edits as the gates on texts let through, such as a trust region.

    Args:
        engine: the run.
        state: its incumbent is edited.
        edits: the most important first.
        gates: what decides; by default the plan's gates for steps.
    """
    for count in range(len(edits), 0, -1):
        if passes_text_gates(engine, state, apply_edits(state.incumbent, edits[:count]).document, gates):
            return tuple(edits[:count])
    return ()
