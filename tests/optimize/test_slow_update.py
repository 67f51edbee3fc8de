"""Slow updates: when there is one, which pairs it is shown, which gates it passes, and what it leaves alone."""

import re
from dataclasses import replace

import pytest
from scripted import BETTER, Script, World, engine_of, plan_of, solves, trained

from skillc.budget.steps import SCAN

SLOW = "slow section guidance { limit = 200 tokens }"
ALL = solves(*(f"v{i}" for i in range(4)))


def run(tmp_path, edits, guidance=(), *, gates=BETTER, budget="epochs = 1", slow=SLOW, **options):
    """The run, with `batch` large enough that an epoch is one step."""
    plan = plan_of(tmp_path, slow=slow, gates=gates, budget=budget)
    changed = replace(plan.optimize, **{"batch": 1000, "slow_update_samples": 6, **options.pop("optimize", {})})
    plan = plan.model_copy(update={"optimize": changed})
    script = Script(edits, guidance)
    engine = engine_of(plan, script, **{"train_size": 40, **options})
    return trained(engine), engine, script


def kinds(engine):
    return [(d["kind"], d["result"]) for d in engine.observer.decisions]


def test_it_comes_only_after_an_epoch_that_accepted_something(tmp_path):
    guided = f"{ALL} {solves('v4')}"
    _, engine, script = run(tmp_path, {1: ALL, 2: "no use"}, [guided, "never asked for"], budget="epochs = 2")
    assert kinds(engine) == [("step", "accept"), ("slow update", "accept"), ("step", "reject")]
    assert [sample for stage, sample, _ in script.asked if stage == "slow update"] == [(1, 1, 0)]


def test_it_passes_the_same_gates(tmp_path):
    done, engine, _ = run(tmp_path, {1: ALL}, ["breaks v0."])
    assert kinds(engine) == [("step", "accept"), ("slow update", "reject")]
    assert engine.observer.decisions[-1]["blame"] == "better"
    assert done.state.incumbent.section("guidance").text == ""


def test_or_those_marked_for_slow(tmp_path):
    gates = BETTER + "\ngate calm for slow = candidate.correct >= incumbent.correct - 50%"
    done, engine, _ = run(tmp_path, {1: ALL}, ["breaks v0."], gates=gates)
    assert kinds(engine) == [("step", "accept"), ("slow update", "accept")]
    assert list(engine.observer.decisions[-1]["gates"]) == ["calm"]
    # What is let through for calm is not taken for better.
    assert done.state.best != done.state.incumbent


def test_gates_for_slow_do_not_hold_back_a_step(tmp_path):
    gates = BETTER + "\ngate calm for slow = candidate.correct > 90%"
    _, engine, _ = run(tmp_path, {1: ALL}, gates=gates)
    assert kinds(engine) == [("step", "accept")]


@pytest.mark.parametrize("guidance", ["breaks v0.", f"{ALL} {solves('v4')}"])
def test_it_never_counts_for_patience(tmp_path, guidance):
    with_it, _, _ = run(tmp_path, {1: ALL}, [guidance], budget="epochs = 1; patience = 1 steps")
    without, _, _ = run(tmp_path, {1: ALL}, budget="epochs = 1; patience = 1 steps", optimize={"slow_update": False})
    assert with_it.state.patience == without.state.patience


def test_one_that_stays_undecided_counts_for_nothing_and_is_not_tried_again(tmp_path):
    world = World(lambda text, example, sample, stage: "guided" in text and example.id == "v7")
    gates = "gate sure = candidate.correct > incumbent.correct"
    done, engine, _ = run(tmp_path, {1: ALL}, ["guided, not measured."], world=world, gates=gates)
    assert kinds(engine) == [("step", "accept"), ("slow update", "undecided")]
    assert done.state.undecided == ()
    assert done.state.patience.undecided == 0


def test_a_batch_gate_reads_the_longitudinal_examples(tmp_path):
    gates = BETTER + "\ngate cures = improved(correct, on = batch) > 0"
    train = [f"t{i}" for i in range(40)]
    edits = {1: f"{ALL} {solves(*train[:10])}"}
    world = World()
    _, engine, _ = run(tmp_path, edits, [f"{solves('v4')} {solves(*train)}"], gates=gates, world=world)
    assert kinds(engine) == [("step", "accept"), ("slow update", "accept")]
    guided = [call for call in world.calls if "solves v4" in call[1] and call[2].startswith("t")]
    # One wave of four: what it cures settles the gate, and the rest of the six need not be run.
    assert len(guided) == 4
    _, engine, _ = run(tmp_path, edits, [solves("v4")], gates=gates)
    assert engine.observer.decisions[-1]["blame"] == "cures"


# The first skill is right on t20 to t29; the last one on t0 to t9, and on t20 to t24 still.
FIRST = solves(*(f"t{i}" for i in range(20, 30)))
TURNED = f"{ALL} {solves(*(f't{i}' for i in range(10)))} breaks {' '.join(f't{i}' for i in range(25, 30))}."


def changes(tmp_path, policy, samples=6):
    """What a slow update is shown: (kind, example) of each case, and the world that was asked for it."""
    slow = f'frozen section known = "{FIRST}"\n  {SLOW}'
    world = World()
    more = {"pairs": policy, "slow_update_samples": samples}
    _, _, script = run(tmp_path, {1: TURNED}, slow=slow, optimize=more, world=world)
    prompts = [content for stage, _, content in script.asked if stage == "slow update"]
    cases = [re.findall(r'<case tag="[^"]*" kind="(\w+)">.*?\b(t\d+)\b', prompt, re.DOTALL) for prompt in prompts]
    return (cases[0] if cases else []), world


def category(name):
    i = int(name[1:])
    if i < 10:
        return "improved"
    if 25 <= i < 30:
        return "regressed"
    return "still_right" if 20 <= i < 25 else "still_failing"


def test_each_pair_is_what_the_two_skills_make_of_it_regressions_first(tmp_path):
    cases, _ = changes(tmp_path, "mixed", 40)
    assert len(cases) == 40
    assert all(kind == category(name) for kind, name in cases)
    order = ["regressed", "still_failing", "improved", "still_right"]
    assert [kind for kind, _ in cases] == sorted((kind for kind, _ in cases), key=order.index)


def test_mixed_takes_the_first_ones_that_the_seed_draws(tmp_path):
    cases, world = changes(tmp_path, "mixed")
    assert len(cases) == 6
    assert len({call[2] for call in world.calls if call[0] == "slow update"}) <= 6


@pytest.mark.parametrize(("policy", "wanted"), [("changed", {"improved", "regressed"})])
def test_changed_looks_on_until_there_are_enough(tmp_path, policy, wanted):
    cases, _ = changes(tmp_path, policy)
    assert len(cases) == 6
    assert {kind for kind, _ in cases} <= wanted


def test_unchanged_shows_what_stayed(tmp_path):
    cases, _ = changes(tmp_path, "unchanged")
    assert len(cases) == 6
    assert {kind for kind, _ in cases} <= {"still_failing", "still_right"}


def test_the_search_for_pairs_ends_after_a_few_times_as_many(tmp_path):
    """With 3 wanted at most 12 of 40 are looked at, the same ones for each policy."""
    seen = {}
    for policy in ("changed", "unchanged", "mixed"):
        cases, _ = changes(tmp_path, policy, 3)
        seen[policy] = {name for _, name in cases}
    looked_at, _ = changes(tmp_path, "mixed", 3 * SCAN)
    assert seen["changed"] | seen["unchanged"] | seen["mixed"] <= {name for _, name in looked_at}


def test_without_a_pair_nothing_is_asked(tmp_path):
    _, engine, script = run(tmp_path, {1: ALL}, ["never"], optimize={"pairs": "changed"})
    assert kinds(engine) == [("step", "accept")]
    assert not [stage for stage, _, _ in script.asked if stage == "slow update"]


def test_each_slow_section_sees_all_pairs(tmp_path):
    """The second section's pairs are those of the epoch, though the first one's guidance was accepted between."""
    slow = f"{SLOW}\n  slow section style {{ limit = 200 tokens }}"
    _, engine, script = run(tmp_path, {1: ALL}, [solves("v4"), solves("v5")], slow=slow)
    assert kinds(engine) == [("step", "accept"), ("slow update", "accept"), ("slow update", "accept")]
    prompts = [content for stage, _, content in script.asked if stage == "slow update"]
    assert [prompt.count("<case ") for prompt in prompts] == [6, 6]


def test_a_program_without_a_slow_section_has_none(tmp_path):
    _, engine, _ = run(tmp_path, {1: ALL}, ["never"], slow="")
    assert kinds(engine) == [("step", "accept")]
