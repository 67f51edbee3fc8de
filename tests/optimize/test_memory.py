"""What outlives a step: rejected-edit buffer, slow update, meta skill; and how much may be asked at most."""

import asyncio
from dataclasses import replace

import pytest
from workshop import PLACE, PROGRAM, Workshop

from skillc.budget.call_sizes import MEMORY_LIMIT, REJECTED_LIMIT
from skillc.document.edits import Add, apply_edits
from skillc.document.skill import Document, Rule, Section
from skillc.optimize.engine import Position, RejectedEdit
from skillc.optimize.loop.train import train
from skillc.optimize.propose.cases import rejected_lines
from skillc.optimize.strategies.epoch_review import compare_epoch, slow_sections, slow_update
from skillc.tokens import count_tokens

SLOW = PROGRAM.replace(
    "  trainable section rules", "  slow section guidance { limit = 40 tokens }\n  trainable section rules"
)


def edits(call, *texts):
    return {"edits": [{"op": "add", "section": "rules", "text": text} for text in texts]}


def helpful(call):
    """Each step proposes the words that it was shown as failures, and something useless."""
    shown = [
        word for word in ("hammer", "saw", "chisel", "wrench", "horse", "otter") if word in call.messages[1].content
    ]
    return edits(call, *(f"Know {word}." for word in shown[:2]), "Try harder.")


def replies(call):
    if call.stage == "slow update":
        return {"guidance": "Remember chisel and wrench."}
    if call.stage == "meta skill":
        return {"memory": "MEMORY OF AN EPOCH"}
    return "no merge" if call.stage == "aggregate" else helpful(call)


def test_the_rejected_edit_buffer_lasts_the_run(tmp_path):
    shop = Workshop(tmp_path, replies, settings=("budget.epochs=2", "budget.patience=none"))
    asyncio.run(train(shop.engine, shop.state.incumbent))
    prompts = shop.script.of("reflect")
    assert "<rejected>" not in prompts[0]
    assert "- add to rules: Try harder. (" in prompts[-1]
    switched = Workshop(tmp_path, replies, settings=("budget.epochs=1", "optimize.rejected_buffer=off"))
    asyncio.run(train(switched.engine, switched.state.incumbent))
    assert not any("<rejected>" in prompt for prompt in switched.script.of("reflect"))


def test_a_prompt_shows_the_newest_rejected_edits_within_its_limit():
    entries = [
        RejectedEdit(f"add to rules: number {i} " + "word " * (i % 300), "gate `better` failed") for i in range(400)
    ]
    skill = Document("s", "about", (Section("rules", "trainable", rules=(Rule("a1", "a rule"),)),))
    lines = rejected_lines(skill, [*entries, RejectedEdit("add to rules: a rule", "cured none of 3")])
    assert lines[-1].startswith("add to rules: number 399 ")
    assert 20 < len(lines) < 400
    assert sum(count_tokens(line) for line in lines) <= REJECTED_LIMIT
    assert not any("\n" in line for line in rejected_lines(skill, [RejectedEdit("guidance of g: a\nb", "r")]))


def test_the_memory_of_an_epoch_stands_in_the_prompts_of_the_next(tmp_path):
    shop = Workshop(tmp_path, replies, settings=("budget.epochs=2", "budget.patience=none"))
    asyncio.run(train(shop.engine, shop.state.incumbent))
    stages = [stage for stage, _ in shop.script.prompts]
    asked = stages.index("meta skill")
    for i, (_, text) in enumerate(shop.script.prompts):
        assert ("<memory>\nMEMORY OF AN EPOCH\n</memory>" in text) == (i > asked)
    assert stages.count("meta skill") == 1


def test_a_memory_without_end_is_cut(tmp_path):
    def endless(call):
        return {"memory": "word " * 9000} if call.stage == "meta skill" else replies(call)

    shop = Workshop(tmp_path, endless, settings=("budget.epochs=2", "budget.patience=none"))
    trained = asyncio.run(train(shop.engine, shop.state.incumbent))
    assert count_tokens(trained.state.memory.meta) < MEMORY_LIMIT + 20


def test_a_slow_update_is_shown_the_same_examples_under_both_skills_and_passes_the_gates(tmp_path):
    shop = Workshop(tmp_path, replies, program=SLOW, settings=("optimize.slow_update_samples=30",))
    begun = shop.state.incumbent
    ended = apply_edits(begun, [Add("rules", "Know hammer and saw, no longer apple.")]).document
    shop.state = replace(shop.state, incumbent=ended, best=ended)
    shop.measure_validation()
    compared = asyncio.run(compare_epoch(shop.engine, begun, ended, 1))
    assert len(compared.pairs) == 30
    (section,) = slow_sections(shop.state)
    place = replace(PLACE, kind="slow update")
    state = asyncio.run(slow_update(shop.engine, shop.state, section, compared, place, 0))
    (prompt,) = shop.script.of("slow update")
    for kind, before, after in (("improved", "fruit", "tool"), ("still_failing", "fruit", "fruit")):
        case = prompt[prompt.index(f'kind="{kind}"') :].split("</case>")[0]
        assert f"<before>{before}</before>\n<after>{after}</after>" in case
    assert prompt.index('kind="still_failing"') < prompt.index('kind="improved"') < prompt.index('kind="still_right"')
    (decision,) = shop.observer.decisions
    assert (decision["kind"], decision["result"]) == ("slow update", "accept")
    assert state.incumbent.section("guidance").text == "Remember chisel and wrench."
    assert state.patience == shop.state.patience


def test_guidance_over_its_limit_is_asked_for_again_and_a_rejected_one_is_remembered(tmp_path):
    answers = [{"guidance": "word " * 80}, {"guidance": "Be kind."}]
    shop = Workshop(tmp_path, lambda call: answers.pop(0), program=SLOW)
    shop.measure_validation()
    place = Position(1, 1, 8, "slow update")
    compared = asyncio.run(compare_epoch(shop.engine, shop.state.incumbent, shop.state.incumbent, 1))
    (section,) = slow_sections(shop.state)
    state = asyncio.run(slow_update(shop.engine, shop.state, section, compared, place, 0))
    assert "section `guidance` would have 80 tokens, its limit is 40" in shop.script.calls[1].messages[-1].content
    assert [entry.text for entry in state.memory.rejected] == ["guidance of guidance: Be kind."]
    assert state.patience == shop.state.patience


# ---- what may be asked at most --------------------------------------------------------------------


def greedy(call):
    """Uses all it may: many edits, every lookup, lapses, marks, and a reply that must be asked for again each time."""
    again = call.sample[-1] == 0
    if again and call.stage != "reflect":
        return "no json"
    if call.stage == "reflect":
        lookups = 'lookups="2"' in call.messages[1].content
        if lookups and call.sample[3] < 2:
            return "no json" if again else {"lookup": {"op": "list"}}
        lapses = [{"reminder": f"Mind number {i} of {call.sample[2]}.", "cases": ["t1"]} for i in range(9)]
        found = edits(call, *(f"Rule {i} of {call.sample}." for i in range(20)))
        return "no json" if again else {**found, "lapses": lapses}
    if call.stage == "rewrite":
        return {"sections": [{"section": "rules", "rules": [f"Rewritten {call.sample}."]}]}
    if call.stage == "aggregate":
        words = ("hammer", "saw", "chisel", "wrench", "horse", "otter")
        return edits(call, *(f"Merged {i} of {call.sample}: {words[i % 6]}." for i in range(60)))
    return {"edits": 4, "guidance": f"Guided {call.sample}.", "memory": "m"}


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("optimize.update=rewrite_section",),
        ("optimize.update=rewrite_all", "optimize.lapses=on", "optimize.rule_counts=on"),
        ("optimize.lookups=2", "optimize.edits=model"),
        ("optimize.accumulate=2", "optimize.minibatch=1", "optimize.lookups=2"),
        ("optimize.successes=off", "optimize.accumulate=3", "optimize.edits=linear(2, 5)"),
    ],
)
@pytest.mark.quick_cases(2)
def test_no_mechanism_calls_more_than_the_plan_says(tmp_path, settings):
    gates = SLOW.replace(
        "gate better = candidate.correct > incumbent.correct", "gate better = candidate.correct >= incumbent.correct"
    )
    shop = Workshop(tmp_path, greedy, program=gates, settings=("budget.epochs=2", "budget.patience=none", *settings))
    asyncio.run(train(shop.engine, shop.state.incumbent))
    sent = {}
    for call in shop.script.calls:
        sent[call.stage] = sent.get(call.stage, 0) + 1
    most = {stage.name: stage.bound.most for stage in shop.bounds.stages}
    for stage in ("reflect", "aggregate", "meta skill", "slow update"):
        assert sent[stage] <= most[stage].calls, stage
    for stage in ("select", "rewrite"):
        assert sent.get(stage, 0) <= (most[stage].calls if stage in most else 0), stage
    # A question that is always asked again comes close to what the plan allows.
    assert sent["meta skill"] == most["meta skill"].calls
    assert shop.rollouts <= sum(
        most[s].calls for s in ("baseline", "rollout", "screen", "gate", "slow update") if s in most
    )
