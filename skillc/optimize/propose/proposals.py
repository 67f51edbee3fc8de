"""Proposed edits with their evidence, from the reflection through the screen to the selection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.edits import Add, Delete, Edit, Move, Replace, apply_edits, edit_to_json
from skillc.document.skill import Document
from skillc.optimize.propose.near import Alike
from skillc.optimize.propose.prompting import EditView
from skillc.optimize.propose.replies import MalformedReply, Op, ProposedEdit
from skillc.text import joined

# `t3`, `t1, t4 and k2`: how the prompts name cases.
_TAGS = re.compile(r"\b[tk]\d+(?:(?:,? and |, ?|; ?| ?/ ?| )[tk]\d+)*\b")
Verdict = Literal["cures", "cures none", "breaks", "unscreened"]
# The worth of curing a case that its author saw, as a share of curing an unseen failure.
OWN = 4
_PART = 0.5  # of a proposal's words, more than which a rule that was made of it has
_OPS: Mapping[type[Edit], Op] = {Add: "add", Replace: "replace", Delete: "delete", Move: "move"}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed edit with its evidence.

    Attributes:
        cures: ids of the training examples that it targets.
        support: how many reflections proposed it.
        moved: failures on which the screen tried it: (example, change of the goal in millionths).
        chance: failures that the placebo control also cures, so that they do not count.
        needs: other edits of the step that it needs to cure anything.
        seen: ids of the training examples that its author saw.
        guarded: near successes on which the screen tried it, as `moved`.
        returned: how often it returned from the shelf.
        read: ids of all training examples that its authors could read, right ones included.
    """

    edit: Edit
    cures: tuple[str, ...] = ()
    support: int = 1
    moved: tuple[tuple[str, int], ...] = ()
    chance: frozenset[str] = frozenset()
    needs: tuple[Edit, ...] = ()
    seen: frozenset[str] = frozenset()
    guarded: tuple[tuple[str, int], ...] = ()
    returned: int = 0
    read: frozenset[str] = frozenset()

    @property
    def gains(self) -> Mapping[str, int]:
        """The gain of the goal in millionths, by cured failure."""
        return {example: change for example, change in self.moved if change > 0 and example not in self.chance}

    @property
    def worth(self) -> Mapping[str, int]:
        """The weighted gain by cured failure: the whole gain if its author did not see it, else a quarter."""
        return {name: gain // OWN if name in self.seen else gain for name, gain in self.gains.items()}

    @property
    def harm(self) -> int:
        """The loss of the goal over all examples of its trial, in millionths."""
        return -sum(change for _, change in (*self.moved, *self.guarded) if change < 0)

    @property
    def broke(self) -> tuple[str, ...]:
        """Ids of the worsened examples."""
        return tuple(example for example, change in (*self.moved, *self.guarded) if change < 0)

    @property
    def cured(self) -> int:
        """Number of cured failures."""
        return len(self.gains)

    @property
    def screened(self) -> int:
        """Number of failures of its trial; 0 if it was not screened."""
        return len(self.moved)

    @property
    def verdict(self) -> Verdict:
        """The result of the screen."""
        if self.screened == 0:
            return "unscreened"
        if not self.cured:
            return "cures none"
        unseen = sum(gain for name, gain in self.gains.items() if name not in self.seen)
        return "breaks" if self.harm > unseen else "cures"

    @property
    def reason(self) -> str:
        """The counts of the screen in words, for the rejected-edit buffer and the history."""
        kinds = {
            "unseen": [name for name, _ in self.moved if name not in self.seen],
            "shown": [name for name, _ in self.moved if name in self.seen],
        }
        counts = [f"{sum(n in self.gains for n in names)} of {len(names)} {k}" for k, names in kinds.items() if names]
        text = f"cured {joined(counts)} failures"
        if self.guarded:
            lost = sum(change < 0 for _, change in self.guarded)
            text += f", broke {lost} of {len(self.guarded)} near right cases"
        worse = sum(change < 0 for _, change in self.moved)
        text += f", made {worse} failures worse" if worse else ""
        lucky = sum(change > 0 for example, change in self.moved if example in self.chance)
        return f"{text}; an unrelated edit cured {lucky} more" if lucky else text

    def to_json(self) -> dict[str, JsonValue]:
        """Return values for the history; `screen` contains the changes by example, alone or with the needed edits.

        `own` names the failures that its author saw, `right` the near successes.
        """
        record: dict[str, JsonValue] = {
            **edit_to_json(self.edit),
            "cures": list(self.cures),
            "support": self.support,
            "cured": self.cured,
            "screened": self.screened,
        }
        if self.screened:
            record["screen"] = {
                "cured": [*self.gains],
                "broke": [*self.broke],
                "chance": [*sorted(self.chance)],
                "own": [name for name, _ in self.moved if name in self.seen],
                "right": [name for name, _ in self.guarded],
                "counts": self.reason,
            }
        if self.needs:
            record["needs"] = [wording(edit) for edit in self.needs]
        return record


def without_tags(rationale: str) -> str:
    """Remove the tags of cases from a rationale: they are valid only within their prompt."""
    return _TAGS.sub("some cases", rationale)


def read_edit(proposed: ProposedEdit) -> Edit | None:
    """Convert a model's proposal to an edit, None if it lacks a field that its `op` requires."""
    proposed = proposed.model_copy(update={"rationale": without_tags(proposed.rationale)})
    after = None if proposed.after == "end" else proposed.after
    if proposed.op == "add":
        if not (proposed.section and proposed.text):
            return None
        return Add(proposed.section, proposed.text, proposed.topic or None, proposed.rationale, after)
    if not proposed.rule:
        return None
    if proposed.op == "replace":
        if not (proposed.text or proposed.old):
            return None
        return Replace(proposed.rule, proposed.text, proposed.rationale, old=proposed.old)
    if proposed.op == "delete":
        return Delete(proposed.rule, proposed.rationale)
    return Move(proposed.rule, after, proposed.rationale)


def as_proposed(proposal: Proposal, tags: Mapping[str, str] = MappingProxyType({})) -> ProposedEdit:
    """Convert a proposal to the form of the optimizer's replies; examples without a tag are dropped."""
    edit = proposal.edit
    return ProposedEdit(
        op=_OPS[type(edit)],
        section=edit.section if isinstance(edit, Add) else None,
        rule=None if isinstance(edit, Add) else edit.rule,
        text=edit.text if isinstance(edit, Add | Replace) else "",
        old=edit.old if isinstance(edit, Replace) else "",
        topic=(edit.topic or "") if isinstance(edit, Add) else "",
        after=(edit.after or "end") if isinstance(edit, Add | Move) else None,
        rationale=edit.rationale,
        cures=tuple(tags[name] for name in proposal.cures if name in tags),
        support=proposal.support,
    )


def edit_view(proposal: Proposal) -> EditView:
    """Return a proposal with the screen's counts for a prompt."""
    edit = as_proposed(proposal)
    if not proposal.screened:
        return EditView(edit)
    broke = sum(change < 0 for _, change in proposal.guarded)
    return EditView(edit, proposal.cured, proposal.screened, broke, len(proposal.guarded))


def read_proposals(edits: Sequence[ProposedEdit], examples: Mapping[str, str]) -> list[Proposal]:
    """Read the proposals of one reply, whose author saw all of `examples` (id by tag)."""
    proposals = []
    seen = frozenset(examples.values())
    for proposed in edits:
        edit = read_edit(proposed)
        if edit is not None:
            cures = tuple(dict.fromkeys(examples[tag] for tag in proposed.cures if tag in examples))
            proposals.append(Proposal(edit, cures, max(1, proposed.support), seen=seen))
    return proposals


def check_edits(skill: Document, edits: Sequence[ProposedEdit]) -> None:
    """Check that each edit applies to the skill alone, or is already in it.

    Raises:
        MalformedReply: an edit does not apply.
    """
    problems = []
    for i, proposed in enumerate(edits):
        edit = read_edit(proposed)
        if edit is None:
            problems.append(f"`edits.{i}`: `{proposed.op}` lacks what it needs")
            continue
        (report,) = apply_edits(skill, (edit,)).results
        if not report.applied and not report.repeats:
            problems.append(f"`edits.{i}`: {report.message}")
    if problems:
        raise MalformedReply("; ".join(problems))


def wording(edit: Edit) -> str:
    """Describe an edit on one line. The line is its key in the rejected-edit buffer."""
    if isinstance(edit, Add):
        return f"add to {edit.section}: {edit.text}"
    if isinstance(edit, Replace):
        return f"replace {edit.rule}: {edit.old} => {edit.text}" if edit.old else f"replace {edit.rule}: {edit.text}"
    if isinstance(edit, Delete):
        return f"delete {edit.rule}"
    return f"move {edit.rule} after {edit.after or 'all others'}"


def parts_of(text: str, proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals that a rule's text was made of: those with the same text, else those it has most words of.

    A word counts more the fewer proposals contain it, so that words that all share decide nothing.
    """
    if not text:
        return []
    texts = [each.edit.text if isinstance(each.edit, Add | Replace) else "" for each in proposals]
    same = [proposal for proposal, own in zip(proposals, texts, strict=True) if own == text]
    if same:
        return same
    shares = Alike(texts).within(text)
    return [proposal for proposal, share in zip(proposals, shares, strict=True) if share > _PART]


def differences(before: Document, after: Document) -> list[Edit]:
    """Return the edits on rules that lead from one skill to another; positions of rules are ignored."""
    edits: list[Edit] = []
    for rule in after.rules:
        old = before.rule(rule.id)
        section = after.section_of(rule.id)
        if old is None and section is not None:
            edits.append(Add(section.name, rule.text, rule.topic, rule.rationale))
        elif old is not None and old.text != rule.text:
            edits.append(Replace(rule.id, rule.text, rule.rationale))
    edits += [Delete(rule.id) for rule in before.rules if rule.id not in after.ids]
    return edits


def unite(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Merge equal edits, in the order of first appearance: add their support, and unite their examples.

    The first author counts as the author, so the cases of the others are unseen.
    """
    merged: dict[str, Proposal] = {}
    for proposal in proposals:
        key = wording(proposal.edit)
        first = merged.get(key)
        if first is not None:
            cures = tuple(dict.fromkeys((*first.cures, *proposal.cures)))
            support, read = first.support + proposal.support, first.read | proposal.read
            proposal = replace(first, cures=cures, support=support, read=read)
        merged[key] = proposal
    return list(merged.values())
