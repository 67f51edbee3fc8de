"""How much a candidate differs from the incumbent: the quantity `change(candidate)` of a gate."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from skillc.document.skill import Document, Section, tokens
from skillc.tokens import count_tokens, split_tokens


def change(incumbent: Document, candidate: Document) -> Fraction:
    """Tokens deleted plus inserted, divided by max(tokens(incumbent), sum of section limits) (ENGINE section 3).

    What is inserted into a section counts by the share of the section's limit that the incumbent uses: nothing where it
    is empty, for there is nothing yet to stay close to, all where it is full or has no limit.

    Rules are matched by id, then by equal text; a changed one counts the tokens that a shortest edit script deletes
    and inserts, a new or a missing one all of its own. Moving a rule costs nothing; a topic that comes or goes counts
    its words. Other sections and `about` count by shortest edit script.
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
    """The tokens that `change` is a share of: max(tokens(incumbent), sum of section limits), at least 1."""
    return max(tokens(incumbent), sum(section.limit or 0 for section in incumbent.sections), 1)


def _filled(section: Section) -> Fraction:
    """The share of its limit that a section uses; without a limit, one that has a text is full."""
    used = section.tokens
    return min(Fraction(used, section.limit or max(used, 1)), Fraction(1))


def _topic_change(old: Section, new: Section) -> tuple[int, int]:
    before = {rule.topic for rule in old.rules if rule.topic}
    after = {rule.topic for rule in new.rules if rule.topic}
    return sum(map(count_tokens, before - after)), sum(map(count_tokens, after - before))


def _text_change(old: str, new: str) -> tuple[int, int]:
    """Tokens that a shortest edit script deletes and inserts."""
    if old == new:
        return 0, 0
    before, after = split_tokens(old), split_tokens(new)
    common = common_tokens(before, after)
    return len(before) - common, len(after) - common


def common_tokens(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence, bit-parallel (Hyyrö 2004, "Bit-parallel LCS-length computation")."""
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    mask = (1 << len(a)) - 1
    row = mask
    for token in b:
        hits = row & places.get(token, 0)
        row = ((row + hits) | (row - hits)) & mask
    return len(a) - row.bit_count()
