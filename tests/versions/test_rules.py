"""`skillc breaking` by rule: what each one finds, and what is no change in meaning."""

import pytest
from shops import PROGRAM, edited, rows, write_rows, write_shop

from skillc.diagnostics.diagnostic import Severity
from skillc.versions.change import BY_CODE, RULES
from skillc.versions.findings import compare_programs


@pytest.fixture
def versions(tmp_path):
    """Two folders with the same program and data."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        write_shop(tmp_path / name)
    return tmp_path / "old", tmp_path / "new"


def compared(versions, program):
    (versions[1] / "things.skill").write_text(program)
    (found,) = compare_programs([versions[1] / "things.skill"], str(versions[0] / "things.skill"))
    return found


def rules(found):
    return [BY_CODE[each.code].name for each in found.findings if each.severity is Severity.ERROR]


WEAKER = [
    ("gate small  = gates.small_step(30%)\n => ", "gate-removed"),
    ("<= 10% => <= 15%", "gate-loosened"),
    ("candidate.correct > incumbent.correct => candidate.correct >= incumbent.correct", "gate-loosened"),
    ("regressed(correct, by = shop) => regressed(correct)", "gate-loosened"),
    ("gate safe => gate safe for slow", "gate-loosened"),
    ("gate small => gate small for slow", "gate-loosened"),
    ("small_step(30%) => small_step(40%)", "gate-loosened"),
    ("gate better = => gate better = candidate.brief > 2% or", "gate-loosened"),
    ("regressed(correct, by = shop) <= 10% => regressed(brief, by = shop) <= 10%", "gate-changed"),
    ("<= 10% => <= 10%\ngate extra for slow = candidate.correct > incumbent.correct", "gate-loosened"),
    ("epochs = 2 => epochs = 3", "budget-raised"),
    ("cost = $2; => ", "budget-raised"),
    ("cost = $2 => cost = $2.5", "budget-raised"),
    ("patience = 6 steps => patience = 7 steps", "budget-raised"),
    ("; min_gain = 1% => ", "budget-raised"),
    ("{ limit = 600 tokens } => ", "limit-raised"),
    ("limit = 200 tokens => limit = 201 tokens", "limit-raised"),
    ("batch = 12 => batch = 12; accept = always", "accept-always"),
    ("samples = 2; => ", "samples-lowered"),
    ("sees = [feedback] => sees = [gold, feedback]", "sees-widened"),
    ("; sees = [feedback] => ", "sees-widened"),
    ("goal correct => metric correct", "goal-changed"),
    ("exact_match(kind) => contains(why)", "metric-redefined"),
    ("  output why: text\n => ", "output-removed"),
    ("output why: text => output why: text | none", "output-changed"),
    (' | "animal" => ', "labels-removed"),
    ("input  text: text => input  text: text\n  input more: text", "input-added"),
    ("input  text: text => input  text: integer", "input-changed"),
    ("You sort texts. => You sort things.", "frozen-changed"),
    ("frozen section role => trainable section role", "section-thawed"),
    ('about = "Say => trainable about = "Say', "section-thawed"),
    ("seed = 3 => seed = 4", "test-split-changed"),
    ("2 : 1 : 2 => 2 : 2 : 1", "test-split-changed"),
    ("group = shop_id; => ", "group-dropped"),
]


@pytest.mark.parametrize(("change", "rule"), WEAKER, ids=[f"{rule}-{i}" for i, (_, rule) in enumerate(WEAKER)])
def test_what_got_weaker_is_found_by_its_rule(versions, change, rule):
    if rule == "goal-changed":
        program = edited(change, "metric brief => goal brief")
    elif rule == "output-removed":
        program = edited(change, "metric brief = clamp(1 - tokens(why) / 50 tokens, 0, 1)\n => ")
    else:
        program = edited(change)
    found = compared(versions, program)
    assert found.weaker
    assert rule in rules(found)
    assert not {*rules(found)} - {rule, "test-split-changed"} or rule in ("goal-changed", "gate-loosened")
    assert all(change.rule in RULES for change in found.changes if change.rule)


SAME = [
    "split = 2 : 1 : 2;  => ",
    "2 : 1 : 2 => 4 : 2 : 4",
    "<= 10% => <= 0.1 # ten in a hundred",
    "gates.small_step(30%) => change(candidate) <= 3 / 10",
    "candidate.correct > incumbent.correct => incumbent.correct < candidate.correct",
    "candidate.correct > incumbent.correct => candidate.correct - incumbent.correct > 0",
    "candidate.correct > incumbent.correct => not candidate.correct <= incumbent.correct",
    "gate better => gate ahead",
    "gate better = candidate.correct > incumbent.correct\n => ",
    "1 - tokens(why) / 50 tokens, 0, 1 => 1 - 0.02 * tokens(why) / 1 tokens, 0, 1",
    "goal correct = exact_match(kind)\n => ",
]


@pytest.mark.parametrize("change", SAME, ids=range(len(SAME)))
def test_the_same_meaning_is_no_change(versions, change):
    program = edited(change)
    if change.startswith("gate better ="):
        program = program.replace("gate safe   =", "gate safe   = candidate.correct > incumbent.correct and")
    if change.startswith("goal"):
        program += "goal correct = exact_match(kind)\n"
    found = compared(versions, program)
    assert found.changes == ()
    assert found.findings == ()


STRICTER = [
    "<= 10% => <= 5%",
    "<= 10% => < 10%",
    "gate small => gate more = candidate.brief > 1%\ngate small",
    "gate better = => gate better = candidate.brief >= incumbent.brief and",
    "candidate.correct > incumbent.correct => candidate.correct > incumbent.correct + 1%",
    "candidate.correct > incumbent.correct => min(candidate.correct, candidate.brief) > incumbent.correct",
    "candidate.correct > incumbent.correct => candidate.correct > max(incumbent.correct, best.correct)",
    "candidate.correct > incumbent.correct => 0.5 * candidate.correct > 0.5 * incumbent.correct + 1%",
    "epochs = 2 => epochs = 1",
    "cost = $2 => cost = $1; calls = 1000",
    "sees = [feedback] => sees = []",
    "limit = 600 tokens => limit = 500 tokens",
    'slow section guidance { limit = 200 tokens } => frozen section guidance = "Be kind."',
]


@pytest.mark.parametrize("change", STRICTER, ids=range(len(STRICTER)))
def test_what_got_stricter_is_shown_and_breaks_nothing(versions, change):
    found = compared(versions, edited(change))
    assert {each.bearing for each in found.changes} <= {"stricter", ""}
    assert any(each.bearing == "stricter" for each in found.changes) or "frozen" in change
    assert rules(found) == []


def test_a_renamed_metric_takes_its_gates_along(versions):
    program = PROGRAM.replace("correct", "right")
    found = compared(versions, program)
    assert rules(found) == []
    assert [(each.before, each.after) for each in found.changes] == [("correct", "right")]


def test_wider_types_break_nothing(versions):
    program = edited('"animal" => "animal" | "plant"', "input  text: text => input  text: text | none")
    found = compared(versions, program)
    assert rules(found) == []
    assert [each.code for each in found.findings] == [RULES["labels-added"].code]


def test_a_used_file_that_loosens_a_gate_is_found(versions):
    program = edited('use std.gates => use "./lab.skill" as gates')
    for folder, share in zip(versions, ("30%", "50%"), strict=True):
        (folder / "lab.skill").write_text(
            f"language 1\ngate small_step(most: share = {share}) = change(candidate) <= most\n"
        )
        (folder / "things.skill").write_text(program.replace("small_step(30%)", "small_step()"))
    (found,) = compare_programs([versions[1] / "things.skill"], str(versions[0] / "things.skill"))
    assert rules(found) == ["gate-loosened"]
    assert "50%" in found.findings[0].message


def test_code_behind_a_metric_is_compared_without_comments(versions):
    program = edited('exact_match(kind) => python("score:right", low = 0, high = 1)')
    for folder in versions:
        (folder / "things.skill").write_text(program)
        (folder / "score.py").write_text("import part\ndef right(example, answer):\n    return part.of(answer)\n")
        (folder / "part.py").write_text("def of(answer):\n    return 1\n")
    (versions[1] / "part.py").write_text('def of(answer):\n    """One."""\n    return 1  # always\n')
    assert compared(versions, program).changes == ()
    (versions[1] / "part.py").write_text("def of(answer):\n    return 2\n")
    found = compared(versions, program)
    assert rules(found) == ["metric-redefined"]
    assert "what it reads changed" in found.findings[0].message


def test_an_edited_answer_on_test_is_found_and_a_new_row_is_told(versions):
    items = list(rows())
    write_rows(versions[1] / "things.jsonl", [*items, {**items[0], "id": "new", "text": "an apple", "shop_id": "s999"}])
    found = compared(versions, PROGRAM)
    assert rules(found) == []
    assert [BY_CODE[each.code].name for each in found.findings] == ["data-changed"]
    write_rows(versions[1] / "things.jsonl", [{**row, "kind": "tool"} for row in items])
    found = compared(versions, PROGRAM)
    assert rules(found) == ["test-split-changed"]
    assert "edited" in found.findings[0].message


def test_a_test_example_that_is_learnt_from_now_is_counted(versions):
    found = compared(versions, edited("seed = 3 => seed = 4"))
    message = found.findings[0].message
    assert "by `seed`" in message
    assert "trained on now" in message


def test_findings_point_into_the_new_text(versions):
    found = compared(versions, edited("<= 10% => <= 15%"))
    (finding,) = found.findings
    assert finding.primary.source.slice(finding.primary.span) == "gate safe"
    assert finding.primary.source.name == str(versions[1] / "things.skill")
    assert finding.hint


def test_every_rule_has_a_page():
    from skillc.diagnostics.codes import CODES

    for rule in RULES.values():
        assert f"`{rule.name}`" in CODES[rule.code].title
    assert len({rule.code for rule in RULES.values()}) == len(RULES)


def test_order_and_comments_are_no_change(versions):
    lines = PROGRAM.splitlines()
    gates = [line for line in lines if line.startswith("gate ")]
    rest = [line for line in lines if not line.startswith("gate ")]
    program = "\n".join([*rest[:1], "# a comment", *reversed(gates), *rest[1:]]) + "\n"
    assert compared(versions, program).changes == ()


def test_a_gate_that_was_turned_round_is_not_as_strict(versions):
    either = PROGRAM.replace("candidate.correct > incumbent.correct", "candidate.correct >= incumbent.correct")
    (versions[0] / "things.skill").write_text(either)
    found = compared(versions, either.replace("candidate.correct >= incumbent", "candidate.correct <= incumbent"))
    assert rules(found) == ["gate-changed"]
