"""Prompts as skillc sends them through DSPy's chat adapter, and plain ones, with places marked in them.

A mark is a character of the private use area, the text of the place, and the closing mark; `places` takes them out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

OPEN, CLOSE = 0xE000, "\uf8ff"


@dataclass(frozen=True, slots=True)
class Task:
    """Names of the task's input and output, the description of the input, and the labels."""

    field: str
    output: str
    about: str
    labels: tuple[str, ...]


def mark(number: int, text: str) -> str:
    """A text whose place is asked for by its number."""
    return f"{chr(OPEN + number)}{text}{CLOSE}"


def places(text: str) -> tuple[str, dict[int, tuple[int, int]]]:
    """The text without marks, and start and end of each marked place. Marks do not nest."""
    out: list[str] = []
    found: dict[int, tuple[int, int]] = {}
    at = number = start = 0
    for piece in _pieces(text):
        code = ord(piece[0])
        if OPEN <= code < ord(CLOSE):
            number, start = code - OPEN, at
        elif piece == CLOSE:
            found[number] = (start, at)
        else:
            out.append(piece)
            at += len(piece)
    return "".join(out), found


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for at, letter in enumerate(text):
        if OPEN <= ord(letter) <= ord(CLOSE):
            if at > start:
                pieces.append(text[start:at])
            pieces.append(letter)
            start = at + 1
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def literal(labels: Sequence[str]) -> str:
    """The labels as Python's `Literal` shows them."""
    return f"Literal[{', '.join(map(repr, labels))}]"


def chat_system(task: Task, skill: str) -> str:
    """The system message of DSPy's chat adapter with skillc's instructions; an empty skill is none."""
    objective = f"Given the fields `{task.field}`, produce the fields `{task.output}`."
    if skill:
        objective += f"\nFollow the rules of this skill; they come before your own judgement.\n\n{skill.strip()}"
    about = f" {task.about}" if task.about else ""
    return (
        f"Your input fields are:\n1. `{task.field}` (str):{about}\n"
        f"Your output fields are:\n1. `{task.output}` ({literal(task.labels)}):\n"
        "All interactions will be structured in the following way, with the appropriate values filled in.\n\n"
        f"[[ ## {task.field} ## ]]\n{{{task.field}}}\n\n[[ ## {task.output} ## ]]\n{{{task.output}}}        # note: the"
        f" value you produce must exactly match (no extra characters) one of: {'; '.join(task.labels)}\n\n"
        "[[ ## completed ## ]]\n"
        f"In adhering to this structure, your objective is: \n{textwrap.indent(objective, ' ' * 8, lambda _: True)}"
    )


def chat_user(task: Task, text: str) -> str:
    """The user message of DSPy's chat adapter."""
    return (
        f"[[ ## {task.field} ## ]]\n{text}\n\nRespond with the corresponding output fields, starting with the field"
        f" `[[ ## {task.output} ## ]]` (must be formatted as a valid Python {literal(task.labels)}), and then ending"
        " with the marker for `[[ ## completed ## ]]`."
    )


def chat_reply(task: Task, label: str) -> tuple[str, str, str]:
    """What stands before the label in a reply, the label, and what stands after it."""
    return f"[[ ## {task.output} ## ]]\n", label, "\n\n[[ ## completed ## ]]"


def plain_system(task: Task, skill: str) -> str:
    """Which answers there are, and a skill as a file is read."""
    return f"The {task.output} is one of: {', '.join(task.labels)}.\n\n{skill.strip()}".strip()


def plain_user(task: Task, text: str) -> str:
    """The input under its name."""
    return f"{task.field}: {text}\n\n{task.output}:"


def plain_reply(task: Task, label: str) -> tuple[str, str, str]:
    """The label alone."""
    return "", label, ""
