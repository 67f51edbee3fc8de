"""Edits from evidence: one rule for each answer, rewritten where its signs change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from skillc.models.rulebook.briefs import Brief
from skillc.models.rulebook.induce import Book, Item, Key, chosen_signs, gathered, single_signs
from skillc.models.rulebook.wording import Evidence, evidence_text, ordered_signs, rule_text

Edit = dict[str, object]

MOST_SIGNS = 12
ENOUGH_CASES = 2  # that a sentence must get right before it is proposed
# Where the answer with the most signs wins, a rule is read whole and a weak sign does less harm.
MOST_COUNTED_SIGNS = 20
MOST_NEW_SIGNS = 4
MOST_NEW_COUNTED = 8
_TENTATIVE = 4
_TRIED_OFTEN = 3
_REMEMBERED = re.compile(r"^(\w+): (\d+) of (\d+) edits", re.MULTILINE)


def edits_of(
    brief: Brief, book: Book, items: Sequence[Item], misled: Mapping[Key, Sequence[str]], *, alone: bool
) -> list[Edit]:
    """For each answer the edit that brings its rule up to the evidence, those that cite most cases first.

    Args:
        brief: the prompt.
        book: the skill.
        items: what was seen.
        misled: cases that a rule decides wrongly, by what the rule is about.
        alone: whether a sign of a single case may be written where there is no better one, so that a merge
            learns of it.
    """
    evidence = gathered(book, items)
    failing: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        if item.cures:
            failing[item.key].append(item)
    edits = []
    for key in dict.fromkeys((*failing, *misled)):
        edit = _edit(brief, book, key, evidence.get(key, {}), failing[key], misled.get(key, ()), alone=alone)
        edits += [edit] if edit is not None else []
    return sorted(edits, key=lambda edit: -len(names(edit["cures"])))


def _edit(
    brief: Brief,
    book: Book,
    key: Key,
    evidence: Evidence,
    failing: Sequence[Item],
    misled: Sequence[str],
    *,
    alone: bool,
) -> Edit | None:
    rule = book.rules.get(key)
    old = book.signs[rule.id] if rule else ()
    most, new_ones = (MOST_COUNTED_SIGNS, MOST_NEW_COUNTED) if brief.majority else (MOST_SIGNS, MOST_NEW_SIGNS)
    signs = _gradually(chosen_signs(evidence, most), old, new_ones)
    if alone and not set(signs) - set(old):
        shown = [sign for item in failing for sign in item.counts]
        signs += [s for s in single_signs(evidence, shown, _TENTATIVE) if s not in signs]
    new = set(signs) - set(old)
    cures = _cited(failing, new) if new else []
    if set(old) - set(signs):
        cures += [tag for tag in misled if tag not in cures]
    if not cures:
        return None
    if not signs:
        return (
            {"op": "delete", "rule": rule.id, "rationale": f"misled: {len(misled)}", "cures": cures} if rule else None
        )
    while signs:
        text = rule_text(key[0], ordered_signs(signs, evidence), key[1])
        where = {"op": "replace", "rule": rule.id} if rule else {"op": "add", "section": brief.sections[0]}
        edit: Edit = {**where, "text": text}
        if not is_rejected(brief, edit) and not (rule and rule.text == text):
            place = {} if rule else {"after": "end"}
            return {**edit, **place, "rationale": evidence_text(evidence), "cures": cures, "support": len(cures)}
        signs.pop()
    return None


def _gradually(signs: Sequence[str], old: Sequence[str], most: int) -> list[str]:
    """The signs without the weakest new ones: what little evidence shows comes in step by step, past the gates."""
    new = [sign for sign in signs if sign not in old][:most]
    return [sign for sign in signs if sign in old or sign in new]


def _cited(failing: Sequence[Item], new: set[str]) -> list[str]:
    """The cases of the items that hold new signs, those that hold most of them first."""
    holding = sorted(failing, key=lambda item: -len(new & set(item.counts)))
    return list(dict.fromkeys(tag for item in holding if new & set(item.counts) for tag in item.cures))


def is_rejected(brief: Brief, edit: Mapping[str, object]) -> bool:
    """Whether the rejected-edit buffer holds this edit by itself; a patch that failed says little of its parts."""
    text = str(edit.get("text") or "")
    head = {
        "add": f"add to {edit.get('section')}: {text}",
        "replace": f"replace {edit.get('rule')}: {text}",
        "delete": f"delete {edit.get('rule')}",
        "move": f"move {edit.get('rule')} after {edit.get('after') or 'all others'}",
    }.get(str(edit.get("op")), text)
    return any(line == head or line.startswith(f"{head} (") for line in brief.rejected)


def first_edits(brief: Brief, edits: Sequence[Edit], budget: int) -> list[Edit]:
    """As many as the reply may hold, each text once; the kinds that its memory speaks against come last."""
    unique = {(edit["op"], edit.get("rule"), edit.get("text")): edit for edit in reversed(edits)}
    once = [edit for edit in edits if unique[edit["op"], edit.get("rule"), edit.get("text")] is edit]
    in_vain = ops_in_vain(brief.memory)
    return sorted(once, key=lambda edit: edit["op"] in in_vain)[:budget]


def ops_in_vain(memory: str) -> frozenset[str]:
    """What edits did that was tried often enough and never accepted, by the memory that `meta_skill` writes."""
    counts = ((m[1], int(m[2]), int(m[3])) for m in _REMEMBERED.finditer(memory))
    return frozenset(op for op, accepted, tried in counts if accepted == 0 and tried >= _TRIED_OFTEN)


def names(value: object) -> list[str]:
    """The names in a list of an edit."""
    return [str(name) for name in value] if isinstance(value, list) else []


def by_cures(edits: Sequence[Edit], cured: Callable[[Edit], list[str]]) -> list[Edit]:
    """Edits that cure something, with what they cure, the most first."""
    found = [{**edit, "cures": tags} for edit in edits if (tags := cured(edit))]
    return sorted(found, key=lambda edit: -len(names(edit["cures"])))
