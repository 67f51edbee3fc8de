"""A prompt from its parts, so that a test writes only those that it is about."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from skillc.optimize.propose.prompting import (
    Briefing,
    DraftRequest,
    Messages,
    ReflectRequest,
    draft_messages,
    reflect_messages,
)

REQUESTS: dict[Any, Any] = {reflect_messages: ReflectRequest, draft_messages: DraftRequest}


def prompt(make: Callable[..., Messages], **parts: Any) -> Messages:
    """The messages of one kind, from what their briefing and their request hold."""
    brief = Briefing(**{each.name: parts.pop(each.name) for each in fields(Briefing) if each.name in parts})
    return make(brief, REQUESTS[make](**parts)) if make in REQUESTS else make(brief, **parts)
