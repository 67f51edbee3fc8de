"""Run rollouts for a method that runs in threads, and stop such a method.

DSPy's optimizers treat every exception as a wrong answer. `Halt` is one that they do not catch, so a reached cap ends
a method at once; its other threads raise it at their next rollout.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import Any

from skillc.dataclass import dataclass
from skillc.document.edits import rewrite
from skillc.document.skill import Document, Section, digest
from skillc.document.tool_lines import HOW_TO_RENAME
from skillc.errors import SkillcError
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.engine import Engine
from skillc.optimize.from_sessions import refusal_of
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.rollouts import Outcome
from skillc.optimize.schedule import batches
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.schema import FieldPlan, TaskPlan

SEARCH, PROPOSE = "search", "propose"
# Retries of an unmeasured rollout. The method stops if more than 5 % of at least `_FEWEST` rollouts stay unmeasured.
_RETRIES = 1
_MOST_LOST = 20
_FEWEST = 60


class Halt(BaseException):
    """End of a method, which no `except Exception` of another library catches."""


class _Enough(Exception):  # noqa: N818
    """The method has used its rollouts; raised on the event loop instead of `Halt`."""


class Bridge:
    """Rollouts of candidate texts, requested by any thread and run on the event loop.

    The texts replace the open sections of the initial skill. Equal concurrent rollouts run once (single flight), and
    measured ones are not rerun. The method is halted when it exceeds `most` rollouts.
    """

    def __init__(self, engine: Engine, initial: Document, most: int) -> None:
        self.engine = engine
        self.initial = initial
        self.stopped: str | None = None
        self.error: SkillcError | None = None
        self.rollouts = 0
        self.tried: dict[str, Document] = {}
        self._most = most
        self._lost = 0
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._written: dict[tuple[tuple[str, str], ...], EditedDocument] = {}
        self._flights: dict[tuple[str, str], asyncio.Task[tuple[Outcome, ...]]] = {}
        self._examples = {e.id: e for e in (*engine.dataset.train, *engine.dataset.validation)}
        self._validation = {e.id for e in engine.dataset.validation}

    def __deepcopy__(self, memo: dict[int, Any]) -> Bridge:
        return self

    def example(self, id: str) -> Example:  # noqa: A002
        """Return a training or validation example."""
        return self._examples[id]

    def written(self, texts: Mapping[str, str]) -> EditedDocument:
        """Return the skill with these texts, the same object for the same texts.

        It is rejected if one of the texts comes from a session and must not become a rule, so that the method tries
        another.
        """
        key = tuple(texts.items())
        if key not in self._written:
            written = with_section_texts(self.initial, texts)
            why = refusal_of(self.engine, self.initial, written.document)
            self._written[key] = EditedDocument(self.initial, why) if why else written
        return self._written[key]

    def outcomes(self, document: Document, example: Example) -> tuple[Outcome, ...]:
        """Return one outcome for each sample; call it from a thread.

        Raises:
            Halt: the method has to end.
        """
        self.check()
        job = self._measured(document, example)
        # A fresh context, without DSPy's settings and trace of the calling thread.
        future = self._context.copy().run(asyncio.run_coroutine_threadsafe, job, self._loop)
        try:
            return future.result()
        except CancelledError:
            self.halt("interrupted")
        except SkillcError as problem:
            self.fail(problem)
        except _Enough:
            pass
        raise Halt

    def score(self, document: Document, example: Example) -> float:
        """Return the goal from 0, the worst, to 1, the best, over the measured outcomes.

        An unmeasured example gets the initial skill's score, so that a server failure favours no skill.
        """
        for skill in (document, self.initial):
            known = [self._unit(skill, example, sample) for sample in range(self._samples(example))]
            measured = [score for score in known if score is not None]
            if measured:
                return sum(measured) / len(measured)
        return 0.5

    def check(self) -> None:
        """Raise `Halt` if the method has to end."""
        if self.stopped is None and self.error is None:
            self.stopped = self.engine.observer.stop_wanted()
        if self._closed or self.stopped is not None or self.error is not None:
            raise Halt

    def halt(self, reason: str) -> None:
        """End the method; the first reason counts."""
        self.stopped = self.stopped or reason

    def fail(self, problem: SkillcError) -> None:
        """End the method on a reached cap or an unreachable model, and the run on any other error."""
        if isinstance(problem, BudgetReached):
            self.halt(problem.cap)
        elif isinstance(problem, EndpointUnreachable):
            self.halt(DOWN)
        else:
            self.error = self.error or problem

    def best(self) -> Document | None:
        """Return the skill with the highest goal of those run on all of validation; the earliest of equals."""
        goals = {key: goal for key, skill in self.tried.items() if (goal := self._goal(skill)) is not None}
        return self.tried[max(goals, key=lambda key: goals[key])] if goals else None

    def perfect(self) -> bool:
        """Return whether a skill has the best goal on all of validation."""
        most = self.engine.plan.goal.high * MICRO * self.engine.plan.optimize.samples * len(self._validation)
        return any(self._goal(skill) == most for skill in self.tried.values())

    async def close(self, *, cut: bool) -> None:
        """Halt all threads, and wait for the rollouts in flight; `cut` cancels them."""
        self._closed = True
        tasks = list(self._flights.values())
        for task in tasks if cut else ():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _measured(self, document: Document, example: Example) -> tuple[Outcome, ...]:
        skill = digest(document)
        self.tried.setdefault(skill, document)
        key = (skill, example.id)
        task = self._flights.get(key)
        if task is None:
            task = self._flights[key] = asyncio.ensure_future(self._measure(document, example))
            task.add_done_callback(lambda _: self._flights.pop(key, None))
        return await asyncio.shield(task)

    async def _measure(self, document: Document, example: Example) -> tuple[Outcome, ...]:
        found = []
        for sample in range(self._samples(example)):
            outcome = self.engine.rollouts.known(document, example, sample)
            for _ in range(1 + _RETRIES):
                if outcome is not None and outcome.measured:
                    break
                self._count()
                (outcome,) = await self.engine.rollouts.measure(document, [example], stage=SEARCH, sample=sample)
            assert outcome is not None
            self._lost += not outcome.measured
            if self._lost * _MOST_LOST > max(self.rollouts, _FEWEST):
                self.halt("unmeasured")
            found.append(outcome)
        return tuple(found)

    def _count(self) -> None:
        if self.rollouts >= self._most:
            self.halt("steps")
            raise _Enough
        self.rollouts += 1

    def _samples(self, example: Example) -> int:
        return self.engine.plan.optimize.samples if example.id in self._validation else 1

    def _unit(self, skill: Document, example: Example, sample: int) -> float | None:
        goal = self.engine.plan.goal
        score = self.engine.rollouts.score(skill, example, goal.name, sample)
        if score is None:
            return None
        span = goal.high - goal.low
        return float((score - goal.low * MICRO) / (span * MICRO)) if span else 1.0

    def _goal(self, skill: Document) -> int | None:
        """Return the sum over validation, unmeasured cells at worst; None if the skill was not run on all of it."""
        goal, total = self.engine.plan.goal, 0
        for example in self.engine.dataset.validation:
            for sample in range(self.engine.plan.optimize.samples):
                outcome = self.engine.rollouts.known(skill, example, sample)
                if outcome is None:
                    return None
                cell = outcome.cells[goal.name]
                total += cell.value if isinstance(cell, Scored) else round(goal.low * MICRO)
        return total


def first_batch(engine: Engine) -> tuple[Example, ...]:
    """Return the first batch of the run."""
    plan = engine.plan
    return batches(engine.dataset.train, plan.optimize.batch, plan_seed=plan.data.seed, epoch=1)[0]


# DSPy replaces an empty instruction with its own sentence.
EMPTY = "(this section is empty so far)"


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A skill with new texts, or the unchanged skill and the problem with one of them."""

    document: Document
    problem: str | None = None


def open_sections(document: Document) -> tuple[Section, ...]:
    """Return the sections that a method may write: trainable and slow ones."""
    return tuple(section for section in document.sections if section.mode != "frozen")


def section_texts(document: Document) -> dict[str, str]:
    """Return the text of each open section by name."""
    return {section.name: section.body.strip() or EMPTY for section in open_sections(document)}


def with_section_texts(initial: Document, texts: Mapping[str, str]) -> EditedDocument:
    """Return the initial skill with other texts; an unchanged text leaves its section unchanged.

    Texts are never truncated: one above its section's limit, or one that no section can contain, is a problem.
    """
    document, before = initial, section_texts(initial)
    for name, text in texts.items():
        plain = text.strip()
        # DSPy keeps an instruction as a docstring, without the indent that its further lines share.
        if inspect.cleandoc(plain) == inspect.cleandoc(before[name]):
            continue
        applied = rewrite(document, name, "" if plain == EMPTY else plain)
        report = applied.results[-1]
        if not report.applied and not report.repeats:
            return EditedDocument(initial, report.message)
        document = applied.document
    return EditedDocument(document)


def guidance(task: TaskPlan, document: Document, section: Section) -> str:
    """Describe a section for a method's optimizer model: task, frozen parts, limit and form."""
    lines = ["The instruction is one section of a longer skill text for this task:"]
    lines += [_field("input", field) for field in task.inputs]
    lines += [_field("output", field) for field in task.outputs]
    frozen = [("task", document.task), *((s.name, s.text) for s in document.sections if s.mode == "frozen")]
    if any(text for _, text in frozen):
        lines += ["These parts of the skill are fixed. Do not repeat them:"]
        lines += [f"- {name}: {' '.join(text.split())}" for name, text in frozen if text]
    lines.append(f"Write the text of the section `{section.name}` alone, as a list with one rule a line.")
    lines.append("Do not describe the format of the answer: the task does that.")
    if section.limit is not None:
        lines.append(f"The section may have at most {section.limit} tokens; a longer one is refused.")
    if section.renames is not None:
        lines.append(HOW_TO_RENAME)
    return "\n".join(lines)


def _field(kind: str, field: FieldPlan) -> str:
    about = f" ({field.about})" if field.about else ""
    return f"{kind} {field.name}: {field.type.text}{about}"
