"""The kind of rollout `environment`: the target plays an example, one call and one action in each turn."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc.json_values import JsonObject, canonical_ascii
from skillc.language.kinds import ENVIRONMENT_DEFAULTS
from skillc.models.calls import Call, Completion, Message
from skillc.models.dspy_lm import current_scope
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.tasks.environments.pool import EnvironmentPool
from skillc.tasks.environments.process import (
    EnvironmentFailed,
    EnvironmentProcess,
    Opening,
    opening_in_this_interpreter,
)
from skillc.tasks.environments.prompts import Form, Turn
from skillc.tasks.environments.protocol import find_environment
from skillc.tasks.environments.user import SimulatedUser
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind, skill_text
from skillc.trajectories.trajectory import Message as Said
from skillc.trajectories.trajectory import Observation, Outcome, Step, ToolCall, Trajectory

_SEEDS = 2**31
_ACT = "act"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of `environment(...)` that skillc reads; the class gets the others as keyword arguments."""

    agent: str
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
        return cls(**known, passed=given)


@rollout_kind("environment")
class EnvironmentRollout(RolloutKind):
    """Play examples in separate processes, as many at once as `processes`.

    A process that dies or hangs, and an exception of its class, end an attempt. The rollout is repeated once in a new
    process, with the replies of the first attempt as long as the prompts are the same; then it is unmeasured.
    """

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
        )
        self._user = SimulatedUser.of(site, settings.user) if settings.user is not None else None

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """As `RolloutKind.source`: the digest of the files of the class, and of those it imports from the folder."""
        return opening_of(plan, root).inspect(Settings.of(plan).reset_time)

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`."""
        replies: dict[tuple[str, int], _Reply] = {}
        made = current_scope().completions
        before = len(made)
        for _ in range(2):
            # The tokens of the attempt that counts.
            del made[before:]
            rollout = _Rollout(self, skill_text(skill), example, sample, replies)
            try:
                async with self._pool.lent() as process:
                    return await rollout.play(process)
            except EnvironmentFailed as raised:
                failed = raised
        raise RolloutFailed("environment", str(failed)) from failed

    async def close(self) -> None:
        """End the processes."""
        await self._pool.close()


@dataclass(frozen=True, slots=True)
class _Reply:
    messages: tuple[Message, ...]
    completion: Completion


class _Rollout:
    """One attempt at one rollout."""

    def __init__(
        self,
        kind: EnvironmentRollout,
        skill: str | None,
        example: Example,
        sample: int,
        replies: dict[tuple[str, int], _Reply],
    ) -> None:
        self._kind = kind
        self._skill = skill
        self._example = example
        self._sample = sample
        self._replies = replies
        self._steps: list[Step] = []
        self._past: list[Turn] = []
        self._answer: JsonObject | None = None
        self._talk = kind._user.talk(example, self._ask) if kind._user is not None else None

    async def play(self, process: EnvironmentProcess) -> Trajectory:
        """Play to the end or to the limit of turns.

        Raises:
            EnvironmentFailed: the environment failed.
        """
        settings, form = self._kind._settings, self._kind._form
        site = self._kind.site
        seed = _seed(site.plan.data.seed, self._example.id, self._sample)
        state = await process.ask("reset", settings.reset_time, example=_given(self._example), seed=seed)
        observation = await self._observed(process, state, opening=True)
        problem: str | None = None
        done = bool(state["done"])
        while not done and len(self._past) < settings.turns:
            actions = state["actions"]
            messages = form.messages(self._skill, self._example, self._past, observation, actions)
            reply = (await self._ask(site.role, len(self._past), messages)).text
            self._past.append(Turn.of(observation, reply))
            action, unreadable = form.action(reply, actions)
            if action is None:
                problem = unreadable
                observation = form.shortened(f"{unreadable}; nothing was done")
                self._steps += (Said(reply), Observation(observation, failed=True))
                continue
            self._answer = action
            self._steps += _acted(reply, action, form.reasons)
            state = await process.ask("step", settings.step_time, action=_sent(action))
            observation = await self._observed(process, state)
            done = bool(state["done"]) or (self._talk is not None and self._talk.ended)
        reward = (await process.ask("score", settings.step_time))["score"]
        outcome: Outcome = "finished" if done else "turns"
        return Trajectory(
            tuple(self._steps),
            self._answer if self._past else {},
            problem if self._answer is None else None,
            outcome,
            reward,
            turns=len(self._past),
        )

    async def _observed(self, process: EnvironmentProcess, state: Mapping[str, Any], *, opening: bool = False) -> str:
        """Record an observation, and what the simulated user says to it; return what the target reads."""
        form = self._kind._form
        observation = form.shortened(str(state["observation"]))
        if observation or not opening:
            self._steps.append(Observation(observation, failed=bool(state.get("failed"))))
        if self._talk is None or not (opening or state["say"] is not None) or state["done"]:
            return observation
        said = form.shortened(await self._talk.reply(None if opening else str(state["say"])))
        self._steps.append(Said(said, "user"))
        await process.ask("hear", self._kind._settings.step_time, text=said)
        return "\n\n".join(part for part in (observation, f"[user] {said}") if part)

    async def _ask(self, role: str, number: int, messages: tuple[Message, ...], again: int = 0) -> Completion:
        """Return the reply of a model; that of the first attempt if it got the same prompt, which is charged once."""
        known = self._replies.get((role, number))
        inside = current_scope()
        if known is not None and known.messages == messages:
            completion = known.completion
        else:
            call = Call(role, inside.stage, messages, (self._sample, again) if again else self._sample)
            completion = await self._kind.site.client.complete(call)
            self._replies[role, number] = _Reply(messages, completion)
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
        return opening_in_this_interpreter(found.target, root, **more)
    if found.find_python is not None:
        python = found.find_python(settings.python, root)
    else:
        python = Path(settings.python or "python3").expanduser()
        python = python if python.is_absolute() else root.resolve() / python
    return Opening(found.target, python, root, file=found.file, **more)


def _given(example: Example) -> dict[str, Any]:
    return {**example.fields, **example.inputs, "gold": example.gold, "id": example.id}


def _seed(seed: int, example: str, sample: int) -> int:
    """Return a number for this example and sample, the same in each run."""
    digest = hashlib.sha256(canonical_ascii([seed, example, sample]).encode()).digest()
    return int.from_bytes(digest[:8], "big") % _SEEDS


def _sent(action: JsonObject) -> Any:
    """The action as the class gets it: the value of a single output, else value by output."""
    return next(iter(action.values())) if len(action) == 1 else dict(action)


def _acted(reply: str, action: JsonObject, reasons: bool) -> tuple[Step, ...]:
    """The steps of a reply: its reasoning where it has any, and the action."""
    call = ToolCall(_ACT, dict(action))
    return (Said(reply), call) if reasons else (call,)
