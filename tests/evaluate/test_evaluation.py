"""What an evaluation says is what the lock says, paired, with what failed left open."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import PROGRAM
from evaluations import FAMILY, Failing, copied, evaluated, job_of, paid, score, shown

from skillc.document.skill_md import to_skill_md
from skillc.errors import SkillcError
from skillc.evaluate.as_json import eval_json
from skillc.evaluate.report import preview_lines
from skillc.frontend import plan_file
from skillc.models.calls import Call, Completion
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.plan.initial import initial_document
from skillc.plan.lock import read_lock
from skillc.run.stop import Stop

LOCK = "skills/sort-things.lock"
SKILL = "skills/sort-things/SKILL.md"
Compiled = tuple[Path, Any, Any]


@pytest.fixture
def folder(compiled: Compiled, tmp_path: Path) -> Path:
    return copied(compiled, tmp_path / "things")


@pytest.fixture
def family(compiled: Compiled, tmp_path: Path) -> Path:
    return copied(compiled, tmp_path / "things", FAMILY)


# ---- what is scored -------------------------------------------------------------------------------


def test_the_means_are_those_of_the_lock_and_cost_nothing_again(folder: Path) -> None:
    found = evaluated(folder)
    validation = read_lock(folder / LOCK).validation
    for arm, locked in (("none", validation.none), ("initial", validation.initial), ("compiled", validation.best)):
        assert round(float(score(found, arm).goal.mean or 0), 6) == float(locked.mean or 0)
        assert score(found, arm).goal.n == locked.n
    assert paid(found) == 0
    assert paid(found, "charged") == found.job.bound.most.calls == 3 * len(found.job.examples)


def test_a_gain_is_the_difference_to_the_initial_skill_with_interval_and_p(folder: Path) -> None:
    found = evaluated(folder)
    gains = {gain.arm.name: gain.verdict for gain in found.models[0].gains}
    assert set(gains) == {"none", "compiled"}
    for arm, verdict in gains.items():
        assert verdict.gain == (score(found, arm).goal.mean or 0) - (score(found, "initial").goal.mean or 0)
        assert verdict.interval is not None
        assert verdict.p is not None
        assert verdict.interval[0] <= verdict.gain <= verdict.interval[1]
    assert gains["compiled"].p is not None
    assert gains["compiled"].p < Fraction(1, 20)


@pytest.mark.parametrize("against", ["none", "compiled"])
def test_the_user_says_what_the_others_are_compared_with(folder: Path, against: str) -> None:
    found = evaluated(folder, against=against)
    gains = {gain.arm.name: gain.verdict for gain in found.models[0].gains}
    assert set(gains) == {"none", "initial", "compiled"} - {against}
    for arm, verdict in gains.items():
        assert verdict.gain == (score(found, arm).goal.mean or 0) - (score(found, against).goal.mean or 0)
    assert eval_json(found)["reference"] == against
    assert found.models[0].over_none is None


def test_a_file_to_compare_with_is_scored_too(folder: Path) -> None:
    mine = folder / "mine.md"
    mine.write_text('- If the text mentions "hammer", answer tool.\n')
    found = evaluated(folder, against=str(mine))
    assert {gain.arm.name for gain in found.models[0].gains} == {"none", "initial", "compiled"}
    assert found.job.arms.reference is not None
    assert found.job.arms.reference.name == str(mine)


def test_what_is_left_out_cannot_be_compared_with(folder: Path, shop: Path) -> None:
    with pytest.raises(SkillcError, match="the initial skill is not scored") as error:
        job_of(folder, against="initial", without=("initial",))
    assert error.value.hint == "remove `--without initial`"
    with pytest.raises(SkillcError, match="the compiled skill is not scored") as error:
        job_of(shop, against="compiled")
    assert error.value.hint == "compile the program first"


def test_what_the_compiled_skill_adds_to_no_skill_is_said_and_never_claimed(folder: Path) -> None:
    found = evaluated(folder)
    over = found.models[0].over_none
    assert over is not None
    assert over.verdict.gain == (score(found, "compiled").goal.mean or 0) - (score(found, "none").goal.mean or 0)
    assert "against no skill the compiled skill gains +" in shown(found)
    assert "95 % interval" in shown(found)
    before = read_lock(folder / LOCK).looks
    tested = evaluated(folder, split="test", skills=())
    assert "`--against none` tests it" in " ".join(shown(tested).split())
    told: Any = eval_json(tested)
    assert told["models"][0]["compiled_over_none"]["interval"] is None
    # No skill against the initial one is a look, the compiled skill against none is not.
    assert len(read_lock(folder / LOCK).looks) == len(before) + 1


def test_each_interval_holds_its_mean(folder: Path) -> None:
    for each in evaluated(folder).models[0].scores:
        assert each.interval is not None
        assert each.goal.mean is not None
        assert 0 <= each.interval[0] <= each.goal.mean <= each.interval[1] <= 1


def test_on_validation_nothing_is_claimed_and_no_look_is_counted(folder: Path) -> None:
    before = (folder / LOCK).read_bytes()
    found = evaluated(folder)
    told: Any = eval_json(found)
    assert told["selected_on"] is True
    assert all(pair["verdict"] is None and pair["look"] is None for pair in told["models"][0]["pairs"])
    assert "was selected on" in shown(found)
    assert "verdict" not in shown(found)
    assert (folder / LOCK).read_bytes() == before


def test_a_skill_from_elsewhere_is_one_more_arm(folder: Path) -> None:
    mine = folder / "mine.md"
    mine.write_text('---\nname: x\ndescription: "by hand"\n---\n- If the text mentions "hammer", answer tool.\n')
    found = evaluated(folder, skills=(mine,))
    assert [each.arm.name for each in found.models[0].scores] == ["none", "initial", "compiled", str(mine)]
    arm = score(found, str(mine)).arm
    assert arm.skill is not None
    assert "description" not in arm.skill.sections[0].text


def test_a_folder_with_a_skill_is_a_skill_and_the_same_skill_gains_nothing(folder: Path) -> None:
    found = evaluated(folder, skills=(folder / "skills/sort-things",), without=("initial", "none"))
    assert found.job.arms.reference is not None
    assert found.job.arms.reference.name == "compiled"
    (gain,) = found.models[0].gains
    assert gain.verdict.gain == 0
    assert gain.verdict.reason == "the two skills are the same"


def test_arms_can_be_left_out(folder: Path) -> None:
    found = evaluated(folder, without=("none", "compiled"))
    assert [each.arm.name for each in found.models[0].scores] == ["initial"]
    assert found.made_with is None
    with pytest.raises(SkillcError, match="no skill is left"):
        job_of(folder, without=("none", "initial", "compiled"))


def test_other_metrics_are_shown_beside_the_goal(folder: Path) -> None:
    more = "metric size = clamp(tokens(kind), 0 tokens, 9 tokens)\nmetric wrong = 1 - correct\noptimize {"
    (folder / "things.skill").write_text(PROGRAM.replace("optimize {", more))
    found = evaluated(folder)
    one = score(found, "initial")
    assert one.metrics["wrong"].mean == 1 - (one.goal.mean or 0)
    assert one.metrics["size"].n == len(found.job.examples)
    assert "other metrics" in shown(found)
    assert "tokens" in shown(found)


def test_simple_classifiers_stand_beside_except_on_what_they_learnt_from(folder: Path) -> None:
    assert set(evaluated(folder).baselines) == {"most frequent label", "keywords"}
    assert evaluated(folder, split="train").baselines == {}


# ---- several models -------------------------------------------------------------------------------


def test_each_model_has_its_own_scores_pairs_and_spending(family: Path) -> None:
    found = evaluated(family, models=("target", "noisy"))
    plain, noisy = found.models
    assert (plain.made_here, noisy.made_here) == (True, False)
    assert score(plain, "compiled").goal.mean != score(noisy, "compiled").goal.mean
    count = len(found.job.examples)
    assert [each.tally.calls for model in found.models for each in model.scores] == [count] * 6
    for model in found.models:
        best, first = (score(model, arm).goal.mean or 0 for arm in ("compiled", "initial"))
        gain = next(gain for gain in model.gains if gain.arm.name == "compiled")
        assert gain.verdict.gain == best - first
    page = shown(found)
    assert "rulebook/v1 (target) *" in page
    assert "rulebook/v1 (noisy)\n" in "\n".join(line.rstrip() for line in page.splitlines()) + "\n"
    assert "* the compiled skill was made with `rulebook/v1`" in page


def test_a_function_of_the_users_own_is_a_model_among_others(family: Path) -> None:
    (family / "mine.py").write_text(
        "def apples(messages, model, parameters):\n    return '[[ ## kind ## ]]\\nfruit\\n\\n[[ ## completed ## ]]'\n"
    )
    own = 'model mine = "own/apples" { backend = python("mine:apples") }\ndata {'
    (family / "things.skill").write_text(FAMILY.replace("data {", own))
    found = evaluated(family, models=("target", "mine"))
    fruit = Fraction(sum(e.gold["kind"] == "fruit" for e in found.job.examples), len(found.job.examples))
    assert [each.goal.mean for each in found.models[1].scores] == [fruit] * 3
    assert all(gain.verdict.gain == 0 for gain in found.models[1].gains)
    assert "made with `rulebook/v1`" in shown(evaluated(family, models=("mine",)))


def test_a_model_that_cannot_be_reached_stops_it_before_the_first_is_asked(family: Path) -> None:
    (family / "mine.py").write_text(
        "def apples(messages, model, parameters):\n    open('asked', 'a').write('x')\n    return 'fruit'\n"
    )
    own = (
        'model mine = "own/apples" { backend = python("mine:apples") }\n'
        'model gone = "hosted_vllm/x/y" { base_url = "http://127.0.0.1:9/v1" }\ndata {'
    )
    (family / "things.skill").write_text(FAMILY.replace("data {", own))

    def door(*arguments: Any, **options: Any) -> Client:
        return Client(*arguments, **options, preflight=True)

    with pytest.raises(SkillcError, match=r"`gone`.*`hosted_vllm/x/y`"):
        evaluated(family, models=("mine", "gone"), client=door)
    assert not (family / "asked").exists()


def test_models_that_are_not_chosen_need_not_be_there(family: Path) -> None:
    text = FAMILY.replace('model optimizer = "rulebook/v1"', 'model optimizer = env("NOBODY_SETS_THIS")')
    (family / "things.skill").write_text(text)
    assert set(job_of(family, models=("noisy",)).plan.models) == {"noisy"}
    assert evaluated(family, models=("noisy",)).stopped is None


def test_a_compile_passes_over_the_models_that_only_eval_asks(shop: Path) -> None:
    """So it starts no server for them, needs no key of theirs, and is the run that it was without them."""
    more = 'model other = "openai/x" { key = env("NOBODY_SETS_THIS") }\ndata {'
    before = plan_file(shop / "things.skill", every_model=False).plan
    (shop / "things.skill").write_text(PROGRAM.replace("data {", more))
    assert plan_file(shop / "things.skill", every_model=False).plan == before
    assert "other" in plan_file(shop / "things.skill").plan.models


def test_samples_are_rollouts_of_each_example(family: Path) -> None:
    found = evaluated(family, models=("noisy",), samples=3, without=("none",))
    one = score(found, "initial")
    assert one.tally.calls == 3 * len(found.job.examples)
    assert one.goal.n == len(found.job.examples)
    assert found.job.plan.optimize.samples == 3
    assert "3 samples each" in shown(found)


# ---- the test split -------------------------------------------------------------------------------


def test_the_pair_that_the_compile_tested_keeps_its_number_and_its_verdict(folder: Path) -> None:
    lock = read_lock(folder / LOCK)
    found = evaluated(folder, split="test", without=("none",))
    (gain,) = found.models[0].gains
    assert (gain.look, gain.verdict.verdict) == (1, lock.verdict)
    assert gain.verdict.interval is not None
    assert [round(float(end), 6) for end in gain.verdict.interval] == [float(e) for e in lock.test.interval or ()]
    assert round(float(gain.verdict.p or 0), 6) == float(lock.test.p or 0)
    assert read_lock(folder / LOCK) == lock
    assert f"verdict   {lock.verdict}   compiled skill against initial skill" in shown(found)


def test_each_new_pair_is_a_look_that_asks_for_more_and_is_counted_once(family: Path) -> None:
    compiled_as = read_lock(family / LOCK)
    mine = family / "mine.md"
    mine.write_text("- If the text mentions hammer, answer tool.\n")
    (family / "things.skill").write_text(PROGRAM)
    wanted: dict[str, Any] = {"split": "test", "skills": (mine,)}
    first = evaluated(family, **wanted)
    assert {gain.arm.name: gain.look for gain in first.models[0].gains} == {"compiled": 1, str(mine): 2, "none": 3}
    assert {gain.look: gain.verdict.alpha for gain in first.models[0].gains} == {
        look: Fraction(1, 20) / look**2 for look in (1, 2, 3)
    }
    after = (family / LOCK).read_bytes()
    lock = read_lock(family / LOCK)
    assert len(lock.looks) == 3
    assert lock.model_copy(update={"looks": compiled_as.looks}) == compiled_as
    assert eval_json(evaluated(family, **wanted))["models"] == eval_json(first)["models"]
    assert (family / LOCK).read_bytes() == after


def test_another_model_is_another_look(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things", FAMILY)
    found = evaluated(folder, split="test", models=("target", "noisy"), without=("none",))
    assert [gain.look for model in found.models for gain in model.gains] == [1, 2]
    assert len(read_lock(folder / LOCK).looks) == 2


def test_without_a_lock_nobody_looks_at_the_test_split(shop: Path) -> None:
    with pytest.raises(SkillcError, match=r"looks at the test split: `.*sort-things\.lock` is missing") as error:
        job_of(shop, split="test")
    assert error.value.hint is not None
    assert "compile" in error.value.hint


def test_a_skill_that_learnt_from_the_test_split_is_not_tested_on_it(folder: Path) -> None:
    (folder / "things.skill").write_text(PROGRAM.replace("seed = 3", "seed = 4"))
    with pytest.raises(SkillcError, match=r"was made with .* of the current test split"):
        job_of(folder, split="test")


class OneByOne(Client):
    """A client whose replies come a tenth of a second apart, so that a stop finds some that are not there yet."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._asked = 0

    async def complete(self, call: Call) -> Completion:
        self._asked += 1
        await asyncio.sleep(0.1 * self._asked)
        return await super().complete(call)


class Impatient(SilentObserver):
    """Asks for a stop after some rollouts."""

    def __init__(self, stop: Stop, after: int) -> None:
        super().__init__()
        self._stop, self._left = stop, after

    def advance(self, count: int = 1) -> None:
        self._left -= count
        if self._left == 0:
            self._stop.ask()


@pytest.mark.parametrize("how", ["interrupted", "tokens"])
def test_a_test_that_is_cut_short_shows_no_score_and_counts_no_look(folder: Path, how: str) -> None:
    before = (folder / LOCK).read_bytes()
    if how == "tokens":
        whole: Any = evaluated(folder, split="test").spent
        (folder / LOCK).write_bytes(before)
        enough = whole["charged"]["total"]["tokens"] + 4_000
        found = evaluated(folder, f"budget.tokens={enough * 2 // 3}", split="test")
    else:
        stop = Stop()
        found = evaluated(folder, split="test", client=OneByOne, observer=Impatient(stop, 7), stop=stop)
    assert found.stopped == how
    assert found.models == ()
    assert "no scores, and no look is counted" in " ".join(shown(found).split())
    assert (folder / LOCK).read_bytes() == before


# ---- what fails, and what ends it -----------------------------------------------------------------


def test_what_fails_is_tried_again_and_stays_open_never_wrong(folder: Path) -> None:
    job = job_of(folder)
    lost = {str(example.inputs["text"]) for example in job.examples[:4]}

    doors: list[Failing] = []

    class Lossy(Failing):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            doors.append(self)

        @staticmethod
        def fails(call: Any) -> str | None:
            asked = str(call.messages[-1].content)
            return "cut" if call.stage == "compiled" and any(text in asked for text in lost) else None

    found = evaluated(folder, client=Lossy)
    one = score(found, "compiled")
    assert (one.unmeasured, one.not_run) == ({"cut": 4}, 0)
    assert one.goal.n == len(found.job.examples) - 4
    assert score(found, "initial").goal.n == len(found.job.examples)
    asked = [call for call in doors[0].calls if call.stage == "compiled"]
    assert len(asked) == len(found.job.examples) + 2 * 4
    gain = next(gain for gain in found.models[0].gains if gain.arm.name == "compiled")
    assert gain.verdict.n == one.goal.n
    page = " ".join(shown(found).split())
    assert "compiled skill: 4 examples unmeasured (cut); raise `max_tokens`" in page


def test_a_failure_that_passes_leaves_nothing_open(folder: Path) -> None:
    class Hiccup(Failing):
        first = True

        def fails(self, call: Any) -> str | None:  # type: ignore[override]
            now, self.first = self.first, False
            return "transient" if now else None

    assert all(not each.unmeasured for each in evaluated(folder, client=Hiccup).models[0].scores)


def test_interrupted_it_shows_what_it_has_and_later_asks_for_the_rest_alone(shop: Path) -> None:
    stop = Stop()
    found = evaluated(shop, client=OneByOne, observer=Impatient(stop, 7), stop=stop, without=("none",))
    assert found.stopped == "interrupted"
    (initial,) = found.models[0].scores
    assert initial.goal.n + initial.not_run == len(found.job.examples)
    assert initial.not_run > 0
    assert "not reached" in shown(found)
    assert "interrupted; the same command resumes" in shown(found)
    known = paid(found)
    assert known >= 7
    again = evaluated(shop, without=("none",))
    assert again.stopped is None
    assert paid(again) == len(again.job.examples) - known


def test_a_cap_ends_it_and_is_never_passed(shop: Path) -> None:
    whole: Any = evaluated(shop).spent
    cap = whole["charged"]["total"]["tokens"]
    found = evaluated(shop, f"budget.tokens={cap}")
    total: Any = found.spent["charged"]
    assert found.stopped == "tokens"
    assert total["total"]["tokens"] <= cap
    assert all(each.goal.n + each.not_run == len(found.job.examples) for each in found.models[0].scores)
    assert "the same command with a larger `tokens` resumes" in " ".join(shown(found).split())


@pytest.mark.parametrize("setting", ["budget.calls=10", "budget.tokens=900"])
def test_caps_that_cannot_pay_are_said_before_anything_is_sent(shop: Path, setting: str) -> None:
    with pytest.raises(SkillcError, match="cannot pay for this evaluation") as error:
        job_of(shop, setting)
    assert f"--set {setting.partition('=')[0]}=" in str(error.value.hint)
    assert not (shop / ".skillc").exists()


def test_what_it_takes_at_most_is_said_first(family: Path) -> None:
    job = job_of(family, models=("target", "noisy"), samples=2)
    calls = 2 * 3 * 2 * len(job.examples)
    assert preview_lines(job)[0].startswith(
        f"{len(job.examples)} validation examples x 3 arms x 2 models x 2 samples: "
    )
    assert f"at most {calls} calls" in preview_lines(job)[0]


# ---- a program's state ----------------------------------------------------------------------------


def test_before_a_compile_there_is_a_note(shop: Path) -> None:
    found = evaluated(shop)
    assert [each.arm.name for each in found.models[0].scores] == ["none", "initial"]
    assert "not compiled yet" in found.job.notes[0]
    assert "selected on" not in shown(found)


def test_a_skill_that_was_changed_by_hand_is_scored_as_it_stands_with_a_note(folder: Path) -> None:
    (folder / SKILL).write_text((folder / SKILL).read_text() + "\nAnswer tool.\n")
    assert "was edited since the compile" in job_of(folder).notes[0]


def test_a_skill_of_someone_elses_is_not_taken_for_the_compiled_one(shop: Path) -> None:
    (shop / SKILL).parent.mkdir(parents=True)
    (shop / SKILL).write_text(to_skill_md(initial_document(job_of(shop).plan)))
    job = job_of(shop)
    assert job.arms.compiled is None
    assert "was not written by skillc" in job.notes[0]


def test_a_changed_program_is_said(folder: Path) -> None:
    (folder / "things.skill").write_text(PROGRAM.replace("You sort texts.", "You sort all texts."))
    assert any("changed since the compile" in note for note in job_of(folder).notes)


def test_a_damaged_lock_is_an_error(folder: Path) -> None:
    (folder / LOCK).write_text(json.dumps({"format_version": 1}))
    with pytest.raises(SkillcError, match="is damaged"):
        job_of(folder)
