"""`SkillOptimizer`: skillc's loop, gates and verdict for a DSPy module."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import dspy
from dspy.teleprompt.teleprompt import Teleprompter
from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.models.client import Client
from skillc.models.ledger import Spending
from skillc.optimize.final import FinalResult, final_test
from skillc.optimize.host import Observer
from skillc.optimize.loop.train import TrainResult
from skillc.optimize.methods.run import train_by_method
from skillc.optimize.rollouts import Rollouts
from skillc.outcomes import ArmScore
from skillc.plan.initial import initial_document
from skillc.plan.schema import Plan
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.stats.verdict import Verdict
from skillc.telemetry.export import traced_by_environment
from skillc.teleprompter.conversion import (
    ExampleSet,
    Instruction,
    as_json,
    example_set,
    field_plans,
    instructions_of,
    plan_for,
    skill_plan,
    texts_for,
    with_instructions,
)
from skillc.teleprompter.lms import UserLMs
from skillc.teleprompter.rollouts import (
    Metric,
    ModuleMeter,
    ModuleRunner,
    ModuleTask,
    ScoredPrediction,
    arguments_of,
    scored,
)
from skillc.text import listed

GATES = {"better": "candidate.score > incumbent.score"}
BUDGET = {"epochs": 2, "patience": "8 steps"}

_log = logging.getLogger("skillc")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SkillReport:
    """The result of a compile, `program.skillc` of the returned module.

    Attributes:
        verdict: the best instructions against the first ones on the test set; `unverified` without a test set.
        validation: the arms `none`, `initial` and `best` on the validation set, which the loop selected on.
        test: the same on the test set; empty arms if it was not scored.
        history: one record per decision, as in the history of a compile.
        ledger: calls, tokens and cost by role and stage.
        stopped: why the loop ended.
        skill: the instructions as sections and rules.
    """

    verdict: Verdict
    validation: Mapping[str, ArmScore]
    test: Mapping[str, ArmScore]
    history: tuple[Mapping[str, JsonValue], ...]
    ledger: Mapping[str, JsonValue]
    stopped: str
    skill: Document


class SkillOptimizer(Teleprompter):  # type: ignore[misc]  # dspy has no types
    """Improves the instructions of a module's predictors, keeps a change only if the gates hold, and tests the gain.

    For example:

        from skillc import SkillOptimizer

        def metric(gold, pred, trace=None, pred_name=None, pred_trace=None):
            right = gold.team == pred.team
            return dspy.Prediction(score=float(right), feedback=f"the right team is {gold.team}")

        optimizer = SkillOptimizer(
            metric,
            gates={"better": "candidate.score > incumbent.score", "short": "tokens(candidate) <= 800 tokens"},
            budget={"epochs": 2, "calls": 5_000},
            optimizer_lm=dspy.LM("openai/gpt-5.5"),
        )
        routed = optimizer.compile(router, trainset=train, valset=validation, testset=test)
        print(routed.skillc.verdict)

    Each predictor's instruction becomes a trainable section of rules; lines between `<!-- locked -->` and
    `<!-- /locked -->` never change. A rollout is one call of the module under DSPy's settings, with its LMs behind
    skillc's ledger, so no call exceeds a cap. An exception that the module raises on a model's answer is the worst
    score; an unreachable model is no score.

    Args:
        metric: has `dspy.GEPA`'s signature or (gold, pred[, trace]), and returns a number, or `score` with `feedback`.
            Called once per rollout.
        gates: conditions by name, in skillc's language; the goal is `score`.
        budget: caps by name as in a program's `budget` block: `epochs`, `steps`, `calls`, `tokens`, `cost` ("$2"),
            `time` ("20 min"), `patience`, `min_gain`.
        optimize: settings of the `optimize` block: `batch`, `edits` ("cosine(4, 2)"), `method`, `sees`, ...
        optimizer_lm: writes the rules; by default the target improves itself.
        low: the metric's worst score.
        high: the best score.
        limit: maximum tokens of a trainable section; None for no limit.
        group: a key of the examples; equal values count as one in the test.
        prices: dollars per million tokens of prompt and of reply by role (`target`, `optimizer`), for caps on cost.
        cache: a folder for replies, so that a repeated compile pays for nothing twice.
        num_threads: concurrent rollouts.
        seed: of all random draws.
    """

    def __init__(
        self,
        metric: Metric,
        *,
        gates: Mapping[str, str] | None = None,
        budget: Mapping[str, object] | None = None,
        optimize: Mapping[str, object] | None = None,
        optimizer_lm: Any = None,
        low: float = 0.0,
        high: float = 1.0,
        limit: int | None = 1500,
        group: str | None = None,
        prices: Mapping[str, tuple[float, float]] | None = None,
        cache: str | Path | None = None,
        num_threads: int = 8,
        seed: int = 0,
    ) -> None:
        super().__init__()
        arguments_of(metric)
        self.metric = metric
        self.gates = dict(GATES if gates is None else gates)
        self.budget = dict(BUDGET if budget is None else budget)
        self.optimize = dict(optimize or {})
        self.optimizer_lm = optimizer_lm
        self.low, self.high = low, high
        self.limit = limit
        self.group = group
        self.prices = dict(prices or {})
        self.cache = Path(cache) if cache is not None else None
        self.num_threads = num_threads
        self.seed = seed
        self._looks: dict[tuple[str, ...], int] = {}

    def compile(
        self,
        student: Any,
        *,
        trainset: Sequence[Any],
        teacher: Any = None,
        valset: Sequence[Any] | None = None,
        testset: Sequence[Any] | None = None,
        **_: Any,
    ) -> Any:
        """Return a deep copy of a module with the best instructions, and a `SkillReport` as its attribute `skillc`.

        Args:
            student: any module with predictors; not changed.
            trainset: examples to train on.
            teacher: not used.
            valset: examples to decide the gates; by default a third of the training set.
            testset: examples for the verdict, scored once at the end. Compiling again with the same test set counts as
                another look at it, which requires stronger evidence.

        Raises:
            SkillcError: examples, settings, models or the metric cannot be used.
            BudgetReached: the caps do not admit the baseline.
        """
        instructions = instructions_of(student)
        material = example_set(trainset, valset, testset, group=self.group, seed=self.seed)
        lms = UserLMs(dspy.settings.lm, self.optimizer_lm, student)
        plan = self._plan(student, instructions, material, lms)
        with lms.client(plan, self.cache, self.num_threads) as client, traced_by_environment(_log.warning):
            trained, tested, history = _run_blocking(self._run(student, instructions, material, lms, plan, client))
            ledger = client.ledger.snapshot()
        best = with_instructions(student, texts_for(trained.state.best, plan, instructions))
        best.skillc = SkillReport(
            verdict=tested.verdict,
            validation=tested.validation,
            test=tested.test,
            history=history,
            ledger=ledger,
            stopped=trained.stopped,
            skill=trained.state.best,
        )
        return best

    def _plan(self, student: Any, instructions: Sequence[Instruction], material: ExampleSet, lms: UserLMs) -> Plan:
        example = material.dataset.train[0]
        return plan_for(
            skill=skill_plan(instructions, _name(student), self.limit),
            inputs=field_plans(student, example.inputs),
            outputs=field_plans(student, example.gold),
            models=lms.plans(self.prices),
            gates=self.gates,
            budget=self.budget,
            optimize=self.optimize,
            low=self.low,
            high=self.high,
            seed=self.seed,
        )

    async def _run(
        self,
        student: Any,
        instructions: Sequence[Instruction],
        material: ExampleSet,
        lms: UserLMs,
        plan: Plan,
        client: Client,
    ) -> tuple[TrainResult, FinalResult, tuple[Mapping[str, JsonValue], ...]]:
        session = Session(plan, client, _LoggingObserver(), Stop(plan.budget.time))
        job = ModuleTask(
            student=student,
            texts=lambda document: _texts(document, student, plan, instructions),
            examples=material.originals,
            score=self._scored,
            own=lms.own,
        )
        runner = ModuleRunner(job, client, self.num_threads)
        try:
            engine = session.engine(
                material.dataset,
                Rollouts(plan, runner, ModuleMeter(plan, Path.cwd()), session.watch),
                _FinalTestReserve(client, len(material.dataset.test), len(instructions)),
            )
            with session.traced():
                trained = await train_by_method(engine, initial_document(plan), client)
                tested = await final_test(trained, look=self._look(material))
        finally:
            await runner.close()
        if tested.verdict.n:
            self._looks[_test_of(material)] = self._look(material)
        return trained, tested, tuple(session.watch.decisions)

    def _scored(self, gold: Any, prediction: Any, trace: Any, example: str) -> ScoredPrediction:
        score, feedback = scored(self.metric, gold, prediction, trace, low=self.low, high=self.high, example=example)
        values = dict(prediction) if hasattr(prediction, "keys") else {"answer": prediction}
        return ScoredPrediction({name: as_json(value) for name, value in values.items()}, score, feedback)

    def _look(self, material: ExampleSet) -> int:
        return self._looks.get(_test_of(material), 0) + 1


class _LoggingObserver(Observer):
    """Logs notes."""

    def note(self, message: str) -> None:
        _log.info(message)


class _FinalTestReserve:
    """Reserves the calls of the final test, for two modules, in the ledger."""

    def __init__(self, client: Client, examples: int, predictors: int) -> None:
        self._ledger = client.ledger
        self._amount = Spending(2 * examples * predictors)
        self.open_reserve = client.ledger.open_reserve

    def set_aside(self) -> None:
        self._ledger.set_aside(self._amount)


def _texts(
    document: Document | None, student: Any, plan: Plan, instructions: Sequence[Instruction]
) -> Mapping[str, str]:
    """Return each predictor's instruction; without a skill, DSPy's default sentence on the signature's fields."""
    if document is not None:
        return texts_for(document, plan, instructions)
    signatures = {name: predictor.signature for name, predictor in student.named_predictors()}
    return {
        name: f"Given the fields {listed(each.input_fields)}, produce the fields {listed(each.output_fields)}."
        for name, each in signatures.items()
    }


def _name(student: Any) -> str:
    words = "".join(c if c.isalnum() else "_" for c in type(student).__name__.lower()).strip("_")
    return words if words[:1].isalpha() and words.isascii() else "module"


def _test_of(material: ExampleSet) -> tuple[str, ...]:
    return tuple(sorted(example.id for example in material.dataset.test))


def _run_blocking(job: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, on another thread if this one runs an event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(job)
    with ThreadPoolExecutor(1, thread_name_prefix="skillc") as pool:
        return pool.submit(asyncio.run, job).result()
