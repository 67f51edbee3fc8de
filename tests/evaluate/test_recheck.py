"""A recheck finds rules with planted effects, and claims nothing where nothing can be claimed."""

from __future__ import annotations

import io
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import skillc
from evaluations import evaluated
from planted import HARMS, LOCK, NOTHING, PAYS, job_of, of, planted_in, rechecked
from rich.console import Console

from skillc.document.skill import Document, Section, for_target
from skillc.errors import SkillcError
from skillc.evaluate.recheck.job import arm_without
from skillc.evaluate.recheck.parts import distinct_texts, learned_parts, with_rules
from skillc.evaluate.recheck.report import preview_lines, recheck_json, recheck_markdown, recheck_table
from skillc.evaluate.recheck.run import Recheck
from skillc.models.calls import Call, Completion
from skillc.models.client import Client
from skillc.models.failures import CallFailed, EndpointUnreachable
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import SilentObserver
from skillc.plan.lock import ValidationLock, read_lock, write_lock
from skillc.run.stop import Stop
from skillc.stats.family import judge_family
from skillc.stats.verdict import PairedScore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return planted_in(tmp_path / "things", PAYS, HARMS, NOTHING)


def shown(found: Recheck) -> str:
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(recheck_table(found))
    return page.getvalue()


def calls(found: Recheck, book: str) -> int:
    total: Any = found.spent[book]
    return int(total["total"]["calls"])


class Counting(Client):
    """A client that fails for some calls."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.asked = 0

    async def complete(self, call: Call) -> Completion:
        self.asked += 1
        self.check(call)
        return await super().complete(call)

    def check(self, call: Call) -> None:
        raise NotImplementedError


# ---- what is found --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Recheck:
    return rechecked(planted_in(tmp_path_factory.mktemp("planted") / "things", PAYS, HARMS, NOTHING))


def test_a_rule_that_pays_one_that_harms_and_one_that_does_nothing(found: Recheck) -> None:
    assert [of(found, rule).finding for rule in (PAYS, HARMS, NOTHING)] == ["pays", "harms", "no evidence"]
    assert found.status == 1
    page = " ".join(shown(found).split())
    assert "recheck harm 1 rule harms" in page
    assert "two rules that say the same hide each other" in page


@pytest.mark.thorough
def test_they_are_found_with_a_noisy_model_too(tmp_path: Path) -> None:
    found = rechecked(planted_in(tmp_path / "things", PAYS, HARMS, NOTHING, count=360), model="noisy")
    assert [of(found, rule).finding for rule in (PAYS, HARMS, NOTHING)] == ["pays", "harms", "no evidence"]


def test_the_figures_are_paired_differences_with_intervals_that_agree_with_the_claim(found: Recheck) -> None:
    examples = found.job.examples
    tools = Fraction(sum(each.gold["kind"] == "tool" for each in examples), len(examples))
    animals = Fraction(sum(each.gold["kind"] == "animal" for each in examples), len(examples))
    pays, harms, nothing = (of(found, rule).member for rule in (PAYS, HARMS, NOTHING))
    assert pays is not None
    assert harms is not None
    assert nothing is not None
    assert (pays.verdict.gain, harms.verdict.gain, nothing.verdict.gain) == (tools, -animals, 0)
    assert found.goal.mean == 1 - animals
    for each in found.results:
        assert each.member is not None
        assert each.member.verdict.interval is not None
        low, high = each.member.verdict.interval
        assert (low > 0 or high < 0) == (each.finding in ("pays", "harms")) == (each.member.adjusted <= Fraction(1, 20))
    told: Any = recheck_json(found)
    assert told["correction"] == "holm"
    assert [rule["finding"] for rule in told["rules"]] == [each.finding for each in found.parts]
    assert (told["result"], told["status"]) == ("harm", 1)
    assert recheck_markdown(found).startswith("### `sort-things` with `own/planted`: harm\n")


def test_without_the_harmful_rule_the_skill_holds(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", PAYS, NOTHING)
    found = rechecked(folder)
    assert (found.whole.finding, of(found, PAYS).finding, of(found, NOTHING).finding) == (
        *("pays", "pays", "no evidence"),
    )
    assert found.drift is not None
    assert (found.drift.word, found.status) == ("holds", 0)
    assert recheck_json(found)["result"] == "holds"


def test_a_skill_that_is_worse_than_none_harms_even_if_no_rule_does_alone(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", HARMS, f"{HARMS} Always. {HARMS}")
    found = rechecked(folder)
    assert [each.finding for each in found.parts] == ["no evidence", "no evidence"]
    assert (found.whole.finding, found.status) == ("harms", 1)
    assert "the whole skill harms" in shown(found)


def test_only_learned_rules_are_measured_and_those_first_that_concern_more_examples(tmp_path: Path) -> None:
    never, always = "If the text mentions a zeppelin, answer tool.", "Answer in lower case."
    folder = planted_in(tmp_path / "things", never, PAYS, always)
    job = job_of(folder)
    tools = sum(each.gold["kind"] == "tool" for each in job.examples)
    assert [(part.text, part.concerns) for part in job.parts] == [
        *((always, len(job.examples)), (PAYS, tools), (never, 0)),
    ]
    declared = (folder / "things.skill").read_text()
    own = f'trainable section rules = "- {PAYS}" {{ limit = 600 tokens }}'
    (folder / "things.skill").write_text(declared.replace("trainable section rules { limit = 600 tokens }", own))
    assert [part.text for part in job_of(folder).parts] == [always, never]
    assert len(job_of(folder, every=True).parts) == 3
    few = job_of(folder, every=True, rules=1)
    assert ([part.text for part in few.parts], len(few.left)) == ([always], 2)
    assert "2 rules beyond `--rules 1` not measured" in preview_lines(few)[1]


def test_each_variant_is_the_delivered_text_without_one_rule(folder: Path) -> None:
    job = job_of(folder)
    body = (folder / "skills/sort-things/SKILL.md").read_text().partition("---\n\n")[2]
    assert job.skill.skill is not None
    assert for_target(job.skill.skill) == body
    for part in job.parts:
        assert for_target(part.without) == body.replace(f"- {part.text}\n", "")
        assert arm_without(part).digest != job.skill.digest


# ---- what is not ----------------------------------------------------------------------------------


def false_claims(rules: int, rechecks: int, groups: int, seed: int) -> int:
    """Count the rechecks with a claim, in a world in which no rule matters: every arm has errors of its own."""
    drawn, claims = random.Random(seed), 0
    for _ in range(rechecks):
        arms = [[drawn.random() < 0.7 for _ in range(groups)] for _ in range(rules + 1)]
        family = {
            f"without {rule}": [
                PairedScore(f"g{i}", int(a) * 1_000_000, int(b) * 1_000_000)
                for i, (a, b) in enumerate(zip(arms[rule], arms[0], strict=True))
            ]
            for rule in range(1, rules + 1)
        }
        found = judge_family(family, low=Fraction(0), high=Fraction(1), seed=7)
        claims += any(each.verdict.verdict in ("improved", "worse") for each in found.values())
    return claims


def test_where_no_rule_matters_one_recheck_in_twenty_claims_something_at_most() -> None:
    assert false_claims(rules=5, rechecks=100, groups=12, seed=1) <= 5


@pytest.mark.thorough
def test_where_no_rule_matters_with_many_rules_and_examples() -> None:
    assert false_claims(rules=8, rechecks=100, groups=60, seed=8) <= 5


@pytest.mark.thorough
def test_a_rule_that_says_nothing_to_a_noisy_model_is_not_claimed(tmp_path: Path) -> None:
    rules = [f"If the text is strange, think of number {i}." for i in range(6)]
    found = rechecked(planted_in(tmp_path / "things", *rules), model="noisy")
    assert {each.finding for each in found.parts} == {"no evidence"}
    moved = [each.member.verdict.gain for each in found.parts if each.member is not None]
    assert len(moved) == 6
    assert any(moved)


# ---- drift ----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_goal_above_the_lock_is_no_failure(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", PAYS, mean=0.2)
    found = rechecked(folder)
    assert found.drift is not None
    assert (found.drift.word, found.status) == ("better", 0)


def test_a_goal_below_the_lock_is_drift(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", NOTHING)
    found = rechecked(folder)
    assert found.drift is not None
    low, high = found.drift.interval
    assert low < found.drift.change < high < 0
    assert (found.drift.word, found.status, found.harmful) == ("worse", 1, ())
    assert "recheck drift the goal is lower than in the lock" in " ".join(shown(found).split())


def test_other_data_and_another_program_are_said(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", PAYS)
    same = job_of(folder)
    assert same.same
    assert not any("since the compile" in note or "made with" in note for note in same.notes)
    noisy = job_of(folder, model="noisy")
    assert any("made with `own/planted`" in note for note in noisy.notes)
    skill = folder / "skills/sort-things/SKILL.md"
    skill.write_text(skill.read_text() + "- Answer with one word.\n")
    assert any("was edited since the compile" in note for note in job_of(folder).notes)
    rows = (folder / "things.jsonl").read_text().splitlines(keepends=True)
    (folder / "things.jsonl").write_text("".join(rows[:-6]))
    other = job_of(folder)
    assert not other.same
    assert any("the data changed since the compile" in note for note in other.notes)
    program = folder / "things.skill"
    program.write_text(program.read_text().replace("exact_match(kind)", "contains(kind)"))
    assert any("the program changed since the compile" in note for note in job_of(folder).notes)


# ---- what fails, and what ends it -----------------------------------------------------------------


def test_a_server_that_goes_down_is_status_2_and_nothing_is_claimed(folder: Path) -> None:
    class Dying(Counting):
        def check(self, call: Call) -> None:
            if self.asked > 40:
                raise EndpointUnreachable("`planted` is out of reach", hint="start it")

    found = rechecked(folder, client=Dying)
    assert (found.stopped, found.status) == (DOWN, 2)
    assert {each.finding for each in found.results} == {"not measured"}
    assert (found.goal.mean, found.drift, found.harmful) == (None, None, ())
    assert "nothing is claimed" in shown(found)
    # The replies that came are in the cache.
    assert calls(rechecked(folder), "paid") < 5 * len(found.job.examples)


@pytest.mark.thorough
def test_a_model_that_never_answers_is_status_2(folder: Path) -> None:
    def door(*arguments: Any, **options: Any) -> Client:
        return Client(*arguments, **options, preflight=True)

    with pytest.raises(SkillcError, match=r"`gone`.*`hosted_vllm/x/y`") as error:
        rechecked(folder, model="gone", client=door)
    assert error.value.status == 2


def test_calls_that_fail_are_unmeasured_and_where_they_could_matter_it_is_status_2(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", PAYS)

    class Lossy(Counting):
        def check(self, call: Call) -> None:
            if call.stage == "without a rule":
                raise CallFailed("cut", "as the test wants it")

    found = rechecked(folder, client=Lossy)
    assert (found.whole.finding, of(found, PAYS).finding) == ("pays", "not measured")
    assert found.unmeasured == {"cut": len(found.job.examples)}
    assert found.status == 2
    assert "could change the result" in shown(found)


def test_a_cap_ends_it_with_the_first_arms_complete(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", PAYS, NOTHING)
    whole: Any = rechecked(folder).spent
    cap = whole["charged"]["total"]["tokens"] * 9 // 10
    found = rechecked(folder, f"budget.tokens={cap}")
    total: Any = found.spent["charged"]
    assert found.stopped == "tokens"
    assert total["total"]["tokens"] <= cap
    assert found.whole.finding == "pays"
    assert "not measured" in {each.finding for each in found.parts}
    assert found.status == 3
    assert "a larger `tokens` resumes" in " ".join(shown(found).split())


def test_caps_that_cannot_pay_are_said_before_anything_is_sent(folder: Path) -> None:
    with pytest.raises(SkillcError, match="cannot pay for this evaluation") as error:
        job_of(folder, "budget.calls=30")
    assert "`--rules 1`" in str(error.value.hint)


def test_a_second_run_sends_no_call_and_says_the_same(folder: Path) -> None:
    looks = read_lock(folder / LOCK).looks
    first = rechecked(folder)
    again = rechecked(folder)
    assert calls(first, "paid") == calls(first, "charged") == 5 * len(first.job.examples)
    assert calls(again, "paid") == 0
    assert [each.finding for each in again.results] == [each.finding for each in first.results]
    assert read_lock(folder / LOCK).looks == looks


@pytest.mark.thorough
def test_the_replies_that_selected_the_skill_are_not_its_evidence(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", PAYS)
    evaluated(folder)
    found = rechecked(folder)
    assert calls(found, "paid") == calls(found, "charged")


@pytest.mark.thorough
def test_interrupted_it_is_status_130(folder: Path) -> None:
    stop = Stop()

    class Impatient(SilentObserver):
        left = 30

        def advance(self, count: int = 1) -> None:
            self.left -= count
            if self.left == 0:
                stop.ask()

    found = rechecked(folder, observer=Impatient(), stop=stop)
    assert (found.stopped, found.status) == ("interrupted", 130)


# ---- the test split -------------------------------------------------------------------------------


def test_the_test_split_is_one_look_that_asks_for_more(tmp_path: Path) -> None:
    folder = planted_in(tmp_path / "things", PAYS, HARMS, NOTHING, count=120)
    before = read_lock(folder / LOCK).looks
    found = rechecked(folder, split="test")
    assert found.look == len(before) + 1 == 2
    assert len(read_lock(folder / LOCK).looks) == 2
    assert found.job.level == Fraction(1, 80)
    assert rechecked(folder, split="test").look == 2
    assert of(found, HARMS).finding == "harms"
    assert "look 2" in " ".join(preview_lines(found.job))


@pytest.mark.thorough
def test_a_test_split_that_was_not_measured_whole_shows_no_score_and_counts_no_look(folder: Path) -> None:
    before = (folder / LOCK).read_bytes()
    whole: Any = rechecked(folder, split="test").spent
    (folder / LOCK).write_bytes(before)
    cap = whole["charged"]["total"]["tokens"]
    found = rechecked(folder, f"budget.tokens={cap}", split="test")
    assert (found.stopped, found.look, found.goal.mean, found.status) == ("tokens", 0, None, 3)
    assert (folder / LOCK).read_bytes() == before


# ---- mistakes, and the command line ---------------------------------------------------------------


def test_what_is_not_compiled_or_too_small_is_a_message(folder: Path, shop: Path) -> None:
    with pytest.raises(SkillcError, match="no compiled skill to recheck") as error:
        job_of(shop)
    assert "skillc compile" in str(error.value.hint)
    with pytest.raises(SkillcError, match=r"not measurable: .* 5 groups .* fewer than 6"):
        job_of(folder, examples=5)
    with pytest.raises(SkillcError, match="on which 4 tests can show nothing") as error:
        job_of(folder, examples=6)
    assert error.value.hint == "use more examples"


def test_statuses_and_formats_of_the_command_line(folder: Path) -> None:
    done = skillc("recheck", "skills/sort-things", "--format", "md", folder=folder)
    assert done.returncode == 1, done.stderr
    assert f"| {HARMS} | harms |" in done.stdout
    assert "at most 140 calls" in done.stderr


def test_a_plan_is_printed_and_nothing_is_sent(folder: Path) -> None:
    (folder / "mine.py").write_text("def planted(*given):\n    raise SystemExit(9)\nnoisy = planted\n")
    done = skillc("recheck", "things.skill", "--plan", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "without each of 3 rules" in " ".join(done.stdout.split())
    assert done.stdout.count(" of 28") == 3


def test_a_lock_without_figures_says_so(folder: Path) -> None:
    lock = read_lock(folder / LOCK)
    write_lock(folder / LOCK, lock.model_copy(update={"validation": ValidationLock()}))
    found = rechecked(folder)
    assert found.drift is None
    assert "the lock has no figure of validation" in " ".join(shown(found).split())


def test_rules_in_a_file_of_the_skill_are_parts_too() -> None:
    """A section that SKILL.md links is read from its file, and each rule in it is left out once."""
    declared = Document("sort", "Sort.", (Section("rules", "trainable", file="references/rules.md", about="How"),))
    text = f"- {PAYS}\n- {HARMS}"
    read = Document("sort", "Sort.", (Section("rules", "frozen", text, file="references/rules.md", about="How"),))
    skill, notes = with_rules(read, declared)
    parts = learned_parts(skill, declared, [])
    assert notes == ()
    assert [part.text for part in parts] == [PAYS, HARMS]
    assert [for_target(part.without).count("If the text") for part in parts] == [1, 1]
    assert list(distinct_texts({part.name: part.text for part in parts}).values()) == [
        *("… hammer, a saw, a chisel or a wrench, answer tool.", "… horse, an otter, a heron or a lynx, answer fruit."),
    ]


def test_a_slow_section_is_one_part() -> None:
    declared = Document("sort", "Sort.", (Section("guidance", "slow"), Section("rules", "trainable", f"- {PAYS}")))
    read = Document("sort", "Sort.", (Section("guidance", "frozen", "Take care."), Section("rules", "frozen", PAYS)))
    skill, _ = with_rules(read, declared)
    (part,) = learned_parts(skill, declared, [])
    assert (part.name, part.text) == ("guidance", "Take care.")
    assert "Take care" not in for_target(part.without)
    assert PAYS in for_target(part.without)
