"""How a candidate is written (`update`): the chosen edits as they are, or sections rewritten from them.

A rewrite is expressed as edits against the incumbent, so that limits, locked sections, history, the rejected-edit
buffer and merging work as with any other patch. Reminders are not rewritten: they are edits in every mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from skillc.document.change import describe_opposite
from skillc.document.edits import Add, Edit, Replace, apply_edits, edit_to_json
from skillc.document.markdown import Refusal
from skillc.document.rewrites import WantedRule, edits_to
from skillc.document.skill import Document
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.gate.decide import Patch
from skillc.optimize.gate.pool import fits_text
from skillc.optimize.propose.cases import briefing
from skillc.optimize.propose.prompting import rewrite_messages
from skillc.optimize.propose.proposals import Proposal, edit_view, without_tags
from skillc.optimize.propose.replies import MalformedReply, RewriteReply
from skillc.optimize.rollouts import gather
from skillc.plan.schema import GatePlan
from skillc.text import listed


async def write_patches(
    engine: Engine,
    state: State,
    pool: Sequence[Sequence[Proposal]],
    place: Place,
    shown: Mapping[str, JsonValue],
) -> list[Patch]:
    """Write the candidates of a step, all at once; `shown` is what the history tells besides."""
    if engine.plan.optimize.update != "edits":
        engine.observer.stage("rewrite", len(pool))
    return await gather([write_patch(engine, state, each, place, shown, ordinal=i) for i, each in enumerate(pool)])


async def write_patch(
    engine: Engine,
    state: State,
    chosen: Sequence[Proposal],
    place: Place,
    shown: Mapping[str, JsonValue],
    *,
    ordinal: int = 0,
) -> Patch:
    """The candidate of a step, with what the history tells of it.

    Args:
        engine: the surroundings.
        state: its incumbent is what is changed.
        chosen: what the candidate shall do, the best first.
        place: where in the run.
        shown: what the history tells besides.
        ordinal: of the candidate, where a step has several.
    """
    if engine.plan.optimize.update != "edits":
        reminding = [p for p in chosen if _alone(engine, section_of(state.incumbent, p))]
        suggested = [p for p in chosen if p not in reminding]
        edits = await _rewritten(engine, state, suggested, place, ordinal) if suggested else None
        if edits is not None:
            return _rewrite_patch(state, edits, suggested, reminding, shown)
    applied = apply_edits(state.incumbent, [p.edit for p in chosen])
    labels = [label for field in engine.plan.task.outputs for label in field.type.labels]
    told: list[JsonValue] = [
        {
            **proposal.to_json(),
            "report": report.message,
            "rule": report.rule,
            **turned(state.incumbent, proposal.edit, labels),
        }
        for proposal, report in zip(chosen, applied.results, strict=True)
    ]
    edits = tuple(proposal.edit for proposal in chosen)
    return Patch(edits, applied.document, {**shown, "edits": told}, proposals=tuple(chosen))


def turned(incumbent: Document, edit: Edit, labels: Sequence[str]) -> dict[str, JsonValue]:
    """What the history points out of an edit that may turn a rule into its opposite."""
    rule = incumbent.rule(edit.rule) if isinstance(edit, Replace) else None
    note = describe_opposite(rule.text, edit.text, labels) if rule is not None and isinstance(edit, Replace) else None
    return {"opposite": note} if note else {}


def _rewrite_patch(
    state: State,
    edits: Sequence[Edit],
    suggested: Sequence[Proposal],
    reminding: Sequence[Proposal],
    shown: Mapping[str, JsonValue],
) -> Patch:
    every = (*edits, *(p.edit for p in reminding))
    document, told = reported(state.incumbent, every)
    suggestions: list[JsonValue] = [p.to_json() for p in suggested]
    record: dict[str, JsonValue] = {**shown, "suggestions": suggestions, "edits": told}
    return Patch(every, document, record, proposals=(*suggested, *reminding), whole=True)


def reported(skill: Document, edits: Sequence[Edit]) -> tuple[Document, list[JsonValue]]:
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
    engine: Engine, state: State, suggested: Sequence[Proposal], place: Place, ordinal: int
) -> tuple[Edit, ...] | None:
    """The edits of a rewrite, None where the optimizer gave none that fits."""
    sections = sections_to_rewrite(engine, state.incumbent, suggested)
    views = [edit_view(proposal) for proposal in suggested]
    messages = rewrite_messages(briefing(engine, state), edits=views, rewritten=sections)
    sample = (place.epoch, place.step, ordinal)
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


def written_sections(engine: Engine, skill: Document) -> list[str]:
    """The sections that may be written anew: the trainable ones but those that edits of a mechanism alone fill."""
    trainable = [section.name for section in skill.sections if section.mode == "trainable"]
    return [name for name in trainable if not _alone(engine, name)]


def _alone(engine: Engine, section: str | None) -> bool:
    return section is not None and any(mechanism.writes_alone(section) for mechanism in engine.mechanisms)


def sections_to_rewrite(engine: Engine, skill: Document, suggested: Sequence[Proposal]) -> list[str]:
    """`rewrite_all`: every trainable section but the reminders; `rewrite_section`: the one with most suggestions."""
    found = written_sections(engine, skill)
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
    engine: Engine, state: State, edits: Sequence[Edit], gates: Sequence[GatePlan] | None = None
) -> tuple[Edit, ...]:
    """Return as many of the first edits as the gates on texts let through, such as a trust region.

    Args:
        engine: the run.
        state: its incumbent is edited.
        edits: the most important first.
        gates: what decides; by default the plan's gates for steps.
    """
    for count in range(len(edits), 0, -1):
        if fits_text(engine, state, apply_edits(state.incumbent, edits[:count]).document, gates):
            return tuple(edits[:count])
    return ()
