"""Evaluations in this process, of the small program of the command line's tests."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest_cli import PROGRAM
from rich.console import Console

from skillc.evaluate.job import EvalJob, EvalOptions, prepare_eval
from skillc.evaluate.report import eval_table
from skillc.evaluate.run import Evaluation, evaluate
from skillc.evaluate.scores import ModelScores, Score
from skillc.frontend import plan_file
from skillc.models.calls import Call, Completion
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.optimize.host import Observer, SilentObserver
from skillc.run.stop import Stop

NOISY = 'model noisy = "rulebook/v1" { noise = 0.3 }\n'
FAMILY = PROGRAM.replace("data {", NOISY + "data {")


def copied(compiled: tuple[Path, Any, Any], folder: Path, program: str = PROGRAM) -> Path:
    """A compiled program to do with as a test likes."""
    shutil.copytree(compiled[0], folder)
    (folder / "things.skill").write_text(program)
    return folder


def job_of(folder: Path, *settings: str, **wanted: Any) -> EvalJob:
    planned = plan_file(
        folder / "things.skill",
        settings=settings,
        offline=wanted.get("offline", False),
        runnable=True,
        complete=False,
    )
    return prepare_eval(planned, EvalOptions(**wanted))


def evaluated(
    folder: Path,
    *settings: str,
    client: Callable[..., Client] = Client,
    observer: Observer | None = None,
    stop: Stop | None = None,
    **wanted: Any,
) -> Evaluation:
    job = job_of(folder, *settings, **wanted)
    with client(job.plan, cache_folder=folder / ".skillc" / "cache", root=folder) as door:
        return evaluate(job, observer or SilentObserver(), door, stop)


class Failing(Client):
    """A client whose calls fail for some texts, and which counts them."""

    fails: Callable[[Call], str | None] = staticmethod(lambda call: None)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.calls: list[Call] = []

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        kind = self.fails(call)
        if kind is not None:
            raise CallFailed(kind, "as the test wants it")  # type: ignore[arg-type]
        return await super().complete(call)


def score(found: Evaluation | ModelScores, arm: str) -> Score:
    model = found.models[0] if isinstance(found, Evaluation) else found
    return next(each for each in model.scores if each.arm.name == arm)


def shown(found: Evaluation) -> str:
    """The table as a terminal of 80 columns has it."""
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(eval_table(found))
    return page.getvalue()


def paid(found: Evaluation, book: str = "paid") -> int:
    total: Any = found.spent[book]
    return int(total["total"]["calls"])
