"""Models that are functions of the user: read a prompt of skillc, and write the reply.

A function behind `backend = python("module:function")` gets the messages of one call. `read` returns what a target is
asked, and `learn` replies for an optimizer: the function says which rules would cure a case, and this module writes
edits, drafts and the replies of the other stages.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from skillc.dataclass import dataclass
from skillc.models.backends.function import Reply
from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.optimizer import answer_optimizer
from skillc.models.rulebook.target import PromptFormat, read_form, read_inputs, texts, write_answer

__all__ = ["Case", "Prompt", "learn", "read", "reply"]

Messages = Sequence[Mapping[str, Any]]
Cures = Callable[[Case, str], Iterable[str]]
"""From a failed case and the text of the skill, the rules that would cure it."""
_DATA_URI = re.compile(r"data:[\w/+.-]+;base64,([A-Za-z0-9+/=\s]+)\Z")
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a target is asked.

    Attributes:
        skill: the text of the skill.
        inputs: by name; an image is not among them.
        images: the content of each image, in the order of the prompt.
    """

    skill: str
    inputs: Mapping[str, str]
    images: tuple[bytes, ...]
    _form: PromptFormat
    _messages: Messages

    def answer(self, **outputs: str) -> Reply:
        """Return the reply with these outputs in the format of the prompt; others, such as a reasoning, are `-`."""
        asked = {field.name: outputs.get(field.name, "-") for field in self._form.outputs}
        return reply(write_answer(self._form, asked), self._messages)


def read(messages: Messages) -> Prompt:
    """Read the prompt of a target that answers in one turn."""
    form = read_form("\n".join(texts(messages, "system")))
    inputs = read_inputs(form, next(iter(reversed(texts(messages, "user"))), ""))
    return Prompt(form.skill, inputs, tuple(_images(messages)), form, messages)


def reply(text: str, messages: Messages) -> Reply:
    """Return a reply that reports about four characters a token, as models do."""
    sent = sum(len(each) for role in ("system", "user", "assistant") for each in texts(messages, role))
    usage = {
        "prompt_tokens": 1 + sent // _CHARACTERS_A_TOKEN,
        "completion_tokens": 1 + len(text) // _CHARACTERS_A_TOKEN,
    }
    return Reply(text, usage=usage)


def learn(messages: Messages, cures: Cures) -> Reply:
    """Return an optimizer's reply in which each rule that cures a failed case is an edit, most cures first.

    A rule of the skill, or one that was rejected, is not proposed again.
    """

    def reflect(brief: Brief) -> dict[str, object]:
        skill = "\n".join(rule.text for rule in brief.rules)
        failed = () if brief.request.get("kind") == "successes" else brief.cases
        found: dict[str, list[str]] = {}
        for case in failed:
            for text in cures(case, skill):
                if text not in skill and not any(text in each for each in brief.rejected):
                    found.setdefault(text, []).append(case.tag)
        best = sorted(found, key=lambda text: -len(found[text]))[: brief.budget]
        return {"summary": "rules that cure failed cases", "edits": [_edit(brief, each, found[each]) for each in best]}

    return reply(answer_optimizer(messages, reflect), messages)


def _edit(brief: Brief, text: str, tags: list[str]) -> dict[str, object]:
    cured = f"cures {len(tags)} of {len(brief.cases)} cases"
    return {"op": "add", "section": brief.sections[0], "text": text, "rationale": cured, "cures": tags}


def _images(messages: Messages) -> Iterable[bytes]:
    """Yield the content of each image that is sent with the messages."""
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            address = part.get("image_url") if isinstance(part, Mapping) else None
            found = _DATA_URI.match(str(address.get("url", ""))) if isinstance(address, Mapping) else None
            if found is not None:
                try:
                    yield base64.b64decode(found[1])
                except binascii.Error:
                    continue
