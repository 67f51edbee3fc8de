"""Differences of a candidate from the incumbent: the quantity `change(candidate)`, and rules turned into opposites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from fractions import Fraction

from skillc.document.skill import Document, Section, script_sections, tokens
from skillc.text import joined
from skillc.tokens import count_tokens, split_tokens


def change(incumbent: Document, candidate: Document) -> Fraction:
    """Return tokens deleted plus inserted, divided by max(tokens(incumbent), sum of section limits).

    The tokens of the incumbent are those that the target sees, and those of its scripts.

    An insertion counts by the share of the section's limit that the incumbent uses: nothing in an empty section, all in
    one that is full or has no limit.

    Rules are matched by id, then by equal text. A changed rule counts the tokens that a shortest edit script deletes
    and inserts, a new or removed one all its tokens. Moving a rule costs nothing; a new or removed topic counts its
    words. Other sections and `about` count by shortest edit script.
    """
    moved = Fraction(sum(_text_change(incumbent.about, candidate.about)))
    gone = Counter(rule.text for rule in incumbent.rules if candidate.rule(rule.id) is None)
    for section in candidate.sections:
        before = incumbent.section(section.name) or Section(section.name, section.mode)
        changes = [_text_change(before.text, section.text), _topic_change(before, section)]
        for rule in section.rules:
            old = incumbent.rule(rule.id)
            if old is not None:
                changes.append(_text_change(old.text, rule.text))
            elif gone[rule.text] > 0:
                gone[rule.text] -= 1
            else:
                changes.append((0, count_tokens(rule.text)))
        moved += sum(deleted + inserted * _filled(before) for deleted, inserted in changes)
    moved += sum(count_tokens(text) * times for text, times in gone.items())
    return moved / base_of_change(incumbent)


def base_of_change(incumbent: Document) -> int:
    """Return the denominator of `change`, at least 1."""
    scripts = sum(section.tokens for section in script_sections(incumbent))
    return max(tokens(incumbent) + scripts, sum(section.limit or 0 for section in incumbent.sections), 1)


def _filled(section: Section) -> Fraction:
    """Return the share of its limit that a section uses; without a limit, a section with a text is full."""
    used = section.tokens
    return min(Fraction(used, section.limit or max(used, 1)), Fraction(1))


def _topic_change(old: Section, new: Section) -> tuple[int, int]:
    before = {rule.topic for rule in old.rules if rule.topic}
    after = {rule.topic for rule in new.rules if rule.topic}
    return sum(map(count_tokens, before - after)), sum(map(count_tokens, after - before))


def _text_change(old: str, new: str) -> tuple[int, int]:
    """Count the tokens that a shortest edit script deletes and inserts."""
    if old == new:
        return 0, 0
    before, after = split_tokens(old), split_tokens(new)
    common = common_tokens(before, after)
    return len(before) - common, len(after) - common


def common_tokens(a: list[str], b: list[str]) -> int:
    """Return the length of the longest common subsequence (Hyyrö 2004, "Bit-parallel LCS-length computation")."""
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    mask = (1 << len(a)) - 1
    row = mask
    for token in b:
        hits = row & places.get(token, 0)
        row = ((row + hits) | (row - hits)) & mask
    return len(a) - row.bit_count()


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NEGATIONS = frozenset(
    ["not", "no", "never", "except", "unless", "without", "cannot", "neither", "nor", "none", "nothing", "nobody"]
)
# Texts with a smaller share of common words, negations aside, are different rules.
_SAME = 0.8


def describe_opposite(before: str, after: str, labels: Collection[str] = ()) -> str | None:
    """Describe the change of its text that may turn a rule into its opposite; None if there is none."""
    old, new = _words(before), _words(after)
    known = {label.casefold() for label in labels}
    swapped = _swapped(old, new, known)
    if swapped or not _alike([w for w in old if not _negates(w)], [w for w in new if not _negates(w)]):
        return swapped
    negated, negates = (Counter(filter(_negates, words)) for words in (old, new))
    gone, come = list((negated - negates).elements()), list((negates - negated).elements())
    notes = [f"`{word}` was {what}" for words, what in ((gone, "dropped"), (come, "added")) for word in words]
    # Replacing a negation by another, `not` by `never`, is no opposite.
    return joined(notes) if len(gone) != len(come) else None


def annotate_opposites(lines: Sequence[str], labels: Collection[str] = ()) -> tuple[str, ...]:
    """Return the lines of a diff, `- old` before `+ new`, with a note after each pair that may be opposites."""
    found, gone = list[str](), list[str]()
    for line in lines:
        found.append(line)
        if line.startswith("- "):
            gone.append(line[2:])
        elif line.startswith("+ "):
            notes = (describe_opposite(old, line[2:], labels) for old in gone)
            found += [f"! may be the opposite: {note}" for note in list(filter(None, notes))[:1]]
        else:
            gone.clear()
    return tuple(found)


def _swapped(old: Sequence[str], new: Sequence[str], labels: Collection[str]) -> str | None:
    """Describe a difference in labels alone."""
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
