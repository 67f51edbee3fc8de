"""`method = gepa` and `method = miprov2`: DSPy's optimizers on the texts of the open sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import dspy

from skillc.budget.steps import FULL_EVERY, GEPA_MINIBATCH, MINIBATCH, gepa_calls, rollouts_of, trials_of
from skillc.errors import SkillcError
from skillc.optimize.methods.bridge import guidance, open_sections
from skillc.optimize.methods.peer import Bench, plain_score, score_with_feedback, search
from skillc.optimize.methods.run import Improve

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

    It may make as many rollouts as the plan's steps would: a batch and a validation each. It reflects with the
    optimizer model on what `sees` allows, one section at a time, and stops early at a perfect skill.
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
