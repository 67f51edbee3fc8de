"""An ablation finds what each rule adds, drops what adds nothing, and leaves alone what it may not touch."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import skillc
from planted import HARMS, LOCK, NOTHING, PAYS, planted_in
from rich.console import Console

from skillc.ablate.job import ABLATED, AblateOptions, Ablation, RuleResult, ablate_job, check_caps, cured_by_edits
from skillc.ablate.report import ablate_json, ablate_report
from skillc.document.skill import Rule
from skillc.errors import SkillcError
from skillc.frontend import estimate, plan_file
from skillc.models.calls import Call, Completion
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.optimize.host import Observer, SilentObserver
from skillc.optimize.strategies.ablate import in_order
from skillc.pipeline.compile import Job
from skillc.pipeline.tidy import skill_to_tidy
from skillc.plan.lock import read_lock
from skillc.plan.settings import override
from skillc.run.history import read_history
from skillc.stats.family import is_claim_settled, judge_family
from skillc.stats.verdict import PairedScore

IDLE = 'If the text mentions "zeppelin", answer tool.'
AGAIN = f"{PAYS} Always."
HISTORY = "skills/sort-things.history.jsonl"


def job_in(folder: Path) -> Job:
    planned = plan_file(folder / "things.skill", runnable=True, every_model=False)
    return Job(planned, estimate(planned), folder / "skills", folder / ".skillc")


def ablated(
    folder: Path,
    *caps: str,
    client: type[Client] = Client,
    observer: Observer | None = None,
    **options: Any,
) -> Ablation:
    job = job_in(folder)
    capped = override(job.planned.plan, dict(cap.split("=") for cap in caps))
    with client(capped, cache_folder=folder / ".skillc" / "cache", root=folder) as door:
        skill = skill_to_tidy(job, None)
        return ablate_job(job, skill, AblateOptions(**options), observer or SilentObserver(), door)


def of(found: Ablation, text: str) -> RuleResult:
    return next(each for each in found.rules if each.rule.text == text)


def shown(found: Ablation) -> str:
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(ablate_report(found, "correct"))
    return page.getvalue()


def calls(found: Ablation) -> int:
    charged: Any = found.shortened.spent["charged"]
    return int(charged["total"]["calls"])


@dataclass(frozen=True)
class World:
    """A skill before and after an ablation, with what a dry run had said of it."""

    folder: Path
    dry: Ablation
    found: Ablation


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = planted_in(tmp_path_factory.mktemp("ablate") / "things", NOTHING, PAYS, IDLE, HARMS)
    before = (folder / "skills" / "sort-things" / "SKILL.md").read_bytes()
    dry = ablated(folder, dry_run=True)
    assert (folder / "skills" / "sort-things" / "SKILL.md").read_bytes() == before
    assert not (folder / HISTORY).exists()
    return World(folder, dry, ablated(folder))


# ---- what is found ---------------------------------------------------------------------------------


def test_a_dry_run_measures_what_each_rule_adds_and_drops_nothing(world: World) -> None:
    dry = world.dry
    assert [of(dry, rule).finding for rule in (PAYS, HARMS, NOTHING, IDLE)] == [
        *("pays", "harms", "no evidence", "no evidence"),
    ]
    assert not dry.dropped
    assert dry.shortened.compiled is None
    examples = job_in(world.folder).estimated.dataset.validation
    animals = Fraction(sum(each.gold["kind"] == "animal" for each in examples), len(examples))
    assert of(dry, HARMS).adds == (-animals, -animals)
    for each in dry.rules:
        assert each.interval is not None
        low, high = each.interval
        assert (low > 0 or high < 0) == (each.finding in ("pays", "harms"))
    assert "`--dry-run` drops no rule; no file was changed" in shown(dry)


def test_rules_that_add_nothing_or_harm_are_dropped_and_the_rest_is_tested_and_written(world: World) -> None:
    found = world.found
    assert {each.rule.text for each in found.dropped} == {NOTHING, IDLE, HARMS}
    assert of(found, PAYS).finding == "pays"
    assert found.shortened.stopped == ABLATED
    text = (world.folder / "skills" / "sort-things" / "SKILL.md").read_text()
    assert PAYS in text
    assert not any(rule in text for rule in (NOTHING, IDLE, HARMS))
    lock = read_lock(world.folder / LOCK)
    assert (lock.verdict, len(lock.looks)) == ("improved", 2)
    assert lock.stopped.startswith("ablated after decision")
    before, after = found.shortened.validation
    assert before.mean is not None
    assert after.mean == 1 > before.mean


def test_the_history_has_each_decision_with_what_was_left_out_and_why(world: World) -> None:
    lines: list[Any] = read_history(world.folder / HISTORY)
    assert {line["kind"] for line in lines} == {"ablate"}
    assert [line["place"] for line in lines] == [f"ablate {i}" for i in range(1, len(lines) + 1)]
    gone = [edit for line in lines if line["result"] == "accept" for edit in line["edits"]]
    assert all(edit["op"] == "delete" and "gained and 0 lost of" in edit["rationale"] for edit in gone)
    assert len(gone) == len(world.found.dropped)
    assert {edit["rationale"].split("`")[1] for edit in gone} == {NOTHING, HARMS} | {IDLE}
    kept = [line for line in lines if line["result"] == "reject"]
    assert [line["blame"] for line in kept] == ["no loss"]
    fates = [fate for line in lines for fate in line.get("fates", ())]
    assert {fate["fate"] for fate in fates} == {"pruned"}


def test_a_measurement_that_is_cut_short_claims_what_the_whole_one_claims(world: World) -> None:
    """The rule that pays is settled before all of validation is measured, at bounds that hold for every completion."""
    whole, early = of(world.dry, PAYS), of(world.found, PAYS)
    assert early.measured < early.of
    assert whole.adds is not None
    assert early.adds is not None
    assert early.interval is not None
    assert early.finding == whole.finding == "pays"
    assert early.adds[0] <= whole.adds[0] <= early.adds[1]
    assert early.interval[0] > 0
    assert f"≥+{float(early.adds[0]) * 100:.1f}" in shown(world.found)


def test_the_object_has_the_same_figures(world: World) -> None:
    told: Any = ablate_json(world.found)
    assert told["changed"] is True
    assert sorted(told["dropped"]) == sorted([NOTHING, IDLE, HARMS])
    assert told["tokens"]["after"] < told["tokens"]["before"]
    by_text = {rule["text"]: rule for rule in told["rules"]}
    assert by_text[PAYS]["finding"] == "pays"
    assert by_text[PAYS]["result"] == "kept"
    assert by_text[IDLE]["result"] == "dropped"
    assert told["compiled"]["verdict"] == "improved"


def test_of_two_rules_that_say_the_same_one_stays(tmp_path: Path) -> None:
    found = ablated(planted_in(tmp_path / "things", PAYS, AGAIN))
    assert len(found.dropped) == 1
    (kept,) = (each for each in found.rules if not each.dropped)
    assert kept.finding == "pays"
    before, after = found.shortened.validation
    assert before.mean == after.mean == 1


def test_a_rule_that_the_user_keeps_is_neither_measured_nor_dropped(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", IDLE, NOTHING, PAYS)
    found = ablated(folder, keep=(2,))
    assert (of(found, NOTHING).kept, of(found, NOTHING).measured) == (True, 0)
    assert [each.rule.text for each in found.dropped] == [IDLE]
    with pytest.raises(SkillcError, match="no rule 9 to keep: the skill has 2 rules"):
        ablated(folder, keep=(9,))
    with pytest.raises(SkillcError, match="names every rule"):
        ablated(folder, keep=(1, 2))


# ---- budget ----------------------------------------------------------------------------------------


def test_a_cap_ends_it_with_the_decisions_so_far_and_a_larger_one_resumes(tmp_path: Path, world: World) -> None:
    folder = planted_in(tmp_path / "things", NOTHING, PAYS, IDLE, HARMS)
    least = 100
    short = ablated(folder, f"budget.calls={least}", dry_run=True)
    assert short.shortened.stopped == "calls"
    assert calls(short) <= least
    assert "not measured" in {each.finding for each in short.rules}
    assert "the budget's `calls` was reached; a larger one resumes" in shown(short)
    assert ablate_json(ablated(folder, dry_run=True))["rules"] == ablate_json(world.dry)["rules"]


def test_caps_that_can_not_pay_are_refused_before_the_first_call(tmp_path: Path) -> None:
    job = job_in(planted_in(tmp_path / "things", PAYS))
    capped = override(job.planned.plan, {"budget.calls": "100"})
    with pytest.raises(SkillcError, match=r"100 calls cannot pay for an ablation: .* at least 152 calls") as problem:
        check_caps(job, capped, dry_run=False)
    assert "--calls 152" in str(problem.value.hint)
    check_caps(job, capped, dry_run=True)


class Failing(Client):
    """A client that fails for every call about an animal without the harmful rule."""

    async def complete(self, call: Call) -> Completion:
        asked = "\n".join(str(message.content) for message in call.messages)
        if call.stage == "ablate" and "horse" in str(call.messages[-1].content) and HARMS not in asked:
            raise CallFailed("transient", "no answer")
        return await super().complete(call)


def test_failed_rollouts_are_no_scores(tmp_path: Path) -> None:
    """What failed could be a loss or a gain, so nothing is claimed and the rule stays."""
    folder = planted_in(tmp_path / "things", HARMS, PAYS)
    found = ablated(folder, client=Failing, dry_run=True)
    result = of(found, HARMS)
    assert result.adds is not None
    assert result.adds[0] < result.adds[1]
    assert result.measured < result.of


# ---- parts -----------------------------------------------------------------------------------------


def test_rules_that_cured_nothing_come_first_then_the_longer_ones(world: World) -> None:
    skill = world.found.shortened.before
    ids = {rule.text: rule.id for rule in skill.rules}
    assert in_order(skill, skill.rules, {})[0].text == max(skill.rules, key=lambda rule: len(rule.text)).text
    cured = {ids[PAYS]: frozenset({"x1"}), ids[HARMS]: frozenset({"x1", "x2"})}
    assert [rule.text for rule in in_order(skill, skill.rules, cured)][2:] == [PAYS, HARMS]


def test_cured_examples_are_those_of_the_accepted_edit_with_this_text() -> None:
    def line(number: int, result: str, text: str, *ids: str) -> dict[str, Any]:
        credit = {"cured": len(ids), "broke": 0, "examples": {"cured": list(ids), "broke": []}}
        edit = {"op": "add", "section": "rules", "text": text, "rationale": "", "rule": "r"}
        return {
            "decision": number,
            "result": result,
            "edits": [edit],
            "credit": {"association": [credit], "shared": {"cured": 0, "broke": 0}},
        }

    lines = [line(1, "accept", PAYS, "x1", "x4"), line(2, "reject", HARMS, "x2"), line(3, "accept", "another", "x3")]
    rules = [Rule("a", PAYS), Rule("b", HARMS)]
    assert cured_by_edits(lines, rules) == {"a": frozenset({"x1", "x4"})}


def test_a_settled_claim_does_not_change_however_the_missing_pairs_end() -> None:
    def pairs(*ends: int | None) -> list[PairedScore]:
        known = [PairedScore(f"g{i}", 0, 1_000_000) for i in range(12)]
        return [*known, *(PairedScore(f"h{i}", end, 0) for i, end in enumerate(ends))]

    options: Any = {"low": Fraction(0), "high": Fraction(1), "seed": 1}
    assert is_claim_settled(pairs(None, None), 3, **options)
    assert not is_claim_settled(pairs(*[None] * 9), 3, **options)
    others = {name: pairs(*[0] * 9) for name in "bc"}
    for ends in ((0, 0), (1_000_000, 1_000_000)):
        assert judge_family({"a": pairs(*ends), **others}, **options)["a"].finding == "pays"


# ---- the command -----------------------------------------------------------------------------------


def test_the_command_prints_the_table_and_refuses_a_skill_edited_by_hand(world: World) -> None:
    again = skillc("ablate", "things.skill", "--quiet", "--dry-run", "--calls", "500", folder=world.folder)
    assert (again.returncode, again.stderr) == (0, "")
    assert "pays" in again.stdout
    refused = skillc("ablate", "things.skill", "--calls", "3", folder=world.folder)
    assert refused.returncode == 2
    assert "3 calls cannot pay for an ablation" in refused.stderr
    path = world.folder / "skills" / "sort-things" / "SKILL.md"
    path.write_text(path.read_text().replace(PAYS, f"{PAYS} Please."))
    assert "was edited by hand" in skillc("ablate", "things.skill", folder=world.folder).stderr


def test_a_hostile_rule_stays_in_its_row(world: World) -> None:
    rule = replace(world.dry.rules[0], rule=Rule("a", "Say\x1b[31m [bold]red[/bold]\nnow."))
    page = shown(replace(world.dry, rules=(rule,)))
    assert "\x1b" not in page
    assert "[bold]" in page
