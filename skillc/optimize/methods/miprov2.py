"""`method = miprov2`: `dspy.MIPROv2` on the texts of the open sections, without demonstrations in the prompt."""

from __future__ import annotations

from typing import Any

import dspy

from skillc.budget.steps import FULL_EVERY, MINIBATCH, Trials, most_rollouts, rollouts_of, trials_of
from skillc.document.skill import Document
from skillc.models.client import Client
from skillc.optimize.engine import Engine
from skillc.optimize.methods.peer import Bench, require, score_of, search
from skillc.optimize.methods.run import Found


def check() -> None:
    """Checks that optuna, which MIPROv2 searches with, is installed.

    Raises:
        SkillcError: it is not.
    """
    require("optuna", "miprov2")


async def improve(engine: Engine, initial: Document, client: Client) -> Found:
    """MIPROv2's best combination of proposed texts on the validation split.

    Numbers of candidates and trials follow from the rollouts that the plan's steps would make, by MIPROv2's own rule.
    It is not shown the module's source, which says nothing of the task.

    Raises:
        SkillcError: the run cannot go on.
    """
    train, validation = len(engine.dataset.train), len(engine.dataset.validation)
    sections = sum(section.mode != "frozen" for section in initial.sections)
    trials = trials_of(rollouts_of(engine.plan, train, validation), validation, sections)
    return await search(
        engine, initial, client, lambda bench: _compile(bench, trials), most_rollouts(engine.plan, train, validation)
    )


def _compile(bench: Bench, trials: Trials) -> Any:
    optimizer = dspy.MIPROv2(
        metric=score_of,
        prompt_model=bench.optimizer,
        task_model=bench.target,
        auto=None,
        num_candidates=trials.candidates,
        max_bootstrapped_demos=0,
        max_labeled_demos=0,
        metric_threshold=1.0,
        num_threads=bench.threads,
        track_stats=False,
        seed=bench.bridge.engine.plan.data.seed,
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
