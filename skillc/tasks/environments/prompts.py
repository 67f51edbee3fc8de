"""What the target reads in each turn, and the action in its reply.

The conversation grows at its end, so that a server's prefix cache holds all of it but the last observation: the system
message has the skill, the first user message the inputs, each further message one observation or reply. The possible
actions and the request end the last message alone. A history over its limit is cut to half of it, which moves the
prefix once in many turns. So does the text of a skill that the target opens: it joins the instructions, where no limit
of the history reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillc.dataclass import dataclass
from skillc.document.offer import OPEN, offer_as_action
from skillc.document.skill import Document
from skillc.json_values import JsonObject, as_text
from skillc.models.calls import Message
from skillc.outcomes import Example
from skillc.plan.schema import TaskPlan
from skillc.program.names import instructions
from skillc.tasks.answers import read_answer
from skillc.text import counted, listed
from skillc.tokens import count_tokens

_MARKS = " \t\r\n\"'`*>"
_OPENS = re.compile(rf"(?:^|[\s\"'`:{{]){OPEN}\b[\s:=(\"'`]*(?P<name>[\w.-]*)[\s)\"'`}}.]*$")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the past: what the target read, its reply, and the tokens of both."""

    observation: str
    reply: str
    size: int

    @classmethod
    def of(cls, observation: str, reply: str) -> Turn:
        """Return a turn with its size."""
        return cls(observation, reply, count_tokens(observation) + count_tokens(reply))


@dataclass(frozen=True, slots=True)
class Reads:
    """What the target reads of skills in a turn.

    Attributes:
        text: of those that it always reads; None without.
        opened: the texts of those that it has opened.
        offered: those that it may open.
    """

    text: str | None = None
    opened: tuple[str, ...] = ()
    offered: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """How the turns of a task are written.

    Attributes:
        task: its outputs are the action.
        reasons: whether the target reasons before it acts.
        turns: the most turns.
        history: tokens of past turns.
        observation: tokens of one observation, and of one list of actions.
        whole: whether the action is the whole reply, not its last line.
    """

    task: TaskPlan
    reasons: bool
    turns: int
    history: int
    observation: int
    whole: bool = False

    def messages(
        self, reads: Reads, example: Example, past: Sequence[Turn], now: str, actions: Sequence[str] | None
    ) -> tuple[Message, ...]:
        """Return the prompt of a turn: the inputs, the `past` turns within their limit, and the text of `now`."""
        start = first_kept([turn.size for turn in past], self.history)
        given = "\n\n".join(f"## {name}\n{as_text(value)}" for name, value in example.inputs.items())
        head = given + (f"\n\n[{counted(start, 'earlier turn')} left out]" if start else "")
        messages = [Message("system", self._instructions(reads))]
        observations = [*(turn.observation for turn in past[start:]), f"{now}\n\n{self._request(reads, actions)}"]
        observations[0] = f"{head}\n\n## observation\n{observations[0]}" if head else observations[0]
        for i, observation in enumerate(observations):
            messages.append(Message("user", observation))
            if start + i < len(past):
                messages.append(Message("assistant", past[start + i].reply))
        return tuple(messages)

    def _instructions(self, reads: Reads) -> str:
        asked = self._asked()
        place = "" if self.whole else " alone on the last line"
        how = (
            f"Reply with your reasoning in a few sentences, and then {asked}{place}."
            if self.reasons
            else f"Reply with {asked} alone."
        )
        rules = (
            f"You act in an environment, one action in each turn, in at most {counted(self.turns, 'turn')}. "
            f"Each turn you get an observation. {how}"
        )
        parts = [instructions(self.task, reads.text), *reads.opened, rules]
        parts += [offer_as_action(reads.offered, last_line=self.reasons)] if reads.offered else []
        return "\n\n".join(parts)

    def _asked(self) -> str:
        names = [field.name for field in self.task.outputs]
        if len(names) == 1:
            return f"the {names[0].replace('_', ' ')}"
        return f"a JSON object with the keys {listed(names, 'and')}"

    def _request(self, reads: Reads, actions: Sequence[str] | None) -> str:
        ending = " alone." if not self.reasons else "." if self.whole else " on the last line."
        asked = f"Reply with {self._asked()}{ending}"
        if actions is None:
            return asked
        every = [*actions, *(f"{OPEN} {each.name}" for each in reads.offered)]
        return "\n".join(["Possible actions:", *first_actions(every, self.observation), "", asked])

    def shortened(self, observation: str) -> str:
        """Return the beginning and the end of an observation within its limit."""
        if count_tokens(observation) <= self.observation:
            return observation
        # A token has about four characters; the limit holds for texts of any language.
        keep = self.observation * 4
        while True:
            text = f"{observation[: keep // 2]} […] {observation[len(observation) - keep // 2 :]}"
            if keep < 2 or count_tokens(text) <= self.observation:
                return text
            keep = keep * 3 // 4

    def opens(self, reply: str, actions: Sequence[str] | None) -> str | None:
        """Return the name of the skill that a reply opens, at its end; None if it acts."""
        lines = [line for line in reply.splitlines() if line.strip(_MARKS)]
        if not lines or lines[-1].strip(_MARKS) in (actions or ()):
            return None
        found = _OPENS.search(reply if reply.lstrip().startswith("{") else lines[-1])
        return found["name"] if found is not None else None

    def action(self, reply: str, actions: Sequence[str] | None) -> tuple[JsonObject | None, str | None]:
        """Return the action in a reply as value by output, or None and the problem.

        It is the whole reply if `whole`. Else, of a single output, it is the last line that is not blank, without marks
        around it. One of the possible actions
        is recognised in any case, and behind the name of the output.
        """
        outputs = self.task.outputs
        lines = [line for line in reply.splitlines() if line.strip(_MARKS)]
        if self.whole and len(outputs) == 1 and outputs[0].type.kind == "text" and lines:
            return {outputs[0].name: reply}, None
        if len(outputs) != 1 or not lines or reply.lstrip().startswith("{"):
            return read_answer(self.task, reply)
        name = re.escape(outputs[0].name.replace("_", " "))
        last = re.sub(rf"^(?:{name}|action)\s*:\s*", "", lines[-1].strip(_MARKS), flags=re.IGNORECASE).strip(_MARKS)
        known = {each.casefold(): each for each in actions or ()}
        for candidate in (last, last.rstrip(".")):
            if candidate.casefold() in known:
                return read_answer(self.task, known[candidate.casefold()])
        return read_answer(self.task, last)


def first_kept(sizes: Sequence[int], limit: int) -> int:
    """Return how many of the first turns are left out, from the tokens of each.

    Whenever the turns kept exceed the limit, the oldest are left out until they are within half of it. The result
    depends on the turns alone, and is the same for many turns in a row.
    """
    start, kept = 0, 0
    for end, size in enumerate(sizes, 1):
        kept += size
        if kept > limit:
            while start < end and kept > limit // 2:
                kept -= sizes[start]
                start += 1
    return start


def first_actions(actions: Sequence[str], limit: int) -> list[str]:
    """Return the actions as list items, as many as fit."""
    found: list[str] = []
    left = limit
    for action in actions:
        left -= count_tokens(action) + 2
        if left < 0:
            return [*found, f"- … and {len(actions) - len(found)} more"]
        found.append(f"- {action}")
    return found
