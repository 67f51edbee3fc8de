"""A scripted optimizer for the mixed world: for each cause that it sees it writes a rule of a kind drawn by the odds.

It reads the examples, the skill and the rejected edits from skillc's prompts, and answers the stages `reflect`,
`aggregate`, `rewrite`, `draft` and `tidy`. A right example of the same topic in the prompt (contrast) changes the odds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.search.mixed import LETTERS, Mix, MixedWorld, Odds, parts
from benchmarks.search.optimizer import Asked, Edit, Reply, ScriptedOptimizer, Shown, cite, edits_in, given, shown

_REJECTED = re.compile(r"<rejected>(.*?)</rejected>", re.DOTALL)
_PRAISED_WITH = ("D", "D", "W")


class MixedOptimizer(ScriptedOptimizer):
    """Its replies depend on the call alone."""

    def _reflect_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        own: Mix = self.world.settings
        batch = self._batch(prompt, chance)
        if asked["kind"] == "failures":
            edits = batch.on_failures(min(int(asked["edits"]), own.proposals), own.edits, own.edits_contrast)
        else:
            edits = batch.on_successes()
        return {"edits": edits, **_unexplained(prompt, batch)}

    def _rewrite_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        """The section with the chosen edits made; memorised and wide rules of one topic may become a general one."""
        lines = self._lifted(self._made(prompt, edits_in(prompt), chance), chance)
        return self._composed(asked, lines)

    def _tidy_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        """The section as a rewrite without new edits makes it: in order, rules of one topic joined."""
        return self._composed(asked, self._lifted(self._made(prompt, (), chance), chance))

    def _draft_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        """The section with a rule for each cause among the failures shown, and among examples with their gold alone."""
        own: Mix = self.world.settings
        batch = self._batch(prompt, chance)
        edits = batch.on_failures(len(batch.wrong), own.drafts, own.drafts_contrast)
        return {**self._composed(asked, self._made(prompt, edits, chance)), **_unexplained(prompt, batch)}

    def _batch(self, prompt: str, chance: random.Random) -> _Batch:
        rejected = _REJECTED.search(prompt)
        tried = frozenset(self.world.read(rejected[1])) if rejected else frozenset()
        standing = self._standing(prompt)
        further = [Shown("", case, self.world.right(tuple(standing), case)) for case in given(prompt)]
        seen = [one for one in further if one.right or chance.random() < self.world.settings.notices]
        return _Batch(self.world, standing, [*shown(prompt), *seen], tried, chance)

    def _made(self, prompt: str, edits: Sequence[Edit], chance: random.Random) -> list[_Line]:
        """The rules of the skill with some edits made, unordered."""
        changed = {edit["rule"]: edit for edit in edits if edit["op"] in ("replace", "delete")}
        lines = []
        for rule, name in self._standing(prompt).items():
            edit = changed.get(name)
            if edit is None:
                if chance.random() >= self.world.settings.lost:
                    lines.append(_Line(rule, {"rule": name}))
            elif edit["op"] == "replace":
                lines.append(_Line(self.world.idea(edit["text"]), {"rule": name, "text": edit["text"]}))
        lines += [_Line(self.world.idea(edit["text"]), {"text": edit["text"]}) for edit in edits if edit["op"] == "add"]
        return list({line.rule: line for line in lines}.values())

    def _lifted(self, lines: Sequence[_Line], chance: random.Random) -> list[_Line]:
        """Drop a memorised or wide rule whose topic has a general one; make one of two or more, by chance."""
        found, special = [], [line for line in lines if line.rule[0] in "MW"]
        general = {parts(line.rule)[0] for line in lines if line.rule[0] in "SI"}
        topics = [parts(line.rule)[0] for line in special]
        for topic in dict.fromkeys(topics):
            if topic not in general and topics.count(topic) > 1 and chance.random() < self.world.settings.lifts:
                rule = f"S{topic}"
                found.append(
                    _Line(rule, {"text": self.world.worded(rule, chance.randrange(self.world.settings.wordings))})
                )
                general.add(topic)
        return [line for line in lines if line not in special or parts(line.rule)[0] not in general] + found

    def _composed(self, asked: Asked, lines: Sequence[_Line]) -> Reply:
        by_rule = {line.rule: line.entry for line in lines}
        rules = [by_rule[rule] for rule in self.world.ordered(list(by_rule))]
        return {"sections": [{"section": asked["sections"].split()[0], "rules": rules}]}


class _Line(NamedTuple):
    """A rule of a rewritten section, and how the reply names it."""

    rule: str
    entry: dict[str, str]


class _Group(NamedTuple):
    """Failures of one cause in a prompt: an unmet topic, a rule to blame, or a failure without a learnable cause."""

    cause: str
    about: str
    cases: tuple[int, ...]


@dataclass
class _Batch:
    """The examples of one prompt, as the optimizer understands them."""

    world: MixedWorld
    standing: Mapping[str, str]
    shown: Sequence[Shown]
    tried: frozenset[str]
    chance: random.Random
    unexplained: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[Shown]:
        """The failures."""
        return [one for one in self.shown if not one.right]

    def on_failures(self, most: int, odds: Odds, contrast: Odds) -> list[Edit]:
        """At most one edit for each cause, in random order."""
        edits: dict[str, Edit] = {}
        groups = self._groups()
        self.chance.shuffle(groups)
        known = {self.world.cases[one.case].topic for one in self.shown if one.right}
        for group in groups:
            if len(edits) == most:
                break
            topic = self.world.cases[group.cases[0]].topic
            edit = self._edit(group, topic, contrast if topic in known else odds)
            if edit is not None:
                edits.setdefault(edit.get("text") or f"{edit['op']} {edit['rule']}", edit)
        return list(edits.values())

    def on_successes(self) -> list[Edit]:
        """Mostly nothing; otherwise a rule that restates what works, or one that is too wide."""
        if not self.shown or self.chance.random() >= self.world.settings.praise:
            return []
        case = self.chance.choice(self.shown).case
        kind = self.chance.choice(_PRAISED_WITH)
        rule = self._vague() if kind == "D" else f"W{self.world.cases[case].topic}x{case}"
        return [] if rule in self.standing else [self._add(rule, (case,))]

    def _groups(self) -> list[_Group]:
        rules, found = tuple(self.standing), dict[tuple[str, str], list[int]]()
        for one in self.wrong:
            fault = self.world.fault(rules, one.case)
            true = self.world.cases[one.case]
            if fault is not None and fault.cause == "unmet" and true.state == "cause":
                key = ("unmet", str(true.topic))
            elif fault is not None and fault.rule:
                key = (fault.cause, fault.rule)
            else:
                key = ("odd", str(one.case))
            found.setdefault(key, []).append(one.case)
        return [_Group(*key, tuple(cases)) for key, cases in found.items()]

    def _edit(self, group: _Group, topic: int, odds: Odds) -> Edit | None:
        if group.cause == "clash":
            place = {"op": "move", "rule": self.standing[group.about], "after": "start"}
            return {**place, "cures": self._cited(group.cases)}
        if group.cause == "odd" and self.chance.random() < self.world.settings.shrugs:
            self.unexplained += [one.tag for one in self.shown if one.tag and one.case in group.cases]
            return None
        meant = self._meant(group.cases)
        rule = f"M{topic}x{meant[0]}" if group.cause == "odd" else self._drawn(topic, meant, odds)
        if group.cause == "wide":
            of = parts(group.about)[0]
            if rule[0] in "SI":
                return self._replace(group.about, f"{rule[0]}{of}", group.cases)
            return {"op": "delete", "rule": self.standing[group.about], "cures": self._cited(group.cases)}
        if rule in self.standing:
            return None
        if rule[0] in "MW":
            return self._add(rule, meant)
        for old in self.standing if rule[0] in "SI" else ():
            if old[0] in "MW" and parts(old)[0] == topic:
                return self._replace(old, rule, group.cases)
        return self._add(rule, group.cases)

    def _drawn(self, topic: int, meant: Sequence[int], odds: Odds) -> str:
        """A rule of a kind drawn by the odds; one that was rejected before may be drawn again, once."""
        rule = self._of_kind(topic, meant, odds)
        if rule in self.tried and self.chance.random() < self.world.settings.heeds:
            rule = self._of_kind(topic, meant, odds)
        return rule

    def _of_kind(self, topic: int, meant: Sequence[int], odds: Odds) -> str:
        letter = LETTERS[self.chance.choices(Odds._fields, odds)[0]]
        if letter == "D":
            return self._vague()
        return "x".join([f"{letter}{topic}", *(map(str, sorted(meant)) if letter in "WM" else ())])

    def _vague(self) -> str:
        return f"D{self.chance.randrange(10**6)}"

    def _meant(self, cases: Sequence[int]) -> list[int]:
        """What an edit is written for: one failure, and each further one of its cause by chance."""
        sure = self.chance.choice(cases)
        return [c for c in cases if c == sure or self.chance.random() < self.world.settings.cited]

    def _add(self, rule: str, cases: Sequence[int]) -> Edit:
        first = rule[0] == "I" and self.chance.random() < self.world.settings.placed
        place = {"op": "add", "section": "rules", "after": "start" if first else "end"}
        return {**place, "text": self._text(rule), "cures": self._cited(cases, whole=rule[0] in "MW")}

    def _replace(self, old: str, rule: str, cases: Sequence[int]) -> Edit:
        cures = self._cited(cases)
        return {"op": "replace", "rule": self.standing[old], "text": self._text(rule), "cures": cures}

    def _text(self, rule: str) -> str:
        return self.world.worded(rule, self.chance.randrange(self.world.settings.wordings))

    def _cited(self, cases: Sequence[int], *, whole: bool = False) -> list[str]:
        """The tags that an edit cites; `whole` for what names its own examples."""
        own = self.world.settings
        tags = {one.tag: one.case for one in self.shown if one.tag}
        return cite(cases, tags, 1 if whole else own.cited, own.cites, self.chance)


def _unexplained(prompt: str, batch: _Batch) -> Reply:
    """The failures that the optimizer gives up, where the prompt lets it say so."""
    return {"unexplained": batch.unexplained} if "unexplained" in prompt else {}
