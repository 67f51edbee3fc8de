"""What a run spends, against what `plan` said it may spend at most."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted import BETTER, Script, World, engine_of, plan_of, solves, trained
from thorough import example_count

from skillc.budget.bounds import bounds
from skillc.budget.spend import Sizes

TRAIN, VALIDATION = 10, 8
CURES = "gate cures = regressed(correct, on = batch) <= 50%"
OFTEN = "gate often = candidate.correct >= incumbent.correct - 20%"

mechanisms = st.fixed_dictionaries(
    {
        "accept": st.sampled_from(["gates", "always"]),
        "rollback": st.sampled_from(["0%", "20%"]),
        "pairs": st.sampled_from(["mixed", "changed", "unchanged"]),
        "samples": st.integers(1, 2),
        "slow_update_samples": st.integers(0, 6),
    }
)
CALM = CURES.replace("cures", "calm for slow")
gates = st.builds(
    lambda first, more: [first, *more],
    st.sampled_from([BETTER, OFTEN]),
    st.lists(st.sampled_from([CURES, CALM]), max_size=2, unique=True),
)
slow = st.sampled_from(["", "slow section guidance { limit = 200 tokens }"])
names = [f"{side}{i}" for side in "tv" for i in range(TRAIN)]
rules = st.builds(lambda word, some: f"{word} {' '.join(some)} .", st.sampled_from(["solves", "solves", "breaks"]),
                  st.lists(st.sampled_from(names), min_size=1, max_size=6, unique=True))  # fmt: skip


@settings(deadline=None, max_examples=example_count(40), suppress_health_check=[HealthCheck.too_slow])
@given(mechanisms, gates, slow, st.lists(rules, min_size=6, max_size=6), st.lists(rules, min_size=3, max_size=3))
def test_no_mechanism_spends_more_than_the_most(tmp_path_factory, chosen, named, sections, edits, guidance):
    folder = tmp_path_factory.mktemp("spent")
    optimize = "; ".join(f"{name} = {value}" for name, value in chosen.items())
    plan = plan_of(folder, optimize=optimize, gates="\n".join(named), slow=sections, budget="epochs = 3")
    plan = plan.model_copy(update={"optimize": replace(plan.optimize, batch=5)})
    world, script = World(), Script(dict(enumerate(edits, 1)), guidance)
    trained(engine_of(plan, script, world=world, train_size=TRAIN, validation=VALIDATION))
    most = {s.name: s.bound.most.calls for s in bounds(plan, Sizes(TRAIN, VALIDATION, 0), {}).stages}
    assert world.count("baseline") <= most["baseline"]
    assert world.count("rollout") <= most["rollout"]
    decided = most["gate"] + most.get("slow update", 0)
    assert world.count("gate") + world.count("validation") + world.count("slow update") <= decided
    assert len(world.calls) + len(script.asked) <= sum(most.values())


def test_solving_everything_costs_no_more_than_a_step(tmp_path):
    """The bound is not so loose that it says nothing: a run that is perfect at once is far below it."""
    plan = plan_of(tmp_path, optimize="speculate = off", budget="epochs = 3")
    world = World()
    trained(engine_of(plan, {1: solves(*names)}, world=world, train_size=TRAIN, validation=VALIDATION))
    assert len(world.calls) == VALIDATION + 1 + VALIDATION
