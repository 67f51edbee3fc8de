"""How rulebook writes its rules, and the evidence that it notes beside them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from skillc.models.rulebook.sentences import needs_quotes, normal

_BARE = re.compile(r"[^\W_](?:[\w /&+-]*[^\W_])?")


MOST_QUOTED = 4
_SEEN = re.compile(r'"([^"]+)" (\d+)')


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
    """`"a", "b" or "c"`; a long list goes without quotes, which cost as many tokens as the words."""
    long = len(signs) > MOST_QUOTED
    words = [sign.strip() for sign in signs]
    marks = [word if long and not needs_quotes(word) else f'"{word}"' for word in words]
    lead = "one of " if long else ""
    return marks[0] if len(marks) == 1 else f"{lead}{', '.join(marks[:-1])} or {marks[-1]}"


def quoted(label: str) -> str:
    """A label bare where that can't be misread, else in quotes."""
    return label if _BARE.fullmatch(label) else f'"{label}"'


def evidence_text(counts: Mapping[str, int]) -> str:
    """`seen: "invoice" 3, "receipt" 1`, the most seen first."""
    ordered = sorted(counts, key=lambda sign: (-counts[sign], sign))
    return "seen: " + ", ".join(f'"{sign.strip()}" {counts[sign]}' for sign in ordered)


def read_evidence(text: str) -> Counter[str]:
    """The counts in a rationale that `evidence_text` wrote; empty for any other."""
    return Counter({normal(sign): int(count) for sign, count in _SEEN.findall(text)}) if "seen:" in text else Counter()


def ordered_signs(signs: Iterable[str], counts: Mapping[str, int]) -> list[str]:
    """Signs without repetition, the most seen first."""
    return sorted(set(signs), key=lambda sign: (-counts.get(sign, 0), sign))
