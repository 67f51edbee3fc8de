"""Skills that a target opens by itself: the list of names and descriptions that it reads first.

Hosts limit what such a list shows. Agent Skills allow 1,024 characters for a description; Hermes shows 60 of them, and
Claude Code and Codex give the whole list about 8,000 characters and shorten descriptions beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillc.artifact_paths import ABOUT_CHARACTERS
from skillc.document.skill import Document

LIST_CHARACTERS = 8_000
"""The characters of names and descriptions in a list, together."""
MOST_OPENED = 3
"""The most skills that a rollout of `predict` or `chain_of_thought` opens; each is a further call."""
OPEN = "open_skill"
"""The tool, or the output of a one-turn rollout, that opens a skill."""
_ELLIPSIS = "…"


def most_opened(offered: int) -> int:
    """Return how many times a rollout of `predict` or `chain_of_thought` may open one of `offered` skills."""
    return min(offered, MOST_OPENED)


def shown_descriptions(offered: Sequence[Document]) -> list[tuple[str, str]]:
    """Return name and description of each skill, as a host shows them.

    A description has at most 1,024 characters. If the list is longer than `LIST_CHARACTERS`, long descriptions are
    shortened to one length; names are always whole.
    """
    texts = [(each.name, " ".join(each.about.split())) for each in offered]
    names = sum(len(name) for name, _ in texts)
    low, high = 0, ABOUT_CHARACTERS
    while low < high:
        middle = (low + high + 1) // 2
        if names + sum(min(len(about), middle) for _, about in texts) <= LIST_CHARACTERS:
            low = middle
        else:
            high = middle - 1
    return [(name, _cut(about, low)) for name, about in texts]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + _ELLIPSIS if limit else ""


def offer_text(offered: Sequence[Document], *, field: str = OPEN) -> str:
    """Return the list and how to open a skill, as the instructions of a one-turn rollout; `field` names the output."""
    return _offer(
        offered,
        f"To open one, write only its name in `{field}` and leave the other fields empty; its text follows. Open a "
        f"skill where its description fits. Else leave `{field}` empty and answer.",
    )


def offer_as_action(offered: Sequence[Document], *, last_line: bool = False) -> str:
    """Return the list and how to open a skill, as the instructions of a target that acts in turns.

    With `last_line` the target writes more than its action.
    """
    return _offer(
        offered,
        f"To open one, reply with `{OPEN}` and its name {'on the last line' if last_line else 'alone'}, for example "
        f"`{OPEN} {offered[0].name}`. That takes no turn: you read its text and then act. Open a skill where its "
        "description fits.",
    )


def _offer(offered: Sequence[Document], how: str) -> str:
    lines = [f"- {name}: {about}" if about else f"- {name}" for name, about in shown_descriptions(offered)]
    return "\n".join(["You can open these skills:", "", *lines, "", how])


def opened_text(skill: str, text: str) -> str:
    """Return what a target reads after it has opened a skill."""
    return f"The skill {skill}:\n\n{text.strip()}"
