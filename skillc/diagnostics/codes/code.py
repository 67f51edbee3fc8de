"""One entry of the registry of diagnostic codes, and the small program of most examples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from skillc.dataclass import dataclass

Phase = Literal["check", "plan", "data", "compile"]
"""The first command that reports a code: `check`, `plan`, `check --data`, or one that calls models."""

_STAGES = ("syntax", "modules", "names", "types", "data", "gates", "models", "versions", "", "internal")


@dataclass(frozen=True, slots=True)
class Code:
    """A diagnostic code and its page, which `skillc explain` prints and the documentation contains.

    Attributes:
        number: three digits, the first is the stage. Never reused for another meaning.
        title: the problem in a few words, lower case.
        explanation: what is wrong, why it matters, how to fix it; markdown, one or a few paragraphs.
        bad: a program, or a part of one, that yields this code. Empty if no text of a program can; the explanation
            then gives the reason.
        good: the same program, fixed; present if `bad` is.
        files: files beside both programs, by path: data, imported files.
        fixed_files: files that differ beside the fixed program.
        found_by: the first command that reports it.
        settled_by: the last command that may report it, which then reports unused suppressions; `found_by` if None.
    """

    number: int
    title: str
    explanation: str
    bad: str = ""
    good: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    fixed_files: Mapping[str, str] = field(default_factory=dict)
    found_by: Phase = "check"
    settled_by: Phase | None = None

    @property
    def code(self) -> str:
        """The code as messages print it: `SK409`."""
        return f"SK{self.number:03}"

    @property
    def stage(self) -> str:
        """The stage that the first digit denotes."""
        return _STAGES[self.number // 100]


# ---- examples -------------------------------------------------------------------------------------

TARGET = 'model target    = "rulebook/v1"'
OPTIMIZER = 'model optimizer = "rulebook/v1"'
_FIELD = "; field topic: text"
_PROGRAM = """language 1
{use}
task { input question: text; output answer: text }
skill answer_trivia { about = "Answer a trivia question."; trainable section rules }
{models}
data { source = "trivia.jsonl"; field topic: text }
budget { epochs = 4 }
{more}
goal correct = exact_match(answer)
gate better = candidate.correct > incumbent.correct
{gate}"""


def program(more: str = "", *, goal: str = "exact_match(answer)", gate: str = "", use: str = "") -> str:
    """Return the small program with more statements, another goal, a second gate, a `use`."""
    text = _PROGRAM.replace("{models}", f"{TARGET}\n{OPTIMIZER}").replace("{use}", use).replace("{more}", more)
    if "topic" not in f"{more} {goal} {gate}":
        text = text.replace(_FIELD, "")
    text = text.replace("goal correct = exact_match(answer)", f"goal correct = {goal}")
    lines = text.replace("{gate}", f"gate second = {gate}" if gate else "").splitlines()
    return "\n".join(line for line in lines if line) + "\n"


def with_target(model: str, text: str | None = None) -> str:
    """Return a program, by default the small one, with another target."""
    return (program() if text is None else text).replace(TARGET, f"model target = {model}")


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


FIND = '''def find(title: str) -> str:
    """Find a book in the library.

    Args:
        title: its title, or a part of it.
    """
    return title
'''
"""A module with one function, for programs with tools."""
