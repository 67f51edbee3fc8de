"""Every metric of the standard library, measured on answers that are good, bad, and in between."""

from fractions import Fraction

import pytest
from library_programs import score

from skillc.language.library import standard_library
from skillc.outcomes import MICRO

TEAM = "exact_match(team)"
LONG = "word " * 40

# name -> call, and what it gives on which answers; answers that are not named are right
CASES = {
    "text.short": ("answer, 10 tokens", [({"answer": ""}, 1), ({"answer": LONG}, 0)]),
    "text.length": ("answer, 10 tokens", [({"answer": ""}, 0), ({"answer": LONG}, 1)]),
    "text.within": ("answer, 2 tokens, 10 tokens", [({}, 1), ({"answer": ""}, 0), ({"answer": LONG}, 0)]),
    "text.at_most_words": ("answer, 4", [({}, 1), ({"answer": "one two three four five"}, 0), ({"answer": ""}, 1)]),
    "text.at_most_lines": ("actions, 2", [({}, 1), ({"actions": ["a", "b", "c"]}, 0), ({"actions": []}, 1)]),
    "text.answered": ("answer", [({}, 1), ({"answer": " \n\t "}, 0)]),
    "text.says_all": (
        'answer, ["kind regards", "the team"]',
        [({"answer": "Kind  REGARDS,\nthe team"}, 1), ({"answer": "kind regards"}, 0)],
    ),
    "text.avoids": ('answer, ["as an AI", "sorry"]', [({}, 1), ({"answer": "Sorry, no"}, 0)]),
    "text.key_points": (
        "answer, points",
        [({"answer": "the CAPITAL of France"}, 1), ({"answer": "a capital"}, Fraction(1, 2)), ({"answer": "x"}, 0)],
    ),
    "numbers.close": (
        "age, worst = 50%",
        [({}, 1), ({"age": 44}, Fraction(4, 5)), ({"age": 80}, 0), ({"age": -40}, 0)],
    ),
    "numbers.near": ("age, worst = 10", [({}, 1), ({"age": 45}, Fraction(1, 2)), ({"age": 400}, 0)]),
    "numbers.within_share": ("age, most = 10%", [({"age": 44}, 1), ({"age": 45}, 0)]),
    "numbers.within_distance": ("age, most = 2", [({"age": 38}, 1), ({"age": 37}, 0)]),
    "numbers.tiers": ("age, fine = 1%, rough = 10%", [({}, 1), ({"age": 43}, Fraction(1, 2)), ({"age": 50}, 0)]),
    "numbers.between": ("age, 0, 130", [({}, 1), ({"age": 131}, 0), ({"age": 130}, 1)]),
    "classification.weighted": (
        f"{TEAM}, where = urgent, rest = 20%",
        [({}, 1), ({"team": "shipping"}, 0), ({"inputs": {"urgent": False}}, Fraction(1, 5))],
    ),
    "classification.costly": (
        f"{TEAM}, dear = urgent, cost = 4",
        [
            ({}, 1),
            ({"team": "shipping"}, 0),
            ({"team": "shipping", "inputs": {"urgent": False}}, Fraction(3, 4)),
            ({"inputs": {"urgent": False}}, 1),
        ],
    ),
    "classification.selective": (
        f'{TEAM}, team, "unsure", credit = 30%',
        [({}, 1), ({"team": "unsure"}, Fraction(3, 10)), ({"team": "shipping"}, 0)],
    ),
    "classification.decided": ('team, "unsure"', [({}, 1), ({"team": "unsure"}, 0)]),
    "classification.false_positive": (
        'team, "billing"',
        [
            ({}, 0),
            ({"gold": {"team": "shipping"}}, 1),
            ({"gold": {"team": "shipping"}, "team": "shipping"}, 0),
        ],
    ),
    "classification.false_negative": (
        'team, "billing", gold_team',
        [({}, 0), ({"team": "shipping"}, 1), ({"team": "shipping", "fields": {"gold_team": "shipping"}}, 0)],
    ),
    "classification.ordinal": (
        "priority",
        [({}, 1), ({"priority": "highest"}, Fraction(2, 3)), ({"priority": "low"}, Fraction(1, 3))],
    ),
    "classification.near_miss": (
        "priority, credit = 50%",
        [({}, 1), ({"priority": "medium"}, Fraction(1, 2)), ({"priority": "low"}, 0), ({"priority": "urgent?"}, 0)],
    ),
    "extraction.fields": (
        'record, ["date", "amount"]',
        [({"record": {"date": "2026-01-02", "amount": 5}}, 1), ({"record": {"amount": 5}}, Fraction(1, 2))],
    ),
    "extraction.key_fields": (
        'record, ["amount"], weight = 70%',
        [({}, 1), ({"record": {"amount": 5}}, Fraction(8, 10)), ({"record": {}}, 0)],
    ),
    "extraction.whole_record": ("record", [({}, 1), ({"record": {"amount": 5}}, 0)]),
    "extraction.readable_fields": (
        "record, credit = 20%",
        [({}, 1), ({"record": {"x": 1}}, Fraction(1, 5)), ({"record": "Ada, 5"}, 0)],
    ),
    "extraction.items": (
        "names, finding = 50%",
        [({}, 1), ({"names": ["Ada", "Bob"]}, Fraction(5, 12)), ({"names": []}, 0)],
    ),
    "extraction.complete": ("names", [({"names": ["ada", "Grace", "Alan", "Bob"]}, 1), ({"names": ["Ada"]}, 0)]),
    "extraction.nothing_extra": ("names", [({"names": ["Ada"]}, 1), ({"names": ["Ada", "Bob"]}, 0)]),
    "extraction.verbatim": (
        "names, document",
        [({"names": ["ada", "Paris"]}, 1), ({"names": ["Ada", "Bob"]}, Fraction(1, 2)), ({"names": []}, 1)],
    ),
    "code.all_pass": (f"{TEAM}", [({}, 1), ({"team": "shipping"}, 0)]),
    "code.tests": ("f1(answer), bonus = 50%", [({}, 1), ({"answer": "Paris"}, Fraction(1, 4)), ({"answer": "x"}, 0)]),
    "code.if_compiles": (f"{TEAM}, compiles = urgent", [({}, 1), ({"inputs": {"urgent": False}}, 0)]),
    "code.without": ('program, ["eval(", "os.system"]', [({}, 1), ({"program": "x = eval(y)"}, 0)]),
    "code.defines": (
        'program, ["def solve(", "def main("]',
        [({}, Fraction(1, 2)), ({"program": "def main():\n  pass\ndef solve():\n  pass"}, 1), ({"program": ""}, 0)],
    ),
    "code.bare": ("program", [({}, 1), ({"program": "```python\nx = 1\n```"}, 0)]),
    "code.concise": (
        f"{TEAM}, program, most = 2, penalty = 10%",
        [({}, 1), ({"program": "a\n\nb\nc"}, Fraction(9, 10)), ({"program": "a\nb\nc", "team": "shipping"}, 0)],
    ),
    "judging.at_least": (
        "answer, judging.solves, referee, least = 75%",
        [({"judged": {"referee": "3/4"}}, 1), ({"judged": {"referee": "1/2"}}, 0)],
    ),
    "judging.both": (
        "answer, judging.solves, judging.faithful, referee",
        [({"judged": {"request": "1", "statement": "1/4"}}, Fraction(1, 4)), ({"judged": {"referee": "1"}}, 1)],
    ),
    "judging.panel": (
        "answer, judging.clear, referee, second_referee",
        [({"judged": {"second_referee": "1", "referee": "1/2"}}, Fraction(3, 4)), ({"judged": {"referee": "0"}}, 0)],
    ),
    "judging.strict_panel": (
        "answer, judging.polite, referee, second_referee",
        [({"judged": {"second_referee": "1", "referee": "1/2"}}, Fraction(1, 2)), ({"judged": {"referee": "1"}}, 1)],
    ),
    "judging.veto": (
        "f1(answer), answer, judging.faithful, referee",
        [({"judged": {"referee": "1/2"}}, 1), ({"judged": {"referee": "1/4"}}, 0)],
    ),
    "scores.blend": (
        f"{TEAM}, f1(answer), 80%",
        [({}, 1), ({"answer": "x"}, Fraction(4, 5)), ({"team": "unsure"}, Fraction(1, 5))],
    ),
    "scores.only_if": (f"{TEAM}, urgent", [({}, 1), ({"inputs": {"urgent": False}}, 0)]),
    "scores.less": (
        f"{TEAM}, urgent, penalty = 25%",
        [({}, Fraction(3, 4)), ({"inputs": {"urgent": False}}, 1), ({"team": "unsure"}, 0)],
    ),
    "scores.weakest": (f"{TEAM}, f1(answer)", [({}, 1), ({"answer": "x"}, 0), ({"team": "unsure"}, 0)]),
    "scores.passes": ("f1(answer), 50%", [({}, 1), ({"answer": "Paris"}, 1), ({"answer": "x"}, 0)]),
    "scores.ramp": (
        "f1(answer), none_below = 20%, full = 80%",
        [({}, 1), ({"answer": "Paris"}, Fraction(1, 2)), ({"answer": "x"}, 0)],
    ),
    "gates.short": ("answer, 10 tokens", [({"answer": ""}, 1), ({"answer": LONG}, 0)]),
}


def test_every_metric_of_the_library_is_measured_here():
    assert {d.name for m in standard_library().modules for d in m.declarations if d.kind == "metric"} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_metric_gives_what_its_documentation_says(name):
    arguments, cases = CASES[name]
    found = [score(f"{name}({arguments})", **answers) for answers, _ in cases]
    assert found == [Fraction(round(Fraction(expected) * MICRO), MICRO) for _, expected in cases]
    assert len(set(found)) > 1
