"""A scripted optimizer model: it reads skillc's prompts and proposes edits of all kinds at fixed odds."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.search.world import World, rules_in, worded
from skillc.models.calls import Call, Completion, Usage

_TRAJECTORY = re.compile(r'<trajectory tag="(\w+)".*?case (\d+)', re.DOTALL)
_RULE = re.compile(r"^\[(\w+)\] (.*)$", re.MULTILINE)
_REQUEST = re.compile(r'<request stage="(\w+)"(?: kind="(\w+)")? edits="(\d+)"')
_PATCH = re.compile(r'<patch kind="\w+">(.*?)</patch>', re.DOTALL)
_EDIT = re.compile(r"<edit>(.*?)</edit>")

Edit = dict[str, Any]


@dataclass
class ScriptedOptimizer:
    """What `skillc.models.client.Client` is to the loop. Its replies depend on the call alone."""

    world: World
    calls: int = field(default=0)

    async def complete(self, call: Call) -> Completion:
        """A reply to one of skillc's questions."""
        self.calls += 1
        prompt = str(call.messages[-1].content)
        found = _REQUEST.search(prompt)
        if found is None:
            raise AssertionError(f"a question that the script does not know: {call.stage}")
        chance = random.Random(f"{self.world.seed} {call.stage} {call.sample}")
        edits = int(found[3])
        if found[1] == "reflect":
            proposed = self._reflect(prompt, found[2] == "failures", edits, chance)
        else:
            proposed = _joined(prompt)[:edits]
        text = json.dumps({"edits": proposed})
        return Completion(text=text, finish="stop", usage=Usage(), cost=0, model="scripted")

    def _reflect(self, prompt: str, failures: bool, budget: int, chance: random.Random) -> list[Edit]:
        skill = prompt[prompt.index("<skill>") : prompt.index("</skill>")]
        standing = {min(rules_in(text)): rule for rule, text in _RULE.findall(skill)}
        cases = {tag: int(case) for tag, case in _TRAJECTORY.findall(prompt)}
        reflection = _Reflection(self.world, standing, cases, chance)
        if failures:
            return reflection.on_failures(min(budget, self.world.settings.proposals))
        return reflection.on_successes()


class _Reflection:
    """One minibatch, as the optimizer understands it."""

    def __init__(self, world: World, standing: dict[Any, str], cases: dict[str, int], chance: random.Random) -> None:
        self._world, self._standing, self._cases, self._chance = world, standing, cases, chance
        self._rules = frozenset(standing)
        self._edits: dict[str, Edit] = {}

    def on_failures(self, most: int) -> list[Edit]:
        """One proposal after the other, each of a kind that is drawn by the odds."""
        while len(self._edits) < most:
            before = len(self._edits)
            (kind,) = self._chance.choices(["mends", "useless", "harmful"], self._world.settings.odds)
            if kind == "mends":
                self._mend(most)
            elif kind == "useless":
                self._useless()
            else:
                self._harm()
            if len(self._edits) == before:
                self._useless()
        return list(self._edits.values())

    def on_successes(self) -> list[Edit]:
        """Mostly an empty list; what is proposed mends nothing, for nothing is wrong."""
        if self._chance.random() < 0.5:
            (self._useless if self._chance.random() < 2 / 3 else self._harm)()
        return list(self._edits.values())

    def _mend(self, most: int) -> None:
        """The cause of one failure, where it has one that nothing yet proposed mends."""
        for case in self._chance.sample(sorted(self._cases.values()), len(self._cases)):
            breaker = next(iter(self._world.breakers(self._rules, case)), None)
            if breaker is not None:
                if breaker not in self._edits:
                    cases = [c for c in self._cases.values() if breaker in self._world.breakers(self._rules, c)]
                    self._edits[breaker] = {"op": "delete", "rule": self._standing[breaker], "cures": self._tags(cases)}
                    return
            elif not self._world.mended(self._rules, case) and self._add_need(self._world.needs[case], most):
                return

    def _add_need(self, need: str, most: int) -> bool:
        same = [c for c in self._cases.values() if self._world.needs[c] == need]
        if need[0] == "S":
            return self._add(need, same)
        halves = [h for h in (f"{need}a", f"{need}b") if h not in self._rules and h not in self._edits]
        self._chance.shuffle(halves)
        both = self._chance.random() < self._world.settings.whole_pairs and len(self._edits) + 2 <= most
        added = [self._add(half, same) for half in halves[: 2 if both else 1]]
        return any(added)

    def _useless(self) -> None:
        self._add(f"U{self._chance.randrange(10**6)}", self._some())

    def _harm(self) -> None:
        own = self._world.settings
        pool = [f"H{i}" for i in range(own.harmful)] + [f"T{i}" for i in range(own.tempting)]
        rule = self._chance.choice(pool)
        if rule in self._rules or rule in self._edits:
            return
        tempted = self._world.tempted(rule) if rule[0] == "T" else None
        cases = [c for c in self._cases.values() if self._world.needs[c] == tempted]
        self._add(rule, cases or self._some())

    def _some(self) -> list[int]:
        cases = sorted(self._cases.values())
        return self._chance.sample(cases, min(len(cases), self._chance.randint(1, 3)))

    def _add(self, rule: str, cases: Sequence[int]) -> bool:
        if rule in self._edits or rule in self._rules:
            return False
        text = worded(rule, self._chance.randrange(self._world.settings.wordings))
        self._edits[rule] = {"op": "add", "section": "rules", "text": text, "cures": self._tags(cases)}
        return True

    def _tags(self, cases: Sequence[int]) -> list[str]:
        """One case for sure, each further one by chance."""
        sure = self._chance.choice(sorted(cases))
        cited = {c for c in cases if c == sure or self._chance.random() < self._world.settings.cited}
        return [tag for tag, case in self._cases.items() if case in cited]


def _joined(prompt: str) -> list[Edit]:
    """Edits of one idea become one; the order is by support, then by the cases cited, then as they came."""
    first: dict[str, Edit] = {}
    for patch in _PATCH.findall(prompt):
        for line in _EDIT.findall(patch):
            edit = json.loads(line)
            key = f"delete {edit['rule']}" if edit["op"] == "delete" else min(rules_in(edit["text"]))
            if key in first:
                same = first[key]
                same["support"] = same.get("support", 1) + edit.get("support", 1)
                same["cures"] = list(dict.fromkeys([*same.get("cures", []), *edit.get("cures", [])]))
            else:
                first[key] = edit
    return sorted(first.values(), key=lambda edit: (-edit.get("support", 1), -len(edit.get("cures", []))))
