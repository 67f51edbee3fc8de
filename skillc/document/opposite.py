"""Small changes of a rule that turn it into its opposite: a negation that comes or goes, swapped labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from skillc.text import joined

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NEGATIONS = frozenset(
    ["not", "no", "never", "except", "unless", "without", "cannot", "neither", "nor", "none", "nothing", "nobody"]
)
# Share of the other words that both texts have in common; below it the rule is another one.
_SAME = 0.8


def opposite(before: str, after: str, labels: Collection[str] = ()) -> str | None:
    """Point out what may turn a rule into its opposite; None if nothing does.

    Args:
        before: the text of a rule.
        after: the text that replaces it.
        labels: the task's labels.
    """
    old, new = _words(before), _words(after)
    known = {label.casefold() for label in labels}
    swapped = _swapped(old, new, known)
    if swapped or not _alike([w for w in old if not _negates(w)], [w for w in new if not _negates(w)]):
        return swapped
    gone, come = _changed([w for w in old if _negates(w)], [w for w in new if _negates(w)])
    notes = [f"`{word}` was {what}" for words, what in ((gone, "dropped"), (come, "added")) for word in words]
    # One negation for another, `not` for `never`, is no opposite.
    return joined(notes) if len(gone) != len(come) else None


def marked(lines: Sequence[str], labels: Collection[str] = ()) -> tuple[str, ...]:
    """The lines of a diff, `- old` before `+ new`, with a line behind each pair that may be opposites."""
    found, gone = list[str](), list[str]()
    for line in lines:
        found.append(line)
        if line.startswith("- "):
            gone.append(line[2:])
        elif line.startswith("+ "):
            notes = (opposite(old, line[2:], labels) for old in gone)
            found += [f"! may be the opposite: {note}" for note in list(filter(None, notes))[:1]]
        else:
            gone.clear()
    return tuple(found)


def _swapped(old: Sequence[str], new: Sequence[str], labels: Collection[str]) -> str | None:
    """Whether the texts differ in labels alone."""
    pairs = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
    if len(old) != len(new) or not pairs or not all(word in labels for pair in pairs for word in pair):
        return None
    (one, other), *_ = pairs
    if {pair[::-1] for pair in pairs} == set(pairs):
        return f"`{one}` and `{other}` were swapped"
    return " and ".join(f"`{one}` became `{other}`" for one, other in dict.fromkeys(pairs))


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _alike(old: Sequence[str], new: Sequence[str]) -> bool:
    return bool(old) and SequenceMatcher(None, old, new, autojunk=False).ratio() >= _SAME


def _changed(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    before, after = Counter(old), Counter(new)
    return list((before - after).elements()), list((after - before).elements())
