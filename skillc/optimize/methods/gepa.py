"""`method = gepa`: `dspy.GEPA` on the texts of the open sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from skillc.budget.steps import GEPA_MINIBATCH, gepa_calls, most_rollouts, rollouts_of
from skillc.document.skill import Document
from skillc.models.client import Client
from skillc.optimize.engine import Engine
from skillc.optimize.methods.bridge import guidance, open_sections
from skillc.optimize.methods.peer import Bench, require, scored, search
from skillc.optimize.methods.run import Found


def check() -> None:
    """Checks that GEPA is installed.

    Raises:
        SkillcError: it is not.
    """
    require("gepa", "gepa")


async def improve(engine: Engine, initial: Document, client: Client) -> Found:
    """GEPA's best candidate on the validation split.

    It may make as many rollouts as the plan's steps would: a batch and a validation each. It reflects with the
    optimizer model on what `sees` allows, one section at a time, and ends early where a skill is perfect.

    Raises:
        SkillcError: the run cannot go on.
    """
    train, validation = len(engine.dataset.train), len(engine.dataset.validation)
    calls = gepa_calls(rollouts_of(engine.plan, train, validation), validation)
    return await search(
        engine, initial, client, lambda bench: _compile(bench, calls), most_rollouts(engine.plan, train, validation)
    )


def _compile(bench: Bench, calls: int) -> Any:
    plan = bench.bridge.engine.plan
    optimizer = dspy.GEPA(
        metric=scored,
        max_metric_calls=calls,
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
    """GEPA's own proposer, told of each section's place, limit and form."""

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
