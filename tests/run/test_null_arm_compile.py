"""The null arm in a whole compile: plan, lock, report, and a run that is stopped in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from conftest_cli import PROGRAM, shop_in

from skillc.budget.null_arm import NULL_ARM
from skillc.frontend import estimate, plan_file
from skillc.models.calls import Call, Completion
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Compiled, Job, compile_job
from skillc.pipeline.report import compile_json, compile_table
from skillc.run.stop import Stop

NOISY = PROGRAM.replace("epochs = 2", "epochs = 1").replace(
    'target    = "rulebook/v1"', 'target = "rulebook/v1" { noise = 0.2 }'
)


class Stopping(Client):
    """A client that asks its run to stop at a call of the null arm, and counts those that it sends."""

    stop: Stop | None = None
    after = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sent = 0

    async def complete(self, call: Call) -> Completion:
        if call.stage == NULL_ARM:
            self.sent += 1
            if self.stop is not None and self.sent > self.after:
                self.stop.ask()
        return await super().complete(call)


def compiled(folder: Path, *settings: str, after: int | None = None) -> tuple[Compiled, Stopping, SilentObserver]:
    planned = plan_file(folder / "things.skill", settings=settings, runnable=True, every_model=False)
    job = Job(planned, estimate(planned), folder / "skills", folder / ".skillc")
    stop, observer = Stop(None), SilentObserver()
    with Stopping(planned.plan, cache_folder=folder / ".skillc" / "cache", root=folder) as client:
        if after is not None:
            client.stop, client.after = stop, after
        return compile_job(job, observer, client, stop), client, observer


def folder_of(path: Path, program: str = NOISY) -> Path:
    path.mkdir()
    return shop_in(path, program)


def files_of(folder: Path) -> dict[str, bytes]:
    skills = folder / "skills"
    return {str(path.relative_to(skills)): path.read_bytes() for path in sorted(skills.rglob("*")) if path.is_file()}


def text_of(found: Compiled) -> str:
    from io import StringIO

    from rich.console import Console

    page = StringIO()
    Console(file=page, width=200).print(compile_table(found, "correct"))
    return page.getvalue()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compiled, Path, SilentObserver]:
    folder = folder_of(tmp_path_factory.mktemp("null") / "things")
    found, _, observer = compiled(folder, "optimize.null_arm=always")
    return found, folder, observer


def test_lock_report_and_ledger_have_it(whole: tuple[Compiled, Path, SilentObserver]) -> None:
    found, folder, observer = whole
    null = found.tested.null_arm
    assert null is not None
    lock = json.loads((folder / "skills/sort-things.lock").read_text())
    told: Any = compile_json(found)
    assert told["validation"]["null_arm"] == lock["validation"]["null_arm"]
    assert lock["validation"]["null_arm"] == {
        "n": null.examples,
        "changed": null.changed,
        "difference": pytest.approx(float(null.difference), abs=1e-6),
        "margin": pytest.approx(float(null.margin), abs=1e-6),
        "accepted": null.gates.accepted if null.gates else None,
        "chance": pytest.approx(float(null.gates.chance), abs=1e-6) if null.gates else None,
    }
    assert null.examples == lock["validation"]["initial"]["n"] > null.changed > 0
    (line,) = [each for each in found.spent["charged"]["lines"] if each["stage"] == NULL_ARM]  # type: ignore[index, call-overload]
    assert line["calls"] == null.examples  # type: ignore[index, call-overload]
    assert f"noise floor: measured again, {null.changed} of {null.examples} validation examples" in text_of(found)
    assert any(note.startswith("null arm: measured again") for note in observer.notes)


@pytest.mark.thorough
def test_it_changes_neither_skill_nor_history_nor_the_identity_of_the_run(
    whole: tuple[Compiled, Path, SilentObserver], tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "things")
    found, client, _ = compiled(folder, "optimize.null_arm=never")
    assert (found.tested.null_arm, client.sent) == (None, 0)
    without, expected = files_of(folder), files_of(whole[1])
    locks = [json.loads(each.pop("sort-things.lock")) for each in (without, expected)]
    assert without == expected
    assert "null_arm" not in locks[0]["validation"]
    del locks[1]["validation"]["null_arm"]
    for lock in locks:
        # What was spent, and the option of this call.
        del lock["charged"], lock["program"]["options"]
    assert locks[0] == locks[1]


@pytest.mark.parametrize("after", [pytest.param(0, marks=pytest.mark.thorough), 7])
def test_a_run_that_is_stopped_in_it_resumes_to_the_same_bytes(
    whole: tuple[Compiled, Path, SilentObserver], tmp_path: Path, after: int
) -> None:
    folder = folder_of(tmp_path / "things")
    stopped, _, _ = compiled(folder, "optimize.null_arm=always", after=after)
    assert stopped.interrupted
    assert stopped.trained.state.decisions == 0
    found, client, _ = compiled(folder, "optimize.null_arm=always")
    assert found.tested.null_arm == whole[0].tested.null_arm
    assert files_of(folder) == files_of(whole[1])
    again, client, _ = compiled(folder, "optimize.null_arm=always")
    assert client.sent == 0
    assert files_of(folder) == files_of(whole[1])
    assert again.spent["charged"] == whole[0].spent["charged"]


@pytest.mark.thorough
def test_a_deterministic_target_is_not_measured_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "things", PROGRAM)
    found, client, _ = compiled(folder)
    assert (found.tested.null_arm, client.sent) == (None, 0)
