"""Every gate of the standard library, decided in a world where it should hold and in one where it should not."""

from fractions import Fraction

import pytest
from library_programs import checked, plan

from skillc.gates.evaluate import decide
from skillc.gates.evidence import Evidence, MetricRange, SplitEvidence, TextEvidence
from skillc.gates.intervals import Truth
from skillc.gates.terms import show_term
from skillc.language.library import standard_library
from skillc.outcomes import MICRO, Example, Scored

N = 40


def world(candidate, incumbent=20, *, initial=10, kept=True, tokens=(100, 100), change=0, overlap=0, cost=(10, 10)):
    """Examples of two products in turn, of which the first so many are right.

    Where nothing is `kept`, the candidate is right on the last ones in place of the first.
    """
    right = {"initial": range(initial), "incumbent": range(incumbent), "best": range(incumbent)}
    right["candidate"] = range(candidate) if kept else range(N - candidate, N)
    examples = tuple(Example(f"e{i}", {}, {}, {"product": "ab"[i % 2]}, f"g{i}") for i in range(N))
    numbers = {example.id: i for i, example in enumerate(examples)}

    def lookup(state, example, sample):
        return {"score": Scored(MICRO * (numbers[example.id] in right[state]))}

    def price(state, example, sample):
        return (cost[0] if state == "candidate" else cost[1]) * 1000

    split = SplitEvidence(examples, 1, lookup, {"score": MetricRange(0, MICRO)}, price, 10**9)
    sizes = {state: tokens[0] if state == "candidate" else tokens[1] for state in right}
    read = TextEvidence(sizes, Fraction(change), dict.fromkeys(right, Fraction(overlap)))
    return Evidence(split, split, read, planned=1, seed=1)


# name -> call, a world where it holds, one where it does not
CASES = {
    "gates.strict": ("score", world(21), world(20)),
    "gates.never_lose": ("score, by = product", world(20), world(20, kept=False)),
    "gates.no_regression": ("score, by = product", world(20), world(20, kept=False)),
    "gates.outweighs": ("score, factor = 2", world(26), world(20, kept=False)),
    "gates.sure": ("score", world(36), world(21)),
    "gates.evident": ("score", world(32), world(26)),
    "gates.keeps": ("score, 5%", world(18), world(17)),
    "gates.at_least": ("score, 50%", world(20), world(19)),
    "gates.fair": ("score, product", world(20), world(14)),
    "gates.lifts_worst": ("score, product", world(22), world(20)),
    "gates.small_step": ("30%", world(20, change="0.3"), world(20, change="0.31")),
    "gates.compact": ("120 tokens", world(20, tokens=(120, 1)), world(20, tokens=(121, 1))),
    "gates.grows_slowly": ("10%", world(20, tokens=(110, 100)), world(20, tokens=(111, 100))),
    "gates.better_or_shorter": ("score", world(20, tokens=(99, 100)), world(20)),
    "gates.own_words": ("10%", world(20, overlap="0.1"), world(20, overlap="0.2")),
    "gates.cheap": ("1.2", world(20, cost=(12, 10)), world(20, cost=(13, 10))),
    "gates.cures": ("score", world(21), world(19)),
}
# Decided by a second measurement of the initial skill, in a `require`.
LATER = {"judging.steady": ("helpful, most = 10%", "flip_rate(helpful) <= 10%")}


def test_every_gate_of_the_library_is_decided_here():
    assert {d.name for m in standard_library().modules for d in m.declarations if d.kind == "gate"} == {*CASES, *LATER}


@pytest.mark.parametrize("name", CASES)
def test_a_gate_holds_where_it_should_and_nowhere_else(name):
    arguments, holds, fails = CASES[name]
    found = next(gate for gate in plan(f"gate tried = {name}({arguments})").gates if gate.name == "tried")
    assert decide(found.term, holds) is Truth.TRUE
    assert decide(found.term, fails) is Truth.FALSE


def test_better_or_shorter_takes_what_is_better_and_longer_and_nothing_that_is_worse():
    found = next(gate for gate in plan("gate tried = gates.better_or_shorter(score)").gates if gate.name == "tried")
    assert decide(found.term, world(21, tokens=(200, 100))) is Truth.TRUE
    assert decide(found.term, world(19, tokens=(1, 100))) is Truth.FALSE


@pytest.mark.parametrize("name", LATER)
def test_a_require_of_the_library_means_what_its_documentation_says(name):
    arguments, shown = LATER[name]
    found = next(each for each in checked(f"require tried = {name}({arguments})").gates if each.name == "tried")
    assert (found.kind, show_term(found.term)) == ("require", shown)
