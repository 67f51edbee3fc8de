"""A scripted optimizer model: it reads skillc's prompts and proposes edits of all kinds at fixed odds."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.search.world import Cites, World, worded
from skillc.models.calls import Call, Completion, Usage

# The share of the citations of an optimizer that cites wrongly.
WRONGLY = 0.3
# The chance that a rule is lost where its section is written anew.
LOST = 0.02

_REQUEST = re.compile(r'<request stage="(\w+)"([^>]*)>')
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_SHOWN = re.compile(r'<(?!case)(\w+) tag="(\w+)"([^>]*)>(.*?)</\1>', re.DOTALL)
_GIVEN = re.compile(r'<case tag="\w+"[^>]*>(.*?)</case>', re.DOTALL)
_CASE = re.compile(r"\bcase (\d+)")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_GOLD = re.compile(r"<gold>(.*?)</gold>", re.DOTALL)
_RULE = re.compile(r"^\[(\w+)\] (.*)$", re.MULTILINE)
_PATCH = re.compile(r'<patch kind="\w+">(.*?)</patch>', re.DOTALL)
_EDIT = re.compile(r"<edit(?: [^>]*)?>(.*?)</edit>")

Edit = dict[str, Any]
Reply = dict[str, Any]
Asked = dict[str, str]


@dataclass
class ScriptedOptimizer:
    """What `skillc.models.client.Client` is to the loop. Its replies depend on the call alone."""

    world: Any
    calls: int = field(default=0)

    async def complete(self, call: Call) -> Completion:
        """A reply to one of skillc's questions."""
        self.calls += 1
        prompt = next(str(message.content) for message in call.messages if message.role == "user")
        text = self.answer(prompt, f"{call.stage} {call.sample}")
        return Completion(text=text, finish="stop", usage=Usage(), cost=0, model="scripted")

    def answer(self, prompt: str, name: str = "") -> str:
        """The reply to a prompt; where the call has no name, its text is its name."""
        found = _REQUEST.search(prompt)
        reply = getattr(self, f"_{found[1]}_reply", None) if found else None
        if found is None or reply is None:
            raise AssertionError(f"a question that the script does not know: {found[1] if found else prompt[-200:]}")
        drawn = name or hashlib.sha256(prompt.encode()).hexdigest()
        chance = random.Random(f"{self.world.seed} {drawn}")
        return json.dumps(reply(prompt, dict(_ATTRIBUTE.findall(found[2])), chance))

    def _reflect_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        failures = asked["kind"] == "failures"
        reflection = _Reflection(self.world, self._standing(prompt), self._cases(prompt, failures), chance)
        if failures:
            return {"edits": reflection.on_failures(min(int(asked["edits"]), self.world.settings.proposals))}
        return {"edits": reflection.on_successes()}

    def _aggregate_reply(self, prompt: str, asked: Asked, _: random.Random) -> Reply:
        return {"edits": joined(prompt, self.world.idea)[: int(asked["edits"])]}

    def _rewrite_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        return self._section(prompt, asked, edits_in(prompt), chance)

    def _draft_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        """A proposal for each failure shown, by the odds of any edit."""
        wrong = self._cases(prompt, failures=True)
        reflection = _Reflection(self.world, self._standing(prompt), wrong, chance)
        return self._section(prompt, asked, reflection.on_failures(len(wrong)), chance)

    def _tidy_reply(self, prompt: str, asked: Asked, chance: random.Random) -> Reply:
        return self._section(prompt, asked, (), chance)

    def _section(self, prompt: str, asked: Asked, edits: Sequence[Edit], chance: random.Random) -> Reply:
        """The section as it stands, with some edits made and a rule lost now and then."""
        gone = {edit["rule"] for edit in edits if edit["op"] == "delete"}
        standing = self._standing(prompt).values()
        rules = [{"rule": rule} for rule in standing if rule not in gone and chance.random() >= LOST]
        rules += [{"text": edit["text"]} for edit in edits if edit["op"] == "add"]
        return {"sections": [{"section": asked["sections"].split()[0], "rules": rules}]}

    def _standing(self, prompt: str) -> dict[str, str]:
        """The ids of the skill's rules, by what they say, in order."""
        skill = prompt[prompt.index("<skill>") : prompt.index("</skill>")]
        return {self.world.idea(text): rule for rule, text in _RULE.findall(skill)}

    def _cases(self, prompt: str, failures: bool) -> dict[str, int]:
        """Examples by tag; for failures without the right ones that are shown beside them."""
        return {one.tag: one.case for one in shown(prompt) if not (failures and one.right)}


class Shown(NamedTuple):
    """An example in a prompt, and whether its answer is the right one."""

    tag: str
    case: int
    right: bool


def shown(prompt: str) -> list[Shown]:
    """The examples in a prompt; without gold answers, scores mark the right ones."""
    found = []
    for _, tag, attributes, body in _SHOWN.findall(prompt):
        case, answer, gold = _CASE.search(body), _ANSWER.search(body), _GOLD.search(body)
        if case is not None:
            right = answer[1] == gold[1] if answer and gold else 'score="1"' in attributes
            found.append(Shown(tag, int(case[1]), right))
    return found


def given(prompt: str) -> list[int]:
    """The examples that a prompt gives with their gold alone."""
    return [int(case[1]) for body in _GIVEN.findall(prompt) if (case := _CASE.search(body))]


def edits_in(prompt: str) -> list[Edit]:
    """The edits that a prompt shows."""
    return [json.loads(edit) for edit in _EDIT.findall(prompt)]


def cite(
    meant: Sequence[int], cases: Mapping[str, int], cited: float, cites: Cites, chance: random.Random
) -> list[str]:
    """The tags that an edit cites.

    Args:
        meant: the examples that the edit is meant for.
        cases: all examples shown.
        cited: the chance of each of them but one, which is cited for sure.
        cites: as in the settings.
        chance: of this reply.
    """
    sure = chance.choice(sorted(meant))
    named = {c for c in meant if c == sure or chance.random() < cited}
    tags = [tag for tag, case in cases.items() if case in named]
    if cites == "everything":
        return list(cases)
    if cites == "nothing":
        return []
    others = [tag for tag, case in cases.items() if case not in meant]
    if cites == "wrongly" and others:
        tags = [chance.choice(others) if chance.random() < WRONGLY else tag for tag in tags]
    return list(dict.fromkeys(tags))


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
        own = self._world.settings
        return cite(cases, self._cases, own.cited, own.cites, self._chance)


def joined(prompt: str, idea: Callable[[str], str]) -> list[Edit]:
    """Edits of one idea become one; the order is by support, then by the cases cited, then as they came."""
    first: dict[str, Edit] = {}
    for patch in _PATCH.findall(prompt):
        for edit in edits_in(patch):
            key = idea(edit["text"]) if edit["op"] == "add" else f"{edit['op']} {edit['rule']}"
            if key in first:
                same = first[key]
                same["support"] = same.get("support", 1) + edit.get("support", 1)
                same["cures"] = list(dict.fromkeys([*same.get("cures", []), *edit.get("cures", [])]))
            else:
                first[key] = edit
    return sorted(first.values(), key=lambda edit: (-edit.get("support", 1), -len(edit.get("cures", []))))
