"""The mixed world of `benchmarks/search`: what each kind of rule does, what the optimizer cites and drafts."""

import json
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.search.arms import BUNDLES, DEFAULT, MIXED, MIXED_ARMS, ONE_DRAFT, PLAIN, PLAIN_EDITS, RECORDED, STRONG
from benchmarks.search.mixed import Mix, Odds, parts
from benchmarks.search.mixed_optimizer import MixedOptimizer
from benchmarks.search.mixed_page import put
from benchmarks.search.optimizer import ScriptedOptimizer, cite
from benchmarks.search.run import Job, run
from benchmarks.search.world import World

CLEAR = replace(Mix(), dilution=0.0, clash=0.0)
WORLD = CLEAR.draw(1)
NAMES = ("S3", "I3", "M3x17x45", "W3x17", "D8")
KINDS = {"general": "S", "interfering": "I", "wide": "W", "memorised": "M", "diluting": "D"}


def of(state, topic=None, world=WORLD):
    """Training examples in a state, by number."""
    train = enumerate(world.cases[: world.settings.train])
    return [i for i, case in train if case.state == state and topic in (None, case.topic)]


def only(kind):
    """A mix in which every proposal is of one kind."""
    odds = Odds(**{name: float(name == kind) for name in Odds._fields})
    return replace(Mix(), edits=odds, edits_contrast=odds, drafts=odds, drafts_contrast=odds, shrugs=1.0)


def shown(world, cases, rules=()):
    """The examples of a prompt, as skillc's templates write them."""
    rows = []
    for number, case in enumerate(cases, 1):
        row, true = world.row(case), world.cases[case]
        answer = true.gold if world.right(rules, case) else true.other
        rows.append(
            f'<trajectory tag="t{number}" score="0">\n<input name="case">{row["case"]}</input>\n'
            f"<answer>{answer}</answer>\n<gold>{true.gold}</gold>\n</trajectory>"
        )
    return "\n".join(rows)


def prompt(world, request, cases, rules=(), extra=""):
    """A prompt with a skill that holds some rules, named r0, r1, ..."""
    skill = "\n".join(f"[r{i}] {world.worded(rule, 0)}" for i, rule in enumerate(rules))
    return f"<skill>\n{skill}\n</skill>\n{extra}\n{shown(world, cases, rules)}\n<request {request}>\n</request>"


def drafted(world, cases, rules=(), name="a"):
    text = prompt(world, 'stage="draft" sections="rules"', cases, rules)
    (section,) = json.loads(MixedOptimizer(world).answer(text, name))["sections"]
    assert section["section"] == "rules"
    return section["rules"]


def reflected(world, cases, rules=(), name="a", extra=""):
    text = prompt(world, 'stage="reflect" kind="failures" edits="8"', cases, rules, extra)
    return json.loads(MixedOptimizer(world).answer(text, name))["edits"]


def test_a_tidying_orders_the_rules_and_drops_special_ones_that_a_general_one_covers():
    world = replace(Mix(), clash=1.0, lost=0.0).draw(1)
    rules = ("S4", "M3x17x45", "W3x17", "I3", "M5x9")
    text = prompt(world, 'stage="tidy" sections="rules"', [], rules)
    (section,) = json.loads(MixedOptimizer(world).answer(text, "a"))["sections"]
    assert [rules[int(rule["rule"][1:])] for rule in section["rules"]] == ["I3", "S4", "M5x9"]


@pytest.mark.parametrize("right", [0.30, 0.75])
def test_the_baseline_is_as_declared(right):
    world = replace(Mix(), right=right).draw(2)
    assert world.initial == pytest.approx(right, abs=0.03)
    assert sum(case.state == "noise" for case in world.cases) / len(world.cases) == pytest.approx(0.1, abs=0.02)


def test_a_rule_is_read_from_its_text_in_any_wording_and_in_order():
    text = "\n".join(WORLD.worded(rule, number) for number, rule in enumerate(NAMES))
    assert WORLD.read(text) == NAMES


def test_a_general_rule_cures_its_whole_cause_and_no_noise():
    cured = [i for i in range(200) if WORLD.right(("S3",), i) and not WORLD.right((), i)]
    assert cured == of("cause", 3)
    assert not [i for i in of("noise") if WORLD.right(tuple(f"S{topic}" for topic in range(12)), i)]


def test_a_memorised_rule_cures_exactly_the_examples_that_it_names_noise_among_them():
    noisy, wrong = of("noise")[0], of("cause", 3)[:2]
    rule = f"M3x{wrong[0]}x{wrong[1]}x{noisy}"
    changed = [i for i in range(len(WORLD.cases)) if WORLD.right((rule,), i) != WORLD.right((), i)]
    assert changed == sorted([*wrong, noisy])
    assert WORLD.gain((rule,)) == 0


def test_a_wide_rule_cures_what_it_names_and_breaks_right_examples_mostly_of_its_topic():
    case = of("cause", 3)[0]
    rule = (f"W3x{case}",)
    assert WORLD.right(rule, case)
    broken = [i for i, true in enumerate(WORLD.cases) if true.state == "right" and not WORLD.right(rule, i)]
    near = [i for i, true in enumerate(WORLD.cases) if true.state == "right" and true.topic == 3]
    assert len([i for i in broken if i in near]) / len(near) == pytest.approx(0.25, abs=0.08)
    assert len([i for i in broken if i not in near]) / len(WORLD.cases) < 0.02
    assert WORLD.gain(rule) < 0


def test_an_interfering_rule_is_good_alone_and_first_but_harmful_after_what_it_clashes_with():
    world = replace(Mix(), dilution=0.0, clash=1.0).draw(1)
    alone, other = world.gain(("I3",)), world.gain(("S4",))
    assert alone > 0
    assert world.gain(("I3", "S4")) == pytest.approx(alone + other)
    assert world.gain(("S4", "I3")) < min(alone, other)
    assert world.ordered(["S4", "S5", "I3"]).index("I3") == 0


def test_each_rule_costs_some_of_what_is_cured_and_a_diluting_one_costs_as_much_as_four():
    world = replace(CLEAR, dilution=0.01).draw(1)
    general = tuple(f"S{topic}" for topic in range(12))
    longer, vague = (*general, "M0x1", "M0x2", "M0x3", "M0x4"), (*general, "D1")
    assert world.gain(general) == 1
    assert world.gain(longer) < 1
    assert world.gain(longer) == pytest.approx(world.gain(vague), abs=0.002)
    lost = {i for i in range(200) if world.right(general, i)} - {i for i in range(200) if world.right(longer, i)}
    assert lost <= {*of("cause", world=world)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_odds_1_is_all_that_is_proposed_and_it_cures_what_it_cites(kind):
    world = only(kind).draw(1)
    wrong = of("cause", world=world)[:6]
    edits = reflected(world, wrong)
    rules = [world.idea(edit["text"]) for edit in edits]
    assert {rule[0] for rule in rules} == {KINDS[kind]}
    assert len(edits) == min(4, len({world.cases[case].topic for case in wrong}))
    for rule, edit in zip(rules, edits, strict=True):
        cited = [wrong[int(tag[1:]) - 1] for tag in edit["cures"]]
        assert cited
        assert all(world.right((rule,), case) for case in cited) or kind == "diluting"


def test_a_right_example_of_the_topic_makes_general_rules_likelier():
    world = replace(Mix(), edits=Odds(0, 0, 0, 1, 0), edits_contrast=Odds(1, 0, 0, 0, 0)).draw(1)
    wrong, near, far = of("cause", 3)[:2], of("right", 3)[0], of("right", 4)[0]
    assert {world.idea(edit["text"])[0] for edit in reflected(world, [*wrong, far])} == {"M"}
    assert {world.idea(edit["text"])[0] for edit in reflected(world, [*wrong, near])} == {"S"}


def test_the_optimizer_narrows_a_wide_rule_widens_a_memorised_one_and_moves_an_exception_up():
    world = replace(only("general"), clash=1.0, far=0.0).draw(1)
    case, *others = of("cause", 3, world)
    wide = f"W3x{case}"
    broken = next(i for i in of("right", 3, world) if not world.right((wide,), i))
    (edit,) = reflected(world, [broken], (wide,))
    assert (edit["op"], edit["rule"], world.idea(edit["text"])) == ("replace", "r0", "S3")
    (edit,) = reflected(world, others[:1], (f"M3x{case}",))
    assert (edit["op"], edit["rule"], world.idea(edit["text"])) == ("replace", "r0", "S3")
    clashing = ("S4", "I3")
    population = (i for i, true in enumerate(world.cases) if true.state == "right" and true.topic == 3)
    harmed = next(i for i in population if not world.right(clashing, i))
    (edit,) = reflected(world, [harmed], clashing)
    assert (edit["op"], edit["rule"], edit["after"]) == ("move", "r1", "start")


def test_failures_without_a_learnable_cause_are_given_up_where_the_prompt_allows_it():
    world = only("general").draw(1)
    noisy = of("noise", world=world)[:2]
    assert reflected(world, noisy) == []
    text = prompt(world, 'stage="reflect" kind="failures" edits="4" unexplained="on"', noisy)
    reply = json.loads(MixedOptimizer(world).answer(text, "a"))
    assert sorted(reply["unexplained"]) == ["t1", "t2"]


def test_a_rejected_rule_is_reconsidered():
    odds = Odds(1, 0, 0, 1, 0)
    case = of("cause", 3)[0]
    extra = f"<rejected>\n- {WORLD.worded(f'M3x{case}', 1)}\n</rejected>"

    def memorised(text):
        world = replace(Mix(), edits=odds, heeds=1.0).draw(1)
        edits = (reflected(world, [case], name=str(i), extra=text)[0] for i in range(200))
        return sum(world.idea(edit["text"])[0] == "M" for edit in edits)

    assert memorised(extra) == pytest.approx(50, abs=20)
    assert memorised("") == pytest.approx(100, abs=20)


def test_a_draft_has_a_rule_for_each_cause_shown_exceptions_first_and_keeps_rules_by_id():
    world = replace(Mix(), drafts_contrast=Odds(0, 1, 0, 0, 0), drafts=Odds(1, 0, 0, 0, 0), clash=1.0, lost=0.0).draw(1)
    cases = [of("cause", 3)[0], of("cause", 4)[0], of("right", 4)[0], of("cause", 5)[0]]
    rules = drafted(world, cases, ("S9",))
    assert next(rule.get("rule") or world.idea(rule["text"]) for rule in rules) == "I4"
    assert {rule.get("rule") or world.idea(rule["text"]) for rule in rules} == {"r0", "S3", "I4", "S5"}


@pytest.mark.parametrize(("notices", "found"), [(1.0, {"r0", "S3", "S6"}), (0.0, {"r0", "S3"})])
def test_a_draft_learns_from_examples_that_are_given_with_their_gold_alone(notices, found):
    world = replace(only("general"), lost=0.0, notices=notices).draw(1)
    row = world.row(of("cause", 6, world)[0])
    further = (
        f'<cases>\n<case tag="c1"><input name="case">{row["case"]}</input><gold>{row["answer"]}</gold></case>\n</cases>'
    )
    text = prompt(world, 'stage="draft" sections="rules" tried="on"', of("cause", 3, world)[:1], ("S4",), further)
    (section,) = json.loads(MixedOptimizer(world).answer(text, "a"))["sections"]
    assert {rule.get("rule") or world.idea(rule["text"]) for rule in section["rules"]} == found


def test_a_draft_of_right_examples_adds_nothing():
    assert drafted(Mix().draw(1), of("right")[:4]) == []


def test_a_rewrite_makes_the_edits_drops_what_a_general_rule_covers_and_orders():
    world = replace(Mix(), clash=1.0, lost=0.0).draw(1)
    edits = [
        {"op": "add", "section": "rules", "text": world.worded("S3", 0)},
        {"op": "add", "section": "rules", "text": world.worded("I5", 0)},
        {"op": "delete", "rule": "r2"},
    ]
    lines = "".join(f'<edit index="{i}">{json.dumps(edit)}</edit>\n' for i, edit in enumerate(edits))
    text = prompt(world, 'stage="rewrite" sections="rules"', [], ("S4", "M3x17", "D8"), f"<edits>\n{lines}</edits>")
    (section,) = json.loads(MixedOptimizer(world).answer(text, "a"))["sections"]
    found = [rule.get("rule") or world.idea(rule["text"]) for rule in section["rules"]]
    assert found == ["I5", "r0", "S3"]


def test_a_rewrite_lifts_two_memorised_rules_of_a_topic_to_a_general_one():
    world = replace(Mix(), lifts=1.0, lost=0.0).draw(1)
    text = prompt(world, 'stage="rewrite" sections="rules"', [], ("M3x17", "M3x45", "M4x18"))
    (section,) = json.loads(MixedOptimizer(world).answer(text, "a"))["sections"]
    assert [rule.get("rule") or world.idea(rule["text"]) for rule in section["rules"]] == ["r2", "S3"]


def test_what_an_edit_cites():
    cases = {f"t{i}": i for i in range(10)}

    def cited(how):
        return [cite([1, 2, 3], cases, 1, how, random.Random(seed)) for seed in range(300)]

    assert all(tags == ["t1", "t2", "t3"] for tags in cited("exactly"))
    assert all(tags == list(cases) for tags in cited("everything"))
    assert not any(cited("nothing"))
    wrong = sum(tag not in ("t1", "t2", "t3") for tags in cited("wrongly") for tag in tags)
    assert wrong / sum(map(len, cited("wrongly"))) == pytest.approx(0.3, abs=0.05)


def test_the_optimizer_of_the_plain_world_drafts_too():
    world = World(PLAIN, 1)
    wrong = [i for i in range(200) if world.needs[i]][:4]
    rows = "".join(
        f'<trajectory tag="t{case}" score="0"><input name="case">case {case}</input>'
        "<answer>wrong</answer><gold>right</gold></trajectory>"
        for case in wrong
    )
    text = f'<skill>\n[r0] Where sign S3 shows, do.\n</skill>\n{rows}<request stage="draft" sections="rules">'
    (section,) = json.loads(ScriptedOptimizer(world).answer(text, "a"))["sections"]
    assert {"rule": "r0"} in section["rules"]
    assert len(section["rules"]) > 1


def test_examples_of_a_topic_share_words_and_a_rule_names_words_of_what_it_is_about():
    def words(case):
        return set(WORLD.row(case)["case"].split()[2:])

    topic = [words(case) for case in of("cause", 3) + of("right", 3)]
    other = [words(case) for case in of("cause", 4)]
    assert sum(len(topic[0] & one) for one in topic[1:]) / (len(topic) - 1) > 1
    assert sum(len(topic[0] & one) for one in other) / len(other) < 1
    case = of("cause", 3)[0]
    assert words(case) & set(re.findall(r"\w+", WORLD.worded(f"M3x{case}", 0)))
    assert not words(case) & set(re.findall(r"\w+", WORLD.worded("S4", 0)))
    assert parts("M3x17x45") == (3, (17, 45))


def test_the_edits_are_as_in_the_recorded_run():
    """Twelve edits cured all they cited; of nine, two cured another of 46, two broke one of 95, five did neither."""
    kept = {"all cited": 0, "another": 0, "broken": 0, "neither": 0}
    count = 0
    for seed in range(12):
        world, chance = STRONG.draw(seed), random.Random(seed)
        wrong = [i for i in range(200) if not world.right((), i)]
        before = {i: world.right((), i) for i in range(200, 295)}
        for number in range(6):
            cases = chance.sample(wrong, 5)
            for edit in reflected(world, cases, name=str(number))[:4]:
                after = {i: world.right((world.idea(edit["text"]),), i) for i in before}
                another = any(after[i] and not before[i] for i in range(200, 246))
                broken = any(before[i] and not after[i] for i in before)
                cited = [cases[int(tag[1:]) - 1] for tag in edit["cures"]]
                kept["all cited"] += all(world.right((world.idea(edit["text"]),), case) for case in cited)
                kept["another"], kept["broken"] = kept["another"] + another, kept["broken"] + broken
                kept["neither"] += not another and not broken
                count += 1
    share = {name: kept[name] / count for name in kept}
    assert share["all cited"] > 0.9
    assert 0.05 < share["another"] < 0.35
    assert 0.05 < share["broken"] < 0.35
    assert 0.5 < share["neither"] < 0.85
    assert sum(RECORDED.edits) == pytest.approx(1)


def test_ten_rules_that_are_good_alone_do_harm_together_where_most_examples_are_right():
    changes, alone = [], []
    for seed in range(20):
        world, chance = STRONG.draw(seed), random.Random(seed)
        rules = tuple(f"{chance.choice('SSI')}{topic}" for topic in chance.sample(range(12), 10))
        changes.append(world.accuracy(rules) - world.initial)
        alone.append(world.accuracy(rules[:1]) - world.initial)
    assert sum(changes) / len(changes) == pytest.approx(-0.06, abs=0.04)
    assert min(alone) > 0


def test_worlds_have_both_baselines():
    assert {settings.right for _, settings in MIXED.values()} == {0.30, 0.75}


@pytest.mark.parametrize("arm", MIXED_ARMS.values(), ids=MIXED_ARMS)
@pytest.mark.quick_cases(1)
def test_a_run_in_the_mixed_world_repeats_itself_under_its_cap(arm):
    job = Job(replace(Mix(), train=60, validation=30), 3, arm, 300)
    first = run(job)
    assert first == run(job)
    assert sum(first.stages.values()) <= 300
    assert first.asked > 0


def test_the_arms_differ_in_how_candidates_are_made():
    assert len({DEFAULT, PLAIN_EDITS, ONE_DRAFT, BUNDLES}) == len(MIXED_ARMS)


def test_a_new_section_of_the_page_takes_the_place_of_the_old_one(tmp_path):
    here = Path(__file__).resolve().parents[2] / "benchmarks" / "search"
    (tmp_path / "README.md").write_text((here / "README.md").read_text())
    first = (here / "calibration.md").read_text().splitlines()[0]
    put(tmp_path, f"{first}\n\nnew figures\n")
    page = (tmp_path / "README.md").read_text()
    assert page.count(first) == 1
    assert "new figures\n\n## Tried and left out\n" in page
    put(tmp_path, (here / "mixed.md").read_text())
    assert (tmp_path / "README.md").read_text() == (here / "README.md").read_text()
