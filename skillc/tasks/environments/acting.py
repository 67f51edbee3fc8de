"""How the target answers in each turn: `agent = predict` or `chain_of_thought`, with a reply that is its action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from skillc.document.offer import OPEN, most_opened
from skillc.document.skill import Document
from skillc.json_values import JsonObject
from skillc.language.rollouts import ACT
from skillc.models.calls import Message
from skillc.outcomes import Example
from skillc.tasks.environments.handle import Handle
from skillc.tasks.environments.prompts import Form, Reads, Turn
from skillc.tasks.opening import Openings
from skillc.text import counted
from skillc.trajectories.trajectory import Message as Said
from skillc.trajectories.trajectory import Step, ToolCall

Ask = Callable[[tuple[Message, ...]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Moment:
    """What a target may answer in one turn.

    Attributes:
        observation: since the last turn; None where a tool has answered it already.
        actions: the possible ones, if the environment names them.
        handle: the environment for tools that act.
        last: whether only the answer can follow, after the last turn.
    """

    observation: str | None
    actions: Sequence[str] | None = None
    handle: Handle | None = None
    last: bool = False


@dataclass(frozen=True, slots=True)
class Acted:
    """What a target did in one turn: an action, its last answer, or neither, with a problem or by a tool.

    Attributes:
        action: value by output, for the environment.
        problem: why there is neither, unless a tool was called.
        answer: value by output; the rollout ends.
    """

    action: JsonObject | None = None
    problem: str | None = None
    answer: JsonObject | None = None


class TurnAgent(ABC):
    """The target of one attempt at a rollout.

    Attributes:
        steps: what it did so far, without what the environment answered.
    """

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps

    @abstractmethod
    async def act(self, turn: Moment) -> Acted:
        """Answer an observation.

        Raises:
            RolloutFailed: a tool is down.
            EnvironmentFailed: the environment failed in a tool.
            CallFailed, PermanentFailure, BudgetReached: from the model.
        """


class ReplyingAgent(TurnAgent):
    """A target whose reply is its action.

    A reply that opens a skill takes no turn: the text joins the instructions, and the observation is shown again.

    Args:
        form: how turns are written.
        example: its inputs.
        text: of the skills that are always read; None without.
        offered: the skills that the target may open.
        ask: sends a prompt to the target's model.
        steps: of the rollout, to which those of the target are added.
    """

    def __init__(
        self,
        form: Form,
        example: Example,
        text: str | None,
        offered: Sequence[Document],
        ask: Ask,
        steps: list[Step],
    ) -> None:
        super().__init__(steps)
        self._form = form
        self._example = example
        self._text = text
        self._openings = Openings(offered)
        self._most = most_opened(len(offered))
        self._left = self._most
        self._ask = ask
        self._past: list[Turn] = []

    async def act(self, turn: Moment) -> Acted:
        """As `TurnAgent.act`."""
        assert turn.observation is not None
        form, actions, shown = self._form, turn.actions, turn.observation
        while True:
            offered = self._openings.closed if self._left else ()
            reads = Reads(self._text, self._openings.opened, offered)
            reply = await self._ask(form.messages(reads, self._example, self._past, shown, actions))
            name = form.opens(reply, actions) if self._most else None
            if name is None or not self._left:
                break
            self._left -= 1
            seen = self._openings.open(name)
            self.steps += [*((Said(reply),) if form.reasons else ()), *self._openings.steps[-2:]]
            shown = f"{turn.observation}\n\n[{OPEN}: {seen.text}]" if seen.failed else turn.observation
        self._past.append(Turn.of(turn.observation, reply))
        action, problem = form.action(reply, actions) if name is None else (None, self._used_up())
        if action is None:
            self.steps.append(Said(reply))
        else:
            self.steps += acted(reply if form.reasons else "", action)
        return Acted(action, problem)

    def _used_up(self) -> str:
        return f"no further skill can be opened, after {counted(self._most, 'time')}"


def acted(said: str, action: JsonObject) -> tuple[Step, ...]:
    """Return the steps of an action: what the target said before it, and the action."""
    call = ToolCall(ACT, dict(action))
    return (Said(said), call) if said else (call,)
