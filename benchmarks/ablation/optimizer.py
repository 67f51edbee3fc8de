"""The scripted optimizer of benchmarks/search, with an answer to every question that any mechanism asks.

What it can make use of, it does: it does not propose again most ideas that stand in the rejected-edit buffer, marks
rules by what they did, counts the edits that cured, rewrites sections with few losses, and writes one line of guidance
at an epoch's end. Memory across epochs tells it nothing, because its odds are fixed.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from benchmarks.search.optimizer import Edit, ScriptedOptimizer, _Reflection
from benchmarks.search.world import rules_in

# The share of the ideas in the rejected-edit buffer that it heeds.
HEEDS = 0.8
# The chance that it misjudges a rule on a case.
MISJUDGED = 0.1

_PAIR = re.compile(r'<case tag="\w+" kind="(\w+)">.*?case (\d+)', re.DOTALL)
_EDIT = re.compile(r'<edit index="\d+">(.*?)</edit>')
_REJECTED = re.compile(r"<rejected>(.*?)</rejected>", re.DOTALL)
_GUIDANCE = re.compile(r"## guidance \(slow[^\n]*\n\n(.*?)\s*</skill>", re.DOTALL)


class EveryStage(ScriptedOptimizer):
    """Its replies depend on the call alone."""

    def _reflect_reply(self, prompt: str, asked: dict[str, str], chance: random.Random) -> dict[str, Any]:
        heeded = {idea for idea in sorted(_rejected(prompt)) if chance.random() < HEEDS}
        most = min(int(asked["edits"]), self.world.settings.proposals)
        failures = asked["kind"] == "failures"
        reflection = _Reflection(self.world, self._standing(prompt), self._cases(prompt, failures), chance)
        edits = reflection.on_failures(most + len(heeded)) if failures else reflection.on_successes()
        reply: dict[str, Any] = {"edits": [edit for edit in edits if not _ideas(edit) & heeded][:most]}
        if "marks" in asked:
            reply["marks"] = self._marks(prompt, chance)
        return reply

    def _budget_reply(self, prompt: str, asked: dict[str, str], _: random.Random) -> dict[str, Any]:
        return {"edits": sum(bool(edit.get("cured", 1)) for edit in map(json.loads, _EDIT.findall(prompt)))}

    def _slow_update_reply(self, prompt: str, asked: dict[str, str], chance: random.Random) -> dict[str, Any]:
        """The guidance as it stands, and one line more for a case that is wrong, by the odds of any proposal."""
        stands = (_GUIDANCE.search(prompt) or ["", ""])[1].strip()
        lines = [] if stands == "(empty)" else [line for line in stands.splitlines() if line.strip()]
        wrong = {f"t{i}": int(case) for i, (kind, case) in enumerate(_PAIR.findall(prompt)) if kind != "still_right"}
        known = {**self._standing(prompt), **{idea: "" for line in lines for idea in rules_in(line)}}
        if wrong:
            edits = _Reflection(self.world, known, wrong, chance).on_failures(1)
            lines += [f"- {edit['text']}" for edit in edits if edit["op"] == "add"]
        return {"guidance": "\n".join(lines)}

    def _meta_skill_reply(self, *_: object) -> dict[str, Any]:
        return {"memory": "Keep rules short."}

    def _marks(self, prompt: str, chance: random.Random) -> list[dict[str, Any]]:
        marks: list[dict[str, Any]] = []
        for idea, rule in self._standing(prompt).items():
            helped: list[str] = []
            misled: list[str] = []
            for tag, case in self._cases(prompt, failures=False).items():
                harms = idea in self.world.breakers([idea], case)
                helps = not harms and self.world.needs[case] in (idea, idea.rstrip("ab"))
                if harms or helps:
                    (misled if harms != (chance.random() < MISJUDGED) else helped).append(tag)
            if helped or misled:
                marks.append({"rule": rule, "helped": helped, "misled": misled})
        return marks


def _ideas(edit: Edit) -> frozenset[str]:
    return rules_in(edit.get("text", ""))


def _rejected(prompt: str) -> frozenset[str]:
    """The ideas of additions that were tried and did not help."""
    found = _REJECTED.search(prompt)
    return rules_in(found[1]) if found else frozenset()
