"""The loop's rollouts for a method that runs in threads, and the one place where such a method is stopped.

DSPy's optimizers take every exception for a wrong answer. `Halt` is none that they catch, so a reached cap ends a
method at once; threads that still run meet it at their next rollout.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from skillc.document.edits import rewrite
from skillc.document.skill import Document, Section, digest
from skillc.errors import SkillcError
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.engine import Engine
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.schema import FieldPlan, TaskPlan

SEARCH = "search"
# A rollout that could not be measured is run again so often; if more than a twentieth stay so, the method stops.
_RETRIES = 1
_MOST_LOST = 20
_FEWEST = 60


class Halt(BaseException):
    """Ends a method from inside: no `except Exception` of another library holds it up."""


class _Enough(Exception):  # noqa: N818
    """No more rollouts are due to the method; said on the loop, where `Halt` has no business."""


class Bridge:
    """Rollouts of candidate texts, asked for by any thread and made on the loop's own.

    Equal rollouts that overlap are one; what the loop measured before is not run again.

    Args:
        engine: after the baseline.
        initial: the document whose open sections the texts replace.
        most: rollouts that may be made; one more halts the method.
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
        """A training or validation example."""
        return self._examples[id]

    def written(self, texts: Mapping[str, str]) -> EditedDocument:
        """The document with these texts; the same object for the same texts."""
        key = tuple(texts.items())
        if key not in self._written:
            self._written[key] = with_section_texts(self.initial, texts)
        return self._written[key]

    def outcomes(self, document: Document, example: Example) -> tuple[Outcome, ...]:
        """One outcome for each sample; to be called from a thread.

        Raises:
            Halt: the method is to end.
        """
        self.check()
        job = self._measured(document, example)
        # A fresh context: DSPy's settings of the calling thread, its trace above all, are not the rollout's.
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
        """The goal from 0, the worst, to 1, the best, over what was measured of the outcomes known.

        What stayed unmeasured counts as the initial skill's score, so that a failing server speaks for nobody.
        """
        for skill in (document, self.initial):
            known = [self._unit(skill, example, sample) for sample in range(self._samples(example))]
            measured = [score for score in known if score is not None]
            if measured:
                return sum(measured) / len(measured)
        return 0.5

    def check(self) -> None:
        """Passes unless the method is to end.

        Raises:
            Halt: it is.
        """
        if self.stopped is None and self.error is None:
            self.stopped = self.engine.observer.stop_wanted()
        if self._closed or self.stopped is not None or self.error is not None:
            raise Halt

    def halt(self, reason: str) -> None:
        """Ends the method; the first reason counts."""
        self.stopped = self.stopped or reason

    def fail(self, problem: SkillcError) -> None:
        """Ends the method on a reached cap or a model that stays out of reach, or the run on anything worse."""
        if isinstance(problem, BudgetReached):
            self.halt(problem.cap)
        elif isinstance(problem, EndpointUnreachable):
            self.halt(DOWN)
        else:
            self.error = self.error or problem

    def best(self) -> Document | None:
        """The skill with the highest goal of those measured on all of validation; the earliest of equals."""
        goals = {key: goal for key, skill in self.tried.items() if (goal := self._goal(skill)) is not None}
        return self.tried[max(goals, key=lambda key: goals[key])] if goals else None

    def perfect(self) -> bool:
        """Whether a skill got all of the validation split right."""
        most = self.engine.plan.goal.high * MICRO * self.engine.plan.optimize.samples * len(self._validation)
        return any(self._goal(skill) == most for skill in self.tried.values())

    async def close(self, *, cut: bool) -> None:
        """Lets no thread go on, and waits for the rollouts that nobody waits for any more; `cut` cancels them."""
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
        outcome = self.engine.rollouts.known(skill, example, sample)
        cell = outcome.cells.get(goal.name) if outcome else None
        if not isinstance(cell, Scored):
            return None
        span = goal.high - goal.low
        return float((cell.value - goal.low * MICRO) / (span * MICRO)) if span else 1.0

    def _goal(self, skill: Document) -> int | None:
        """The sum over the validation split, the unmeasured at its worst; None where it was not run on all of it."""
        goal, total = self.engine.plan.goal, 0
        for example in self.engine.dataset.validation:
            for sample in range(self.engine.plan.optimize.samples):
                outcome = self.engine.rollouts.known(skill, example, sample)
                if outcome is None:
                    return None
                cell = outcome.cells[goal.name]
                total += cell.value if isinstance(cell, Scored) else round(goal.low * MICRO)
        return total


# DSPy puts a sentence of its own in the place of an empty instruction.
EMPTY = "(this section is empty so far)"


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document with new texts. `problem` says which text a section cannot take, and then nothing was changed."""

    document: Document
    problem: str | None = None


def open_sections(document: Document) -> tuple[Section, ...]:
    """The sections that a method may write: trainable and slow ones. Frozen text is never shown as changeable."""
    return tuple(section for section in document.sections if section.mode != "frozen")


def section_texts(document: Document) -> dict[str, str]:
    """The text of each open section by name."""
    return {section.name: section.body.strip() or EMPTY for section in open_sections(document)}


def with_section_texts(initial: Document, texts: Mapping[str, str]) -> EditedDocument:
    """The initial document with other texts; a text that did not change leaves its section as it is.

    Nothing is cut: a text over its section's limit, or one that no section can hold, is a problem in words.
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
    """What a method's optimizer model is told about a section beside its text: task, frozen parts, limit, form."""
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
    return "\n".join(lines)


def _field(kind: str, field: FieldPlan) -> str:
    about = f" ({field.about})" if field.about else ""
    return f"{kind} {field.name}: {field.type.text}{about}"
