"""The kind of rollout `environment`: the target plays an example, one action in each turn."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from skillc.dataclass import dataclass
from skillc.json_values import JsonObject, canonical_ascii
from skillc.language.rollouts import ENVIRONMENT_DEFAULTS
from skillc.models.calls import Call, Completion, Message
from skillc.models.scope import current_scope
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.processes.interpreters import declared_path
from skillc.tasks.environments.acting import Handle, Moment, ReplyingAgent, Seen, TurnAgent
from skillc.tasks.environments.process import EnvironmentFailed, EnvironmentPool, EnvironmentProcess, Opening
from skillc.tasks.environments.prompts import Form
from skillc.tasks.environments.protocol import find_environment
from skillc.tasks.environments.tool_agent import ToolAgent, ToolForm
from skillc.tasks.environments.user import SimulatedUser
from skillc.tasks.episodes import AgentTools
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind
from skillc.trajectories.trajectory import Message as Said
from skillc.trajectories.trajectory import Observation, Outcome, Step, Trajectory

_SEEDS = 2**31
# By role and number of the call: the prompt and the reply.
_Replies: TypeAlias = dict[tuple[str, int], tuple[tuple[Message, ...], Completion]]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of `environment(...)` that skillc reads; the class gets the others as keyword arguments.

    `tools` are the settings of `agent = react { ... }`, None for another agent.
    """

    agent: str
    tools: Mapping[str, Any] | None
    action: str
    turns: int
    history: int
    observation: int
    processes: int
    step_time: float
    reset_time: float
    memory: int | None
    python: str | None
    user: Mapping[str, Any] | None
    passed: Mapping[str, Any]

    @classmethod
    def of(cls, plan: Plan) -> Settings:
        """Read the settings of a plan, with their defaults."""
        given = dict(plan.task.rollout.settings)
        known = {name: given.pop(name, default) for name, default in ENVIRONMENT_DEFAULTS.items()}
        if isinstance(known["user"], str):
            known["user"] = {"kind": known["user"]}
        for name in ("step_time", "reset_time"):
            known[name] = float(known[name])
        tools = plan.task.rollout.with_tools
        known["agent"] = "react" if tools is not None else known["agent"]
        return cls(**known, tools=tools, passed=given)


@rollout_kind("environment")
class EnvironmentRollout(RolloutKind):
    """Play examples in separate processes, as many at once as `processes`.

    A process that dies or hangs, and an exception of its class, end an attempt. The rollout is repeated once in a new
    process, with the replies of the first attempt as long as the prompts are the same; then it is unmeasured.
    """

    opens = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._settings = settings = Settings.of(site.plan)
        self.slots = settings.processes
        opening = opening_of(site.plan, site.root)
        opening.inspect(settings.reset_time)
        self._pool = EnvironmentPool(opening, start_time=settings.reset_time)
        self._form = Form(
            site.plan.task,
            settings.agent == "chain_of_thought",
            settings.turns,
            settings.history,
            settings.observation,
            whole=settings.action == "whole_reply",
        )
        self._user = SimulatedUser.of(site, settings.user) if settings.user is not None else None
        self._tools: ToolForm | None = None
        if settings.tools is not None:
            self._tools = ToolForm(site, self._form, settings.tools)
            self.tools = self._tools.declared.tools

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """As `RolloutKind.source`: the digest of the files of the class and of tools, with those they import."""
        settings = Settings.of(plan)
        source = opening_of(plan, root).inspect(settings.reset_time)
        return source if settings.tools is None else f"{source} {AgentTools.source(settings.tools, root)}"

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`."""
        replies: _Replies = {}
        made = current_scope().completions
        before = len(made)
        for _ in range(2):
            # The tokens of the attempt that counts.
            del made[before:]
            rollout = _Rollout(self, skill, example, sample, replies)
            try:
                async with self._pool.lent() as process:
                    return await rollout.play(process)
            except EnvironmentFailed as raised:
                failed = raised
        raise RolloutFailed("environment", str(failed)) from failed

    async def close(self) -> None:
        """End the processes, and the servers of tools."""
        await self._pool.close()
        if self._tools is not None:
            await self._tools.declared.close()


class _Rollout:
    """One attempt at one rollout."""

    def __init__(
        self, kind: EnvironmentRollout, skill: Skill | None, example: Example, sample: int, replies: _Replies
    ) -> None:
        self._kind = kind
        self._example = example
        self._sample = sample
        self._replies = replies
        self._asked = 0
        self._steps: list[Step] = []
        self._answer: JsonObject | None = None
        self._talk = kind._user.talk(example, self._ask) if kind._user is not None else None
        self._agent: TurnAgent
        if kind._tools is not None:
            self._agent = ToolAgent(kind._tools, skill, example, self._ask_target, self._steps)
        else:
            text, offered = kind.site.read_at_once(skill), kind.site.offered(skill)
            self._agent = ReplyingAgent(kind._form, example, text, offered, self._ask_target, self._steps)

    async def play(self, process: EnvironmentProcess) -> Trajectory:
        """Play to the end or to the limit of turns.

        Raises:
            EnvironmentFailed: the environment failed.
        """
        settings, tools = self._kind._settings, self._kind._tools
        seed = _seed(self._kind.site.plan.data.seed, self._example.id, self._sample)
        example = self._example
        given = {**example.fields, **example.inputs, "gold": example.gold, "id": example.id}
        state = await process.ask("reset", settings.reset_time, example=given, seed=seed)
        seen = await self._observed(process, state, opening=True)
        self._steps += seen.steps
        handle = Handle(partial(self._stepped, process), seen) if tools is not None and tools.acting else None
        observation: str | None = seen.text
        problem: str | None = None
        turns, finished = 0, seen.done
        while not finished and turns < settings.turns:
            turns += 1
            done = await self._agent.act(Moment(observation, seen.actions, handle))
            if done.problem is not None:
                problem = done.problem
                observation = self._nothing_done(problem)
            elif done.action is not None:
                self._answer = done.action
                seen = await self._stepped(process, _sent(done.action))
                self._steps += seen.steps
                observation = seen.text
            elif handle is not None:
                self._answer, seen, observation = done.answer, handle.seen, None
            finished = seen.done or done.answer is not None
        if handle is not None and self._answer is None and turns:
            done = await self._agent.act(Moment(observation, seen.actions, handle, last=True))
            self._answer, problem = done.answer, done.problem
        if handle is not None:
            await handle.close()
        reward = (await process.ask("score", settings.step_time))["score"]
        outcome: Outcome = "finished" if finished else "turns"
        return Trajectory(
            tuple(self._steps),
            self._answer if turns else {},
            problem if self._answer is None else None,
            outcome,
            reward,
            turns=turns,
        )

    def _nothing_done(self, problem: str) -> str:
        """Record that a turn was without an action; return what the target reads."""
        text = self._kind._form.shortened(f"{problem}; nothing was done")
        self._steps.append(Observation(text, failed=True))
        return text

    async def _stepped(self, process: EnvironmentProcess, action: Any) -> Seen:
        """Act, as the class takes it."""
        return await self._observed(process, await process.ask("step", self._kind._settings.step_time, action=action))

    async def _observed(self, process: EnvironmentProcess, state: Mapping[str, Any], *, opening: bool = False) -> Seen:
        """Return an observation, and what the simulated user says to it."""
        form = self._kind._form
        text = form.shortened(str(state["observation"]))
        failed, done = bool(state.get("failed")), bool(state["done"])
        seen = Seen(text, Observation(text, failed) if text or not opening else None, state["actions"], done)
        if self._talk is None or not (opening or state["say"] is not None) or done:
            return seen
        said = form.shortened(await self._talk.reply(None if opening else str(state["say"])))
        await process.ask("hear", self._kind._settings.step_time, text=said)
        both = "\n\n".join(part for part in (text, f"[user] {said}") if part)
        ended = self._talk.ended and not opening
        return replace(seen, text=both, said=(Said(said, "user"),), done=ended)

    async def _ask_target(self, messages: tuple[Message, ...]) -> str:
        self._asked += 1
        return (await self._ask(self._kind.site.role, self._asked, messages)).text

    async def _ask(self, role: str, number: int, messages: tuple[Message, ...], again: int = 0) -> Completion:
        """Return the reply of a model; that of the first attempt if it got the same prompt, which is charged once."""
        known = self._replies.get((role, number))
        inside = current_scope()
        if known is not None and known[0] == messages:
            completion = known[1]
        else:
            call = Call(role, inside.stage, messages, (self._sample, again) if again else self._sample)
            completion = await self._kind.site.client.complete(call)
            self._replies[role, number] = (messages, completion)
        inside.completions.append(completion)
        return completion


def opening_of(plan: Plan, root: Path) -> Opening:
    """Return how a plan's environment is made.

    Raises:
        SkillcError: no such environment is registered, or no interpreter has its packages.
    """
    settings = Settings.of(plan)
    found = find_environment(str(plan.task.rollout.arguments[0]))
    more: dict[str, Any] = {"settings": settings.passed, "memory": settings.memory}
    if found.file is None and settings.python is None:
        path = tuple(place for place in sys.path if place)
        return Opening(found.target, Path(sys.executable), root, path=path, **more)
    if found.find_python is not None:
        python = found.find_python(settings.python, root)
    else:
        python = declared_path(settings.python or "python3", root.resolve())
    return Opening(found.target, python, root, file=found.file, **more)


def _seed(seed: int, example: str, sample: int) -> int:
    """Return a number for this example and sample, the same in each run."""
    digest = hashlib.sha256(canonical_ascii([seed, example, sample]).encode()).digest()
    return int.from_bytes(digest[:8], "big") % _SEEDS


def _sent(action: JsonObject) -> Any:
    """The action as the class gets it: the value of a single output, else value by output."""
    return next(iter(action.values())) if len(action) == 1 else dict(action)
