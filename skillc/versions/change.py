"""One thing that two versions of a program do not have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["task", "skill", "data", "metrics", "gates", "budget", "models", "optimize"]
GROUPS: tuple[Group, ...] = ("task", "skill", "data", "metrics", "gates", "budget", "models", "optimize")
Bearing = Literal["looser", "stricter", "unordered", ""]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program says something: a declaration by kind and name, and a setting in it."""

    kind: str = ""
    name: str | None = None
    setting: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A difference in meaning.

    Attributes:
        subject: what changed, as a program says it: `gate better`, `cost`.
        before: how it was, None where it is new.
        after: how it is, None where it is gone.
        bearing: whether the program asks less or more of a skill than it did; `unordered` where that cannot be told.
        rule: of `skillc breaking`, where the change is one of its business.
        message: what that rule has to say of it.
        hint: what to do then.
        lines: a text line by line, each with `-`, `+` or a blank before it.
    """

    group: Group
    subject: str
    before: str | None
    after: str | None
    bearing: Bearing = ""
    rule: str | None = None
    message: str = ""
    hint: str | None = None
    lines: tuple[str, ...] = ()
    place: Place = Place()

    @property
    def sign(self) -> str:
        """`+`, `-` or `~`."""
        return "+" if self.before is None else "-" if self.after is None else "~"
