"""Rollouts of a user's module: its predictors carry the candidate's texts, and the user's metric scores."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.metrics.judging.judges import Verdicts
from skillc.metrics.meter import NO_VERDICTS, Meter, MetricError, RolloutScores
from skillc.models.calls import Completion
from skillc.models.client import Client
from skillc.models.dspy_lm import RoleLM, make_lm
from skillc.models.failures import CallFailed, find_failure
from skillc.models.scope import scope
from skillc.outcomes import MICRO, Example, Scored
from skillc.tasks.kind import Recent, Skill, last_reply
from skillc.tasks.runner import Rollout, failed_rollout, with_usage
from skillc.teleprompter.conversion import with_instructions
from skillc.teleprompter.lms import TARGET
from skillc.trajectories.trajectory import Trajectory, one_turn
from skillc.user_code import describe_exception, raised_by_user_code

Metric = Callable[..., Any]


class ScoredPrediction(dict[str, JsonValue]):
    """A prediction as JSON values, with the metric's score in millionths and its feedback."""

    def __init__(self, values: Mapping[str, JsonValue], score: int, feedback: str) -> None:
        super().__init__(values)
        self.score = score
        self.feedback = feedback


class ModuleMeter(Meter):
    """Reads the score that the runner computed from the module's objects."""

    def measure(self, example: Example, trajectory: Trajectory, verdicts: Verdicts = NO_VERDICTS) -> RolloutScores:
        """As `Meter.measure`."""
        prediction = trajectory.answer
        if not isinstance(prediction, ScoredPrediction):
            return super().measure(example, replace(trajectory, answer=None), verdicts)
        return RolloutScores({self._plan.goal.name: Scored(prediction.score)}, prediction.feedback)


def arguments_of(metric: Metric) -> int:
    """Return how many of (gold, pred, trace, pred_name, pred_trace) a metric takes: 5, 3 or 2.

    Raises:
        TypeError: it takes other arguments.
    """
    for count in (5, 3, 2):
        try:
            inspect.signature(metric).bind(*[None] * count)
        except TypeError:
            continue
        return count
    raise TypeError("a metric takes (gold, pred), (gold, pred, trace) or (gold, pred, trace, pred_name, pred_trace)")


def scored(
    metric: Metric, gold: Any, prediction: Any, trace: Any, *, low: float, high: float, example: str
) -> tuple[int, str]:
    """Return the metric's score in millionths and its feedback; called once per rollout, with the whole trace.

    Raises:
        MetricError: the metric failed, or returned no number in its range; the run stops.
    """
    where = f"the metric on example `{example}`"
    try:
        result = metric(*(gold, prediction, trace, None, None)[: arguments_of(metric)])
    except BaseException as problem:
        if not raised_by_user_code(problem):
            raise
        failure = find_failure(problem)
        if failure is not None:
            raise failure from None
        raise MetricError(f"{where} failed: {describe_exception(problem, function=metric)}") from problem
    feedback: Any = ""
    if isinstance(result, Mapping) or hasattr(result, "score"):
        feedback = result.get("feedback") if hasattr(result, "get") else getattr(result, "feedback", "")
        result = result["score"] if isinstance(result, Mapping) else result.score
    try:
        value = float(result)
    except (TypeError, ValueError):
        raise MetricError(f"{where} returned {type(result).__name__}, not a number") from None
    if not math.isfinite(value) or not low <= value <= high:
        raise MetricError(
            f"{where} returned {value:g}, outside {low:g} to {high:g}", hint="set its range with `low=` and `high=`"
        )
    return round(value * MICRO), str(feedback or "")


def score_of(example: Mapping[str, Any], prediction: Mapping[str, Any]) -> float:
    """Stand in for the user's metric in the plan's text; `ModuleMeter` reads the scores.

    Raises:
        RuntimeError: always; only `SkillOptimizer` runs its plans.
    """
    raise RuntimeError("this metric exists only where SkillOptimizer runs")


@dataclass(frozen=True, slots=True)
class ModuleTask:
    """Shared parts of all rollouts of a module.

    Attributes:
        student: the user's module.
        texts: each predictor's instruction under a document, None for no skill.
        examples: the user's examples by id.
        score: scores (gold, prediction, trace, id); raises `MetricError`.
        own: role of each predictor with its own LM.
    """

    student: Any
    texts: Callable[[Document | None], Mapping[str, str]]
    examples: Mapping[str, Any]
    score: Callable[[Any, Any, Any, str], Mapping[str, JsonValue]]
    own: Mapping[str, str]


class ModuleRunner:
    """Runs rollouts on threads, because a user's module is synchronous.

    A rollout takes its place in the call queue only when a thread is free for it: a module's second call queues behind
    earlier places, and would wait forever for one whose rollout has no thread. First calls of rollouts are charged in
    the order of the requests, later ones as they come.
    """

    def __init__(self, job: ModuleTask, client: Client, threads: int) -> None:
        self._job = job
        self._client = client
        self._lms: dict[str, RoleLM] = {role: make_lm(client, role) for role in client.roles}
        self._free = asyncio.Semaphore(threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="skillc module")
        self._modules: Recent[str | None, Any] = Recent()

    async def __call__(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        """Run one rollout.

        Raises:
            PermanentFailure, BudgetReached, MetricError: as they are.
        """
        module, loop = self._module(skill), asyncio.get_running_loop()
        async with self._free:
            with self._client.ticket():
                context = contextvars.copy_context()
                return await loop.run_in_executor(self._pool, context.run, self._run, module, example, sample, stage)

    async def close(self) -> None:
        """Wait for running modules, so that none calls a model after the run."""
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)

    def _module(self, skill: Skill | None) -> Any:
        def make() -> Any:
            texts = self._job.texts(skill.document if skill is not None else None)
            module = with_instructions(self._job.student, texts)
            for name, predictor in module.named_predictors():
                if name in self._job.own:
                    predictor.lm = self._lms[self._job.own[name]]
            return module

        return self._modules.of(skill.text if skill is not None else None, make)

    def _run(self, module: Any, example: Example, sample: int, stage: str) -> Rollout:
        gold = self._job.examples[example.id]
        trace: list[Any] = []
        settings = {"lm": self._lms[TARGET], "trace": trace, "disable_history": True, "track_usage": False}
        with scope(stage, sample) as inside, dspy.context(**settings):
            try:
                prediction = module(**gold.inputs())
            except Exception as raised:
                return _failed(raised, inside.completions)
            try:
                answer = self._job.score(gold, prediction, list(trace), example.id)
            except CallFailed as failure:
                return failed_rollout(failure, inside.completions)
        reply = _trajectory(module, trace) or last_reply(inside.completions)
        return Rollout(with_usage(one_turn(reply, answer), inside.completions))


def _failed(raised: Exception, completions: list[Completion]) -> Rollout:
    """Raise skillc's errors again; turn any other error into a wrong answer with its reason."""
    if find_failure(raised) is not None:
        return failed_rollout(raised, completions)
    problem = "the reply has not the declared form"
    if not isinstance(raised, AdapterParseError):
        problem = f"the module raised {type(raised).__name__}: {' '.join(str(raised).split())[:300]}"
    return Rollout(with_usage(one_turn(last_reply(completions), problem=problem), completions))


def _trajectory(module: Any, trace: Sequence[Any]) -> str:
    """Render each predictor's inputs and outputs, in order."""
    names = {id(predictor): name for name, predictor in module.named_predictors()}
    lines = []
    for predictor, inputs, outputs in trace:
        arguments, answer = (
            ", ".join(f"{name}={value!r}" for name, value in dict(fields).items()) for fields in (inputs, outputs)
        )
        lines.append(f"{names.get(id(predictor), 'another predictor')}({arguments}) answered {answer}")
    return "\n".join(lines)
