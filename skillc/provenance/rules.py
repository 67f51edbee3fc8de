"""Which sessions each rule of a skill is from, by the decisions that wrote it.

A rule is from the sessions whose examples its author could read, and a rule that replaces or merges others from theirs
too. It errs on the side of more: where a decision does not record who read what, all training sessions count. Of these
sessions it cites those of the failures that its edit names, or of the cases that a draft names for it. Here it errs on
the side of fewer: new words never cite what the words before them cite, and words that name no case cite none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.markdown import rule_words
from skillc.document.skill import Document, digest
from skillc.json_values import objects_in
from skillc.plan.lock import Lock, text_key

Line = Mapping[str, JsonValue]
Keys = frozenset[str]
_NONE = Keys()


@dataclass(frozen=True, slots=True)
class RuleSessions:
    """The sessions of a rule, by key.

    Attributes:
        read: those that it is from.
        cited: those of them whose cases are named for its words; empty if none is named.
        before: others of them that rules which it replaced cite, or were read for one that cites none; empty if it
            cites none itself.
    """

    read: Keys = _NONE
    cited: Keys = _NONE
    before: Keys = _NONE

    @property
    def behind(self) -> Keys:
        """The sessions that a rule in its place may be from by its words: all that were read if it cites none."""
        return self.cited | self.before if self.cited else self.read

    def kept(self, read: Keys, cited: Keys) -> RuleSessions:
        """Return the sessions of the same words after an edit that names them again."""
        before = self.behind if cited else self.before
        return RuleSessions(self.read | read, self.cited | cited, before - self.cited - cited)


def rules_in(lock: Lock) -> dict[str, RuleSessions]:
    """Return the sessions of each rule in a lock, by `text_key`. One that is not in `Lock.cited` cites none."""
    return {
        key: RuleSessions(Keys(keys), Keys(lock.cited.get(key, ())), Keys(lock.replaced.get(key, ())))
        for key, keys in lock.sessions.items()
    }


def lock_values(found: Mapping[str, RuleSessions]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return `sessions`, `cited` and `replaced` of a lock."""
    return {
        "sessions": {key: tuple(sorted(each.read)) for key, each in found.items()},
        "cited": {key: tuple(sorted(each.cited)) for key, each in found.items() if each.cited},
        "replaced": {key: tuple(sorted(each.before)) for key, each in found.items() if each.before},
    }


def sessions_of_rules(
    lines: Iterable[Line],
    start: Document,
    best: Document,
    every: Sequence[str],
    known: Mapping[str, RuleSessions],
) -> dict[str, RuleSessions]:
    """Return the sessions of each rule and section of a skill that is from any, by `text_key`.

    Args:
        lines: the decisions of the run.
        start: the skill that the run began with.
        best: the skill.
        every: the sessions of all training examples.
        known: the sessions of the rules of `start`, by `text_key`; a rule that is not in it is by hand.
    """
    rules = {rule.id: (rule_words(rule.text), known.get(text_key(rule.text), RuleSessions())) for rule in start.rules}
    texts = {each.name: known.get(text_key(each.text), RuleSessions()) for each in start.sections}
    old = {each.name: each.text for each in start.sections}
    rewritten = set[str]()
    for line in _path(lines, digest(start), digest(best)):
        if entries := objects_in(line.get("edits")):
            _follow(line, entries, rules)
        elif isinstance(name := line.get("section"), str):
            rewritten.add(name)
            texts[name] = RuleSessions(texts.get(name, RuleSessions()).read | _keys(line, "sessions"))
    found: dict[str, RuleSessions] = {}

    def add(text: str, own: RuleSessions) -> None:
        if own.read:
            found[text_key(text)] = own

    unknown = RuleSessions(Keys(every))
    for rule in best.rules:
        words, own = rules.get(rule.id, ("", unknown))
        # Words that no decision gave it are explained by none.
        add(rule.text, own if words in (rule_words(rule.text), _PART) else unknown)
    for section in best.sections:
        if not section.rules and section.text.strip():
            explained = section.name in rewritten or section.text == old.get(section.name)
            add(section.text, texts[section.name] if explained else unknown)
    return found


_PART = "\0"
"""In the place of the words of a script of which a part was changed."""


def _path(lines: Iterable[Line], start: str, best: str) -> list[Line]:
    """Return the accepted decisions that lead from one skill to another, in order."""
    accepted = {str(line.get("candidate")): line for line in lines if line.get("result") in ("accept", "accepted")}
    found: list[Line] = []
    skill = best
    while skill != start and (line := accepted.pop(skill, None)) is not None:
        found.append(line)
        skill = str(line.get("incumbent"))
    return found[::-1]


def _follow(line: Line, entries: Sequence[Line], rules: dict[str, tuple[str, RuleSessions]]) -> None:
    """Change the words of rules and their sessions as a decision did."""
    is_draft = line.get("maker") == "draft"
    whole = is_draft or line.get("kind") == "tidy" or "suggestions" in line
    gone = [str(each.get("rule")) for each in entries if each.get("op") in ("delete", "replace")]
    before = [rules[rule] for rule in gone if rule in rules]
    by_words = dict(before)
    parents = [sessions for _, sessions in before] if whole else []
    for entry in entries:
        if entry.get("op") not in ("add", "replace") or not isinstance(rule := entry.get("rule"), str):
            continue
        words = _PART if entry.get("old") else rule_words(str(entry.get("text")))
        read, cited = _keys(entry, "sessions"), _keys(entry, "cited")
        own = [rules[rule][1]] if rule in rules else []
        read = read.union(*(each.read for each in (*own, *parents)))
        if words != _PART and words in by_words:
            rules[rule] = words, by_words[words].kept(read, cited)
            continue
        # A draft writes its rules from cases; where rules are merged, each may be from any of them.
        behind = _NONE.union(*(each.behind for each in (own if is_draft else (*own, *parents)))) if cited else _NONE
        rules[rule] = words, RuleSessions(read, cited, behind - cited)


def _keys(entry: Line, name: str) -> Keys:
    keys = entry.get(name)
    return Keys(str(key) for key in keys) if isinstance(keys, list) else _NONE
