"""Prompts as skillc sends and once sent them through DSPy's chat adapter, and plain ones, with places marked in them.

A mark is a character of the private use area, the text of the place, and the closing mark; `places` takes them out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

OPEN, CLOSE = 0xE000, "\uf8ff"


@dataclass(frozen=True, slots=True)
class Task:
    """Names of the task's input and output, description of the input, labels, and names of further inputs."""

    field: str
    output: str
    about: str
    labels: tuple[str, ...]
    more: tuple[str, ...] = ()


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


_FOLLOW = "Follow the rules below; they come before your own judgement."
LEAD = f"{_FOLLOW} If several rules fit and none says which, the first one decides."
# Open outputs have the first sentence alone.
LEADS = (_FOLLOW, LEAD)


def task_text(task: Task) -> str:
    """Write the paragraph that begins a SKILL.md: inputs, output and labels."""
    first = f"the {_words(task.field)}" + (f" ({task.about})" if task.about else "")
    given = _listed([first, *(f"the {_words(name)}" for name in task.more)], "and")
    labels = _listed([f'"{label}"' for label in task.labels], "or")
    verb = "give the answer" if task.output.startswith("answer") else f"answer with the {_words(task.output)}"
    return f"Given {given}, {verb}: one of {labels}."


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(each: Sequence[str], last: str) -> str:
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} {last} {each[-1]}"


def page(task: Task, skill: str, lead: str = LEAD) -> str:
    """Write a SKILL.md: title, task and lead line before the skill's own text; without a skill, the task alone."""
    if not skill.strip():
        return task_text(task)
    title, _, rest = skill.strip().partition("\n") if skill.startswith("# ") else ("# Instructions", "", skill)
    return f"{title}\n\n{task_text(task)}\n\n{lead}\n\n{rest.strip()}"


def page_system(task: Task, skill: str, lead: str = LEAD) -> str:
    """Write the system message that skillc sends: DSPy's chat adapter around a SKILL.md."""
    return _adapter(task, "", page(task, skill, lead))


def chat_system(task: Task, skill: str) -> str:
    """Write the system message that skillc sent earlier: the task in one line before the skill."""
    given = ", ".join(f"`{name}`" for name in (task.field, *task.more))
    objective = f"Given the fields {given}, produce the fields `{task.output}`."
    if skill:
        objective += f"\nFollow the rules of this skill; they come before your own judgement.\n\n{skill.strip()}"
    return _adapter(task, f" {task.about}" if task.about else "", objective)


def _adapter(task: Task, about: str, objective: str) -> str:
    """Write the system message of DSPy's chat adapter; `about` follows the first input."""
    names = (task.field, *task.more)
    # DSPy strips the list, so only the last input has no space after its colon.
    lines = [f"{number}. `{name}` (str):{' ' if number < len(names) else ''}" for number, name in enumerate(names, 1)]
    lines[0] = lines[0].rstrip() + about if about else lines[0]
    shown = "\n\n".join(f"[[ ## {name} ## ]]\n{{{name}}}" for name in names)
    return (
        "Your input fields are:\n" + "\n".join(lines) + "\n"
        f"Your output fields are:\n1. `{task.output}` ({literal(task.labels)}):\n"
        "All interactions will be structured in the following way, with the appropriate values filled in.\n\n"
        f"{shown}\n\n[[ ## {task.output} ## ]]\n{{{task.output}}}        # note: the"
        f" value you produce must exactly match (no extra characters) one of: {'; '.join(task.labels)}\n\n"
        "[[ ## completed ## ]]\n"
        f"In adhering to this structure, your objective is: \n{textwrap.indent(objective, ' ' * 8, lambda _: True)}"
    )


def chat_user(task: Task, text: str, *more: str) -> str:
    """Write the user message of DSPy's chat adapter; `more` are the values of the further inputs."""
    inputs = zip((task.field, *task.more), (text, *more), strict=True)
    shown = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in inputs)
    return (
        f"{shown}\n\nRespond with the corresponding output fields, starting with the field"
        f" `[[ ## {task.output} ## ]]` (must be formatted as a valid Python {literal(task.labels)}), and then ending"
        " with the marker for `[[ ## completed ## ]]`."
    )


def chat_reply(task: Task, label: str) -> tuple[str, str, str]:
    """The text before the label in a reply, the label, and the text after it."""
    return f"[[ ## {task.output} ## ]]\n", label, "\n\n[[ ## completed ## ]]"


def plain_system(task: Task, skill: str) -> str:
    """Which answers there are, and a skill as a file is read."""
    return f"The {task.output} is one of: {', '.join(task.labels)}.\n\n{skill.strip()}".strip()


def plain_user(task: Task, text: str, *more: str) -> str:
    """Write each input after its name."""
    inputs = zip((task.field, *task.more), (text, *more), strict=True)
    shown = "\n\n".join(f"{name}: {value}" for name, value in inputs)
    return f"{shown}\n\n{task.output}:"


def plain_reply(task: Task, label: str) -> tuple[str, str, str]:
    """The label alone."""
    return "", label, ""
