"""A race decides what full evaluation would, whatever arrives when; and what it costs and tells."""

import asyncio
import random
from fractions import Fraction
from unittest.mock import patch

import pytest
from gate_worlds import METRICS, example, gates
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_engine import BETTER, Script, engine, gate, measured, plan, skill, state
from thorough import example_count

from skillc.document.skill import tokens
from skillc.gates.evaluate import decide_all
from skillc.gates.intervals import Truth
from skillc.gates.terms import CallTerm, Constant, MeanTerm, MetricTerm, Operation, StateTerm, WordTerm
from skillc.models.failures import BudgetReached
from skillc.optimize.gate.gate import evidence, goal_of, skills_by_name, text_evidence
from skillc.optimize.gate.pool import race
from skillc.outcomes import MICRO, Example

KNOWN = {"incumbent": skill("as it is"), "best": skill("the best so far"), "initial": skill("at the start of it all")}
POOL = [skill("a longer text than the others have it"), skill("short text"), skill("other text"), skill("x y z w v")]


@pytest.fixture(autouse=True, scope="module")
def _groups_of_two_stand_alone():
    with patch("skillc.gates.evidence.SMALLEST_GROUP", 2):
        yield


@st.composite
def races(draw, most_candidates=4):
    """(gates, examples, samples, scores by skill, wave, candidates, seed of arrival)."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    count, size, samples = draw(st.integers(1, most_candidates)), draw(st.integers(1, 7)), draw(st.integers(1, 3))
    groups = [dice.randrange(5) for _ in range(size)]
    examples = [example(i, groups) for i in range(size)]
    lost = draw(st.sampled_from([0, 0.02, 0.1]))
    scores = {
        (name, item.id, sample): None
        if name not in KNOWN and dice.random() < lost
        else {m: dice.randint(r.low // MICRO, r.high // MICRO) for m, r in METRICS.items()}
        for name in [*KNOWN, *(f"c{i}" for i in range(count))]
        for item in examples
        for sample in range(samples)
    }
    terms = draw(st.lists(gates | st.just(BETTER), min_size=1, max_size=3))
    return terms, examples, samples, scores, draw(st.integers(1, 4)), count, dice.randrange(100)


def prepared(terms, examples, samples, scores, wave, count, seed, *, flips=None):
    """An engine whose known skills were measured, a state, the script, the candidates."""
    script = Script(lambda name, item, sample: scores[name, item, sample], seed=seed)
    for name, document in KNOWN.items():
        script.name(document, name)
    for i, document in enumerate(POOL):
        script.name(document, f"c{i}")
    program = plan([gate(term, f"g{i}") for i, term in enumerate(terms)], optimize={"samples": samples})
    run = engine(program, script, examples, wave=wave)
    now = state(KNOWN["incumbent"], best=KNOWN["best"], initial=KNOWN["initial"]).with_counters(flips=flips or {})
    asyncio.run(measured(run, *KNOWN.values()))
    script.sent.clear()
    return run, now, script, POOL[:count]


def fully(run, now, candidates, batch):
    """Truth and goal of each candidate on all the evidence there can be."""
    asyncio.run(measured(run, *candidates))
    for candidate in candidates:
        asyncio.run(run.rollouts.measure(candidate, batch, stage="batch"))
    found = []
    for candidate in candidates:
        known = skills_by_name(now, candidate)
        seen = evidence(run, known, batch, text_evidence(run, known, Fraction(1, 5)))
        with patch("skillc.optimize.gate.pool.change", return_value=Fraction(1, 5)):
            found.append((decide_all(run.plan.gates, seen).truth, goal_of(run, candidate).low))
    return found


def check(world, has_batch):
    run, now, script, candidates = prepared(*world)
    batch = run.dataset.validation[:3] if has_batch else ()
    with patch("skillc.optimize.gate.pool.change", return_value=Fraction(1, 5)):
        decisions = asyncio.run(race(run, now, candidates, batch))
    spent = len(script.sent)
    truths = fully(run, now, candidates, batch)
    holding = [i for i, (truth, _) in enumerate(truths) if truth is Truth.TRUE]
    order = sorted(holding, key=lambda i: (-truths[i][1], tokens(candidates[i]), i))
    winner = order[0] if order else None
    assert [i for i, d in enumerate(decisions) if d.result == "accept"] == order[:1]
    for i, decision in enumerate(decisions):
        truth, goal = truths[i]
        if decision.result == "reject":
            assert truth is Truth.FALSE
            assert decision.blame in [g.name for g in run.plan.gates]
        elif decision.result == "undecided":
            assert truth is Truth.UNKNOWN
        elif decision.result == "beaten":
            assert winner is not None
            assert truths[winner][1] >= goal
        assert decision.goal.low <= goal <= decision.goal.high
    if len(candidates) == 1:
        expected = {Truth.TRUE: "accept", Truth.FALSE: "reject", Truth.UNKNOWN: "undecided"}[truths[0][0]]
        assert decisions[0].result == expected
    return spent


@settings(max_examples=example_count(200), deadline=None)
@given(races(most_candidates=1), st.booleans())
def test_one_candidate_is_decided_as_by_full_evaluation(world, has_batch):
    check(world, has_batch)


@settings(max_examples=example_count(250), deadline=None)
@given(races(), st.booleans())
def test_the_winner_of_a_race_is_that_of_full_evaluation(world, has_batch):
    check(world, has_batch)


# ---- by hand --------------------------------------------------------------------------------------


def numbered(count):
    return [Example(f"e{i}", {}, {}, {}, f"e{i}") for i in range(count)]


def raced(scores, *, count=2, examples=20, wave=4, terms=(BETTER,), samples=1, flips=None, **options):
    """Decisions and calls of a race; `scores` gives `m` by (skill, number of the example)."""
    items = numbered(examples)
    table = {
        (name, item.id, sample): None if (found := scores(name, i)) is None else {"m": found, "wide": 0}
        for name in [*KNOWN, *(f"c{i}" for i in range(4))]
        for i, item in enumerate(items)
        for sample in range(samples)
    }
    run, now, script, candidates = prepared(terms, items, samples, table, wave, count, 1, flips=flips)
    decisions = asyncio.run(race(run, now, candidates, options.pop("batch", ()), **options))
    return decisions, [call for call in script.sent if call[0] == "gate"], run


def test_a_hopeless_candidate_leaves_first_and_costs_little():
    """The incumbent fails on four of twenty; the first candidate cures none of them, the second all."""

    def scores(name, i):
        return 1 if name == "c1" else 0 if i < 4 else 1

    decisions, sent, _ = raced(scores)
    assert [d.result for d in decisions] == ["reject", "accept"]
    assert {skill for _, skill, _, _ in sent[:8]} == {"c0", "c1"}
    assert sum(skill == "c0" for _, skill, _, _ in sent) == 4
    assert sum(skill == "c1" for _, skill, _, _ in sent) == 20


ON_BATCH = (("on", WordTerm("batch")),)
CURES = Operation(">", (CallTerm("improved", (MetricTerm("m"),), ON_BATCH), Constant(Fraction(0))))
BOTH = Operation(
    ">", (CallTerm("improved", (MetricTerm("m"),), ON_BATCH), CallTerm("regressed", (MetricTerm("m"),), ()))
)


@pytest.mark.parametrize(
    ("cures", "terms", "on_batch"),
    [
        pytest.param(False, (CURES,), 4, id="worthless: when the failures are through, nothing more can be cured"),
        pytest.param(True, (CURES,), 4, id="good: one cure settles it"),
        pytest.param(True, (BOTH, CURES), 12, id="a gate that reads validation too needs all of the batch"),
    ],
)
def test_a_gate_on_the_batch_is_decided_wave_by_wave_failures_first(cures, terms, on_batch):
    """The incumbent fails on four of the batch's twelve and on all of validation; waves of four."""
    items = numbered(20)
    validation, batch = items[:8], items[8:]
    table = {
        (name, item.id, 0): {"m": 1 if 8 <= i < 16 or (name == "c0" and cures) else 0, "wide": 0}
        for name in [*KNOWN, "c0"]
        for i, item in enumerate(items)
    }
    run, now, script, candidates = prepared((*terms, BETTER), validation, 1, table, 4, 1, 1)
    asyncio.run(run.rollouts.measure(now.incumbent, batch, stage="rollout"))
    script.sent.clear()
    (decision,) = asyncio.run(race(run, now, candidates, batch))
    assert decision.result == ("accept" if cures else "reject")
    sent = [example for _, _, example, _ in script.sent if example in {item.id for item in batch}]
    assert sorted(sent[:4]) == ["e16", "e17", "e18", "e19"]
    assert len(sent) == on_batch


def test_candidates_go_in_lockstep_and_a_wave_is_sent_at_once():
    decisions, sent, _ = raced(lambda name, i: 1 if name != "incumbent" else 0, count=3, wave=5)
    waves = [sent[i : i + 15] for i in range(0, 15, 15)]
    for wave in waves:
        examples = {name: {e for _, s, e, _ in wave if s == name} for name in ("c0", "c1", "c2")}
        assert examples["c0"] == examples["c1"] == examples["c2"]
        assert len(examples["c0"]) == 5
    assert [d.result for d in decisions].count("accept") == 1


def test_ties_go_to_fewer_tokens_then_to_the_earlier_place():
    decisions, _, _ = raced(lambda name, i: 1 if name != "incumbent" else 0, count=3)
    assert tokens(POOL[1]) == tokens(POOL[2]) < tokens(POOL[0])
    assert [d.result for d in decisions] == ["beaten", "accept", "beaten"]
    assert decisions[2].beaten_by == 1


def test_a_candidate_that_can_no_longer_win_leaves_early():
    """c1 is right everywhere, c0 only where the incumbent fails: from there on c0 cannot catch up."""

    def scores(name, i):
        if name == "c1":
            return 1
        return int(i < 10) if name == "c0" else int(i >= 10)

    decisions, sent, _ = raced(scores, terms=(Operation(">=", (MeanTerm("candidate", "m"), Constant(Fraction(0)))),))
    assert [d.result for d in decisions] == ["beaten", "accept"]
    assert sum(skill == "c0" for _, skill, _, _ in sent) < 20


def test_the_first_wave_is_told_once_and_only_if_one_is_sent():
    calls = []
    raced(lambda name, i: int(i > 3), first_wave=lambda: calls.append("sent"))
    assert calls == ["sent"]
    short = Operation("<=", (CallTerm("tokens", (StateTerm("candidate"),)), Constant(Fraction(1), "tokens")))
    decisions, sent, _ = raced(lambda name, i: 1, terms=(short,), first_wave=lambda: calls.append("again"))
    assert (calls, sent, {d.blame for d in decisions}) == (["sent"], [], {"g0"})
    perfect, sent, _ = raced(lambda name, i: 1, first_wave=lambda: calls.append("again"))
    assert (calls, sent, {d.result for d in perfect}) == (["sent"], [], {"reject"})


def test_the_hook_comes_before_the_first_call_of_the_wave():
    seen = []
    items = numbered(8)
    table = {(n, item.id, 0): {"m": int(n != "incumbent"), "wide": 0} for n in (*KNOWN, "c0") for item in items}
    run, now, script, candidates = prepared((BETTER,), items, 1, table, 4, 1, 1)
    asyncio.run(race(run, now, candidates, (), first_wave=lambda: seen.append(len(script.sent))))
    assert seen == [0]


def test_gates_on_the_batch_come_before_validation():
    cures = Operation(
        ">", (CallTerm("improved", (MetricTerm("m"),), (("on", WordTerm("batch")),)), Constant(Fraction(0)))
    )

    def scores(name, i):
        return int(i >= 10) if name != "c1" else 1

    items = numbered(20)
    table = {
        (n, item.id, 0): {"m": scores(n, i), "wide": 0} for n in (*KNOWN, "c0", "c1") for i, item in enumerate(items)
    }
    run, now, script, candidates = prepared((BETTER, cures), items, 1, table, 4, 2, 1)
    decisions = asyncio.run(race(run, now, candidates, items[:5]))
    assert [(d.result, d.blame) for d in decisions] == [("reject", "g1"), ("accept", None)]
    assert sum(name == "c0" for _, name, _, _ in script.sent) == 5


def test_what_stays_unmeasured_is_sent_again_twice_and_then_undecided():
    def scores(name, i):
        if name == "c0":
            return None if i == 3 else int(i > 3)
        return int(i > 3)

    decisions, sent, _ = raced(scores, count=1)
    assert decisions[0].result == "undecided"
    assert sum(example == "e3" for _, _, example, _ in sent) == 3
    assert "(19 of 20)" in dict(decisions[0].drawn)["g0"]


def test_a_lost_cell_that_cannot_change_the_answer_does_not_hinder_it():
    decisions, _, _ = raced(lambda name, i: None if name == "c0" and i == 3 else int(name == "c0"), count=1)
    assert decisions[0].result == "accept"


def test_a_failed_gate_is_drawn_with_what_is_known():
    decisions, _, _ = raced(lambda name, i: int(i > 3 and name != "c0"), count=1)
    drawn = dict(decisions[0].drawn)["g0"]
    assert drawn.splitlines()[0] == "candidate.m > incumbent.m"
    assert "0 % to 80 % (4 of 20)" in drawn
    assert decisions[0].brief == "at best 80 %, needs more than 80 %"


def test_examples_that_flipped_go_first_among_equals():
    _, sent, _ = raced(lambda name, i: int(i > 15), count=1, flips={"e7": 2, "e11": 3}, wave=2)
    assert [example for _, _, example, _ in sent[:2]] == ["e11", "e7"]


def test_the_incumbents_unmeasured_cells_are_tried_again_with_the_first_wave():
    failing = {"e2"}

    def scores(name, i):
        return None if name == "incumbent" and f"e{i}" in failing else int(name == "c0")

    items = numbered(8)
    names = [*KNOWN, "c0"]
    script = Script(lambda n, item, s: None if (m := scores(n, int(item[1:]))) is None else {"m": m, "wide": 0})
    for name, document in zip(names, [*KNOWN.values(), POOL[0]], strict=True):
        script.name(document, name)
    run = engine(plan(), script, items, wave=4)
    now = state(KNOWN["incumbent"])
    asyncio.run(measured(run, KNOWN["incumbent"]))
    script.sent.clear()
    failing.clear()
    decisions = asyncio.run(race(run, now, [POOL[0]], ()))
    assert [name for _, name, _, _ in script.sent].count("incumbent") == 1
    assert decisions[0].incumbent.low == decisions[0].incumbent.high == 0


def test_a_cap_inside_a_wave_ends_the_race_without_a_decision():
    items = numbered(8)
    table = {(n, item.id, 0): {"m": int(n != "incumbent"), "wide": 0} for n in (*KNOWN, "c0") for item in items}
    run, now, script, candidates = prepared((BETTER,), items, 1, table, 4, 1, 1)
    script.cap = 2
    with pytest.raises(BudgetReached):
        asyncio.run(race(run, now, candidates, ()))
