"""No cap is ever passed by a whole compile, and what is kept back for the final test pays for it."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thorough import example_count
from whole_runs import Models, Run, compiled, planned_job, reply
from worlds import World, proposer

from skillc.errors import SkillcError
from skillc.models.failures import BudgetReached, PermanentFailure
from skillc.models.ledger import Caps

WORLD = World(share=0.5, worth=0.4)
STEPS = ("budget.steps=4",)


def models(**options: Any) -> Models:
    return Models(world=WORLD, propose=proposer("caps", edits=2, helpful=0.6), **options)


def a_whole_test_or_none(run: Run) -> None:
    """A verdict on the whole test split, or none: never on a part of it."""
    verdict, test = run.compiled.tested.verdict, run.estimated.dataset.test
    arms = run.compiled.tested.test
    if verdict.n == 0:
        assert verdict.verdict in ("unverified", "no significant gain")
        assert verdict.verdict == "unverified" or verdict.reason == "the best skill is the initial one"
        assert verdict.reason
        assert arms["initial"].n == arms["best"].n == 0
        assert not run.compiled.lock.looks
    else:
        assert len(run.compiled.lock.looks) == 1
        unmeasured = len(test) - verdict.n
        assert arms["initial"].n + unmeasured >= len(test)


def failing(seed: int, share: float) -> Any:
    """Attempts that end badly, each in its own way, drawn by number."""

    def fate(role: str, text: str, number: int) -> Any:
        draw = random.Random(f"{seed} {number}")
        if draw.random() >= share:
            return None
        return draw.choice(
            [ConnectionError("gone"), TimeoutError("slow"), reply("", (9, 1)), reply("ri", (9, 40), "length")]
        )

    return fate


@settings(max_examples=example_count(14), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    calls=st.none() | st.integers(100, 500),
    tokens=st.none() | st.integers(30_000, 200_000),
    cents=st.none() | st.integers(4, 30),
    unsaid=st.sampled_from([0.0, 0.3]),
    share=st.sampled_from([0.0, 0.02, 0.1]),
    concurrency=st.integers(1, 64),
    seed=st.integers(0, 999),
)
def test_no_cap_is_passed_by_a_whole_compile(
    calls: int | None, tokens: int | None, cents: int | None, unsaid: float, share: float, concurrency: int, seed: int
) -> None:
    def used(text: str, number: int) -> tuple[int, int] | None:
        draw = random.Random(f"used {seed} {number}")
        return None if draw.random() < unsaid else (len(text) // draw.choice([2, 4, 6]), draw.randrange(1, 41))

    caps = [f"budget.{name}={cap}" for name, cap in (("calls", calls), ("tokens", tokens)) if cap is not None]
    caps += [] if cents is None else [f"budget.cost=${cents / 100}"]
    with tempfile.TemporaryDirectory() as folder:
        job = planned_job(Path(folder), examples=80, settings=(*STEPS, *caps))
        scripted = models(fate=failing(seed, share), used=used, pace=seed)
        try:
            run = compiled(job, scripted, concurrency=concurrency)
        except BudgetReached as cap:
            assert cap.cap in ("calls", "tokens", "cost")
            return
        except SkillcError as problem:
            assert "could not be measured with the initial skill" in problem.message
            return
    limits = Caps.of(job.planned.plan.budget)
    for book in (run.client.ledger.charged, run.client.ledger.paid):
        assert limits.exceeded_by(book.spent) is None
    assert limits.calls is None or run.compiled.lock.charged.calls <= limits.calls
    assert limits.cost is None or run.compiled.lock.charged.cost * 10**9 <= limits.cost
    a_whole_test_or_none(run)


@pytest.mark.parametrize("cap", ["calls", "tokens", "cost"])
@pytest.mark.parametrize(("where", "letters"), [(0.3, 4), (0.7, 4), (0.6, 2)])
@pytest.mark.quick_cases(3)
def test_a_run_that_a_cap_ends_after_an_accept_has_its_final_test(
    tmp_path: Path, cap: str, where: float, letters: int
) -> None:
    """Wherever the cap falls in the loop: what was set aside after the baseline pays for the test of two skills.

    Also where the provider counts twice the tokens that the plan reckons with.
    """

    def used(text: str, number: int) -> tuple[int, int]:
        return len(text) // letters, 20

    whole = compiled(planned_job(tmp_path / "whole", examples=80, settings=STEPS), models(used=used))
    lines = whole.client.ledger.charged.lines
    loop = [tally for (_, stage), tally in lines.items() if stage not in ("baseline", "test", "no skill")]
    kept = [tally for (_, stage), tally in lines.items() if stage in ("baseline", "test")]

    def spent(tallies: Any) -> int:
        of = {"calls": lambda t: t.calls, "tokens": lambda t: t.prompt + t.completion, "cost": lambda t: t.cost}[cap]
        return sum(map(of, tallies))

    # One largest call more than what the run up to there takes, since a call is sent only where its worst case fits.
    largest = {"calls": 0, "tokens": 9_000, "cost": 40_000_000}[cap]
    amount = spent(kept) + int(where * spent(loop)) + largest
    text = f"${amount / 10**9:.6f}" if cap == "cost" else str(amount)
    run = compiled(
        planned_job(tmp_path / "cut", examples=80, settings=(*STEPS, f"budget.{cap}={text}")), models(used=used)
    )
    a_whole_test_or_none(run)
    if run.compiled.trained.state.accepted:
        assert run.compiled.tested.verdict.n == len(run.estimated.dataset.test), run.compiled.tested.verdict
    assert run.compiled.trained.stopped == cap


def test_a_test_whose_retries_the_cap_cuts_is_judged_by_what_was_measured(tmp_path: Path) -> None:
    """One example never answers; its retries would pass the cap on calls, the other 39 pairs stand."""
    job = planned_job(tmp_path, examples=80, settings=STEPS)
    test = job.estimated.dataset.test
    lost = str(test[0].inputs["question"])
    whole = compiled(job, models())
    calls = whole.client.ledger.paid.spent.calls - len(test) - len(job.estimated.dataset.validation)

    def fate(role: str, text: str, number: int) -> Any:
        return ConnectionError("gone") if role == "target" and text.endswith(lost) else None

    run = compiled(
        planned_job(tmp_path / "cut", examples=80, settings=(*STEPS, f"budget.calls={calls + 3}")),
        models(fate=fate),
        attempts=1,
    )
    verdict = run.compiled.tested.verdict
    assert run.compiled.trained.state.accepted
    assert verdict.n == len(test) - 1
    assert verdict.verdict == "improved"


def test_usage_above_a_reservation_stops_the_run_and_nothing_is_written(tmp_path: Path) -> None:
    def used(text: str, number: int) -> tuple[int, int]:
        return (100, 90_000) if number == 60 else (100, 5)

    scripted = models(used=used)
    with pytest.raises(PermanentFailure, match="used 90,100 tokens in one call") as stopped:
        compiled(planned_job(tmp_path, examples=80, settings=STEPS), scripted, concurrency=1)
    assert "max_tokens" in str(stopped.value.hint)
    assert len(scripted.sent) == 61
    assert not (tmp_path / "skills").exists()


def test_a_cap_below_the_baseline_ends_the_run_with_the_caps_name(tmp_path: Path) -> None:
    job = planned_job(tmp_path, examples=80, settings=(*STEPS, "budget.calls=10"))
    with pytest.raises(BudgetReached, match="the budget's cap on calls does not admit the next call"):
        compiled(job, models())
    assert not (tmp_path / "skills").exists()


def test_an_unpriced_run_counts_no_dollars_and_a_priced_one_to_the_nano(tmp_path: Path) -> None:
    run = compiled(planned_job(tmp_path, examples=80, settings=STEPS), models())
    lines = run.client.ledger.charged.lines
    for (role, _), tally in lines.items():
        entry, exit_ = (1000, 4000) if role == "target" else (5000, 30_000)
        assert tally.cost == tally.prompt * entry + tally.completion * exit_
    assert run.compiled.lock.charged.cost * 10**9 == sum(tally.cost for tally in lines.values())
