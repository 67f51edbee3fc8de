"""The lock of a finished compile: what it stands on, what it reached, what it was charged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TypedDict

from pydantic import JsonValue

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import path_to
from skillc.data.dataset import Dataset
from skillc.data.split import check_unused, marks
from skillc.document.skill import digest
from skillc.frontend import Planned
from skillc.gates.terms import TextConstant, calls
from skillc.optimize.final import ArmScore, FinalResult
from skillc.optimize.loop.train import TrainResult
from skillc.plan.digest import DECISION_VERSION, plan_digest
from skillc.plan.lock import (
    ArmLock,
    ChargedLock,
    DataLock,
    Lock,
    LookLock,
    ModelLock,
    ProgramLock,
    SkillLock,
    TestLock,
    ValidationLock,
    read_lock,
)
from skillc.plan.schema import Plan
from skillc.syntax.nodes import Use
from skillc.user_code import code_digest


def lock_of(
    program: ProgramLock,
    plan: Plan,
    dataset: Dataset,
    trained: TrainResult,
    tested: FinalResult,
    spent: dict[str, JsonValue],
    run: str,
    looks: tuple[LookLock, ...],
    files: Mapping[str, str],
    history: str,
) -> Lock:
    """Pure values only.

    Args:
        program: the program, as `program_lock` gives it.
        plan: the plan.
        dataset: its examples.
        trained: the loop's end.
        tested: the final test.
        spent: the ledger's two books.
        run: the run's name.
        looks: at the test split, this one included.
        files: digests of the written files, by their paths from the lock.
        history: the link of the last decision.
    """
    verdict = tested.verdict
    return Lock(
        decision_version=DECISION_VERSION,
        run=run,
        program=program,
        data=DataLock(
            digest=dataset.digest,
            train=len(dataset.train),
            validation=len(dataset.validation),
            test=len(dataset.test),
            used=marks((*dataset.train, *dataset.validation)),
        ),
        skill=SkillLock(initial=digest(trained.state.initial), best=digest(trained.state.best)),
        files=dict(files),
        models={role: ModelLock(model=m.model, parameters=m.parameters) for role, m in plan.models.items()},
        verdict=verdict.verdict,
        reason=verdict.reason,
        test=TestLock(
            **_arms(tested.test),
            gain=verdict.gain,
            interval=verdict.interval,
            p=verdict.p,
            n=verdict.n,
            groups=verdict.groups,
            look=verdict.look,
            alpha=verdict.alpha,
            smallest_detectable=None if verdict.detectable is None else Fraction(verdict.detectable),
        ),
        validation=ValidationLock(**_arms(tested.validation)),
        charged=_charged(spent),
        stopped=f"{trained.stopped} after decision {trained.state.decisions}",
        looks=looks,
        quarantined=trained.quarantined,
        history=history,
    )


def program_lock(planned: Planned, base: Path) -> ProgramLock:
    """The program, the options that changed its plan, and the user's own code behind it.

    Args:
        planned: the program.
        base: the lock's folder.
    """
    plan = planned.plan
    return ProgramLock(
        file=planned.path.name,
        path=path_to(planned.path, base),
        plan=plan_digest(plan),
        options=planned.options,
        code=own_code_digest(plan, planned.root),
    )


def own_code_digest(plan: Plan, root: Path) -> str | None:
    """Names the user's own Python that a plan names, without running it; None where it names none."""
    found = {
        function.value
        for metric in plan.metrics
        for call in calls(metric.term)
        if call.function == "python" and isinstance(function := call.arguments[0], TextConstant)
    }
    names = sorted(found | {model.backend for model in plan.models.values() if model.backend is not None})

    def read(path: str) -> bytes | None:
        place = root / path
        return place.read_bytes() if place.is_file() else None

    return hashlib.sha256("\n".join(code_digest(read, name) for name in names).encode()).hexdigest() if names else None


class _Arms(TypedDict):
    none: ArmLock
    initial: ArmLock
    best: ArmLock


def _arms(split: dict[str, ArmScore]) -> _Arms:
    none, initial, best = (ArmLock(mean=split[n].mean, n=split[n].n) for n in ("none", "initial", "best"))
    return _Arms(none=none, initial=initial, best=best)


def _charged(spent: dict[str, JsonValue]) -> ChargedLock:
    charged = spent["charged"]
    assert isinstance(charged, dict)
    total = charged["total"]
    assert isinstance(total, dict)
    calls, prompt, reply, nano = (total[name] for name in ("calls", "prompt", "completion", "cost_nano"))
    bounds = total["bounds"]
    assert isinstance(bounds, dict)
    return ChargedLock.model_validate(
        {
            "calls": calls,
            "prompt_tokens": prompt,
            "reply_tokens": reply,
            "cost": Fraction(str(nano or 0)) / 10**9,
            "bound_tokens": bounds["tokens"],
        }
    )


def check_starts(planned: Planned, dataset: Dataset) -> None:
    """Refuses to start from a compiled skill that learnt from examples of the present test split.

    Raises:
        SkillcError: as `check_unused`, or the lock beside such a skill is damaged.
    """
    for statement in planned.checked.program.statements:
        if isinstance(statement, Use) and statement.file is not None and statement.file.value.lower().endswith(".md"):
            paths = ArtifactPaths.of_skill_file(planned.root / statement.file.value)
            if paths is not None and paths.lock.exists():
                check_unused(read_lock(paths.lock).data.used, dataset.test, skill=statement.file.value)
