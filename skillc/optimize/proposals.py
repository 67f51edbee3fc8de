"""An edit on its way through a step: proposed by a reflection, merged, screened, ranked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from skillc.document.edits import Add, Delete, Edit, Move, Replace, apply_edits, edit_to_json
from skillc.document.skill import Document
from skillc.optimize.replies import MalformedReply, ProposedEdit

# `t3`, `t1, t4 and k2`: how the prompts name cases.
_TAGS = re.compile(r"\b[tk]\d+(?:(?:,? and |, ?|; ?| ?/ ?| )[tk]\d+)*\b")
Verdict = Literal["cures", "cures none", "unscreened"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed edit with its evidence.

    Attributes:
        edit: what is to be done to the document.
        cures: ids of the training examples that it is meant to cure.
        support: how many reflections spoke for it.
        moved: what the screen saw: (example, change of the goal in millionths) of the failures on which it was tried;
            none where it was not tried.
        chance: cited examples that come right by chance, so that nobody is credited with them.
        needs: other edits of the step without which it does not cure.
    """

    edit: Edit
    cures: tuple[str, ...] = ()
    support: int = 1
    moved: tuple[tuple[str, int], ...] = ()
    chance: frozenset[str] = frozenset()
    needs: tuple[Edit, ...] = ()

    @property
    def gains(self) -> Mapping[str, int]:
        """By example that it cured, what it added to the goal, in millionths."""
        return {example: change for example, change in self.moved if change > 0 and example not in self.chance}

    @property
    def broke(self) -> tuple[str, ...]:
        """Ids of the failures that it made worse."""
        return tuple(example for example, change in self.moved if change < 0)

    @property
    def cured(self) -> int:
        """How many of the screened examples it cured."""
        return len(self.gains)

    @property
    def screened(self) -> int:
        """On how many examples it was tried; 0 means that it was not."""
        return len(self.moved)

    @property
    def verdict(self) -> Verdict:
        """What the screen says."""
        if self.screened == 0:
            return "unscreened"
        return "cures" if self.cured else "cures none"

    @property
    def reason(self) -> str:
        """The screen's finding in a few words, for the rejected-edit buffer."""
        lucky = sum(change > 0 for example, change in self.moved if example in self.chance)
        cured = f"cured {self.cured or 'none'} of {self.screened}"
        return f"{cured}; {lucky} came right under an unrelated edit too" if lucky else cured

    def to_json(self) -> dict[str, JsonValue]:
        """Pure values for the history; `screen` is what the edit did to each example, alone or with those it needs."""
        told: dict[str, JsonValue] = {
            **edit_to_json(self.edit),
            "cures": list(self.cures),
            "support": self.support,
            "cured": self.cured,
            "screened": self.screened,
        }
        if self.screened:
            told["screen"] = {"cured": [*self.gains], "broke": [*self.broke], "chance": [*sorted(self.chance)]}
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


def as_proposed(proposal: Proposal) -> ProposedEdit:
    """A proposal in the form in which the optimizer writes it; its examples stand under their own ids."""
    edit = proposal.edit
    return ProposedEdit(
        op=edit_op(edit),
        section=edit.section if isinstance(edit, Add) else None,
        rule=None if isinstance(edit, Add) else edit.rule,
        text=edit.text if isinstance(edit, Add | Replace) else "",
        topic=(edit.topic or "") if isinstance(edit, Add) else "",
        after=(edit.after or "end") if isinstance(edit, Add | Move) else None,
        rationale=edit.rationale,
        cures=proposal.cures,
        support=proposal.support,
    )


def edit_op(edit: Edit) -> Literal["add", "replace", "delete", "move"]:
    """The word for what an edit does."""
    if isinstance(edit, Add):
        return "add"
    if isinstance(edit, Replace):
        return "replace"
    return "delete" if isinstance(edit, Delete) else "move"


def read_proposals(edits: Sequence[ProposedEdit], examples: Mapping[str, str]) -> list[Proposal]:
    """Proposals of one reply; `examples` maps what the reply calls an example to the example's id."""
    proposals = []
    for proposed in edits:
        edit = read_edit(proposed)
        if edit is not None:
            cures = tuple(dict.fromkeys(examples[tag] for tag in proposed.cures if tag in examples))
            proposals.append(Proposal(edit, cures, max(1, proposed.support)))
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
        (report,) = apply_edits(skill, (edit,)).reports
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
