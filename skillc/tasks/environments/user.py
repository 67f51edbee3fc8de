"""A simulated user: a model with a goal from the example, which the target talks to.

An outage of its model leaves the rollout unmeasured. So does a user that leaves its role, after one more try: that is
no wrong answer of the target, and is counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any

from skillc.dataclass import dataclass
from skillc.json_values import as_text
from skillc.models.calls import Completion, Message
from skillc.models.failures import CallFailed
from skillc.outcomes import Example
from skillc.tasks.kind import RolloutFailed, Site
from skillc.text import cut

END = "[END]"
"""The user's last word."""

_REPEATS = 3
_AGENT_WORDS = re.compile(
    r"\bas an? (?:ai|assistant|language model)\b"
    r"|\bhow (?:can|may) i (?:help|assist) you\b"
    r"|^\s*\[?(?:assistant|agent)\]?\s*:",
    re.IGNORECASE,
)
_PROMPT = """\
You play a user who talks to an assistant. You are not the assistant: never help, explain or act for it.

Your goal:
{goal}

Write only what the user says next, in one to three sentences. Give facts of your goal when you are asked for them, \
not all at once, and invent none. When the goal is reached, or cannot be reached any more, write {end} alone."""

Ask = Callable[[str, int, tuple[Message, ...], int], Awaitable[Completion]]


@dataclass
class SimulatedUser:
    """The user of all rollouts of a run, and the counts of its errors."""

    site: Site
    role: str
    goal: str
    errors: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site, setting: Mapping[str, Any]) -> SimulatedUser:
        """Read the setting `user = role { goal = field }`; without a goal the user knows all data fields."""
        return cls(site, str(setting["kind"]), str(setting.get("goal", "")))

    def talk(self, example: Example, ask: Ask) -> Talk:
        """Return the conversation of one rollout."""
        known = {**example.fields, **example.inputs}
        shown = {self.goal: known[self.goal]} if self.goal else dict(example.fields or example.inputs)
        goal = as_text(next(iter(shown.values()))) if len(shown) == 1 else as_text(shown)
        return Talk(self, goal, ask)

    def count(self, error: str) -> None:
        """Count an error of the user, and note the first of each sort."""
        self.errors[error] = self.errors.get(error, 0) + 1
        if self.errors[error] == 1:
            self.site.note(f"the simulated user `{self.role}` {error}; such rollouts are counted as its errors")


@dataclass
class Talk:
    """The conversation of one rollout from the user's side."""

    user: SimulatedUser
    goal: str
    ask: Ask
    ended: bool = False
    _said: list[Message] = field(default_factory=list)

    async def reply(self, said: str | None) -> str:
        """Return the user's reply to a message of the target; None asks for its first message.

        Raises:
            RolloutFailed: its model failed, or it left its role twice.
        """
        self._said.append(Message("user", said if said is not None else "Hello."))
        prompt = (Message("system", _PROMPT.format(goal=self.goal, end=END)), *self._said)
        number = len(self._said)
        for attempt in range(2):
            try:
                text = (await self.ask(self.user.role, 2 * number + attempt, prompt, attempt)).text.strip()
            except CallFailed as failed:
                raise RolloutFailed("user", f"`{self.user.role}`: {failed.detail or failed.kind}") from failed
            problem = self._problem(text, said)
            if problem is None:
                break
            self.user.count(problem)
        else:
            raise RolloutFailed("user", f"it {problem}: {cut(text, 80)}")
        self._said.append(Message("assistant", text))
        if END in text:
            self.ended = True
            text = text.replace(END, "").strip()
        if self._repeats():
            self.user.count("repeated itself")
            self.ended = True
        return text

    def _problem(self, text: str, said: str | None) -> str | None:
        """Return how the user left its role, if it did."""
        if said is not None and len(said.split()) > 3 and " ".join(text.split()) == " ".join(said.split()):
            return "repeated the assistant's message"
        return "spoke as the assistant" if _AGENT_WORDS.search(text) else None

    def _repeats(self) -> bool:
        """Whether the user only repeats itself, so that the conversation would never end."""
        own = [message.content for message in self._said if message.role == "assistant"][-_REPEATS:]
        return len(own) == _REPEATS and len(set(own)) == 1
