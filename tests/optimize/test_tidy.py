"""Tidying: which rules nothing supports, what the gates of a tidying refuse, and when there is one."""

import re
from dataclasses import replace

import pytest
from scripted import BETTER, Script, World, engine_of, plan_of, solves, trained

from skillc.optimize.propose.replies import RewriteReply, RewrittenRule, RewrittenSection
from skillc.optimize.strategies.tidy import HANDFUL

CURES = solves("v0", "v1", "v2", "v3")
IDLE = "mind the weather on all days"


class Tidier(Script):
    """The scripted optimizer, which also writes the rules anew: a function of the prompt's rules by id."""

    def __init__(self, edits, wanted=None):
        super().__init__(edits)
        self._wanted = wanted

    async def ask(self, kind, messages, *, stage, sample, check=None):
        if kind is not RewriteReply:
            return await super().ask(kind, messages, stage=stage, sample=sample, check=check)
        self.asked.append((stage, sample, messages[-1]["content"]))
        if self._wanted is None:
            return None
        rules = dict(re.findall(r"^\[(\w+)\] (.*)$", messages[-1]["content"], re.MULTILINE))
        return RewriteReply(sections=(RewrittenSection(section="rules", rules=tuple(self._wanted(rules))),))


def run(tmp_path, edits, wanted=None, *, tidy="on", gates=BETTER, budget="epochs = 1", **options):
    """The run, with a batch so large that an epoch is one step."""
    plan = plan_of(tmp_path, gates=gates, budget=budget, optimize=f"tidy = {tidy}; {options.pop('optimize', '')}")
    batch = options.pop("batch", 1000)
    plan = plan.model_copy(update={"optimize": replace(plan.optimize, batch=batch)})
    script = Tidier(edits, wanted)
    engine = engine_of(plan, script, **options)
    return trained(engine), engine, script


def kinds(engine):
    return [(record["kind"], record["result"]) for record in engine.observer.decisions]


def texts(done):
    return [rule.text for rule in done.state.best.rules]


# ---- rules without support ------------------------------------------------------------------------


def test_a_free_rider_is_taken_out_at_the_epochs_end_and_its_fate_is_recorded(tmp_path):
    done, engine, _ = run(tmp_path, {1: [CURES, IDLE]})
    accepted, tidied = engine.observer.decisions
    assert [fate["fate"] for fate in accepted["fates"]] == ["accepted", "free rider"]
    assert (tidied["kind"], tidied["result"], tidied["maker"]) == ("tidy", "accept", "prune")
    assert texts(done) == [CURES]
    rule = tidied["edits"][0]["rule"]
    why = "cured 0 and broke 0 on validation"
    assert tidied["fates"] == [{"edit": f"delete {rule}", "fate": "pruned", "why": why}]
    assert tidied["support"][rule] == why
    assert tidied["tokens"] < accepted["tokens"]
    assert done.state.best == done.state.incumbent


def test_there_is_none_unless_the_program_says_so(tmp_path):
    done, engine, script = run(tmp_path, {1: [CURES, IDLE]}, tidy="off")
    assert kinds(engine) == [("step", "accept")]
    assert texts(done) == [CURES, IDLE]
    assert not [stage for stage, *_ in script.asked if stage == "tidy"]


def test_there_is_none_where_every_rule_has_support(tmp_path):
    _, engine, script = run(tmp_path, {1: [CURES, solves("v4")]})
    assert kinds(engine) == [("step", "accept")]
    assert not [stage for stage, *_ in script.asked if stage == "tidy"]


def test_more_than_a_handful_of_single_edits_are_worth_a_question(tmp_path):
    rules = [solves(f"v{i}") for i in range(HANDFUL + 1)]
    _, _, script = run(tmp_path, {1: rules[:3], 2: rules[3:]}, batch=2, optimize="samples = 1")
    assert [sample for stage, sample, _ in script.asked if stage == "tidy"] == [(1, 2, 0)]


def test_a_rule_that_broke_more_than_it_cured_has_no_support(tmp_path):
    """Together with one that cures much it passes the gates."""
    harm = "breaks v7. solves v9 ."
    world = World(right=lambda text, example, sample: right_but(text, example))
    done, engine, _ = run(tmp_path, {1: [CURES, harm]}, world=world)
    assert kinds(engine) == [("step", "accept"), ("tidy", "accept")]
    assert texts(done) == [CURES]


def right_but(text, example):
    """`v7` is right unless a rule breaks it, the others as the rules say."""
    if example.id == "v7":
        return "breaks v7" not in text
    return example.id in text.replace("breaks v7", "")


# ---- gates ----------------------------------------------------------------------------------------


def test_a_loss_on_validation_is_refused_and_remembered(tmp_path):
    """No word of the second rule is in an example, but without it the first does nothing."""
    world = World(right=lambda text, example, sample: "weather" in text and example.id in text)
    done, engine, _ = run(tmp_path, {1: [CURES, IDLE]}, world=world)
    assert kinds(engine) == [("step", "accept"), ("tidy", "reject")]
    refused = engine.observer.decisions[-1]
    assert refused["blame"] == "no loss"
    assert not [fate for fate in refused.get("fates", ()) if fate["fate"] == "pruned"]
    # Of eight examples four are wrong before; the first waves hold them and the first losses.
    assert refused["evaluated"] <= 8
    assert texts(done) == [CURES, IDLE]
    assert "rules left out" in done.state.memory.rejected[-1].text


def shorter(text, *, without=(IDLE,)):
    """The rules without some, the first one with other words."""

    def wanted(rules):
        left = [name for name, old in rules.items() if old not in without]
        return [RewrittenRule(rule=left[0], text=text), *(RewrittenRule(rule=name) for name in left[1:])]

    return wanted


def test_what_is_no_shorter_costs_no_rollout(tmp_path):
    world = World()
    wanted = shorter(f"{CURES} {'many words ' * 9}", without=())
    _, engine, _ = run(tmp_path, {1: [CURES, solves("v4")] + [f"{IDLE} {i}" for i in range(2)]}, wanted, world=world)
    tidied = [record for record in engine.observer.decisions if record["kind"] == "tidy"]
    assert [record["maker"] for record in tidied] == ["prune"]
    assert not [call for call in world.calls if "many words" in (call[1] or "")]


def test_what_is_written_anew_comes_before_the_mere_pruning(tmp_path):
    done, engine, _ = run(tmp_path, {1: [CURES, IDLE]}, shorter("solves v0 v1 v2 v3 v4 ."))
    assert [record.get("maker") for record in engine.observer.decisions[1:]] == ["rewrite"]
    assert texts(done) == ["solves v0 v1 v2 v3 v4 ."]
    done, engine, _ = run(tmp_path, {1: [CURES, IDLE]}, shorter("solves v0 v1 v2 ."))
    assert [(record.get("maker"), record["result"]) for record in engine.observer.decisions[1:]] == [
        ("rewrite", "reject"),
        ("prune", "accept"),
    ]
    assert texts(done) == [CURES]


def test_a_rule_whose_loss_is_seen_stays_and_the_other_goes(tmp_path):
    """Neither has credit: v5 is right without any rule too, and wrong with the first one alone."""
    needed = solves("v5")

    def right(text, example, sample):
        return example.id in text or (example.id == "v5" and "solves" not in text)

    done, engine, _ = run(tmp_path, {1: [CURES, needed, IDLE]}, world=World(right=right))
    assert kinds(engine) == [("step", "accept"), ("tidy", "reject"), ("tidy", "accept")]
    assert engine.observer.decisions[-1]["smaller"] == 1
    assert texts(done) == [CURES, needed]


def test_a_gate_of_the_program_that_asks_for_no_gain_holds_too(tmp_path):
    """The text that is written anew cures v4 and loses v3."""
    wanted = shorter("solves v0 v1 v2 v4 .")
    world = World(right=lambda text, example, sample: example.id in text and ("weather" in text or "v4" in text))
    _, engine, _ = run(tmp_path, {1: [CURES, IDLE]}, wanted, world=world)
    assert kinds(engine)[-1] == ("tidy", "accept")
    gates = BETTER + "\ngate safe = regressed(correct) <= 0%"
    _, engine, _ = run(tmp_path, {1: [CURES, IDLE]}, wanted, world=world, gates=gates)
    assert [record["blame"] for record in engine.observer.decisions[1:]] == ["safe", "no loss"]


def test_of_what_a_trust_region_bounds_the_first_edits_are_taken(tmp_path):
    idle = [f"{IDLE}, {' '.join(words)}" for words in (["rain"] * 20, ["snow"] * 20)]
    edits = {1: [CURES, idle[0]], 2: [solves("v4"), idle[1]]}
    most = "gate small = change(candidate) <= 1.3%"
    done, engine, _ = run(tmp_path, edits, batch=2, gates=f"{BETTER}\n{most}")
    assert kinds(engine) == [("step", "accept"), ("step", "accept"), ("tidy", "accept")]
    assert texts(done) == [CURES, solves("v4"), idle[1]]
    done, _, _ = run(tmp_path, edits, batch=2)
    assert texts(done) == [CURES, solves("v4")]


# ---- when -----------------------------------------------------------------------------------------


def test_a_skill_is_tidied_once(tmp_path):
    world = World(right=lambda text, example, sample: "weather" in text and example.id in text)
    _, engine, script = run(tmp_path, {1: [CURES, IDLE]}, world=world, budget="epochs = 2")
    assert [kind for kind, _ in kinds(engine)].count("tidy") == 1
    assert [stage for stage, *_ in script.asked].count("tidy") == 1


@pytest.mark.parametrize(
    ("budget", "stopped"), [("epochs = 3; patience = 1 steps", "patience"), ("steps = 2", "steps")]
)
def test_it_comes_before_the_final_test_too(tmp_path, budget, stopped):
    done, engine, _ = run(tmp_path, {1: [CURES, IDLE], 2: "no use"}, budget=budget, batch=1, train_size=3)
    assert done.stopped == stopped
    assert kinds(engine) == [("step", "accept"), ("step", "reject"), ("tidy", "accept")]
    assert texts(done) == [CURES]


def test_it_never_counts_for_patience(tmp_path):
    with_it, _, _ = run(tmp_path, {1: [CURES, IDLE]}, budget="epochs = 1; patience = 2 steps")
    without, _, _ = run(tmp_path, {1: [CURES, IDLE]}, tidy="off", budget="epochs = 1; patience = 2 steps")
    assert with_it.state.patience == without.state.patience


def test_one_that_stays_undecided_changes_nothing_and_is_not_tried_again(tmp_path):
    def fails(text, example, sample, stage):
        return example.id == "v0" and "solves" in text and "weather" not in text

    done, engine, _ = run(tmp_path, {1: [CURES, IDLE]}, world=World(fails), budget="epochs = 2")
    assert [result for kind, result in kinds(engine) if kind == "tidy"] == ["undecided"]
    assert texts(done) == [CURES, IDLE]
    assert done.state.undecided == ()


def test_the_prompt_holds_the_support_of_each_rule_and_what_is_confused(tmp_path):
    _, _, script = run(tmp_path, {1: [CURES, IDLE]})
    (prompt,) = (content for stage, _, content in script.asked if stage == "tidy")
    assert re.search(rf"{re.escape(CURES)}\n    why: scripted\n    support: cured 4 and broke 0 on validation", prompt)
    assert '<request stage="tidy" sections="rules">' in prompt
