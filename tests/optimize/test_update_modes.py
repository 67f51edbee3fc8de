"""How a candidate is written: edits, one section rewritten, all trainable sections rewritten."""

import asyncio
import json
from dataclasses import replace

import pytest
from workshop import PLACE, PROGRAM, Workshop

from skillc.document.edits import Add, Delete, apply_edits
from skillc.models.failures import CallFailed
from skillc.optimize.loop.step import step
from skillc.optimize.propose.proposals import Proposal
from skillc.optimize.screen.candidates import sections_to_rewrite, write_patch

TWO = PROGRAM.replace(
    "  trainable section rules { limit = 600 tokens }",
    "  trainable section rules { limit = 60 tokens }\n  trainable section style { limit = 60 tokens }",
)
SUGGESTED = (
    Proposal(
        Add("rules", "If the text mentions saw, answer tool.", rationale="seen"),
        ("x1",),
        moved=(("x1", 1_000_000), ("x4", 1_000_000), ("x5", 0)),
    ),
    Proposal(Add("rules", "If the text mentions lynx, answer animal."), ("x2",)),
    Proposal(Add("style", "Answer in one word."), ("x3",)),
)


def rewriting(*sections):
    return {"sections": [{"section": name, "rules": list(rules)} for name, rules in sections]}


def workshop(folder, *replies, mode="rewrite_section", settings=(), program=TWO):
    """A workshop with rules r1 and r2, whose optimizer answers a rewrite with each reply in turn."""
    waiting = list(replies)
    shop = Workshop(
        folder, lambda call: waiting.pop(0), program=program, settings=(f"optimize.update={mode}", *settings)
    )
    skill = apply_edits(
        shop.state.incumbent, [Add("rules", "Read the text twice.", rationale="old"), Add("rules", "Never guess.")]
    ).document
    shop.state = replace(shop.state, incumbent=skill, best=skill)
    return shop


def written(shop, chosen=SUGGESTED, **options):
    return asyncio.run(write_patch(shop.engine, shop.state, chosen, PLACE, {"proposed": 3}, **options))


def texts(skill, section="rules"):
    return [rule.text for rule in skill.section(section).rules]


def ids(shop):
    return [rule.id for rule in shop.state.incumbent.rules]


def test_edits_are_made_as_they_were_chosen_and_nobody_is_asked(tmp_path):
    shop = workshop(tmp_path, mode="edits")
    patch = written(shop)
    assert patch.edits == tuple(p.edit for p in SUGGESTED)
    assert patch.text == ""
    assert shop.script.calls == []


def test_one_section_is_rewritten_from_the_suggestions_and_kept_rules_keep_their_ids(tmp_path):
    shop = workshop(tmp_path)
    one, two = ids(shop)
    mixed = {"text": "If it mentions saw, answer tool; if lynx, animal.", "topic": "Signs", "rationale": "both"}
    shop = workshop(tmp_path, rewriting(("rules", [mixed, {"rule": two}, {"rule": one, "text": "Read it thrice."}])))
    patch = written(shop)
    # Rules without a topic come first, whatever the order in which they were written.
    assert texts(patch.candidate) == ["Never guess.", "Read it thrice.", mixed["text"]]
    assert [rule.id for rule in patch.candidate.section("rules").rules][:2] == [two, one]
    assert [rule.rationale for rule in patch.candidate.section("rules").rules] == ["", "old", "both"]
    assert patch.candidate.section("style") == shop.state.incumbent.section("style")
    assert apply_edits(shop.state.incumbent, patch.edits).document == patch.candidate
    assert [each["text"] for each in patch.record["suggestions"]] == [p.edit.text for p in SUGGESTED]
    assert all(each["report"] and each["op"] for each in patch.record["edits"])
    json.dumps(dict(patch.record))
    (prompt,) = shop.script.of("rewrite")
    assert '"cured": "2 of 3"' in prompt
    assert "`rules`, in at most 60 tokens." in prompt


def test_all_trainable_sections_are_rewritten_but_the_reminders(tmp_path):
    reminder = Proposal(Add("reminders", "Look twice."), ("x4",))
    reply = rewriting(("rules", [{"text": "Only this."}]), ("style", ["Answer in one word."]))
    shop = workshop(tmp_path, reply, mode="rewrite_all", settings=("optimize.lapses=on",))
    patch = written(shop, (*SUGGESTED, reminder))
    assert texts(patch.candidate) == ["Only this."]
    assert texts(patch.candidate, "style") == ["Answer in one word."]
    assert texts(patch.candidate, "reminders") == ["Look twice."]
    assert 'sections="rules style"' in shop.script.of("rewrite")[0]
    assert len(patch.record["suggestions"]) == 3


def test_reminders_alone_need_no_rewrite(tmp_path):
    shop = workshop(tmp_path, settings=("optimize.lapses=on",))
    patch = written(shop, (Proposal(Add("reminders", "Look twice."), ("x4",)),))
    assert texts(patch.candidate, "reminders") == ["Look twice."]
    assert shop.script.calls == []


def test_the_section_with_most_suggestions_is_rewritten(tmp_path):
    shop = workshop(tmp_path)
    skill = shop.state.incumbent
    assert sections_to_rewrite(shop.engine, skill, SUGGESTED) == ["rules"]
    assert sections_to_rewrite(shop.engine, skill, SUGGESTED[1:]) == ["rules"]
    assert sections_to_rewrite(shop.engine, skill, SUGGESTED[2:]) == ["style"]
    assert sections_to_rewrite(shop.engine, skill, (SUGGESTED[2], Proposal(Delete(ids(shop)[0])))) == ["rules"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (rewriting(("rules", ["word " * 90])), "section `rules` would have"),
        (rewriting(("style", ["Be brief."])), "section `style` was not to be rewritten, but `rules`"),
        (rewriting(("role", ["Be brief."])), "section `role` was not to be rewritten, but `rules`"),
        (rewriting(("rules", [{"rule": "zz"}])), "there is no rule `zz` in section `rules`"),
        (rewriting(("rules", ["Read the text twice.", "Never guess."])), "the rewrite changes nothing"),
        (rewriting(("rules", [])), "section `rules` would be empty"),
        ({"sections": [{"section": "rules", "rules": [{}]}]}, "a rule needs `text`"),
        ("I would rather not.", "the reply holds no JSON object"),
    ],
)
def test_a_rewrite_that_cannot_be_is_asked_for_once_more_with_the_reason(tmp_path, bad, reason):
    shop = workshop(tmp_path, bad, rewriting(("rules", ["Better."])))
    assert texts(written(shop).candidate) == ["Better."]
    assert reason in shop.script.calls[1].messages[-1].content
    assert [call.sample for call in shop.script.calls] == [(1, 1, 0, 0), (1, 1, 0, 1)]
    # Where the second is no better, the evidence is not lost: the edits are made as they were chosen.
    shop = workshop(tmp_path, bad, bad)
    assert texts(written(shop).candidate) == [
        "Read the text twice.",
        "Never guess.",
        *(p.edit.text for p in SUGGESTED[:2]),
    ]
    assert len(shop.script.calls) == 2
    assert shop.observer.notes


def test_a_model_that_fails_leaves_the_edits(tmp_path):
    shop = workshop(tmp_path, CallFailed("transient", "down"))
    assert written(shop).edits == tuple(p.edit for p in SUGGESTED)


def test_candidates_of_one_step_have_samples_of_their_own(tmp_path):
    shop = workshop(tmp_path, rewriting(("rules", ["One."])), rewriting(("rules", ["Two."])))
    assert texts(written(shop).candidate) == ["One."]
    assert texts(written(shop, ordinal=1).candidate) == ["Two."]
    assert [call.sample for call in shop.script.calls] == [(1, 1, 0, 0), (1, 1, 1, 0)]


def test_a_rejected_rewrite_is_remembered_by_its_suggestions_each_with_its_own_evidence(tmp_path):
    def reply(call):
        if call.stage == "rewrite":
            return rewriting(("rules", ["A whole new text.", "With another line."]))
        return {"edits": [{"op": "add", "section": "rules", "text": "Guess well.", "cures": []}]}

    settings = ("optimize.update=rewrite_all", "optimize.batch=12", "optimize.successes=off", "optimize.screen=0")
    shop = Workshop(tmp_path, reply, settings=settings)
    shop.measure_validation()
    state = asyncio.run(step(shop.engine, shop.state, shop.train[:12], PLACE))
    (decision,) = shop.observer.decisions
    assert (decision["result"], decision["blame"]) == ("reject", "better")
    assert decision["evaluated"] > 0
    assert [entry.text for entry in state.memory.rejected] == ["add to rules: Guess well."]
    asyncio.run(step(shop.engine, state, shop.train[12:24], PLACE))
    assert "- add to rules: Guess well. (cured 0 and broke" in shop.script.of("reflect")[-1]
