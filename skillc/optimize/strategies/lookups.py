"""Lookups (`lookups = n`): a reflection may list, read and search the trajectories of its batch before it answers.

The protocol is part of the prompt, so any model can follow it: a reply `{"lookup": ...}` asks for a lookup, and each
turn is an ordinary call of the optimizer with its own sample, under the same ledger and cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.optimize.engine import Engine
from skillc.optimize.propose.prompting import HitView, ReflectRequest, TrajectoryView, lookup_messages
from skillc.optimize.propose.replies import LookReply, Lookup, ReflectReply
from skillc.optimize.strategies.mechanism import Ask, Mechanism, ReflectionPrompt
from skillc.plan.schema import Plan
from skillc.text import counted
from skillc.tokens import count_tokens

# Tokens of each input in the prompt if the rest can be looked up.
GLANCE = 200
MOST_HITS = 12
_AROUND_HIT = 80


class Lookups(Mechanism):
    """Let a reflection ask up to `most` questions."""

    name = "lookups"

    def __init__(self, most: int) -> None:
        self._most = most

    @classmethod
    def from_plan(cls, plan: Plan) -> Lookups | None:
        """Return the mechanism if `lookups` is at least 1."""
        return cls(plan.optimize.lookups) if plan.optimize.lookups else None

    def trajectory_tokens(self, limit: int) -> int:
        """Show only the beginning of a trajectory."""
        return min(GLANCE, limit)

    def request(self, request: ReflectRequest) -> ReflectRequest:
        """Explain how to look up."""
        return replace(request, lookups=self._most)

    def wrap_ask(self, ask: Ask) -> Ask:
        """Answer up to `most` lookups before the reflection."""
        return self._ask

    async def _ask(self, engine: Engine, prompt: ReflectionPrompt) -> ReflectReply | None:
        optimizer, messages, sample, check = engine.optimizer, prompt.messages, prompt.sample, prompt.check
        trajectories = BatchTrajectories(prompt.views(), engine.plan.optimize.trajectory_limit)
        for turn in range(self._most):
            reply = await optimizer.ask(
                LookReply,
                messages,
                stage="reflect",
                sample=(*sample, turn),
                check=lambda reply: None if reply.lookup else check(reply),
                done=False,
            )
            if reply is None or reply.lookup is None:
                optimizer.advance()
                return reply
            hits, text = trajectories.answer(reply.lookup)
            lookup = reply.lookup.model_dump(mode="json", exclude_defaults=True)
            asked = json.dumps({"lookup": lookup}, ensure_ascii=False)
            messages = lookup_messages(messages, asked=asked, hits=hits, text=text, left=self._most - turn - 1)
        return await optimizer.ask(ReflectReply, messages, stage="reflect", sample=(*sample, self._most), check=check)


@dataclass(frozen=True)
class BatchTrajectories:
    """The trajectories of a batch, whole, as far as the program lets the optimizer see them.

    Attributes:
        views: by tag, in order.
        part: tokens of one part.
    """

    views: Mapping[str, TrajectoryView]
    part: int

    def parts(self, tag: str) -> list[str]:
        """One trajectory in parts of about `part` tokens each."""
        text = _whole(self.views[tag])
        size = self._size(text)
        return [text[i : i + size] for i in range(0, len(text), size)]

    def _size(self, text: str) -> int:
        """Characters of one part."""
        return max(1, len(text) * self.part // max(1, count_tokens(text)))

    def listed(self) -> list[HitView]:
        """Return each trajectory with its score, its number of parts and its beginning."""
        beginnings = {tag: " ".join(" ".join(view.inputs.values()).split()) for tag, view in self.views.items()}
        return [
            HitView(tag, len(self.parts(tag)), view.score, view.gold, beginnings[tag][: 2 * _AROUND_HIT])
            for tag, view in self.views.items()
        ]

    def found(self, text: str) -> list[HitView]:
        """Return the first occurrence of a text in each trajectory, ignoring case: the part and the context."""
        wanted, hits = re.compile(re.escape(text.strip()), re.IGNORECASE), []
        for tag, view in self.views.items():
            whole = _whole(view)
            position = wanted.search(whole)
            if position:
                excerpt = whole[max(0, position.start() - _AROUND_HIT) : position.end() + _AROUND_HIT]
                number = position.start() // self._size(whole) + 1
                hits.append(HitView(tag, number, view.score, view.gold, " ".join(excerpt.split())))
        return hits

    def answer(self, lookup: Lookup) -> tuple[list[HitView], str]:
        """Answer a lookup with trajectories and a text."""
        if lookup.op == "list":
            return self.listed(), f"{len(self.views)} trajectories"
        if lookup.op == "search":
            hits = self.found(lookup.text)
            more = f", the first {MOST_HITS} are shown" if len(hits) > MOST_HITS else ""
            return hits[:MOST_HITS], f"{len(hits)} of {len(self.views)} trajectories hold this text{more}"
        tag = lookup.tag or ""
        if tag not in self.views:
            return [], f"there is no trajectory `{tag}`; `list` names them"
        parts = self.parts(tag)
        if lookup.part > len(parts):
            return [], f"`{tag}` has {counted(len(parts), 'part')}"
        return [], f"`{tag}`, part {lookup.part} of {len(parts)}:\n{parts[lookup.part - 1]}"


def _whole(view: TrajectoryView) -> str:
    """Return a trajectory as one text, without what the program withholds."""
    parts = [f"input {name}:\n{value}" for name, value in view.inputs.items()]
    named = (("steps", view.trajectory), ("answer", view.answer), ("gold", view.gold), ("feedback", view.feedback))
    return "\n\n".join([*parts, *(f"{name}:\n{text}" for name, text in named if text is not None)])
