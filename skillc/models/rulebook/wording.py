"""How the rulebook writes its rules, and the evidence that it notes beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skillc.models.rulebook.sentences import needs_quotes, normal

_BARE = re.compile(r"[^\W_](?:[\w /&+-]*[^\W_])?")


MOST_QUOTED = 4
MOST_SEEN = 60
MOST_ONCE = 40
MAJORITY = "Where several rules apply, choose the answer with the most signs."
_SEEN = re.compile(r'"([^"]+)" (\d+)(?: of (\d+))?')
_ONCE = re.compile(r"(?:^|; )once: ([^;]+)")


@dataclass(frozen=True, slots=True)
class Seen:
    """How many cases with a sign were seen: `own` of `total` had the answer of the rule."""

    own: int = 0
    total: int = 0

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.own + other.own, self.total + other.total)

    @property
    def against(self) -> int:
        """Cases with another answer."""
        return self.total - self.own


Evidence = Mapping[str, Seen]


def rule_text(
    field: str, signs: Sequence[str], label: str, unless: Sequence[str] = (), also: Sequence[str] = ()
) -> str:
    """A rule as a sentence: any of `signs`, and any of `also`, and none of `unless`."""
    text = f"If the {spoken(field)} mentions {listed(signs)}"
    if also:
        text += f" and {listed(also)}"
    if unless:
        text += f", unless it mentions {listed(unless)}"
    return f"{text}, answer {quoted(label)}."


def default_text(label: str) -> str:
    """The sentence for where no rule applies."""
    return f"Otherwise, answer {quoted(label)}."


def spoken(field: str) -> str:
    """A field's name as prose."""
    return field.replace("_", " ")


def listed(signs: Sequence[str]) -> str:
    """`"a", "b" or "c"`; a long list has no quotes, which cost as many tokens as the words."""
    long = len(signs) > MOST_QUOTED
    words = [sign.strip() for sign in signs]
    marks = [word if long and not needs_quotes(word) else f'"{word}"' for word in words]
    lead = "one of " if long else ""
    return marks[0] if len(marks) == 1 else f"{lead}{', '.join(marks[:-1])} or {marks[-1]}"


def quoted(label: str) -> str:
    """A label bare where that can't be misread, else in quotes."""
    return label if _BARE.fullmatch(label) else f'"{label}"'


def evidence_text(evidence: Evidence) -> str:
    """`seen: "invoice" 3 of 4, "receipt" 2; once: april, marek`, the most seen first."""
    often = [sign for sign in ordered_signs(evidence, evidence) if evidence[sign].own > 1][:MOST_SEEN]
    once = [sign.strip() for sign in evidence if evidence[sign].total == 1][:MOST_ONCE]
    parts = [f"seen: {', '.join(_counted(sign, evidence[sign]) for sign in often)}"] if often else []
    return "; ".join([*parts, *([f"once: {', '.join(once)}"] if once else [])])


def _counted(sign: str, seen: Seen) -> str:
    among = f" of {seen.total}" if seen.against else ""
    return f'"{sign.strip()}" {seen.own}{among}'


def read_evidence(text: str) -> dict[str, Seen]:
    """The evidence in a rationale that `evidence_text` wrote; empty for any other."""
    head = text.split("; not where:")[0]
    found = _SEEN.findall(head) if "seen:" in head else []
    seen = {normal(sign): Seen(int(own), int(total or own)) for sign, own, total in found}
    once = _ONCE.search(head)
    for sign in once[1].split(", ") if once else ():
        seen.setdefault(normal(sign), Seen(1, 1))
    return seen


def ordered_signs(signs: Iterable[str], evidence: Evidence) -> list[str]:
    """Signs without repetition, those first that most cases of the rule's own answer hold."""
    return sorted(set(signs), key=lambda sign: (-evidence.get(sign, Seen()).own, sign))
