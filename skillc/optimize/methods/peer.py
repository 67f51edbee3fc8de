"""One of DSPy's optimizers from start to end: on a thread of its own, silenced, and cut off where a cap says so."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import dspy
import tqdm
from dspy.lm15 import Request, Response

from skillc.document.skill import Document, digest
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.models.dspy_lm import RoleEngine, RoleLM, make_lm, scope
from skillc.models.failures import CallFailed
from skillc.optimize.engine import Engine
from skillc.optimize.host import stop_reason
from skillc.optimize.methods.bridge import Bridge, Halt, section_texts
from skillc.optimize.methods.run import MethodResult
from skillc.optimize.propose.cases import trim, visible_answer, visible_feedback, visible_gold, visible_inputs
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.module import signature_of
from skillc.program.names import field_names


@dataclass(frozen=True, slots=True)
class Bench:
    """What an optimizer works with: the module, the examples, the two models, and how many rollouts run at once."""

    bridge: Bridge
    student: Student
    train: list[DspyExample]
    validation: list[DspyExample]
    optimizer: RoleLM
    target: RoleLM
    threads: int


Peer = Callable[[Bench], Any]


async def search(engine: Engine, initial: Document, client: Client, peer: Peer, most: int) -> MethodResult:
    """The result of an optimizer, or the best skill that it had measured when it was cut off.

    Args:
        engine: after the baseline.
        initial: the skill to start from.
        client: the models.
        peer: builds the optimizer and runs it, on a thread.
        most: rollouts that it may make.

    Raises:
        SkillcError: the run cannot go on: a model refuses, a metric fails.
    """
    bridge = Bridge(engine, initial, most)
    asking = AskingEngine(client, bridge)
    bench = Bench(
        bridge=bridge,
        student=Student(bridge),
        train=dspy_examples(engine.plan, engine.dataset.train),
        validation=dspy_examples(engine.plan, engine.dataset.validation),
        optimizer=asking_lm(client, asking),
        target=answering_lm(client),
        threads=max(2, engine.wave),
    )
    engine.observer.stage(engine.plan.optimize.method, most)
    program, broken, cut = None, None, True
    try:
        program, broken = await asyncio.to_thread(_run, peer, bench)
        cut = False
    except asyncio.CancelledError:
        # The thread ends by itself, at its next question or rollout.
        bridge.halt(stop_reason(engine.observer))
    finally:
        await bridge.close(cut=cut)
    if bridge.error is not None:
        raise bridge.error
    if broken is not None:
        engine.observer.note(f"{engine.plan.optimize.method} gave up: {broken}")
    if asking.unanswered:
        engine.observer.note(f"{asking.unanswered} of {asking.calls} questions to the optimizer were not answered")
    document, problem = document_of(bridge, program) if program is not None else (bridge.best() or initial, None)
    return MethodResult(
        document=document,
        stopped=bridge.stopped or ("failed" if broken is not None else "method"),
        problem=problem,
        rollouts=bridge.rollouts,
        questions=asking.calls,
        tried=len(bridge.tried.keys() - {digest(initial)}),
    )


def _run(peer: Peer, bench: Bench) -> tuple[Any, str | None]:
    """The optimizer's module, or None and, where it failed by itself, what it said."""
    settings = {"lm": bench.target, "adapter": dspy.ChatAdapter(), "disable_history": True, "callbacks": []}
    try:
        with quiet(), dspy.context(**settings, track_usage=False, num_threads=bench.threads):
            return peer(bench), None
    except Halt:
        return None, None
    except Exception as problem:
        # An optimizer that a reached cap pulled the ground from under may say anything.
        halted = bench.bridge.stopped is not None or bench.bridge.error is not None
        return None, None if halted else f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"


_EXAMPLE = "skillc_example"


class DspyExample(dspy.Example):  # type: ignore[misc]  # dspy has no types
    """An example for DSPy; what a module is called with says which one it is, and its text does not."""

    def inputs(self) -> dspy.Example:
        """The inputs, and the example's id beside them."""
        plain = {name: value for name, value in self._store.items() if name in (self._input_keys or ())}
        return dspy.Example(**plain, **{_EXAMPLE: self._example_id})


class Student(dspy.Module):  # type: ignore[misc]
    """Answers by the loop's rollouts under the texts that its predictors carry."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.bridge = bridge
        plan = bridge.engine.plan
        self.sections = {
            name: dspy.Predict(signature_of(plan.task, f"{plan.skill.name} {name}", text))
            for name, text in section_texts(bridge.initial).items()
        }

    @property
    def texts(self) -> dict[str, str]:
        """The text of each section."""
        return {name: predictor.signature.instructions for name, predictor in self.sections.items()}

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example; the prediction knows its score and its feedback."""
        example = self.bridge.example(inputs[_EXAMPLE])
        plan, written = self.bridge.engine.plan, self.bridge.written(self.texts)
        if written.problem is not None:
            self.bridge.check()
            values, score, feedback = _unread(plan, "(not run)"), 0.0, f"The skill was refused: {written.problem}."
        else:
            outcome = self.bridge.outcomes(written.document, example)[0]
            score = self.bridge.score(written.document, example)
            values, feedback = _values(plan, outcome), feedback_of(plan, example, outcome, score)
        prediction = dspy.Prediction(**values)
        prediction._score, prediction._feedback = score, feedback
        self._note(input_texts(plan, example), prediction)
        return prediction

    def _note(self, inputs: Mapping[str, str], prediction: dspy.Prediction) -> None:
        """Writes into DSPy's trace that each section had its part in the answer."""
        trace = dspy.settings.trace
        if trace is not None:
            trace.extend((predictor, dict(inputs), prediction) for predictor in self.sections.values())


def dspy_examples(plan: Plan, examples: Sequence[Example]) -> list[DspyExample]:
    """Examples for DSPy, with the right answers only where the program lets the optimizer see them."""
    names = field_names(plan.task)
    found = []
    for example in examples:
        gold = example.gold if "gold" in plan.optimize.sees else {}
        answers = {names[name]: value for name, value in gold.items()}
        item = DspyExample(**input_texts(plan, example), **answers).with_inputs(
            *(names[field.name] for field in plan.task.inputs)
        )
        item._example_id = example.id
        found.append(item)
    return found


def input_texts(plan: Plan, example: Example) -> dict[str, str]:
    """The inputs under the names that the signature has for them, as texts, each trimmed."""
    names = field_names(plan.task)
    return {names[name]: text for name, text in visible_inputs(example, plan.optimize.trajectory_limit).items()}


def plain_score(gold: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """The metric for optimizers that want a number."""
    score: float = prediction._score
    return score


def score_with_feedback(
    gold: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
) -> Any:
    """The metric for `dspy.GEPA`: the score with the feedback that the program lets it see."""
    return dspy.Prediction(score=prediction._score, feedback=prediction._feedback)


def feedback_of(plan: Plan, example: Example, outcome: Outcome, score: float) -> str:
    """What a method may read about one rollout, as far as `sees` allows."""
    lines = [f"The score is {score:g}, where 0 is the worst and 1 the best."]
    said, gold = visible_feedback(plan, outcome), visible_gold(plan, example)
    if said:
        lines.append(said)
    if gold is not None:
        lines.append(f"The right answer is `{gold}`.")
    if "trajectory" in plan.optimize.sees and plan.task.rollout.kind != "predict" and outcome.reply:
        lines.append(f"The whole reply was:\n{trim(outcome.reply, plan.optimize.trajectory_limit)}")
    return "\n".join(lines)


def _values(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    names = field_names(plan.task)
    if outcome.answer is None:
        return _unread(plan, visible_answer(plan, outcome, plan.optimize.trajectory_limit))
    return {names[name]: value for name, value in outcome.answer.items()}


def _unread(plan: Plan, text: str) -> dict[str, Any]:
    names = field_names(plan.task)
    return {names[field.name]: text for field in plan.task.outputs}


def document_of(bridge: Bridge, program: Any) -> tuple[Document, str | None]:
    """The skill in a module that an optimizer gave back, and what is wrong with its texts."""
    written = bridge.written(Student.texts.fget(program))  # type: ignore[attr-defined]
    return written.document, written.problem


_QUIET: ContextVar[bool] = ContextVar("skillc_quiet", default=False)


class _QuietStream:
    """A stream that drops what is written under `quiet`, and passes on all else, from other threads as well."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if _QUIET.get() else int(self._stream.write(text) or 0)

    def flush(self) -> None:
        if not _QUIET.get():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def quiet() -> Iterator[None]:
    """Silences what this context prints and draws, and DSPy's log, until it ends."""
    log = logging.getLogger("dspy")
    level, streams, drawn = log.level, (sys.stdout, sys.stderr), tqdm.tqdm.__init__

    # A bar that a cut-off optimizer leaves behind draws itself once more when it is collected, so none is made.
    def without_bars(bar: Any, *arguments: Any, **options: Any) -> None:
        drawn(bar, *arguments, **({**options, "disable": True} if _QUIET.get() else options))

    token = _QUIET.set(True)
    sys.stdout, sys.stderr = _QuietStream(streams[0]), _QuietStream(streams[1])
    tqdm.tqdm.__init__ = without_bars
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        tqdm.tqdm.__init__ = drawn
        log.setLevel(level)
        _QUIET.reset(token)


PROPOSE = "propose"


class AskingEngine(RoleEngine):
    """Numbers its calls, so that a question that comes again is not given the same reply for ever; a cap halts."""

    def __init__(self, client: Client, bridge: Bridge) -> None:
        super().__init__(client, "optimizer")
        self._bridge = bridge
        self.calls = 0
        self.unanswered = 0

    def complete(self, request: Request) -> Response:
        """One reply.

        Raises:
            Halt: a cap does not admit the call, or the run cannot go on.
            CallFailed: no whole reply came; the optimizer goes on without.
        """
        self._bridge.check()
        self.calls += 1
        try:
            with scope(PROPOSE, (self.calls,)):
                return super().complete(request)
        except CallFailed:
            self.unanswered += 1
            raise
        except SkillcError as problem:
            self._bridge.fail(problem)
        raise Halt

    def __deepcopy__(self, memo: dict[int, Any]) -> AskingEngine:
        return self


def asking_lm(client: Client, engine: AskingEngine) -> RoleLM:
    """The optimizer's LM; DSPy's own cache and retries are off."""
    return RoleLM(client.roles["optimizer"].plan.model, cache=False, num_retries=0, engine=engine)


def answering_lm(client: Client) -> RoleLM:
    """The target's LM, for optimizers that want to be given one; rollouts do not use it."""
    return make_lm(client, "target")
