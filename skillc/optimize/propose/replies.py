"""Replies of the optimizer model, and a reader that is tolerant of form."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from skillc.json_values import values_within

Op = Literal["add", "replace", "delete", "move"]

_MOST_PROBLEMS = 5
_OP_WORDS = {"append": "add", "insert": "add", "update": "replace", "edit": "replace", "remove": "delete"}


class MalformedReply(ValueError):  # noqa: N818 - the contract's name
    """An unusable reply; its message can be sent back to the model."""


def _text(value: object) -> object:
    return "" if value is None else value


def _tags(value: object) -> object:
    """Accept `"t1, t2"`, `"[t1]"`, `["t1"]`, `[1]` and null, as models write tags."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part for part in re.split(r"[\s,;\[\]]+", value) if part)
    if isinstance(value, (list, tuple)):
        return tuple(dict.fromkeys(str(part).strip().strip("[]") for part in value))
    return value


def _op(value: object) -> object:
    word = value.strip().lower() if isinstance(value, str) else value
    return _OP_WORDS.get(word, word) if isinstance(word, str) else word


def _bare(value: object) -> object:
    """Accept `[r1]`, as the skill shows the id `r1`."""
    return value.strip().strip("[]`").strip() or None if isinstance(value, str) else value


def _listed(value: object) -> object:
    """Accept null as an empty list."""
    return () if value is None else value


Text = Annotated[str, BeforeValidator(_text)]
Tags = Annotated[tuple[str, ...], BeforeValidator(_tags)]
Name = Annotated[str | None, BeforeValidator(_bare)]


class _Tolerant(BaseModel):
    """Drop unknown keys, such as explanations that a model adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Reply(_Tolerant):
    """A whole reply."""


class ProposedEdit(_Tolerant):
    """One edit as a model proposes it, not yet checked against the skill.

    Attributes:
        section: the section to add to.
        rule: id of the rule to replace, delete or move.
        text: the rule's text, on one line; of a script, the whole file or what takes the place of `old`.
        old: a part of a script that is replaced; empty for the whole rule.
        topic: the rule's sub-heading.
        after: id of the rule before it, or `start` or `end`.
        rationale: the evidence.
        cures: tags of the trajectories that it targets.
        support: the number of equal proposals.
    """

    op: Annotated[Op, BeforeValidator(_op)]
    section: Name = None
    rule: Name = None
    text: Text = ""
    old: Text = ""
    topic: Text = ""
    after: Name = None
    rationale: Text = ""
    cures: Tags = ()
    support: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _complete(self) -> ProposedEdit:
        if self.op in ("add", "replace") and not (self.text.strip() or self.old):
            raise ValueError(f"`{self.op}` needs `text`")
        if self.op != "add" and not self.rule:
            raise ValueError(f"`{self.op}` needs `rule`, the id of an existing rule")
        if self.op == "move" and not self.after:
            raise ValueError('`move` needs `after`: the id of a rule, "start" or "end"')
        return self


class LapseReply(_Tolerant):
    """A failure to follow a correct rule: `rule`, the `cases`, and a line that reminds of it."""

    reminder: Annotated[str, Field(min_length=1)]
    rule: Name = None
    cases: Tags = ()


class MarkReply(_Tolerant):
    """Tags of the trajectories on which a rule helped, and on which it misled."""

    rule: Name
    helped: Tags = ()
    misled: Tags = ()


class ReflectReply(Reply):
    """The proposals of one reflection on a minibatch; `lapses` and `marks` only if requested."""

    edits: tuple[ProposedEdit, ...]
    summary: Text = ""
    unexplained: Tags = ()
    lapses: Annotated[tuple[LapseReply, ...], BeforeValidator(_listed)] = ()
    marks: Annotated[tuple[MarkReply, ...], BeforeValidator(_listed)] = ()


class Lookup(_Tolerant):
    """One lookup: list the trajectories, read part `part` (from 1) of `tag`, or search all for `text`."""

    op: Annotated[Literal["list", "read", "search"], BeforeValidator(_op)]
    tag: Name = None
    part: int = Field(default=1, ge=1)
    text: Text = ""

    @model_validator(mode="after")
    def _complete(self) -> Lookup:
        if self.op == "read" and not self.tag:
            raise ValueError("`read` needs `tag`, the name of a trajectory")
        if self.op == "search" and not self.text.strip():
            raise ValueError("`search` needs `text`")
        return self


class LookReply(ReflectReply):
    """A lookup, or the reflection."""

    edits: tuple[ProposedEdit, ...] = ()
    lookup: Lookup | None = None

    @model_validator(mode="after")
    def _either(self) -> LookReply:
        if self.lookup is None and "edits" not in self.model_fields_set:
            raise ValueError("there is neither `lookup` nor `edits`")
        return self


class AggregateReply(Reply):
    """One list of edits merged from several."""

    edits: tuple[ProposedEdit, ...]


class RewrittenRule(_Tolerant):
    """A rule of a rewritten section: `rule` is the old one that it keeps (without `text`) or replaces.

    `cases` are the tags of those that it comes from, where a draft is asked for them.
    """

    rule: Name = None
    text: Text = ""
    topic: str | None = None
    rationale: Text = ""
    cases: Tags = ()

    @model_validator(mode="before")
    @classmethod
    def _line(cls, value: object) -> object:
        """Accept a rule written as a line: `[r3] the text`."""
        if not isinstance(value, str):
            return value
        found = re.fullmatch(r"\s*(?:[-*+]\s+)?(?:\[([\w-]+)\]\s*)?(.*?)\s*", value, re.DOTALL)
        return {"rule": found[1], "text": found[2]} if found else value

    @model_validator(mode="after")
    def _complete(self) -> RewrittenRule:
        if not (self.rule or self.text.strip()):
            raise ValueError("a rule needs `text`, or `rule`, the id of the rule that stays as it is")
        return self


class RewrittenSection(_Tolerant):
    """All rules of a rewritten section, in order."""

    section: str
    rules: tuple[RewrittenRule, ...]


class RewriteReply(Reply):
    """Rewritten sections; a draft adds an analysis and the cases that no rule explains."""

    sections: tuple[RewrittenSection, ...]
    analysis: Text = ""
    unexplained: Tags = ()


class SlowUpdateReply(Reply):
    """The new text of the slow section, one rule a line."""

    guidance: Text


class MetaSkillReply(Reply):
    """The optimizer's new memory of its own work."""

    memory: Text


class BudgetReply(Reply):
    """The number of edits of the step."""

    edits: int = Field(ge=0)


class OneShotReply(Reply):
    """New texts by section."""

    sections: dict[str, str]


R = TypeVar("R", bound=Reply)


def read_reply(kind: type[R], text: str) -> R:
    """Read the typed reply in a model's text: bare JSON, JSON in a code fence, or JSON within prose.

    The last object that fits counts, since reasoning comes before the answer. A bare list is read as the one list of
    the reply. Invalid edits are an error, so that the model can fix them when it is asked again.

    Raises:
        MalformedReply: the text contains no reply of this kind.
    """
    problem: str | None = None
    for value in reversed(list(values_within(text))):
        try:
            key = "sections" if kind is RewriteReply else "edits"
            return kind.model_validate({key: value} if isinstance(value, list) else value)
        except ValidationError as error:
            problem = problem or _explain(error)
    if problem is None:
        problem = "the reply holds no JSON object" if text.strip() else "the reply is empty"
    raise MalformedReply(problem)


def _explain(error: ValidationError) -> str:
    parts = []
    for item in error.errors()[:_MOST_PROBLEMS]:
        where = ".".join(str(part) for part in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        parts.append(f"`{where}`: {message}" if where else message)
    left = error.error_count() - len(parts)
    return "; ".join(parts) + (f"; and {left} more" if left > 0 else "")
