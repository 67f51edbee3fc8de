"""Scripts in place of both models, so that the program compiles without a key.

The agent's script knows from `data/plays.json` the commands for each task, and for most of them careless ones, which it
runs until the skill has the rule against that kind of carelessness. Commands and tests are real. The optimizer's script
finds the rule from what the tests of a failed task print. So a compile shows that the loop, the sandbox and the tests
work, and nothing about a language model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from skillc import Reply, scripted

RULES = {
    "look": "Look at the first lines of each file before you process it: its separators, its quotes, its encoding.",
    "form": "Write results in exactly the form that is asked for: no header, no label, one value a line.",
    "keep": "Leave the given files as they are, and write results into new files.",
    "gaps": "Expect gaps in data: leave out empty lines and missing values, and do not count them as 0.",
    "run": "Run what you have written or repaired, and look at what it prints, before you finish.",
}
_SIGNS = {
    "look": "the file's own separators",
    "form": "not in the form",
    "keep": "a given file was changed",
    "gaps": "gaps in the data",
    "run": "it still fails",
}
"""What the tests of the sample print, by the rule that was missing."""
_PLAYS = Path(__file__).with_name("data") / "plays.json"
_CASE = r'<trajectory tag="{tag}".*?</trajectory>'

Messages = Sequence[Mapping[str, str]]


@cache
def _plays() -> dict[str, Any]:
    return dict(json.loads(_PLAYS.read_text(encoding="utf-8")))


def act(messages: Messages, model: str, parameters: Any) -> Reply:
    """Return the commands for a task, and the end of the work after them."""
    if len(messages) > 2:
        return scripted.reply("I have done what the task asks for.", messages)
    skill, asked = (str(message["content"]) for message in messages)
    play = next(play for instruction, play in _plays().items() if instruction in asked)
    mistake = play.get("mistake")
    chosen = mistake if mistake is not None and RULES[mistake["rule"]] not in skill else play
    return scripted.reply(f"I do it in one step.\n```bash\n{chosen['commands']}\n```", messages)


def improve(messages: Messages, model: str, parameters: Any) -> Reply:
    """Propose the rule against the carelessness that the tests of each failed case name."""
    prompt = str(messages[-1]["content"])

    def cures(case: scripted.Case, skill: str) -> list[str]:
        found = re.search(_CASE.format(tag=case.tag), prompt, re.DOTALL)
        text = found[0] if found else ""
        return [RULES[name] for name, sign in _SIGNS.items() if sign in text]

    return scripted.learn(messages, cures)
