"""What reflections are shown, what they may say, and what becomes of it."""

import asyncio
import re
from dataclasses import replace

import pytest
from workshop import KIND_OF, PLACE, PROGRAM, Workshop, rows, word_of

from skillc.document.edits import Add, Replace, apply_edits
from skillc.errors import SkillcError
from skillc.models.failures import CallFailed
from skillc.optimize.loop.step import roll_out, step
from skillc.optimize.loop.train import train
from skillc.optimize.propose.cases import failures_of, held_out, trajectory_view
from skillc.optimize.propose.proposals import Proposal
from skillc.optimize.propose.reflect import Reflection, aggregate, reflect
from skillc.optimize.propose.replies import Lookup, MarkReply, ReflectReply
from skillc.optimize.strategies.lookups import BatchTrajectories
from skillc.optimize.strategies.rule_feedback import RuleCounts, lapsed
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import Message, one_turn


def add(text, cures=("t1",), section="rules", **more):
    return {"op": "add", "section": section, "text": text, "cures": list(cures), **more}


def nothing(call):
    return {"edits": []}


def first(call):
    """The first user message of a call."""
    return call.messages[1].content


def learnt(shop, edits=4):
    return asyncio.run(rolled_and_learnt(shop, edits))


async def rolled_and_learnt(shop, edits):
    rolled = await roll_out(shop.engine, shop.state, shop.train[:36])
    reflections = []
    for measured in rolled:
        reflections += await reflect(shop.engine, shop.state, measured, PLACE, edits, first=len(reflections))
    return sorted(reflections, key=lambda reflection: reflection.kind != "failures")


# ---- minibatches ----------------------------------------------------------------------------------


def test_failures_and_successes_are_reflected_on_apart_in_minibatches_and_all_at_once(tmp_path):
    shop = Workshop(tmp_path, nothing, settings=("optimize.batch=36", "optimize.minibatch=5"))
    shop.script.seconds = 0.5  # longer than all are prepared
    reflections = learnt(shop)
    kinds = [reflection.kind for reflection in reflections]
    failures = sum(word_of(e) not in ("apple", "pear", "cherry", "mango") for e in shop.train[:36])
    # A third of the failures is held out, so that it can judge what is proposed.
    assert kinds.count("failures") == -(-(failures - -(-failures // 3)) // 5)
    assert kinds.count("successes") == -(-(36 - failures) // 5)
    assert kinds == sorted(kinds)
    assert shop.script.most_flying == len(kinds)
    for prompt in shop.script.of("reflect"):
        scores = set(re.findall(r'<trajectory tag="t\d+" score="(.*?)">', prompt))
        assert scores == ({"0"} if '<trajectories kind="failures">' in prompt else {"1"})


def test_successes_are_left_out_where_the_program_says_so(tmp_path):
    shop = Workshop(tmp_path, nothing, settings=("optimize.successes=off", "optimize.batch=36"))
    assert {reflection.kind for reflection in learnt(shop)} == {"failures"}
    assert not any('kind="successes"' in prompt for _, prompt in shop.script.prompts)


def test_a_reply_holds_no_more_edits_than_its_budget(tmp_path):
    many = {"edits": [add(f"If the text mentions word{i}, answer tool.") for i in range(9)]}
    shop = Workshop(tmp_path, lambda call: many, settings=("optimize.batch=36",))
    assert {len(reflection.proposals) for reflection in learnt(shop, 3)} == {3}


def test_edits_that_the_document_refuses_are_asked_for_again_once(tmp_path):
    good, lost = add("If the text mentions saw, answer tool."), {"op": "delete", "rule": "zz", "cures": ["t1"]}
    frozen = add("Be kind.", section="role")

    def reply(call):
        return {"edits": [good, lost, frozen]} if call.sample[-1] == 0 else {"edits": [good]}

    shop = Workshop(tmp_path, reply, settings=("optimize.successes=off", "optimize.batch=8"))
    (reflection,) = asyncio.run(reflect(shop.engine, shop.state, shop.measured(shop.train[:8]), PLACE, 4))
    assert [p.edit.text for p in reflection.proposals] == ["If the text mentions saw, answer tool."]
    again = shop.script.calls[1].messages[-1].content
    assert "`edits.1`: there is no rule `zz`" in again
    assert "`edits.2`: section `role` is frozen" in again
    assert len(shop.script.calls) == 2


@pytest.mark.parametrize("second", ["no json", CallFailed("transient", "down")])
def test_the_good_edits_of_a_refused_reply_are_kept_where_no_better_one_comes(tmp_path, second):
    good, lost = add("If the text mentions saw, answer tool."), {"op": "delete", "rule": "zz"}
    shop = Workshop(
        tmp_path,
        lambda call: {"edits": [good, lost]} if call.sample[-1] == 0 else second,
        settings=("optimize.successes=off", "optimize.batch=8", "optimize.screen=0"),
    )
    state = asyncio.run(step(shop.engine, shop.state, shop.train[:8], PLACE))
    assert [edit["op"] for edit in shop.observer.decisions[-1]["edits"]] == ["add"]
    assert state.decisions == 1


# ---- accumulation ---------------------------------------------------------------------------------


def test_accumulation_pools_the_proposals_of_its_batches_before_one_gate(tmp_path):
    def reply(call):
        if call.stage == "aggregate":
            return "no merge"
        return {"edits": [add(f"If the text mentions {call.sample[2]}x, answer tool.")]}

    settings = ("optimize.batch=9", "optimize.accumulate=3", "optimize.successes=off", "optimize.screen=0")
    shop = Workshop(tmp_path, reply, settings=settings)
    asyncio.run(step(shop.engine, shop.state, shop.train[:27], PLACE))
    asked = [call.sample for call in shop.script.calls if call.stage == "reflect"]
    assert [sample[2] for sample in asked] == list(range(len(asked)))
    assert len(asked) >= 3
    (decision,) = shop.observer.decisions
    assert decision["proposed"] == len(asked)


def test_a_step_is_all_its_batches_and_the_plan_counts_steps_so(tmp_path):
    one = Workshop(tmp_path, nothing, settings=("optimize.batch=12",))
    two = Workshop(tmp_path, nothing, settings=("optimize.batch=6", "optimize.accumulate=2"))
    assert one.bounds.steps == two.bounds.steps


# ---- the merge ------------------------------------------------------------------------------------


def proposals_of(shop, *texts):
    return tuple(Proposal(Add("rules", text), (shop.train[0].id,)) for text in texts)


def test_the_merge_is_told_what_comes_from_failures_and_puts_it_first(tmp_path):
    shop = Workshop(tmp_path, nothing)
    reflections = [
        Reflection("successes", proposals_of(shop, "from a success")),
        Reflection("failures", proposals_of(shop, "from a failure")),
    ]
    asyncio.run(aggregate(shop.engine, shop.state, reflections, PLACE, 4))
    (prompt,) = shop.script.of("aggregate")
    assert re.findall(r'<patch kind="(\w+)">', prompt) == ["failures", "successes"]
    assert prompt.index("from a failure") < prompt.index("from a success")


def test_a_tree_of_merges_keeps_the_kinds_apart_until_its_root(tmp_path):
    shop = Workshop(tmp_path, lambda call: {"edits": [add(f"merged {call.sample[2]}")]})
    reflections = [
        *(Reflection("failures", proposals_of(shop, f"failure {i}")) for i in range(9)),
        *(Reflection("successes", proposals_of(shop, f"success {i}")) for i in range(3)),
    ]
    merged = asyncio.run(aggregate(shop.engine, shop.state, reflections, PLACE, 4))
    kinds = [re.findall(r'<patch kind="(\w+)">', prompt) for prompt in shop.script.of("aggregate")]
    assert kinds == [["failures"] * 8, ["successes"] * 3, ["failures", "failures", "successes"]]
    assert len({call.sample for call in shop.script.calls}) == len(shop.script.calls)
    assert [p.edit.text for p in merged] == ["merged 3"]


def proposed(shop, text, *cited, kind="failures", summary=""):
    ids = tuple(shop.train[i].id for i in cited)
    return Reflection(kind, (Proposal(Add("rules", text), ids, seen=frozenset(ids)),), summary=summary)


def test_proposals_that_do_not_touch_each_other_are_joined_without_a_call(tmp_path):
    shop = Workshop(tmp_path, nothing)
    texts = ["If metal shines, answer tool.", "If fur is mentioned, answer animal.", "If metal shines, answer tool."]
    reflections = [proposed(shop, text, i) for i, text in enumerate(texts)]
    merged = asyncio.run(aggregate(shop.engine, shop.state, reflections, PLACE, 4))
    assert not shop.script.calls
    assert [(p.edit.text, p.support) for p in merged] == [(texts[0], 2), (texts[1], 1)]
    assert merged[0].cures == (shop.train[0].id, shop.train[2].id)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("If metal shines brightly, answer tool.", 0), ("If the metal shines, answer animal.", 1)),
        (("Anything at all.", 0), ("Quite another matter.", 0)),
    ],
    ids=["contradicting answers", "the same case"],
)
def test_what_readers_dispute_is_settled_by_a_call_that_sees_the_cited_cases(tmp_path, one, other):
    def reply(call):
        return {"edits": [add("Settled.", ["t1", "t2"])]}

    shop = Workshop(tmp_path, reply)
    asyncio.run(shop.engine.rollouts.measure(shop.state.incumbent, shop.train[:3], stage="rollout"))
    reflections = [
        proposed(shop, *one, summary="Only metal is safe."),
        proposed(shop, *other),
        proposed(shop, "Horses neigh loudly.", 2),
    ]
    merged = asyncio.run(aggregate(shop.engine, shop.state, reflections, PLACE, 3))
    (prompt,) = shop.script.of("aggregate")
    assert "Horses" not in prompt
    assert "<summary>Only metal is safe.</summary>" in prompt
    assert shop.train[0].id not in prompt
    shown = re.findall(r'<trajectory tag="(t\d)" score="\d">\n<input name="text">(.*?)</input>', prompt)
    cited = dict.fromkeys((one[1], other[1]))
    assert shown == [(f"t{n}", shop.train[i].inputs["text"]) for n, i in enumerate(cited, 1)]
    assert "at most 2 edits. Each will be tried alone; at most 3 edits are then made" in prompt
    assert [p.edit.text for p in merged] == ["Settled.", "Horses neigh loudly."]
    assert merged[0].cures == tuple(shop.train[i].id for i in cited)


def test_proposals_on_one_rule_are_disputed(tmp_path):
    shop = Workshop(tmp_path, nothing)
    document = apply_edits(shop.state.incumbent, [Add("rules", "Old.")]).document
    shop.state = replace(shop.state, incumbent=document)
    reflections = [
        Reflection("failures", (Proposal(Replace(document.rules[0].id, text), (shop.train[i].id,)),))
        for i, text in enumerate(("Quite new.", "Other words."))
    ]
    asyncio.run(aggregate(shop.engine, shop.state, reflections, PLACE, 3))
    assert len(shop.script.of("aggregate")) == 1


# ---- samples --------------------------------------------------------------------------------------


SAMPLES = ("optimize.samples=3", "optimize.minibatch=50", "optimize.batch=36", "optimize.successes=off")


def test_a_failure_is_shown_beside_a_rollout_of_the_same_case_that_came_out_right(tmp_path):
    shop = Workshop(tmp_path, nothing, settings=SAMPLES)
    tries = []

    async def run(skill, example, sample, stage):
        tries.append((example.id, sample))
        word = word_of(example)
        known = word == "wrench" and sample == 1
        return Rollout(one_turn(f"try {sample} of {word}", {"kind": KIND_OF[word] if known else "fruit"}))

    shop.engine.rollouts._runner = run
    learnt(shop)
    (prompt,) = shop.script.of("reflect")
    cases = re.findall(r"<trajectory tag=\"t.*?</trajectory>", prompt, re.DOTALL)
    found = [case for case in cases if "try 0 of wrench" in case]
    assert found
    for case in cases:
        pair = "<otherwise>\n<steps>try 1 of wrench</steps>\n<answer>tool</answer>\n</otherwise>"
        assert (pair in case) == (case in found) == ("<otherwise>" in case)
    assert prompt.count("leaves the answer to chance") == 1
    # What is right is not tried again, nor what came out right in a further sample.
    of = {e.id: [sample for name, sample in tries if name == e.id] for e in shop.train[:36]}
    wanted = {"wrench": [0, 1]} | {word: [0] for word in ("apple", "pear", "cherry", "mango")}
    assert all(of[e.id] == wanted.get(word_of(e), [0, 1, 2]) for e in shop.train[:36])
    rollouts = next(stage for stage in shop.bounds.stages if stage.name == "rollout").bound
    alone = Workshop(tmp_path, nothing, settings=SAMPLES[1:]).bounds
    single = next(stage for stage in alone.stages if stage.name == "rollout").bound
    # The batches of an epoch, each failure in two further samples.
    assert rollouts.most.calls >= single.most.calls + 2 * len(shop.train)
    assert rollouts.estimate.calls > single.estimate.calls


# ---- lapses ---------------------------------------------------------------------------------------


LAPSE = {"rule": "r1", "cases": ["t2"], "reminder": "Look for the saw before you answer."}


def test_a_lapse_becomes_a_reminder_and_not_an_edit_of_the_rule(tmp_path):
    edits = [add("If the text mentions saw, answer tool.", ["t1", "t2"]), add("Only for a lapse.", ["t2"])]

    def reply(call):
        return {"edits": edits, "lapses": [LAPSE]} if call.stage == "reflect" else {"edits": []}

    shop = Workshop(tmp_path, reply, settings=("optimize.lapses=on", "optimize.successes=off", "optimize.batch=8"))
    assert shop.state.incumbent.section("reminders").limit == 200
    measured = shop.measured(shop.train[:8])
    failures = failures_of(shop.plan, measured)
    failed = [pair[0].id for pair in failures if pair not in held_out(failures)]
    (reflection,) = asyncio.run(reflect(shop.engine, shop.state, measured, PLACE, 4))
    assert lapsed(reflection) == 1
    mended, reminded = reflection.proposals
    assert (mended.edit.section, mended.cures) == ("rules", (failed[0],))
    assert (reminded.edit.section, reminded.cures) == ("reminders", (failed[1],))
    assert reminded.edit.rationale == "lapse: rule r1 was right and was not followed on 1 cases"


def test_reminders_pass_the_same_screen_and_gates_and_stand_in_the_skill(tmp_path):
    def reply(call):
        lapse = {"rule": "r1", "cases": ["t1", "t2"], "reminder": "Think of hammer, saw, chisel and wrench."}
        return {"edits": [], "lapses": [lapse]}

    shop = Workshop(tmp_path, reply, settings=("optimize.lapses=on", "optimize.batch=24"))
    shop.measure_validation()
    state = asyncio.run(step(shop.engine, shop.state, shop.train[:24], PLACE))
    (decision,) = shop.observer.decisions
    assert decision["lapses"] >= 1
    assert decision["edits"][0]["screened"] >= 1
    assert decision["gates"]
    assert decision["result"] == "accept"
    assert [rule.text for rule in state.incumbent.section("reminders").rules] == [
        "Think of hammer, saw, chisel and wrench."
    ]


def test_without_lapses_nobody_is_asked_for_them_and_none_is_taken(tmp_path):
    shop = Workshop(tmp_path, lambda call: {"edits": [], "lapses": [LAPSE]}, settings=("optimize.batch=36",))
    assert not any(reflection.proposals for reflection in learnt(shop))
    assert not any("lapses" in prompt for _, prompt in shop.script.prompts)
    assert shop.state.incumbent.section("reminders") is None


def test_a_section_of_ones_own_takes_the_reminders_and_a_frozen_one_is_an_error(tmp_path):
    own = PROGRAM.replace(
        '= "You sort texts."', '= "You sort texts."\n  trainable section reminders { limit = 50 tokens }'
    )
    shop = Workshop(tmp_path, nothing, program=own, settings=("optimize.lapses=on",))
    assert [(s.name, s.limit) for s in shop.state.incumbent.sections][1:] == [("reminders", 50), ("rules", 600)]
    with pytest.raises(SkillcError, match="`lapses = on` writes to the section `reminders`, which is frozen"):
        Workshop(
            tmp_path,
            nothing,
            program=own.replace(
                "trainable section reminders { limit = 50 tokens }", 'frozen section reminders = "x y"'
            ),
            settings=("optimize.lapses=on",),
        )


# ---- lookups --------------------------------------------------------------------------------------


def test_a_reflection_looks_up_at_most_as_often_as_it_may(tmp_path):
    ask = [{"op": "list"}, {"op": "search", "text": "HAMMER"}, {"op": "read", "tag": "t1"}]

    def reply(call):
        turn = call.sample[3]
        return {"lookup": ask[turn]} if turn < 3 else {"edits": [add("If the text mentions hammer, answer tool.")]}

    settings = ("optimize.lookups=3", "optimize.successes=off", "optimize.batch=36", "optimize.minibatch=40")
    shop = Workshop(tmp_path, reply, settings=settings)
    (reflection,) = learnt(shop)
    assert len(reflection.proposals) == 1
    assert [call.sample for call in shop.script.calls] == [(1, 1, 0, turn, 0) for turn in range(4)]
    assert {call.stage for call in shop.script.calls} == {"reflect"}
    found = [call.messages[-1].content for call in shop.script.calls[1:]]
    assert "36 trajectories" in found[0]
    assert "You may ask 2 more questions" in found[0]
    hammers = sum("hammer" in example.inputs["text"] for example in shop.train[:36])
    assert f"{hammers} of 36 trajectories hold this text" in found[1]
    assert "<gold>tool</gold>" in found[1]
    assert "`t1`, part 1 of 1:\ninput text:\n" in found[2]
    assert "I say fruit" in found[2]
    assert "That was the last question." in found[2]
    assert "<steps>" not in first(shop.script.calls[0])


def test_a_question_after_the_last_is_no_reply(tmp_path):
    settings = ("optimize.lookups=1", "optimize.successes=off", "optimize.batch=8")
    shop = Workshop(tmp_path, lambda call: {"lookup": {"op": "list"}}, settings=settings)
    (reflection,) = asyncio.run(reflect(shop.engine, shop.state, shop.measured(shop.train[:8]), PLACE, 4))
    assert reflection.proposals == ()
    assert len(shop.script.calls) == 3
    assert "skipped" in shop.observer.notes[0]


def test_lookups_read_a_long_trajectory_in_parts_and_lose_nothing(tmp_path):
    shop = Workshop(tmp_path, nothing, settings=("optimize.trajectory_limit=50",))
    ((example, outcome),) = shop.measured(shop.train[:1])
    words = " ".join(f"word{i}" for i in range(400))
    long = replace(outcome, trajectory=replace(outcome.trajectory, steps=(Message(words),)))
    library = BatchTrajectories({"t1": trajectory_view(shop.plan, "t1", example, long, limit=None)}, 50)
    parts = library.parts("t1")
    assert len(parts) > 5
    assert words in "".join(parts)
    (hit,) = library.found("word399")
    assert "word399" in parts[hit.part - 1] or "word399" in "".join(parts[hit.part - 1 : hit.part + 1])
    assert library.answer(Lookup(op="read", tag="t9"))[1] == "there is no trajectory `t9`; `list` names them"
    assert library.answer(Lookup(op="read", tag="t1", part=99))[1] == f"`t1` has {len(parts)} parts"
    assert library.answer(Lookup(op="search", text="nowhere"))[1] == "0 of 1 trajectories hold this text"


# ---- counts of rules ------------------------------------------------------------------------------


def with_rules(shop, *texts):
    """The shop at a skill with rules."""
    skill = apply_edits(shop.state.incumbent, [Add("rules", text) for text in texts]).document
    shop.state = replace(shop.state, incumbent=skill)
    return [rule.id for rule in skill.rules]


def marked(state, *marks):
    """The state after one reflection on the cases e0 to e3 with these marks."""
    reply = ReflectReply(edits=(), marks=marks)
    ids = {f"e{i}": f"e{i}" for i in range(4)}
    return RuleCounts().after_reflections(state, [Reflection("failures", reply=reply, ids=ids)])


def told(state):
    return RuleCounts().step_record(state, ())["rule_counts"]


def test_marks_are_counted_by_example_and_start_anew_with_other_words(tmp_path):
    shop = Workshop(tmp_path, nothing)
    one, two = with_rules(shop, "first rule", "second rule")
    first = MarkReply(rule=one, helped=("e1",), misled=("e2",)), MarkReply(rule=two, misled=("e1",))
    state = marked(marked(shop.state, *first), MarkReply(rule=one, helped=("e1", "e2")))
    assert told(state) == {one: {"helped": 2, "misled": 0}, two: {"helped": 0, "misled": 1}}
    assert RuleCounts().notes(state)[two] == "count: helped 0, misled 1"
    other = replace(state, incumbent=apply_edits(state.incumbent, [Replace(one, "other words")]).document)
    assert list(told(other)) == [two]


def test_counts_stand_beside_the_rules_and_in_the_history(tmp_path):
    def reply(call):
        rule = re.search(r"\[(\w{6})\]", call.messages[1].content)[1]
        return {"edits": [], "marks": [{"rule": rule, "helped": ["t1"], "misled": ["t2", "t77"]}, {"rule": "zz"}]}

    settings = ("optimize.rule_counts=on", "optimize.batch=8", "optimize.successes=off")
    shop = Workshop(tmp_path, reply, settings=settings)
    (rule,) = with_rules(shop, "If the text mentions nothing, answer tool.")
    state = asyncio.run(step(shop.engine, shop.state, shop.train[:8], PLACE))
    assert shop.observer.decisions[0]["rule_counts"] == {rule: {"helped": 1, "misled": 1}}
    asyncio.run(step(shop.engine, state, shop.train[8:16], PLACE))
    assert "    count: helped 1, misled 1\n" in shop.script.of("reflect")[-1]
    assert "count: helped" not in shop.script.of("reflect")[0].split("</skill>")[0]


def test_rules_with_more_harm_than_help_are_proposed_for_deletion_by_their_harm(tmp_path):
    shop = Workshop(tmp_path, nothing)
    bad, worse, good, once = with_rules(shop, "bad rule", "worse rule", "good rule", "once wrong")
    state = marked(
        shop.state,
        MarkReply(rule=bad, helped=("e0",), misled=("e1", "e2")),
        MarkReply(rule=worse, misled=("e0", "e1", "e2", "e3")),
        MarkReply(rule=good, helped=("e2", "e3"), misled=("e0", "e1")),
        MarkReply(rule=once, misled=("e1",)),
    )
    found = RuleCounts().proposals(state, [], 4)
    assert [(p.edit.rule, p.support, p.cures) for p in found] == [
        (worse, 4, ("e0", "e1", "e2", "e3")),
        (bad, 1, ("e1", "e2")),
    ]
    assert [p.edit.rule for p in RuleCounts().proposals(state, [], 1)] == [worse]
    assert RuleCounts().proposals(shop.state, [], 4) == []


def test_a_harmful_rule_is_screened_and_deleted_through_the_gates(tmp_path):
    def answer(skill, example):
        return "fruit" if "Always answer fruit" in skill else KIND_OF[word_of(example)]

    def reply(call):
        rule = re.search(r"\[(\w{6})\]", call.messages[1].content)[1]
        return {"edits": [], "marks": [{"rule": rule, "misled": ["t1", "t2", "t3"]}]}

    settings = ("optimize.rule_counts=on", "optimize.batch=24", "optimize.successes=off")
    shop = Workshop(tmp_path, reply, settings=settings, answer=answer)
    (rule,) = with_rules(shop, "Always answer fruit.")
    shop.measure_validation()
    state = asyncio.run(step(shop.engine, shop.state, shop.train[:24], PLACE))
    (decision,) = shop.observer.decisions
    assert (decision["result"], decision["edits"][0]["op"], decision["edits"][0]["cured"]) == ("accept", "delete", 3)
    assert state.incumbent.rules == ()
    assert rule not in state.incumbent.ids


# ---- what may be seen -----------------------------------------------------------------------------


SECRET = "QUETZALCOATL"


def secret_data():
    """Rows whose right answer is a word that stands nowhere else."""
    return [{**row, "kind": f"{SECRET}{i % 3}"} for i, row in enumerate(rows())]


def every_mechanism(call):
    if call.stage == "reflect":
        if "lookup" in call.messages[1].content and call.sample[3] < 2:
            return {"lookup": [{"op": "list"}, {"op": "read", "tag": "t1"}][call.sample[3]]}
        return {"edits": [add(f"Say more and more words {call.sample[2]}.", ["t1"])], "lapses": [], "marks": []}
    if call.stage == "rewrite":
        return {"sections": [{"section": "rules", "rules": ["Say more."]}]}
    return {"edits": [add("Say more.", ["t1"])], "guidance": "Be brief.", "memory": "none"}


@pytest.mark.parametrize(
    ("sees", "gold", "feedback", "steps"),
    [
        ("[gold, feedback, trajectory]", True, True, True),
        ("[feedback, trajectory]", False, True, True),
        ("[feedback]", False, True, False),
        ("[trajectory]", False, False, True),
    ],
)
@pytest.mark.parametrize("lookups", [0, 2])
def test_what_the_program_withholds_is_in_no_prompt_of_a_run(tmp_path, sees, gold, feedback, steps, lookups):
    program = (
        PROGRAM.replace('kind: "fruit" | "tool" | "animal"', "kind: text")
        .replace("trainable section rules", "slow section guidance { limit = 90 tokens }\n  trainable section rules")
        .replace(
            "gate better = candidate.correct > incumbent.correct",
            "gate better = candidate.correct >= incumbent.correct",
        )
    )
    settings = (
        f"optimize.sees={sees}",
        f"optimize.lookups={lookups}",
        "optimize.update=rewrite_all",
        "optimize.lapses=on",
        "optimize.rule_counts=on",
        "optimize.edits=model",
        "optimize.screen=0",
        "budget.epochs=2",
    )
    shop = Workshop(
        tmp_path,
        every_mechanism,
        program=program,
        settings=settings,
        data=secret_data(),
        answer=lambda s, e: "ANSWERED",
    )
    asyncio.run(train(shop.engine, shop.state.incumbent))
    stages = {stage for stage, _ in shop.script.prompts}
    assert stages == {"reflect", "aggregate", "select", "rewrite", "slow update", "meta skill"}
    whole = "\n".join(text for _, text in shop.script.prompts)
    assert (SECRET in whole) == gold
    # The built-in feedback tells the right answer only where the program shows it.
    assert ("expected `QUETZAL" in whole) == (gold and feedback)
    assert ("</feedback>" in whole or "feedback:\n" in whole) == feedback
    assert ("I say ANSWERED" in whole) == steps
