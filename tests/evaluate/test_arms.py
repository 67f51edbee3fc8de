"""Whether training beat the skill: what is claimed, and what is not."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest_cli import PROGRAM
from evaluations import Failing, copied
from rich.console import Console

from skillc.data.dataset import load_data
from skillc.data.split import input_marks, marks
from skillc.errors import SkillcError
from skillc.evaluate.adapters.adapter import CONFIG, TRAINING, Training, base_notes, check_untrained, served_adapters
from skillc.evaluate.adapters.answer import answers, break_even, judge_lines
from skillc.evaluate.adapters.job import ArmsJob, prepare_arms
from skillc.evaluate.adapters.judges import judged_by, read_flips
from skillc.evaluate.adapters.report import arms_json, arms_preview_lines, arms_table, word_of
from skillc.evaluate.adapters.run import ArmsEvaluation, evaluate_arms
from skillc.evaluate.files import csv_text
from skillc.evaluate.job import EvalOptions, prepare_eval
from skillc.evaluate.several import prepare_run
from skillc.frontend import plan_file
from skillc.models.calls import Call
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.plan.lock import read_lock
from skillc.run.stop import Stop

LOCK = "skills/sort-things.lock"
Compiled = tuple[Path, Any, Any]


@pytest.fixture
def folder(compiled: Compiled, tmp_path: Path) -> Path:
    noisy = 'model tuned = "rulebook/v1" { noise = 0.3 }\nmodel twin = "rulebook/v1" { noise = 0.0 }\n'
    return copied(compiled, tmp_path / "things", PROGRAM.replace("data {", noisy + "data {"))


def arms_job(folder: Path, *settings: str, **wanted: Any) -> ArmsJob:
    planned = plan_file(folder / "things.skill", settings=settings, runnable=True, complete=False)
    return prepare_arms(planned, EvalOptions(**wanted))


def measured(
    folder: Path, *settings: str, client: Callable[..., Client] = Client, stop: Stop | None = None, **wanted: Any
) -> ArmsEvaluation:
    job = arms_job(folder, *settings, **wanted)
    with client(job.plan, cache_folder=folder / ".skillc" / "cache", root=folder) as door:
        return evaluate_arms(job, SilentObserver(), door, stop)


def shown(found: ArmsEvaluation) -> str:
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(arms_table(found))
    return page.getvalue()


def words(found: ArmsEvaluation) -> dict[str, str]:
    return {each.pair.name: word_of(each) for each in found.compared}


# ---- what is compared -----------------------------------------------------------------------------


def test_four_arms_on_the_same_examples_are_one_look_and_one_answer(folder: Path) -> None:
    before = len(read_lock(folder / LOCK).looks)
    found = measured(folder, adapter_models=("tuned",))
    assert [each.arm.name for each in found.scored] == ["base", "skill", "lora", "skill+lora"]
    assert {each.score.goal.n for each in found.scored} == {len(found.job.examples)}
    assert [each.pair.name for each in found.compared] == [
        "lora – skill",
        "skill+lora – skill",
        "skill+lora – lora",
        "skill – base",
        "lora – base",
        "skill+lora – base",
    ]
    for each in found.compared:
        assert each.duel.wins + each.duel.losses + each.duel.ties == len(found.job.examples)
        assert each.dropped == 0
    assert words(found)["skill – base"] == "better"
    assert words(found)["lora – skill"] == "worse"
    (answer, *_) = answers(found)
    assert answer.startswith("the skill beat training by ")
    assert "by Holm over 6 pairs" in answer
    looks = read_lock(folder / LOCK).looks
    assert (len(looks), found.look) == (before + 1, before + 1)
    again = measured(folder, adapter_models=("tuned",))
    assert read_lock(folder / LOCK).looks == looks
    total: Any = again.spent["paid"]
    assert total["total"]["calls"] == 0
    assert answers(again) == answers(found)


def test_the_level_shrinks_with_the_looks_and_a_claim_has_an_interval_without_zero(folder: Path) -> None:
    found = measured(folder, adapter_models=("tuned",))
    assert found.job.level == Fraction(1, 20) / found.look**2
    for each in found.compared:
        low, high = each.member.verdict.interval or (Fraction(0), Fraction(0))
        assert (low > 0 or high < 0) == (word_of(each) in ("better", "worse"))


def test_tokens_are_those_of_each_arm_and_the_skill_costs_some(folder: Path) -> None:
    found = measured(folder, adapter_models=("tuned",))
    sent = {each.arm.name: each.score.tally.prompt for each in found.scored}
    assert sent["base"] == sent["lora"] < sent["skill"] == sent["skill+lora"]
    told: Any = arms_json(found)
    assert [arm["tokens_sent"] for arm in told["arms"]] == list(sent.values())
    assert told["arms"][3]["skill"] == "compiled"
    assert told["arms"][3]["adapter"] == "tuned"
    assert told["answer"] == answers(found)
    assert "lora – skill" in shown(found)
    assert max(map(len, shown(found).splitlines())) <= 80
    assert len(csv_text([found]).splitlines()) == 1 + 4 * len(found.job.examples)


def test_the_default_is_held_out_and_elsewhere_nothing_is_claimed(folder: Path) -> None:
    assert arms_job(folder, adapter_models=("tuned",)).split == "test"
    before = read_lock(folder / LOCK).looks
    found = measured(folder, adapter_models=("tuned",), split="validation")
    assert answers(found) == [
        "no answer: the skill was selected on these examples, so its score here is too high; `--split test` has "
        "held-out examples, and counts a look"
    ]
    told: Any = arms_json(found)
    assert {pair["verdict"] for pair in told["pairs"]} == {None}
    assert read_lock(folder / LOCK).looks == before
    assert not any("look" in line for line in arms_preview_lines(found.job))


def test_two_adapters_are_each_compared_with_the_skill(folder: Path) -> None:
    found = measured(folder, adapter_models=("tuned", "twin"), arms=("skill", "lora"))
    assert [each.pair.name for each in found.compared] == ["lora tuned – skill", "lora twin – skill"]
    (one, other) = answers(found)
    assert one.startswith("the skill beat training (tuned) by ")
    assert other.startswith("the skill beat training (twin) by ")


# ---- what is not claimed --------------------------------------------------------------------------


def test_an_adapter_that_changes_nothing_is_not_better_and_the_detectable_difference_is_named(folder: Path) -> None:
    found = measured(folder, adapter_models=("twin",), arms=("base", "lora"))
    assert words(found) == {"lora – base": "not shown"}
    (answer, *_) = answers(found)
    assert answer.startswith("no difference between training and the base model can be shown (+0.0")
    few = measured(folder, adapter_models=("tuned",), arms=("base", "lora"))
    assert words(few) == {"lora – base": "not shown"}
    (answer, *_) = answers(few)
    assert "examples the smallest difference that would have shown is " in answer


def test_an_arm_whose_transport_fails_is_unmeasured_and_never_scored(folder: Path) -> None:
    class Down(Failing):
        @staticmethod
        def fails(call: Call) -> str | None:
            return "transient" if call.role == "adapter tuned" else None

    found = measured(folder, client=Down, adapter_models=("tuned",))
    scores = {each.arm.name: each.score for each in found.scored}
    assert scores["lora"].goal.mean is None
    assert scores["lora"].unmeasured == {"transport": len(found.job.examples)}
    assert scores["skill"].goal.n == len(found.job.examples)
    assert words(found)["lora – skill"] == "not measured"
    assert words(found)["skill – base"] == "better"
    assert answers(found)[0] == "not measured: no example was measured with both training and the skill"
    assert "unmeasured (transport), not scored" in shown(found)


def test_examples_that_fail_in_one_arm_drop_out_of_its_pairs_alone(folder: Path) -> None:
    class Patchy(Failing):
        @staticmethod
        def fails(call: Call) -> str | None:
            return "transient" if call.role == "adapter tuned" and "mango" in call.messages[-1].content else None

    found = measured(folder, client=Patchy, adapter_models=("tuned",))
    lost = sum("mango" in str(example.inputs) for example in found.job.examples)
    assert lost
    for each in found.compared:
        has_adapter = each.pair.arm.adapter is not None
        assert each.dropped == (lost if has_adapter else 0)
        assert each.member.verdict.n == len(found.job.examples) - each.dropped
    assert f"lora – skill {lost}" in " ".join(shown(found).split())


def test_a_test_split_that_is_cut_short_has_no_scores_and_counts_no_look(folder: Path) -> None:
    class Stopping(Failing):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.left = 20

        async def complete(self, call: Call) -> Any:
            self.left -= 1
            if not self.left:
                stop.ask()
            return await super().complete(call)

    stop = Stop(None)
    before = read_lock(folder / LOCK).looks
    found = measured(folder, client=Stopping, stop=stop, adapter_models=("tuned",))
    assert found.stopped == "interrupted"
    assert (found.scored, found.compared, found.rows) == ((), (), ())
    assert read_lock(folder / LOCK).looks == before
    assert "no look is counted" in " ".join(shown(found).split())


# ---- what the adapter was trained on, and what that cost ------------------------------------------


def test_an_adapter_that_was_trained_on_the_split_is_refused_by_id_and_by_input(folder: Path) -> None:
    job = arms_job(folder, adapter_models=("tuned",))
    data = load_data(job.plan, folder)
    (adapter,) = job.adapters
    for training in (Training(used=marks(data.test[:2])), Training(used_inputs=input_marks(data.test[:2]))):
        trained = _with(adapter, training)
        with pytest.raises(SkillcError, match="the adapter `tuned` was trained on 2 examples of `test`") as error:
            check_untrained([trained], data.test, "test", allowed=False)
        assert error.value.hint is not None
        assert "`--allow-trained`" in error.value.hint
        assert check_untrained([trained], data.test, "test", allowed=True)
    clean = _with(adapter, Training(used=marks(data.train), used_inputs=input_marks(data.train)))
    assert check_untrained([clean], data.test, "test", allowed=False) == []
    assert "nothing is recorded" in check_untrained([_with(adapter, None)], data.test, "test", allowed=False)[0]


def _with(adapter: Any, training: Training | None) -> Any:
    from dataclasses import replace

    return replace(adapter, training=training)


def test_the_adapter_has_paid_after_its_cost_by_what_a_call_saves(folder: Path) -> None:
    from dataclasses import replace

    found = measured(folder, adapter_models=("tuned",))
    skill, lora = found.scored[1], found.scored[2]
    paid = break_even(skill, lora, Training(hours=2.0, dollars=3.0))
    assert paid is not None
    assert paid.tokens > 0
    # The rulebook has neither a price nor a latency.
    assert (paid.calls, paid.unit) == (None, None)

    def costing(arm: Any, nano: int, seconds: float) -> Any:
        costs = replace(arm.score.costs, cost=nano * arm.score.costs.rollouts, median=seconds)
        return replace(arm, score=replace(arm.score, costs=costs))

    dear, cheap = costing(skill, 3_000_000, 0.5), costing(lora, 1_000_000, 0.25)
    paid = break_even(dear, cheap, Training(hours=2.0, dollars=3.0))
    assert paid is not None
    assert (paid.calls, paid.unit) == (1_500, "dollars")
    paid = break_even(dear, cheap, Training(hours=2.0))
    assert paid is not None
    assert (paid.calls, paid.unit) == (28_800, "hours")
    paid = break_even(cheap, dear, Training(hours=2.0, dollars=3.0))
    assert paid is not None
    assert (paid.calls, paid.unit) == (None, "dollars")


# ---- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"arms": ("lora",)}, "the arm `lora` needs an adapter"),
        ({"adapter_models": ("tuned",), "arms": ("base", "skill")}, "no arm uses the adapter"),
        ({"adapter_models": ("tuned",), "arms": ("lora",)}, "one arm alone can be compared with nothing"),
        ({"adapter_models": ("tuned",), "arms": ("initial", "lora")}, "the arm `initial` does not go with an adapter"),
        ({"adapter_models": ("tuned",), "against": "none"}, "`--against` does not go with an adapter"),
        ({"adapter_models": ("tuned",), "by": "shop"}, "`--by` does not go with an adapter"),
        ({"adapter_models": ("target",)}, "`--adapter-model target` is the target itself"),
        ({"adapter_models": ("tunde",)}, "no model `tunde`"),
        ({"adapters": ("nowhere",)}, "`--adapter` needs a target that skillc serves"),
    ],
)
def test_what_has_no_meaning_beside_an_adapter_is_refused(folder: Path, wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(SkillcError, match=message):
        arms_job(folder, **wanted)


@pytest.mark.parametrize("wanted", [{"allow_trained": True}, {"judge_check": Path("check.json")}])
def test_options_for_adapters_need_one(folder: Path, wanted: dict[str, Any]) -> None:
    planned = plan_file(folder / "things.skill", runnable=True, complete=False)
    with pytest.raises(SkillcError, match="is for an adapter, and none is named"):
        prepare_run(planned, EvalOptions(**wanted))


def test_a_program_without_a_compiled_skill_is_told_what_can_be_compared(shop: Path) -> None:
    text = PROGRAM.replace("data {", 'model tuned = "rulebook/v1" { noise = 0.3 }\ndata {')
    (shop / "things.skill").write_text(text)
    with pytest.raises(SkillcError, match="there is no skill to compare the adapter with") as error:
        arms_job(shop, adapter_models=("tuned",), split="validation")
    assert error.value.hint is not None
    assert "--arms base,lora" in error.value.hint


def test_base_and_skill_are_the_arms_none_and_compiled(folder: Path) -> None:
    planned = plan_file(folder / "things.skill", runnable=True, complete=False)
    jobs = [prepare_eval(planned, EvalOptions(arms=arms)) for arms in (("base", "skill"), ("none", "compiled"))]
    assert [[arm.name for arm in job.arms.each] for job in jobs] == [["none", "compiled"]] * 2
    one, other = (
        arms_job(folder, adapter_models=("tuned",), arms=arms)
        for arms in (("base", "skill", "lora"), ("none", "compiled", "lora"))
    )
    assert [arm.name for arm in one.each] == [arm.name for arm in other.each] == ["base", "skill", "lora"]


# ---- adapters of a served target ------------------------------------------------------------------

SERVED = PROGRAM.replace(
    'model target    = "rulebook/v1"',
    'model target = "hosted_vllm/./models/tiny" { serve = vllm { max_len = 4096; lora { shop = "adapters/shop" } } }',
)


def adapter_in(folder: Path, rank: int = 8, **training: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / CONFIG).write_text(json.dumps({"peft_type": "LORA", "r": rank}))
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    if training:
        (folder / TRAINING).write_text(json.dumps(training))
    return folder


@pytest.fixture
def served(shop: Path) -> Path:
    (shop / "things.skill").write_text(SERVED)
    adapter_in(shop / "adapters" / "shop", hours=0.5)
    return shop


def test_an_adapter_joins_the_server_of_the_target_for_this_plan_only(served: Path) -> None:
    before = (served / "things.skill").read_bytes()
    plan = plan_file(served / "things.skill", complete=False).plan
    folder = adapter_in(served / "tuned", hours=1.5, dollars=2)
    changed, (tuned, shop) = served_adapters(plan, [str(folder), "shop"], served)
    assert (tuned.name, tuned.model.model, tuned.model.role) == ("tuned", "hosted_vllm/tuned", "adapter tuned")
    assert tuned.training == Training(hours=1.5, dollars=2.0)
    assert shop.folder == served / "adapters" / "shop"
    target = changed.models["target"]
    assert tuned.model.serve == shop.model.serve == target.serve
    assert target.serve is not None
    assert target.serve["lora"] == {"shop": "adapters/shop", "tuned": str(folder)}
    assert target.serve["model"] == "./models/tiny"
    assert tuned.model.parameters == target.parameters
    assert (served / "things.skill").read_bytes() == before


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["nowhere"], "nowhere` does not exist"),
        (["empty"], "contains no adapter: `adapter_config.json` is missing"),
        (["bare"], "contains no weights"),
        (["prefix"], "is of the type `PREFIX_TUNING`"),
        (["shop=tuned"], "the program declares another folder for the adapter `shop`"),
        (["x=tuned", "x=adapters/shop"], "two adapters have the name `x`"),
        (["a b=tuned"], "`a b` is no name for an adapter"),
        (["broken"], "is not a JSON object"),
    ],
)
def test_what_is_no_adapter_is_refused_before_a_server_starts(
    served: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str], message: str
) -> None:
    monkeypatch.chdir(served)
    adapter_in(served / "tuned")
    (served / "empty").mkdir()
    (adapter_in(served / "bare") / "adapter_model.safetensors").unlink()
    (adapter_in(served / "prefix") / CONFIG).write_text('{"peft_type": "PREFIX_TUNING"}')
    (adapter_in(served / "broken") / TRAINING).write_text("half a fi")
    plan = plan_file(served / "things.skill", complete=False).plan
    with pytest.raises(SkillcError, match=message):
        served_adapters(plan, texts, served)


def test_an_adapter_of_another_base_is_noted(served: Path) -> None:
    plan = plan_file(served / "things.skill", complete=False).plan
    for base, count in (("./models/tiny", 0), ("/somewhere/tiny", 0), ("Qwen/Qwen3-4B", 1), (None, 0)):
        config = {"peft_type": "LORA", "r": 8, "base_model_name_or_path": base}
        (served / "adapters" / "shop" / CONFIG).write_text(json.dumps(config))
        changed, adapters = served_adapters(plan, ["shop"], served)
        assert len(base_notes(changed.models["target"], adapters, served)) == count


# ---- how often nothing is claimed ------------------------------------------------------------------

COINS = """
import hashlib
import json

def answer(messages, model, parameters):
    name, share = model.rsplit("-", 1)
    text = messages[-1]["content"]
    has_skill = "skill" if "sort texts" in messages[0]["content"] else "none"
    luck = int(hashlib.sha256(f"{name} {has_skill} {text}".encode()).hexdigest()[:8], 16) / 16**8
    right = next(row["kind"] for row in ROWS if row["text"] in text)
    said = right if luck < float(share) else "tool" if right != "tool" else "fruit"
    return f"[[ ## kind ## ]]\\n{said}\\n\\n[[ ## completed ## ]]"

ROWS = [json.loads(line) for line in open("things.jsonl")]
"""


def coin(role: str, name: str, share: float) -> str:
    return (
        f'model {role} = "python/{name}-{share}" '
        '{ backend = python("coins:answer"); price { input = $0; output = $0 } }\n'
    )


def coins(folder: Path, number: int, base: float, tuned: float) -> dict[str, str]:
    """What is claimed where two models are right at random, each with and without a skill."""
    lock = (folder / LOCK).read_bytes()
    text = PROGRAM.replace('model target    = "rulebook/v1"\n', coin("target", f"base{number}", base))
    (folder / "things.skill").write_text(text.replace("data {", coin("tuned", f"tuned{number}", tuned) + "data {"))
    try:
        return words(measured(folder, adapter_models=("tuned",)))
    finally:
        # Each evaluation is a first one.
        (folder / LOCK).write_bytes(lock)


@pytest.fixture
def coined(compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = copied(compiled, tmp_path / "coins")
    (folder / "coins.py").write_text(COINS)
    monkeypatch.chdir(folder)
    return folder


def test_a_difference_that_is_there_is_claimed_in_its_direction(coined: Path) -> None:
    claimed = coins(coined, 0, base=0.3, tuned=0.95)
    assert claimed["lora – base"] == claimed["lora – skill"] == "better"
    assert claimed["skill – base"] == "not shown"


@pytest.mark.thorough
def test_where_nothing_differs_almost_nothing_is_claimed(coined: Path) -> None:
    runs = [coins(coined, number, base=0.6, tuned=0.6) for number in range(48)]
    claimed = [run for run in runs if set(run.values()) != {"not shown"}]
    # The level of the second look is 0.05 / 4 for all six pairs together: 0.6 of 48 by chance.
    assert len(claimed) <= 3


# ---- judges ----------------------------------------------------------------------------------------


def check_file(folder: Path, again: float | None, order: float | None, model: str = "rulebook/v1") -> Path:
    rates = [None if rate is None else {"n": 50, "differ": rate, "interval": None} for rate in (again, order)]
    judge = {"models": {"optimizer": model}, "repeats": rates[0], "other_order": rates[1]}
    (folder / "check.json").write_text(json.dumps({"judges": [judge]}))
    return folder / "check.json"


@pytest.mark.parametrize(
    ("again", "order", "said"),
    [
        (
            0.53,
            0.4,
            "flips 53 % of its verdicts when asked again and 40 % of its verdicts in the other order; that is high",
        ),
        (0.02, None, "flips 2 % of its verdicts when asked again; the other order is not measured"),
        (0.02, 0.04, "flips 2 % of its verdicts when asked again and 4 % of its verdicts in the other order"),
        (None, None, "whose flip rate is not known"),
    ],
)
def test_the_flip_rate_of_a_judge_is_said_beside_the_answer(
    folder: Path, again: float | None, order: float | None, said: str
) -> None:
    plan = plan_file(folder / "things.skill", complete=False).plan
    found = SimpleNamespace(
        job=SimpleNamespace(
            judged=("optimizer",),
            planned=SimpleNamespace(path=folder / "things.skill"),
            flips=read_flips(check_file(folder, again, order), plan),
        )
    )
    (line,) = judge_lines(cast("Any", found))
    assert said in line
    assert ("that is high" in line) == ((again or 0) > 0.1)


def test_a_check_of_another_judge_or_of_nothing_is_not_used(folder: Path) -> None:
    plan = plan_file(folder / "things.skill", complete=False).plan
    assert read_flips(check_file(folder, 0.1, 0.1, model="other/judge"), plan) == {}
    (folder / "check.json").write_text("{}")
    with pytest.raises(SkillcError, match=r"check\.json` is no check of judges"):
        read_flips(folder / "check.json", plan)
    with pytest.raises(SkillcError, match=r"gone\.json` cannot be read"):
        read_flips(folder / "gone.json", plan)


def test_without_a_judge_nothing_is_said_of_one(folder: Path) -> None:
    assert judged_by(plan_file(folder / "things.skill", complete=False).plan) == ()
    text = (folder / "things.skill").read_text()
    rubric = 'rubric fits = """\n  3  the kind is that of the thing\n  1  it is another\n"""\n'
    judged = text.replace("exact_match(kind)", "judge(kind, fits, model = optimizer)").replace(
        "data {", rubric + "data {"
    )
    (folder / "things.skill").write_text(judged)
    assert judged_by(plan_file(folder / "things.skill", complete=False).plan) == ("optimizer",)
