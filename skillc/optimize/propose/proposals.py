"""An edit on its way through a step: proposed by a reflection, merged, screened, ranked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue

from skillc.document.edits import Add, Delete, Edit, Move, Replace, apply_edits, edit_to_json
from skillc.document.skill import Document
from skillc.optimize.propose.prompting import EditView
from skillc.optimize.propose.replies import MalformedReply, ProposedEdit
from skillc.text import joined

# `t3`, `t1, t4 and k2`: how the prompts name cases.
_TAGS = re.compile(r"\b[tk]\d+(?:(?:,? and |, ?|; ?| ?/ ?| )[tk]\d+)*\b")
Verdict = Literal["cures", "cures none", "breaks", "unscreened"]
# An author looked at its own cases while it wrote the edit: curing one proves this share of curing an unseen failure.
OWN = 4


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed edit with its evidence.

    Attributes:
        edit: the change of the document.
        cures: ids of the training examples that it is meant to cure.
        support: how many reflections proposed it.
        moved: failures on which the screen tried it: (example, change of the goal in millionths).
        chance: failures that an unrelated edit cures too, so that curing them counts for nothing.
        needs: other edits of the step without which it does not cure.
        seen: ids of the training examples that its author was shown.
        guarded: near right cases on which the screen tried it, as `moved`.
        returned: how often it came back from the shelf.
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

    @property
    def gains(self) -> Mapping[str, int]:
        """By failure that it cured, what it added to the goal, in millionths."""
        return {example: change for example, change in self.moved if change > 0 and example not in self.chance}

    @property
    def worth(self) -> Mapping[str, int]:
        """By failure that it cured, what that proves: the whole gain of an unseen one, a quarter of its own."""
        return {name: gain // OWN if name in self.seen else gain for name, gain in self.gains.items()}

    @property
    def harm(self) -> int:
        """What it took from the goal on all examples on which it was tried, in millionths."""
        return -sum(change for _, change in (*self.moved, *self.guarded) if change < 0)

    @property
    def broke(self) -> tuple[str, ...]:
        """Ids of the examples that it made worse."""
        return tuple(example for example, change in (*self.moved, *self.guarded) if change < 0)

    @property
    def cured(self) -> int:
        """Number of failures that it cured."""
        return len(self.gains)

    @property
    def screened(self) -> int:
        """Number of failures on which it was tried; 0 if it was not screened."""
        return len(self.moved)

    @property
    def verdict(self) -> Verdict:
        """The screen's finding."""
        if self.screened == 0:
            return "unscreened"
        if not self.cured:
            return "cures none"
        unseen = sum(gain for name, gain in self.gains.items() if name not in self.seen)
        return "breaks" if self.harm > unseen else "cures"

    @property
    def reason(self) -> str:
        """The screen's counts in a few words, for the rejected-edit buffer and the history."""
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
        """Pure values for the history; `screen` is what the edit did to each example, alone or with those it needs.

        `own` names the failures that its author had seen, `right` the near right cases.
        """
        told: dict[str, JsonValue] = {
            **edit_to_json(self.edit),
            "cures": list(self.cures),
            "support": self.support,
            "cured": self.cured,
            "screened": self.screened,
        }
        if self.screened:
            told["screen"] = {
                "cured": [*self.gains],
                "broke": [*self.broke],
                "chance": [*sorted(self.chance)],
                "own": [name for name, _ in self.moved if name in self.seen],
                "right": [name for name, _ in self.guarded],
                "counts": self.reason,
            }
        if self.needs:
            told["needs"] = [wording(edit) for edit in self.needs]
        return told


def without_tags(rationale: str) -> str:
    """A rationale without the tags of cases, which mean nothing outside of the prompt that had them."""
    return _TAGS.sub("some cases", rationale)


def read_edit(proposed: ProposedEdit) -> Edit | None:
    """The document's edit for a model's proposal, None where it lacks what its `op` needs."""
    proposed = proposed.model_copy(update={"rationale": without_tags(proposed.rationale)})
    after = None if proposed.after == "end" else proposed.after
    if proposed.op == "add":
        if not (proposed.section and proposed.text):
            return None
        return Add(
            section=proposed.section,
            text=proposed.text,
            topic=proposed.topic or None,
            rationale=proposed.rationale,
            after=after,
        )
    if not proposed.rule:
        return None
    if proposed.op == "replace":
        return Replace(proposed.rule, proposed.text, proposed.rationale) if proposed.text else None
    if proposed.op == "delete":
        return Delete(proposed.rule, proposed.rationale)
    return Move(proposed.rule, after, proposed.rationale)


def as_proposed(proposal: Proposal, tags: Mapping[str, str] = MappingProxyType({})) -> ProposedEdit:
    """A proposal in the form in which the optimizer writes it; examples without a tag are left out."""
    edit = proposal.edit
    return ProposedEdit(
        op=edit_op(edit),
        section=edit.section if isinstance(edit, Add) else None,
        rule=None if isinstance(edit, Add) else edit.rule,
        text=edit.text if isinstance(edit, Add | Replace) else "",
        topic=(edit.topic or "") if isinstance(edit, Add) else "",
        after=(edit.after or "end") if isinstance(edit, Add | Move) else None,
        rationale=edit.rationale,
        cures=tuple(tags[name] for name in proposal.cures if name in tags),
        support=proposal.support,
    )


def edit_view(proposal: Proposal) -> EditView:
    """A proposal with the screen's counts, as a prompt shows it."""
    edit = as_proposed(proposal)
    if not proposal.screened:
        return EditView(edit)
    broke = sum(change < 0 for _, change in proposal.guarded)
    return EditView(edit, proposal.cured, proposal.screened, broke, len(proposal.guarded))


def edit_op(edit: Edit) -> Literal["add", "replace", "delete", "move"]:
    """The word for what an edit does."""
    if isinstance(edit, Add):
        return "add"
    if isinstance(edit, Replace):
        return "replace"
    return "delete" if isinstance(edit, Delete) else "move"


def read_proposals(edits: Sequence[ProposedEdit], examples: Mapping[str, str]) -> list[Proposal]:
    """Proposals of one reply; `examples` maps what the reply calls an example to the example's id.

    Their author has seen all of these examples.
    """
    proposals = []
    seen = frozenset(examples.values())
    for proposed in edits:
        edit = read_edit(proposed)
        if edit is not None:
            cures = tuple(dict.fromkeys(examples[tag] for tag in proposed.cures if tag in examples))
            proposals.append(Proposal(edit, cures, max(1, proposed.support), seen=seen))
    return proposals


def check_edits(skill: Document, edits: Sequence[ProposedEdit]) -> None:
    """Refuses edits that the document would refuse, each by itself; those that repeat it are no fault.

    Raises:
        MalformedReply: with the reasons.
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
    """An edit as one line, for the rejected-edit buffer: the same line for the same change."""
    if isinstance(edit, Add):
        return f"add to {edit.section}: {edit.text}"
    if isinstance(edit, Replace):
        return f"replace {edit.rule}: {edit.text}"
    if isinstance(edit, Delete):
        return f"delete {edit.rule}"
    return f"move {edit.rule} after {edit.after or 'all others'}"


def differences(before: Document, after: Document) -> list[Edit]:
    """Edits on rules that lead from one skill to another; where a rule stands does not count."""
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
    """Unite equal edits: their supports add up, their examples unite, in the order of first appearance.

    The text counts as the first author's, so that the cases of the others are unseen.
    """
    first: dict[str, Proposal] = {}
    for proposal in proposals:
        key = wording(proposal.edit)
        seen = first.get(key)
        if seen is None:
            first[key] = proposal
        else:
            cures = tuple(dict.fromkeys((*seen.cures, *proposal.cures)))
            first[key] = replace(seen, cures=cures, support=seen.support + proposal.support)
    return list(first.values())
