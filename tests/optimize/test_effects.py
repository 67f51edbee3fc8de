"""What prompts tell of earlier candidates: their cases, the rejected edits, and the epoch's fates for the memory."""

import asyncio
import re
from dataclasses import replace

from workshop import KIND_OF, PLACE, Workshop, word_of

from skillc.budget.call_sizes import EFFECTS_LIMIT, REJECTED_LIMIT
from skillc.document.edits import Add, apply_edits
from skillc.document.skill import Document, Section
from skillc.optimize.engine import CandidateEffect, EditEffect, RejectedEdit
from skillc.optimize.loop.step import step
from skillc.optimize.propose.cases import recent_effects, rejected_lines
from skillc.optimize.strategies.epoch_review import meta_skill, view
from skillc.tokens import count_tokens

SETTINGS = (
    "optimize.batch=30",
    "optimize.successes=off",
    "optimize.speculate=off",
    "optimize.screen=12",
    "optimize.together=off",
    "optimize.control=off",
    "optimize.minibatch=50",
)


def answer(skill, example):
    """`Know WORD.` makes the target right on a word, and `Ruin.` wrong on cherries."""
    word = word_of(example)
    if "Ruin." in (skill or "") and word == "cherry":
        return "tool"
    return KIND_OF[word] if word in (skill or "") else "fruit"


def proposing(text):
    def reply(call):
        if call.stage == "reflect":
            tags = re.findall(r'<trajectory tag="(t\d+)"', call.messages[1].content)
            return {"edits": [{"op": "add", "section": "rules", "text": text, "cures": tags}]}
        if call.stage == "draft":
            rules = [{"text": "If the text has wrench, answer fruit."}]
            return {
                "analysis": "The wrench decides. " + "It is so. " * 90,
                "sections": [{"section": "rules", "rules": rules}],
            }
        return {"memory": "m"}

    return reply


def stepped(shop, state, number):
    return asyncio.run(step(shop.engine, state, shop.train[:30], replace(PLACE, step=number)))


def test_the_next_reflection_sees_which_cases_an_edit_changed_and_how_it_was_decided(tmp_path):
    shop = Workshop(tmp_path, proposing("Know hammer, chisel, wrench, horse. Ruin."), settings=SETTINGS, answer=answer)
    shop.measure_validation()
    state = stepped(shop, shop.state, 1)
    assert "<last>" not in shop.script.of("reflect")[0]
    stepped(shop, state, 2)
    last = shop.script.of("reflect")[-1].partition("<last>")[2].partition("</last>")[0]
    assert re.search(r"^- (accepted: all gates hold|rejected: gate `better` failed)", last, re.M)
    assert "- add to rules: Know hammer, chisel, wrench, horse. Ruin. (" in last
    better = re.findall(r"^    better: (.*)", last, re.M)
    assert better and all(
        re.search("hammer|chisel|wrench|horse", line) and "was fruit, now tool" in line
        for line in better
        if "more" not in line
    )
    worse = re.findall(r"^    worse: (.*)", last, re.M)
    assert worse and all("cherry" in line and "was fruit, now tool, right is fruit" in line for line in worse)
    assert "<last>" not in "".join(shop.script.of("aggregate") + shop.script.of("meta skill"))


def test_cases_that_an_earlier_skill_met_too_are_compared_with_it(tmp_path):
    shop = Workshop(
        tmp_path, lambda call: {"edits": []}, settings=("optimize.batch=30", "optimize.drafts=0"), answer=answer
    )
    state = stepped(shop, shop.state, 1)
    assert state.memory.again is None
    changed = apply_edits(state.incumbent, [Add("rules", "Know wrench. Ruin.")]).document
    state = stepped(shop, replace(state, incumbent=changed), 2)
    (part,) = state.memory.again.parts
    assert all("wrench" in line for line in part.better[:3]) and all("cherry" in line for line in part.worse[:3])
    # The skill stays, so nothing is new.
    assert stepped(shop, state, 3).memory.again is None


def test_what_a_prompt_shows_of_effects_is_the_newest_and_whole(tmp_path):
    shop = Workshop(tmp_path, lambda call: {})
    half = CandidateEffect("rejected: x", (EditEffect("word " * (EFFECTS_LIMIT // 2)),))
    small = CandidateEffect("accepted: y", (EditEffect("few words"),))
    assert recent_effects(shop.state.with_memory(effects=(small, half, small, half, small))) == [small, half, small]
    assert recent_effects(shop.state.with_memory(effects=(half, half), again=small)) == [small, half]


def test_rejected_rules_are_whole_and_the_oldest_make_room():
    rule = "- first do this, then that\n" + "  - and a nested item of many words\n" * 40
    entries = [RejectedEdit(f"add to rules: {i} {rule}", f"cured 0 of {i} failures") for i in range(40)]
    lines = rejected_lines(Document("s", "about", (Section("rules", "trainable"),)), entries)
    assert 1 < len(lines) < 40
    assert sum(map(count_tokens, lines)) <= REJECTED_LIMIT
    first = 40 - len(lines)
    expected = [f"add to rules: {i} {' '.join(rule.split())} (cured 0 of {i} failures)" for i in range(first, 40)]
    assert lines == expected


def test_a_rejected_draft_is_listed_by_its_analysis_and_not_by_its_rules(tmp_path):
    shop = Workshop(tmp_path, proposing("x"), settings=(*SETTINGS, "optimize.drafts=1"), answer=lambda s, e: "fruit")
    shop.measure_validation()
    state = stepped(shop, shop.state, 1)
    (entry,) = state.memory.rejected
    assert re.match(r"a draft of \d+ tokens.*; its analysis: The wrench decides\. It is so\.", entry.text)
    assert "answer fruit" not in entry.text
    assert entry.text.endswith("It is so.") and count_tokens(entry.text) < 200


# ---- the memory -----------------------------------------------------------------------------------

RECORD = {
    "decision": 3,
    "result": "reject",
    "reason": "gate `better` failed",
    "fates": [{"edit": "add to rules: a", "fate": "free rider", "why": "cured 0 and broke 0 on validation"}],
}


def asked(tmp_path, records, meta=""):
    shop = Workshop(tmp_path, lambda call: {"memory": "new"})
    state = asyncio.run(meta_skill(shop.engine, shop.state.with_memory(meta=meta), records, PLACE))
    return state, "".join(shop.script.of("meta skill"))


def test_the_memory_is_written_from_the_fates_of_the_edits(tmp_path):
    state, prompt = asked(tmp_path, [RECORD])
    assert state.memory.meta == "new"
    fate = "free rider: cured 0 and broke 0 on validation"
    assert f'<edit fate="{fate}">add to rules: a</edit>' in prompt
    assert "do not repeat it" not in prompt


def test_the_memory_reads_only_what_was_measured_of_a_draft_and_the_goal_before_and_after():
    trial = {"tokens": 9, "cured": 1, "of_failures": 2, "broke": 0, "of_rights": 3, "chosen": True}
    goal = {"goal": {"incumbent": "0.533333", "candidate": "0.8"}, "evaluated": 15}
    tried = view({**RECORD, **goal, "drafts": [trial]}, "correct")
    counts = "it cured 1 of 2 failures and broke 0 of 3 right cases"
    assert tried.edits == [(f"a draft of 9 tokens; tried on cases that its author had not seen, {counts}", "")]
    assert tried.outcome == "gate `better` failed; correct was 0.533, is 0.8 with it, on 15 validation examples"
    untried = {**trial, "cured": 0, "of_failures": 0, "of_rights": 0}
    assert view({**RECORD, "drafts": [untried]}, "correct").edits == [("a draft of 9 tokens", "")]
    partial = {**goal, "goal": {"incumbent": "0.5", "candidate": ["0.2", "0.4"]}}
    assert view({**RECORD, **partial}, "correct").outcome == "gate `better` failed"
    slow = {**RECORD, "fates": [], "section": "habits", "guidance": "Stay calm."}
    assert view(slow, "correct").edits == [("rewrite of habits: Stay calm.", "")]


def test_a_memory_that_gained_nothing_is_said_to_have_failed(tmp_path):
    assert "do not repeat it" in asked(tmp_path, [RECORD], meta="old advice")[1]
    assert "do not repeat it" not in asked(tmp_path, [{**RECORD, "result": "accept"}], meta="old advice")[1]


def test_an_epoch_without_a_proposal_asks_nothing(tmp_path):
    state, prompt = asked(
        tmp_path, [{"decision": 1, "result": "empty", "reason": "no edit to try", "fates": []}], meta="old"
    )
    assert (state.memory.meta, prompt) == ("old", "")
