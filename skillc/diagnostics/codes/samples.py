"""A small program for the examples of codes."""

from __future__ import annotations

import json

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
    """The program with more statements, another goal, a further gate, a `use`."""
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
    """So many lines of `trivia.jsonl`, each question another; topics in turn."""
    lines = []
    for i in range(count):
        question, answer, topic = _QUESTIONS[i % len(_QUESTIONS)]
        text = question if i < len(_QUESTIONS) else f"{question} ({i // len(_QUESTIONS) + 1})"
        lines.append(json.dumps({"question": text, "answer": answer, "topic": topic}))
    return "\n".join(lines) + "\n"
