"""A conversation as plain text, for what reads nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SYSTEM = frozenset({"system", "developer"})

Messages = Sequence[Mapping[str, Any]]


class NotPlain(ValueError):  # noqa: N818
    """A message holds more than text."""


def system_text(messages: Messages) -> str:
    """What the system messages say.

    Raises:
        NotPlain: a message holds an image, a sound or a file.
    """
    return "\n\n".join(_text(message) for message in messages if message["role"] in _SYSTEM)


def user_text(messages: Messages) -> str:
    """The rest of the conversation: a single message as it is, several with their roles over them.

    Raises:
        NotPlain: a message holds an image, a sound or a file.
    """
    rest = [message for message in messages if message["role"] not in _SYSTEM]
    if len(rest) == 1:
        return _text(rest[0])
    return "\n\n".join(f"[{message['role']}]\n{_text(message)}" for message in rest)


def prompt_text(messages: Messages) -> str:
    """The whole conversation: what the system messages say, and the rest below it.

    Raises:
        NotPlain: a message holds an image, a sound or a file.
    """
    return "\n\n".join(part for part in (system_text(messages), user_text(messages)) if part)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.get("type") != "text":
            raise NotPlain(f"a message holds a part of type `{part.get('type')}`")
    return "\n".join(str(part["text"]) for part in content)
