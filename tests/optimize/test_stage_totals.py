"""No stage reports more work as done than it announced: progress bars never run over."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_runs import Models, compiled, planned_job, proposer, reply

from skillc.optimize.host import ForwardingObserver


class Counted(ForwardingObserver):
    """Counts the work of each stage."""

    def __init__(self, observer: object) -> None:
        super().__init__(observer)  # type: ignore[arg-type]
        self.stages: list[list[object]] = []

    def stage(self, name: str, total: int) -> None:
        self.stages.append([name, total, 0])

    def advance(self, count: int = 1) -> None:
        self.stages[-1][2] += count  # type: ignore[operator]


def stages_of(folder: Path, monkeypatch: pytest.MonkeyPatch, models: Models, *settings: str, gate: str) -> list:
    """Name, total and done of every stage of a run."""
    counted: list[Counted] = []

    def watched(observer: object) -> Counted:
        counted.append(Counted(observer))
        return counted[-1]

    import whole_runs

    whole = whole_runs.compile_job
    monkeypatch.setattr(whole_runs, "compile_job", lambda job, watch, client: whole(job, watched(watch), client))
    compiled(planned_job(folder, examples=80, gate=gate, settings=("budget.steps=4", *settings)), models, attempts=1)
    return counted[0].stages


def sometimes(role: str, text: str, number: int) -> object:
    """Every ninth attempt comes back empty, every fourth reply of the optimizer cannot be read."""
    if role == "optimizer":
        return reply("no json", (9, 9)) if number % 4 == 0 else None
    return reply("", (9, 0)) if number % 9 == 0 and "Mind" in text else None


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("optimize.lookups=2",),
        ("optimize.candidates=3",),
        ("optimize.candidates=3", "optimize.update=rewrite_all"),
        ("optimize.accept=always",),
        ("optimize.samples=2",),
        ("optimize.method=one_shot",),
    ],
)
@pytest.mark.quick_cases(3)
def test_a_stage_never_does_more_than_it_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    gate = "candidate.correct > incumbent.correct and improved(correct, on = batch) > 0"
    models = Models(propose=proposer("totals", edits=2), fate=sometimes)
    stages = stages_of(tmp_path, monkeypatch, models, *settings, gate=gate)
    assert [stage for stage in stages if stage[2] > stage[1]] == []
    assert stages[0][0] == "baseline"
