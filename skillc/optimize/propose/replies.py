"""What the optimizer model must reply, and a reader that forgives form but not meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

Op = Literal["add", "replace", "delete", "move"]
ReplyKind = Literal["reflect", "look", "aggregate", "rewrite", "slow_update", "meta_skill", "budget", "one_shot"]

_MOST_PROBLEMS = 5
_OP_WORDS = {"append": "add", "insert": "add", "update": "replace", "edit": "replace", "remove": "delete"}


class MalformedReply(ValueError):  # noqa: N818 - the contract's name
    """A reply that can't be used; `str()` says why in words that can be sent back to the model."""


def _text(value: object) -> object:
    return "" if value is None else value


def _tags(value: object) -> object:
    """`"t1, t2"`, `"[t1]"`, `["t1"]`, `[1]` and null are all ways in which models write tags."""
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
    """`[r1]` is how the skill shows the id `r1`, and so some models copy it."""
    return value.strip().strip("[]`").strip() or None if isinstance(value, str) else value


def _listed(value: object) -> object:
    """Null is how some models write an empty list."""
    return () if value is None else value


Text = Annotated[str, BeforeValidator(_text)]
Tags = Annotated[tuple[str, ...], BeforeValidator(_tags)]
Name = Annotated[str | None, BeforeValidator(_bare)]


class _Tolerant(BaseModel):
    """Unknown keys are dropped: what a model adds to explain itself costs nothing."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ProposedEdit(_Tolerant):
    """One edit as a model proposes it; whether it fits the document is the document's business.

    Attributes:
        op: what to do.
        section: where to add.
        rule: id of the rule to replace, delete or move.
        text: the rule's text, on one line.
        topic: sub-heading that the rule belongs under.
        after: id of the rule that it shall stand after, or `start` or `end`.
        rationale: why, on what evidence.
        cures: tags of the trajectories that it is meant to cure; in an aggregate, ids of examples.
        support: how many proposals said the same.
    """

    op: Annotated[Op, BeforeValidator(_op)]
    section: Name = None
    rule: Name = None
    text: Text = ""
    topic: Text = ""
    after: Name = None
    rationale: Text = ""
    cures: Tags = ()
    support: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _complete(self) -> ProposedEdit:
        if self.op in ("add", "replace") and not self.text.strip():
            raise ValueError(f"`{self.op}` needs `text`")
        if self.op != "add" and not self.rule:
            raise ValueError(f"`{self.op}` needs `rule`, the id of an existing rule")
        if self.op == "move" and not self.after:
            raise ValueError('`move` needs `after`: the id of a rule, "start" or "end"')
        return self


class LapseReply(_Tolerant):
    """A failure to follow a rule that would have been right: `rule`, the `cases`, and the line that reminds of it."""

    reminder: Annotated[str, Field(min_length=1)]
    rule: Name = None
    cases: Tags = ()


class MarkReply(_Tolerant):
    """Tags of the trajectories on which a rule helped, and on which it misled."""

    rule: Name
    helped: Tags = ()
    misled: Tags = ()


class ReflectReply(_Tolerant):
    """What one reflection on a minibatch proposes; `lapses` and `marks` only where they were asked for."""

    edits: tuple[ProposedEdit, ...]
    summary: Text = ""
    unexplained: Tags = ()
    lapses: Annotated[tuple[LapseReply, ...], BeforeValidator(_listed)] = ()
    marks: Annotated[tuple[MarkReply, ...], BeforeValidator(_listed)] = ()


class Lookup(_Tolerant):
    """One question to the trajectories.

    Attributes:
        op: list them, read a part of one, or search for a text in all.
        tag: which one to read.
        part: which of its parts, from 1.
        text: what to search for.
    """

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
    """A reflection that may look something up first: a lookup, or the edits."""

    edits: tuple[ProposedEdit, ...] = ()
    lookup: Lookup | None = None

    @model_validator(mode="after")
    def _either(self) -> LookReply:
        if self.lookup is None and "edits" not in self.model_fields_set:
            raise ValueError("there is neither `lookup` nor `edits`")
        return self


class AggregateReply(_Tolerant):
    """Several patches joined into one."""

    edits: tuple[ProposedEdit, ...]


class RewrittenRule(_Tolerant):
    """A rule of a rewritten section: `rule` names the old one that it keeps or replaces; without `text` it stays."""

    rule: Name = None
    text: Text = ""
    topic: str | None = None
    rationale: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _line(cls, value: object) -> object:
        """Some models write a rule as a line: `[r3] the text`."""
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
    """A section written anew: all its rules, in order."""

    section: str
    rules: tuple[RewrittenRule, ...]


class RewriteReply(_Tolerant):
    """Sections written anew; a draft also says what decides the answers, and names the cases that no rule explains."""

    sections: tuple[RewrittenSection, ...]
    analysis: Text = ""
    unexplained: Tags = ()


class SlowUpdateReply(_Tolerant):
    """The new text of the slow section, one rule a line."""

    guidance: Text


class MetaSkillReply(_Tolerant):
    """What the optimizer wants to remember about its own work."""

    memory: Text


class BudgetReply(_Tolerant):
    """How many edits the step shall make."""

    edits: int = Field(ge=0)


class OneShotReply(_Tolerant):
    """Whole new texts by section."""

    sections: dict[str, str]


Reply = ReflectReply | AggregateReply | RewriteReply | SlowUpdateReply | MetaSkillReply | BudgetReply | OneShotReply
REPLIES: dict[ReplyKind, type[Reply]] = {
    "reflect": ReflectReply,
    "look": LookReply,
    "aggregate": AggregateReply,
    "rewrite": RewriteReply,
    "slow_update": SlowUpdateReply,
    "meta_skill": MetaSkillReply,
    "budget": BudgetReply,
    "one_shot": OneShotReply,
}


def read_reply(kind: ReplyKind, text: str) -> Reply:
    """The typed reply in a model's text: bare JSON, JSON in a code fence, or JSON amid prose.

    The last object that fits counts, since reasoning comes before the answer. A bare list is taken for the one list
    that the reply has. Wrong edits are an error, not dropped: the model can mend them when it is asked again.

    Raises:
        MalformedReply: nothing in the text can be read as a reply of this kind.
    """
    model = REPLIES[kind]
    problem: str | None = None
    for value in reversed(list(_values(text))):
        try:
            return model.model_validate(_keyed(kind, value))
        except ValidationError as error:
            problem = problem or _explain(error)
    if problem is None:
        problem = "the reply holds no JSON object" if text.strip() else "the reply is empty"
    raise MalformedReply(problem)


def _keyed(kind: ReplyKind, value: object) -> object:
    """A bare list under the key that it stands for."""
    if not isinstance(value, list):
        return value
    return {"sections" if kind == "rewrite" else "edits": value}


def _values(text: str) -> Iterator[object]:
    """The outermost JSON objects and lists in a text, in order."""
    decoder = json.JSONDecoder(strict=False)
    at = 0
    while (start := _opening(text, at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, start)
        except RecursionError:
            return
        except json.JSONDecodeError:
            at = start + 1
            continue
        yield value


def _opening(text: str, at: int) -> int:
    found = re.compile(r"[\[{]").search(text, at)
    return found.start() if found else -1


def _explain(error: ValidationError) -> str:
    parts = []
    for item in error.errors()[:_MOST_PROBLEMS]:
        where = ".".join(str(part) for part in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        parts.append(f"`{where}`: {message}" if where else message)
    left = error.error_count() - len(parts)
    return "; ".join(parts) + (f"; and {left} more" if left > 0 else "")
