"""`skillc noise` finds what is planted in a target, at the concurrency that it was asked for."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import PROGRAM, skillc
from rich.console import Console

from skillc.errors import SkillcError
from skillc.evaluate.recheck.run import FIRST_SAMPLE
from skillc.frontend import plan_file
from skillc.models.calls import Call, Completion
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.noise.report import noise_json, noise_table, preview_line
from skillc.noise.run import NoiseFound, NoiseOptions, measure_noise, prepare_noise, sample_of
from skillc.optimize.host import SilentObserver
from skillc.run.stop import Stop

# Answers `fruit`, and with others in flight sometimes `unsure`; counts how many are in flight.
LOADED = """
import asyncio, random

draw, now, most = random.Random(1), 0, 0
alone, loaded = 0.0, 0.4

async def answer(messages, model, parameters):
    global now, most
    now += 1
    most = max(most, now)
    shared = False
    for _ in range(3):
        await asyncio.sleep(0)
        shared = shared or now > 1
    now -= 1
    text = "unsure" if draw.random() < (loaded if shared else alone) else "fruit"
    return "[[ ## kind ## ]]\\n" + text + "\\n\\n[[ ## completed ## ]]"
"""
OWN = PROGRAM.replace(
    'model target    = "rulebook/v1"', 'model target = "own/loaded" { backend = python("loaded:answer") }'
)


@pytest.fixture
def loaded(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (shop / "loaded.py").write_text(LOADED)
    (shop / "things.skill").write_text(OWN)
    monkeypatch.delitem(sys.modules, "loaded", raising=False)
    return shop


class Counting(Client):
    """A client that keeps its calls, and whose calls may fail."""

    failing: tuple[Any, ...] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.calls: list[Call] = []

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        if call.sample in self.failing:
            raise CallFailed("transient", "as the test wants it")
        return await super().complete(call)


def measured(
    folder: Path, *settings: str, stop: Stop | None = None, failing: tuple[Any, ...] = (), **wanted: Any
) -> tuple[NoiseFound, Counting]:
    planned = plan_file(folder / "things.skill", settings=settings, runnable=True, complete=False, every_model=False)
    job = prepare_noise(planned, NoiseOptions(**wanted))
    with Counting(job.plan, cache_folder=folder / ".skillc" / "cache", root=folder) as client:
        client.failing = failing
        return measure_noise(job, SilentObserver(), client, stop), client


def shown(found: NoiseFound) -> str:
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(noise_table(found))
    return page.getvalue()


def test_a_target_that_flips_under_load_is_steady_alone(loaded: Path) -> None:
    found, client = measured(loaded, repeats=6)
    alone, sixteen = found.at
    assert (alone.concurrency, sixteen.concurrency) == (1, 16)
    assert (alone.noise.flips, alone.noise.changed, alone.noise.deviation) == (0, 0, 0)
    assert alone.gates is not None
    assert (alone.gates.accepted, alone.gates.chance) == (False, 0)
    # A third of the examples is `fruit`, right in 60 % of rollouts; the others are wrong either way.
    assert sixteen.noise.flips_interval is not None
    assert sixteen.noise.flips_interval[0] <= 0.48 / 3 <= sixteen.noise.flips_interval[1]
    ((first, other, between),) = found.between
    assert (first, other) == (1, 16)
    assert between.mean_interval is not None
    assert between.mean_interval[0] <= -0.4 / 3 <= between.mean_interval[1] < 0
    assert len(client.calls) == 6 * 2 * len(found.job.examples) == found.job.bound.most.calls
    # Every call has a sample that no compile and no other repeat has.
    assert len({call.sample for call in client.calls}) == 12
    assert min(call.sample for call in client.calls) > FIRST_SAMPLE + 1_000  # type: ignore[type-var]


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_rollouts_are_in_flight_than_asked_for(loaded: Path, most: int) -> None:
    measured(loaded, repeats=2, concurrency=(most,))
    assert sys.modules["loaded"].most == most  # type: ignore[attr-defined]


def test_a_second_measurement_is_free_and_the_same_and_a_fresh_one_is_neither(loaded: Path) -> None:
    one, _ = measured(loaded, repeats=2, concurrency=(16,))
    again, _ = measured(loaded, repeats=2, concurrency=(16,))
    assert [each.noise for each in again.at] == [each.noise for each in one.at]
    paid: Any = again.spent["paid"]
    assert paid["total"]["calls"] == 0
    more, _ = measured(loaded, repeats=3, concurrency=(16,))
    assert more.at[0].noise.means[:2] == one.at[0].noise.means
    paid = more.spent["paid"]
    assert paid["total"]["calls"] == len(more.job.examples)


def test_the_margin_is_that_of_the_whole_split_and_of_the_programs_samples(loaded: Path) -> None:
    found, _ = measured(loaded, repeats=4, concurrency=(16,))
    told: Any = noise_json(found)
    assert told["margin"] == pytest.approx(1.6449 * 2**0.5 * told["concurrency"][0]["deviation"], rel=1e-3)
    assert "margin" in shown(found)
    assert f"+ {told['margin'] * 100:.1f}%" in shown(found)
    four, _ = measured(loaded, "optimize.samples=4", repeats=8, concurrency=(16,))
    deviation = four.at[0].noise.deviation
    assert noise_json(four)["margin"] == pytest.approx(1.6449 * 0.5**0.5 * (deviation or 0), rel=1e-3)
    few, _ = measured(loaded, repeats=4, concurrency=(16,), examples=6)
    size, whole = len(few.job.examples), len(few.job.dataset.validation)
    assert size == 6
    told = noise_json(few)
    expected = 1.6449 * 2**0.5 * told["concurrency"][0]["deviation"] * (size / whole) ** 0.5
    assert told["margin"] == pytest.approx(expected, rel=1e-3)


def test_gates_that_ask_for_more_than_the_noise_do_not_accept_it(loaded: Path) -> None:
    loose, _ = measured(loaded, repeats=2, concurrency=(16,))
    gate = "candidate.correct > incumbent.correct"
    margin: Any = noise_json(loose)["margin"]
    assert loose.at[0].gates is not None
    assert loose.at[0].gates.chance > 0.2
    for strict in (f"{gate} + {margin * 100:.1f}%", f"confidence({gate}) >= 95%"):
        (loaded / "things.skill").write_text(OWN.replace(gate, strict))
        found, _ = measured(loaded, repeats=2, concurrency=(16,))
        assert found.at[0].gates is not None
        # Of 3 examples that changed, all do in one direction in an eighth of the comparisons.
        assert found.at[0].gates.chance <= 0.15
        assert found.at[0].gates.chance < loose.at[0].gates.chance / 2
    # Two measurements of two samples take four repeats.
    found, _ = measured(loaded, "optimize.samples=2", repeats=3, concurrency=(16,))
    assert found.at[0].gates is None


def test_failed_rollouts_are_not_scored_and_are_tried_again(loaded: Path) -> None:
    found, client = measured(loaded, repeats=3, concurrency=(1,), failing=(sample_of(1, 1),))
    (one,) = found.at
    size = len(found.job.examples)
    assert one.unmeasured == {"transport": size}
    assert (one.noise.examples, one.noise.flips, one.noise.means) == (size, 0, ())
    assert len(client.calls) == 5 * size
    assert "unmeasured (transport)" in shown(found)
    with pytest.raises(SkillcError, match=f"no example was measured twice at one concurrency: {2 * size} transport"):
        measured(loaded, repeats=3, concurrency=(1,), failing=(sample_of(1, 1), sample_of(1, 2)))


def test_an_interrupted_measurement_reports_what_it_has(loaded: Path) -> None:
    class Halfway(Stop):
        """A stop request after two repeats."""

        asked = 0

        @property
        def reason(self) -> str | None:
            self.asked += 1
            return "interrupted" if self.asked > 6 else None

    found, _ = measured(loaded, repeats=6, concurrency=(1, 16), stop=Halfway(None))
    assert found.stopped == "interrupted"
    assert found.at[0].noise.examples == len(found.job.examples)
    assert found.at[1].not_run > 0
    assert "the same command resumes" in shown(found)


def test_the_compiled_skill_a_file_or_the_initial_one(loaded: Path) -> None:
    mine = loaded / "mine.md"
    mine.write_text("Answer fruit.\n")
    found, client = measured(loaded, repeats=2, concurrency=(4,), skill=mine)
    assert found.job.arm.name == str(mine)
    assert "Answer fruit." in str(client.calls[0].messages)
    found, _ = measured(loaded, repeats=2, concurrency=(4,))
    assert found.job.arm.name == "initial"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--concurrency", "1,x"), "`1,x` is no list of whole numbers above 0"),
        (("--concurrency", "0"), "whole numbers above 0"),
        (("--repeats", "1"), "--repeats"),
        (("--split", "test"), "train"),
        (("--skill", "gone.md"), "gone.md"),
        (("--set", "budget.calls=5"), "the budget cannot pay for this measurement: it takes 138 calls"),
    ],
)
def test_a_users_mistake_is_a_message(shop: Path, arguments: tuple[str, ...], said: str) -> None:
    done = skillc("noise", "things.skill", *arguments, folder=shop)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_concurrency_above_the_models_own_is_refused(loaded: Path) -> None:
    (loaded / "things.skill").write_text(OWN.replace(':answer")', ':answer"); concurrency = 4'))
    with pytest.raises(SkillcError, match="16 rollouts are never in flight at once") as raised:
        measured(loaded)
    assert raised.value.hint == "raise it, or use `--concurrency 4`"


def test_as_a_user_types_it(shop: Path) -> None:
    (shop / "things.skill").write_text(
        PROGRAM.replace('target    = "rulebook/v1"', 'target = "rulebook/v1" { noise = 0.3 }')
    )
    done = skillc("noise", "things.skill", "--examples", "12", "--json", folder=shop)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["format_version"], told["examples"], told["repeats"], told["stopped"]) == (1, 12, 3, None)
    assert [each["concurrency"] for each in told["concurrency"]] == [1, 16]
    assert "12 validation examples x 3 repeats x 2 concurrencies: at most 72 calls" in done.stderr
    table = skillc("noise", "things.skill", "--examples", "12", "--quiet", folder=shop)
    assert max(map(len, table.stdout.splitlines())) <= 80
    assert "paid      0 calls" in table.stdout
    fresh = skillc("noise", "things.skill", "--examples", "12", "--json", "--fresh", folder=shop)
    assert json.loads(fresh.stdout)["spent"]["paid"]["total"]["calls"] == 72


def test_the_preview_states_the_bound(loaded: Path) -> None:
    planned = plan_file(loaded / "things.skill", runnable=True, complete=False, every_model=False)
    job = prepare_noise(planned, NoiseOptions(concurrency=(2,), repeats=2, examples=5))
    assert preview_line(job).startswith("5 validation examples x 2 repeats x 1 concurrency: at most 10 calls")
