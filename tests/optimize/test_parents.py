"""Parents from the Pareto front, what is kept for it, and what the gates compare with."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import BETTER, World, engine_of, plan_of, results, solves, trained

from skillc.document.skill import digest
from skillc.optimize.parents import drawn, frequencies, parent_of, unsolved
from skillc.optimize.seeds import seed_for

PARETO = "parents = pareto"


def by_gepa(columns):
    """The published code of GEPA 0.1.4, `gepa_utils.py`, in its own words: fronts as sets, dominated ones removed."""
    fronts = {}
    for example, scores in enumerate(zip(*columns, strict=True)):
        fronts[example] = {i for i, score in enumerate(scores) if score == max(scores)}
    programs = sorted(range(len(columns)), key=lambda i: (sum(columns[i]), -i))
    dominated = set()

    def is_dominated(y, alive):
        return all(any(other in alive for other in front) for front in fronts.values() if y in front)

    again = True
    while again:
        again = False
        for y in programs:
            if y not in dominated and is_dominated(y, set(programs) - {y} - dominated):
                dominated.add(y)
                again = True
                break
    left = set(programs) - dominated
    return [sum(i in front for front in fronts.values()) if i in left else 0 for i in range(len(columns))]


columns = st.integers(1, 6).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, 2), min_size=size, max_size=size), min_size=1, max_size=6)
)


@settings(deadline=None)
@given(columns)
def test_the_front_and_its_frequencies_are_those_of_gepa(scores):
    assert frequencies(scores) == by_gepa(scores)


@given(columns)
def test_each_example_has_a_skill_on_its_front_that_is_still_in(scores):
    weights = frequencies(scores)
    for row in zip(*scores, strict=True):
        assert any(weights[i] for i, score in enumerate(row) if score == max(row))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any))
def test_a_draw_never_takes_what_has_no_weight(weights):
    tickets = [drawn(weights, n.to_bytes(32, "big")) for n in range(sum(weights))]
    assert [tickets.count(i) for i in range(len(weights))] == weights


def test_the_draw_depends_on_seed_epoch_and_step_alone():
    weights = [3, 2, 5]
    draws = [drawn(weights, seed_for(7, "parent", epoch=1, step=i)) for i in range(200)]
    assert draws == [drawn(weights, seed_for(7, "parent", epoch=1, step=i)) for i in range(200)]
    assert [draws.count(i) / 200 for i in range(3)] == pytest.approx([0.3, 0.2, 0.5], abs=0.1)


# ---- in a run -------------------------------------------------------------------------------------

# The second candidate is worse than the incumbent, and the only one that is right on v4 and v5.
SPECIALIST = "breaks v0 v1 v2 v3. solves v4 v5 ."


def a_pool(tmp_path, *, script=None, gates=BETTER, budget="epochs = 1", **options):
    plan = plan_of(tmp_path, optimize=PARETO, gates=gates, budget=budget)
    engine = engine_of(plan, script or {1: solves("v0", "v1", "v2", "v3"), 2: SPECIALIST}, **options)
    return trained(engine), engine


def test_a_rejected_candidate_that_is_right_where_no_other_is_becomes_a_parent(tmp_path):
    done, engine = a_pool(tmp_path, train_size=2)
    assert results(engine.observer) == ["accept", "reject"]
    first, second = engine.observer.decisions
    assert "kept" not in first
    assert second["kept"] == ["v4", "v5"]
    initial, accepted, kept = done.state.pool
    assert [member.accepted for member in done.state.pool] == [True, True, False]
    assert kept.anchor in (initial.id, accepted.id)
    assert done.state.best == accepted.skill
    assert done.state.accepted == 1


def test_a_kept_candidate_has_a_complete_validation_and_a_dropped_one_need_not(tmp_path):
    done, engine = a_pool(tmp_path, train_size=2)
    samples = [engine.rollouts.known(done.state.pool[-1].skill, e) for e in engine.dataset.validation]
    assert all(outcome is not None and outcome.measured for outcome in samples)
    world = World()
    script = {1: solves("v0", "v1", "v2", "v3"), 2: "breaks v0 v1 v2 v3."}
    done, engine = a_pool(tmp_path, script=script, train_size=2, world=world)
    assert len(done.state.pool) == 2
    assert "kept" not in engine.observer.decisions[1]


def test_examples_that_no_member_solves_go_first(tmp_path):
    world = World()
    done, engine = a_pool(tmp_path, train_size=2, world=world)
    open_ = {e.id for e in unsolved(engine, done.state)}
    assert open_ == {"v6", "v7"}
    kept_text = next(call[1] for call in reversed(world.calls) if call[0] in ("gate", "validation"))
    sent = [call[2] for call in world.calls if call[0] == "gate" and call[1] == kept_text]
    assert set(sent[:4]) == {"v4", "v5", "v6", "v7"}


def test_a_candidate_that_fails_a_gate_on_its_text_is_never_kept(tmp_path):
    gates = BETTER + "\ngate compact = tokens(candidate) <= 62 tokens"
    long = SPECIALIST + " and much more that nobody needs, on and on, for as long as the gate on its length says no"
    done, engine = a_pool(tmp_path, script={1: solves("v0"), 2: long}, gates=gates, train_size=2)
    assert [d.get("blame") for d in engine.observer.decisions] == [None, "compact"]
    assert len(done.state.pool) == 2


def test_what_cannot_be_measured_is_not_kept(tmp_path):
    def fails(text, example, sample, stage):
        return "breaks" in text and example.id == "v7"

    done, engine = a_pool(tmp_path, train_size=2, world=World(fails))
    assert "kept" not in engine.observer.decisions[1]
    assert len(done.state.pool) == 2


def test_what_grows_from_a_kept_skill_meets_the_accepted_one_behind_it(tmp_path):
    """A gate that a kept skill failed is not passed by its children because they are no worse than their parent."""
    gates = BETTER + "\ngate safe = regressed(correct) <= 10%"
    steps = {
        1: solves("v0", "v1", "v2", "v3"),
        # Better by one, but four are lost: kept for what it adds.
        2: "breaks v0 v1 v2 v3. solves v4 v5 v6 v7 v8 .",
    }
    plan = plan_of(tmp_path, optimize=PARETO, gates=gates)
    # Each later step adds one more right answer to whatever skill it grows from.
    extra = itertools.cycle(["v9", "v10", "v11"])
    engine = engine_of(plan, lambda step: steps.get(step) or solves(next(extra)), train_size=12, validation=12)
    done = trained(engine)
    kept = next(member for member in done.state.pool if not member.accepted)
    children = [d for d in engine.observer.decisions if d.get("parents") == [kept.id]]
    assert children
    assert all(child["incumbent"] == kept.anchor for child in children)
    assert all(child["result"] == "reject" and child["blame"] == "safe" for child in children)
    assert all(member.accepted or member.anchor != member.id for member in done.state.pool)


def test_every_accepted_skill_passed_the_gates_against_an_accepted_one(tmp_path):
    def script(step):
        return [solves(f"v{step % 8}") if step % 3 else f"breaks v{(step + 1) % 8}. solves v{(step + 4) % 8} ."]

    plan = plan_of(tmp_path, optimize=PARETO, budget="epochs = 3")
    engine = engine_of(plan, script, train_size=8)
    done = trained(engine)
    accepted = {member.id for member in done.state.pool if member.accepted}
    decided = [d for d in engine.observer.decisions if d["result"] in ("accept", "reject")]
    assert len({tuple(d["parents"]) for d in decided}) > 2
    assert all(d["incumbent"] in accepted for d in decided)
    goals = [Fraction(d["goal"]) for d in engine.observer.completions]
    best = sum(bool(engine.rollouts.score(done.state.best, e, "correct")) for e in engine.dataset.validation)
    assert Fraction(best, 8) == max(goals)


def test_two_runs_draw_the_same_parents_and_another_seed_draws_others(tmp_path):
    def script(step):
        return [solves(f"v{step % 8}", f"v{(step * 3) % 8}") + f" breaks v{(step * 5 + 1) % 8}."]

    def parents(seed):
        plan = plan_of(tmp_path, optimize=PARETO, budget="epochs = 2")
        plan = plan.model_copy(update={"data": plan.data.model_copy(update={"seed": seed})})
        engine = engine_of(plan, script, train_size=8)
        trained(engine)
        return engine.observer.decisions

    assert parents(3) == parents(3)
    assert parents(3) != parents(4)


def test_without_a_pool_nothing_changes(tmp_path):
    plan = plan_of(tmp_path)
    engine = engine_of(plan, {1: solves("v0", "v1", "v2", "v3"), 2: SPECIALIST}, train_size=2)
    done = trained(engine)
    assert done.state.pool == ()
    assert not any("kept" in d or "parents" in d for d in engine.observer.decisions)


def test_a_parent_without_a_complete_validation_is_never_drawn(tmp_path):
    """An accept that a cap or a failure left with open cells is a skill, but no parent yet."""

    def fails(text, example, sample, stage):
        return "solves v0 v1" in text and example.id == "v7"

    plan = plan_of(tmp_path, optimize=PARETO)
    engine = engine_of(plan, {1: solves("v0", "v1")}, train_size=1, world=World(fails))
    done = trained(engine)
    assert results(engine.observer) == ["accept"]
    assert done.state.best != done.state.initial
    drawn_ = {digest(parent_of(engine, done.state, epoch=1, step=i)) for i in range(20)}
    assert drawn_ == {digest(done.state.initial)}


def test_a_trust_region_is_around_the_parent_and_not_the_skill_behind_it(tmp_path):
    """A line of kept skills would else leave the region for good, and every step with it."""
    gates = BETTER + "\ngate safe = regressed(correct) <= 10%\ngate steady = change(candidate) <= 1%"
    known = {1: solves("v0", "v1", "v2", "v3"), 2: "breaks v0 v1 v2 v3. solves v4 v5 v6 v7 v8 ."}
    extra = itertools.cycle(["v9", "v10", "v11"])
    plan = plan_of(tmp_path, optimize=PARETO, gates=gates)
    engine = engine_of(plan, lambda step: known.get(step) or solves(next(extra)), train_size=12, validation=12)
    done = trained(engine)
    kept = next(member for member in done.state.pool if not member.accepted)
    children = [d for d in engine.observer.decisions if d.get("parents") == [kept.id]]
    assert children
    assert all(child["gates"]["steady"] == "true" and child["blame"] == "safe" for child in children)
