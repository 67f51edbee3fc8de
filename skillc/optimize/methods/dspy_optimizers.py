"""`method = gepa` and `method = miprov2`: DSPy's optimizers on the texts of the open sections.

Each runs on its own thread, silenced, until it ends or a cap cuts it off.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib.util import find_spec
from typing import Any

import dspy
import tqdm
from dspy.lm15 import Request, Response

from skillc.budget.steps import (
    FULL_EVERY,
    GEPA_MINIBATCH,
    MINIBATCH,
    gepa_calls,
    method_counts,
    rollouts_of,
    trials_of,
)
from skillc.dataclass import dataclass
from skillc.document.skill import Document, digest
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.models.dspy_lm import RoleEngine, RoleLM, make_lm
from skillc.models.failures import CallFailed
from skillc.models.scope import scope
from skillc.optimize.engine import Engine
from skillc.optimize.host import stop_reason
from skillc.optimize.methods.bridge import (
    PROPOSE,
    Bridge,
    EditedDocument,
    Halt,
    guidance,
    open_sections,
    section_texts,
)
from skillc.optimize.methods.run import Improve, MethodResult
from skillc.optimize.propose.cases import rendered_steps, visible_answer, visible_feedback, visible_gold, visible_inputs
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.module import signature_of
from skillc.program.names import field_names

# MIPROv2 searches with optuna.
_PACKAGES = {"gepa": "gepa", "miprov2": "optuna"}


def method_named(name: str) -> Improve:
    """Return `gepa` or `miprov2`.

    Raises:
        SkillcError: the package of the method is not installed.
    """
    if find_spec(_PACKAGES[name]) is None:
        raise SkillcError(
            f"`method = {name}` needs the package `{_PACKAGES[name]}`, which is not installed",
            hint=f"pip install 'skillc[{name}]'",
        )
    return partial(search, peer=_gepa if name == "gepa" else _miprov2)


def _gepa(bench: Bench) -> Any:
    """Return GEPA's best candidate on the validation split.

    Its rollout budget is that of the plan's steps: a batch and a validation each. It reflects with the optimizer model,
    one section at a time, within what `sees` allows, and stops early at a perfect skill.
    """
    plan, validation = bench.bridge.engine.plan, len(bench.validation)
    optimizer = dspy.GEPA(
        metric=score_with_feedback,
        max_metric_calls=gepa_calls(rollouts_of(plan, len(bench.train), validation), validation),
        reflection_minibatch_size=GEPA_MINIBATCH,
        reflection_lm=bench.optimizer,
        instruction_proposer=SectionProposer(bench),
        num_threads=bench.threads,
        warn_on_score_mismatch=False,
        seed=plan.data.seed,
        gepa_kwargs={"stop_callbacks": [lambda state: bench.bridge.perfect()]},
    )
    return optimizer.compile(bench.student, trainset=bench.train, valset=bench.validation)


class SectionProposer:
    """GEPA's own proposer with the task, limit and form of each section."""

    def __init__(self, bench: Bench) -> None:
        from dspy.teleprompt.gepa.instruction_proposal import InstructionProposer

        bridge = bench.bridge
        sections = {section.name: section for section in open_sections(bridge.initial)}
        own = {id(predictor): name for name, predictor in bench.student.sections.items()}
        self._proposers = {
            component: InstructionProposer(
                additional_instructions=guidance(bridge.engine.plan.task, bridge.initial, sections[own[id(predictor)]]),
                adapter=dspy.ChatAdapter(),
            )
            for component, predictor in bench.student.named_predictors()
        }

    def __call__(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """New texts for the components."""
        texts: dict[str, str] = {}
        for name in components_to_update:
            texts.update(self._proposers[name](candidate, reflective_dataset, [name]))
        return texts


def _miprov2(bench: Bench) -> Any:
    """Return MIPROv2's best combination of proposed texts on the validation split, without demonstrations.

    The numbers of candidates and trials follow from the rollouts that the plan's steps would make, by MIPROv2's own
    rule. It does not see the module's source, which is unrelated to the task.
    """
    plan, validation = bench.bridge.engine.plan, len(bench.validation)
    rollouts = rollouts_of(plan, len(bench.train), validation)
    trials = trials_of(rollouts, validation, len(open_sections(bench.bridge.initial)))
    optimizer = dspy.MIPROv2(
        metric=plain_score,
        prompt_model=bench.optimizer,
        task_model=bench.target,
        auto=None,
        num_candidates=trials.candidates,
        max_bootstrapped_demos=0,
        max_labeled_demos=0,
        metric_threshold=1.0,
        num_threads=bench.threads,
        track_stats=False,
        seed=plan.data.seed,
    )
    return optimizer.compile(
        bench.student,
        trainset=bench.train,
        valset=bench.validation,
        num_trials=trials.trials,
        minibatch=trials.minibatch,
        minibatch_size=MINIBATCH,
        minibatch_full_eval_steps=FULL_EVERY,
        program_aware_proposer=False,
    )


# ---- running one ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bench:
    """Inputs of an optimizer: the module, the examples, the two models, and the number of threads for rollouts."""

    bridge: Bridge
    student: Student
    train: list[DspyExample]
    validation: list[DspyExample]
    optimizer: RoleLM
    target: RoleLM
    threads: int


async def search(engine: Engine, initial: Document, client: Client, *, peer: Callable[[Bench], Any]) -> MethodResult:
    """Return the result of an optimizer, or the best skill that it had measured when it was cut off.

    `peer` builds and runs the optimizer, with at most the rollouts of the plan's method.

    Raises:
        SkillcError: the run cannot continue: a model refuses, a metric fails.
    """
    most = method_counts(engine.plan, len(engine.dataset.train), len(engine.dataset.validation)).rollouts
    bridge = Bridge(engine, initial, most)
    asking = AskingEngine(client, bridge)
    bench = Bench(
        bridge=bridge,
        student=Student(bridge),
        train=dspy_examples(engine.plan, engine.dataset.train),
        validation=dspy_examples(engine.plan, engine.dataset.validation),
        # DSPy's own cache and retries are off.
        optimizer=RoleLM(client.roles["optimizer"].plan.model, cache=False, num_retries=0, engine=asking),
        # Some optimizers require the target's LM; rollouts do not use it.
        target=make_lm(client, "target"),
        threads=max(2, engine.wave),
    )
    engine.observer.stage(engine.plan.optimize.method, most)
    program, broken, cut = None, None, True
    try:
        program, broken = await asyncio.to_thread(_run, peer, bench)
        cut = False
    except asyncio.CancelledError:
        # The thread ends at its next question or rollout.
        bridge.halt(stop_reason(engine.observer))
    finally:
        await bridge.close(cut=cut)
    if bridge.error is not None:
        raise bridge.error
    if broken is not None:
        engine.observer.note(f"{engine.plan.optimize.method} failed: {broken}")
    if asking.unanswered:
        engine.observer.note(f"{asking.unanswered} of {asking.calls} questions to the optimizer got no answer")
    texts = Student.texts.fget(program) if program is not None else None  # type: ignore[attr-defined]
    found = bridge.written(texts) if texts is not None else EditedDocument(bridge.best() or initial)
    return MethodResult(
        document=found.document,
        stopped=bridge.stopped or ("failed" if broken is not None else "method"),
        problem=found.problem,
        rollouts=bridge.rollouts,
        questions=asking.calls,
        tried=len(bridge.tried.keys() - {digest(initial)}),
    )


def _run(peer: Callable[[Bench], Any], bench: Bench) -> tuple[Any, str | None]:
    """Return the optimizer's module, or None and its own error."""
    settings = {"lm": bench.target, "adapter": dspy.ChatAdapter(), "disable_history": True, "callbacks": []}
    try:
        with quiet(), dspy.context(**settings, track_usage=False, num_threads=bench.threads):
            return peer(bench), None
    except Halt:
        return None, None
    except Exception as problem:
        # After a cap is reached, an error of the optimizer is only a consequence.
        halted = bench.bridge.stopped is not None or bench.bridge.error is not None
        return None, None if halted else f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"


_EXAMPLE = "skillc_example"


class DspyExample(dspy.Example):  # type: ignore[misc]  # dspy has no types
    """An example for DSPy whose inputs carry its id, outside of its text."""

    def inputs(self) -> dspy.Example:
        """Return the inputs and the example's id."""
        plain = {name: value for name, value in self._store.items() if name in (self._input_keys or ())}
        return dspy.Example(**plain, **{_EXAMPLE: self._example_id})


class Student(dspy.Module):  # type: ignore[misc]
    """Answer by the loop's rollouts under the texts of its predictors."""

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
        """Return the text of each section."""
        return {name: predictor.signature.instructions for name, predictor in self.sections.items()}

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answer one example; the prediction carries its score and its feedback."""
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
        if dspy.settings.trace is not None:
            # Each section contributed to the answer.
            inputs_ = input_texts(plan, example)
            dspy.settings.trace.extend((predictor, dict(inputs_), prediction) for predictor in self.sections.values())
        return prediction


def dspy_examples(plan: Plan, examples: Sequence[Example]) -> list[DspyExample]:
    """Return examples for DSPy, with the right answers if the program lets the optimizer see them."""
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
    """Return the trimmed texts of the inputs, by their names in the signature."""
    names = field_names(plan.task)
    return {names[name]: text for name, text in visible_inputs(example, plan.optimize.trajectory_limit).items()}


def plain_score(gold: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Metric for optimizers that require a number."""
    score: float = prediction._score
    return score


def score_with_feedback(
    gold: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
) -> Any:
    """Metric for `dspy.GEPA`: the score with the feedback that the program lets it see."""
    return dspy.Prediction(score=prediction._score, feedback=prediction._feedback)


def feedback_of(plan: Plan, example: Example, outcome: Outcome, score: float) -> str:
    """Describe one rollout for a method, as far as `sees` allows."""
    lines = [f"The score is {score:g}, where 0 is the worst and 1 the best."]
    said, gold = visible_feedback(plan, outcome), visible_gold(plan, example)
    if said:
        lines.append(said)
    if gold is not None:
        lines.append(f"The right answer is `{gold}`.")
    if "trajectory" in plan.optimize.sees and plan.task.rollout.kind != "predict" and outcome.trajectory.reply:
        lines.append(f"The whole reply was:\n{rendered_steps(outcome.trajectory, plan.optimize.trajectory_limit)}")
    return "\n".join(lines)


def _values(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    names = field_names(plan.task)
    if outcome.answer is None:
        return _unread(plan, visible_answer(plan, outcome, plan.optimize.trajectory_limit))
    return {names[name]: value for name, value in outcome.answer.items()}


def _unread(plan: Plan, text: str) -> dict[str, Any]:
    names = field_names(plan.task)
    return {names[field.name]: text for field in plan.task.outputs}


_QUIET: ContextVar[bool] = ContextVar("skillc_quiet", default=False)


class _QuietStream:
    """A stream that drops what is written under `quiet` and forwards the writes of other contexts."""

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
    """Drop the output and progress bars of this context, and DSPy's log."""
    log = logging.getLogger("dspy")
    level, streams, drawn = log.level, (sys.stdout, sys.stderr), tqdm.tqdm.__init__

    # Disable bars from the start: one that a cut-off optimizer leaves behind is drawn when it is collected.
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


class AskingEngine(RoleEngine):
    """Number the calls, so that a repeated question can get another reply, and halt the method at a cap."""

    def __init__(self, client: Client, bridge: Bridge) -> None:
        super().__init__(client, "optimizer")
        self._bridge = bridge
        self.calls = 0
        self.unanswered = 0

    def complete(self, request: Request) -> Response:
        """Return one reply.

        Raises:
            Halt: a cap does not admit the call, or the run cannot continue.
            CallFailed: no whole reply came; the optimizer continues without it.
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
