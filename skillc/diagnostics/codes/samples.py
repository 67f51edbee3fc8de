"""Programs for the examples of codes: a small one, and two versions of another."""

from __future__ import annotations

import json
from collections.abc import Mapping

_FIELD = "; field topic: text"
_PROGRAM = """language 1
{use}
task { input question: text; output answer: text }
skill answer_trivia { about = "Answer a trivia question."; trainable section rules }
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "trivia.jsonl"; field topic: text }
budget { epochs = 4 }
{more}
goal correct = exact_match(answer)
gate better = candidate.correct > incumbent.correct
{gate}"""


def program(more: str = "", *, goal: str = "exact_match(answer)", gate: str = "", use: str = "") -> str:
    """Return the small program with more statements, another goal, a second gate, a `use`."""
    text = _PROGRAM.replace("{use}", use).replace("{more}", more)
    if "topic" not in f"{more} {goal} {gate}":
        text = text.replace(_FIELD, "")
    text = text.replace("goal correct = exact_match(answer)", f"goal correct = {goal}")
    lines = text.replace("{gate}", f"gate second = {gate}" if gate else "").splitlines()
    return "\n".join(line for line in lines if line) + "\n"


_QUESTIONS = (
    ("Which planet is the largest?", "Jupiter", "nature"),
    ("Who wrote Hamlet?", "William Shakespeare", "letters"),
    ("Which metal is liquid at room temperature?", "mercury", "nature"),
    ("What is the capital of Peru?", "Lima", "places"),
    ("Which river flows through Cairo?", "the Nile", "places"),
)


def trivia(count: int) -> str:
    """Return `count` lines of `trivia.jsonl` with distinct questions and alternating topics."""
    lines = []
    for i in range(count):
        question, answer, topic = _QUESTIONS[i % len(_QUESTIONS)]
        text = question if i < len(_QUESTIONS) else f"{question} ({i // len(_QUESTIONS) + 1})"
        lines.append(json.dumps({"question": text, "answer": answer, "topic": topic}) + "\n")
    return "".join(lines)


# ---- two versions -----------------------------------------------------------------------------------

EARLIER = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping" | "sales"
  output reply: text
}
skill route {
  about = "Route a ticket."
  frozen section role = "You route support tickets."
  trainable section rules { limit = 600 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data     { source = "tickets.jsonl"; group = shop; field shop: text; seed = 3 }
optimize { samples = 2; sees = [feedback] }
budget   { epochs = 2; cost = $2 }
goal    correct = exact_match(team)
metric  brief   = clamp(1 - tokens(reply) / 50 tokens, 0, 1)
require able    = initial.correct >= 10%
gate    better  = candidate.correct > incumbent.correct
gate    safe    = regressed(correct) <= 10%
"""

_CHANGES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "SK701": (("gate    safe    = regressed(correct) <= 10%\n", ""),),
    "SK702": (("<= 10%", "<= 15%"),),
    "SK703": (("regressed(correct)", "regressed(brief)"),),
    "SK704": (("require able    = initial.correct >= 10%\n", ""),),
    "SK705": ((">= 10%", ">= 5%"),),
    "SK706": (("initial.correct", "initial.brief"),),
    "SK707": (("samples = 2;", "samples = 2; accept = always;"),),
    "SK708": (("samples = 2; ", ""),),
    "SK709": (("epochs = 2", "epochs = 3"),),
    "SK710": (("limit = 600", "limit = 900"),),
    "SK711": (("[feedback]", "[gold, feedback]"),),
    "SK712": (("goal    correct", "metric  correct"), ("metric  brief", "goal    brief")),
    "SK713": (("exact_match(team)", "max(exact_match(team), brief)"),),
    "SK714": (("seed = 3", "seed = 4"),),
    "SK715": (("group = shop; ", ""),),
    "SK716": (("  output reply: text\n", ""), ("tokens(reply)", "tokens(ticket)")),
    "SK717": (("output reply: text", "output reply: text | none"),),
    "SK718": ((' | "sales"', ""),),
    "SK719": (("input  ticket: text", "input  ticket: text\n  input  product: text"),),
    "SK720": (("input  ticket: text", "input  ticket: list[text]"),),
    "SK721": (("support tickets", "tickets"),),
    "SK722": (("frozen section role", "trainable section role"),),
    "SK732": ((' | "sales"', ' | "sales" | "returns"'),),
    "SK734": (('model target    = "rulebook/v1"', 'model target    = "openai/gpt-5.5-mini"'),),
}

_ROW = '{{"ticket": "ticket number {i}", "team": "{team}", "reply": "thanks", "shop": "s{shop}", "product": "lamp"}}\n'


def later_version(code: str) -> str:
    """Return `EARLIER` with the change that a code reports; empty if no two programs show it."""
    if code not in _CHANGES:
        return ""
    text = EARLIER
    for old, new in _CHANGES[code]:
        if text.count(old) != 1:
            raise ValueError(f"the change `{old}` of {code} does not occur exactly once")
        text = text.replace(old, new)
    return text


def files_beside(code: str) -> Mapping[str, str]:
    """Return the files beside the later version."""
    if code not in _CHANGES:
        return {}
    rows = (_ROW.format(i=i, team=("billing", "shipping")[i % 2], shop=i % 20) for i in range(60))
    return {"earlier.skill": EARLIER, "tickets.jsonl": "".join(rows)}
