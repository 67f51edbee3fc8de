"""What the rulebook learns besides labels, and where a user is told what it cannot learn."""

import json
from fractions import Fraction
from types import SimpleNamespace

import pytest
from conftest_cli import skillc

from skillc.outcomes import ArmScore
from skillc.pipeline.report import _unbeaten, _verdict
from skillc.stats.verdict import Verdict

PLACES = ["Ghent", "Graz", "Oslo", "Leeds", "Porto", "Bern", "Cork"]


def receipts():
    """60 receipts of three layouts with amounts, cities and dates that differ."""
    for i in range(60):
        amount = Fraction(375 + 1999 * i, 100)
        money = f"{float(amount):,.2f}"
        city, day = PLACES[i * 3 % 7], f"2026-{i % 12 + 1:02}-{i % 27 + 1:02}"
        texts = (
            f"{i % 9 + 1} lamps for our office in {city}, {day}.\nTotal: {money} EUR, order {i + 70}",
            f"Ship {i % 8 + 2} desks to the branch in {city}, please.\nTotal: {money} EUR\nDate {day}, room {i % 30}",
            f"We were in {city}, on {day}, as {i % 5 + 1} guests.\nTotal: {money} EUR for table {i % 11}",
        )
        rush = ", urgent" if i % 4 == 0 else ""
        yield texts[i % 3] + rush, float(amount), city, day, bool(rush)


def compiled(folder, rows, *arguments):
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = skillc("new", "data.jsonl", folder=folder)
    assert made.returncode == 0, made.stderr
    done = skillc("compile", "data.skill", "--offline", *arguments, folder=folder)
    return made, done


def test_it_learns_numbers(tmp_path):
    rows = [{"receipt": text, "total": total} for text, total, *_ in receipts()]
    made, done = compiled(tmp_path, rows, "--json", "--require", "improved")
    assert "for `total` it only learns which number of the input to copy, and computes nothing" in made.stdout
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test"]["best"]["mean"] == 1
    assert "Answer total with the number" in next((tmp_path / "skills").glob("*/SKILL.md")).read_text()


def test_it_learns_the_keys_of_json(tmp_path):
    rows = [
        {"receipt": text, "order": {"total": total, "city": city, "date": day, "urgent": urgent}}
        for text, total, city, day, urgent in receipts()
    ]
    _, done = compiled(tmp_path, rows, "--json", "--require", "improved")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test"]["best"]["mean"] > 0.85


def test_what_it_cannot_learn_is_said_at_every_step_of_the_way(tmp_path):
    rows = [{"question": f"what is {i} plus {3 * i + 1} plus nothing at all?", "sum": 4 * i + 1} for i in range(2, 62)]
    made, done = compiled(tmp_path, rows)
    limit = "the rulebook is not a language model: for `sum` it only learns which number of the input to copy"
    assert limit in made.stdout
    plan = skillc("plan", "data.skill", "--json", folder=tmp_path)
    assert any(limit in note for note in json.loads(plan.stdout)["notes"])
    assert done.returncode == 0
    assert "nothing was proposed: the rulebook is not a language model" in " ".join(done.stderr.split())
    assert "verdict   no significant gain   nothing could be proposed" in done.stdout
    assert skillc("compile", "data.skill", "--offline", "--require", "improved", folder=tmp_path).returncode == 1


def test_a_program_of_labels_has_no_such_note(shop):
    plan = skillc("plan", "things.skill", "--json", folder=shop)
    assert not any("rulebook" in note for note in json.loads(plan.stdout)["notes"])


@pytest.mark.parametrize(
    ("best", "baselines", "told"),
    [
        ("0.70", {"keywords": "0.71", "most frequent label": "0.1"}, "not above `keywords` (no model): 71.0 %"),
        ("0.71", {"keywords": "0.71"}, "not above `keywords` (no model): 71.0 %"),
        ("0.72", {"keywords": "0.71"}, ""),
        (None, {"keywords": "0.71"}, ""),
        ("0.72", {}, ""),
    ],
)
def test_the_verdict_line_names_the_baseline_that_was_not_beaten(best, baselines, told):
    arm = ArmScore(Fraction(best) if best else None, 10)
    compiled = SimpleNamespace(
        baselines={name: Fraction(mean) for name, mean in baselines.items()}, tested=SimpleNamespace(test={"best": arm})
    )
    assert _unbeaten(compiled) == told
    line = _verdict(Verdict("improved"), told)
    assert line.plain == "verdict   improved" + (f"   {told}" if told else "")
    assert ("green" in str(line.spans[0].style)) is not bool(told)
