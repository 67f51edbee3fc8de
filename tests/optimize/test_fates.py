"""What becomes of each proposed edit, and which edits wait on the shelf."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workshop import KIND_OF, PLACE, Workshop, word_of

from skillc.document.edits import Add, Delete, apply_edits
from skillc.document.skill import document_of
from skillc.optimize.engine import SearchState
from skillc.optimize.gate.credit import Flips
from skillc.optimize.loop.step import step
from skillc.optimize.memory import accepted_fates, after_rejection, shelve, shelve_unchosen, unmerged, unshelve
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.optimize.schedule import Patience

SKILL = document_of("s", "", [("rules", "trainable", "- Say a.", None)])
STATE = SearchState(SKILL, SKILL, SKILL, Patience(None, 0, 0))
NONE = Flips()


def add(text, *cures, moved=(), seen=(), **more):
    found = tuple((name, change) for name, change in moved)
    return Proposal(Add("rules", text), cures, 1, found, seen=frozenset(seen or cures), **more)


def by_text(fates):
    return {entry["edit"].partition(": ")[2]: entry["fate"] for entry in fates}


GENERAL = add("general", "a", moved=(("a", 1), ("b", 1)))
MEMORISED = add("memorised", "c", moved=(("c", 1), ("b", 0)))


def test_after_a_rejected_bundle_only_edits_with_evidence_against_them_are_forbidden():
    wide = add("wide", "d", moved=(("d", 1), ("b", 1)))
    parts = [Flips(("v1",)), NONE, Flips(("v2",), ("v3", "v4"))]
    state, entries, fates = after_rejection(STATE, [GENERAL, MEMORISED, wide], parts, 12)
    assert [proposal.edit.text for proposal in state.memory.shelf] == ["general"]
    assert {entry.text: entry.reason for entry in entries} == {
        "add to rules: memorised": "cured 0 and broke 0 of 12 validation examples; in the screen it cured 0 of 1 "
        "unseen and 1 of 1 shown failures: widen it",
        "add to rules: wide": "cured 1 and broke 2 of 12 validation examples; in the screen it cured 1 of 1 unseen "
        "and 1 of 1 shown failures: narrow it",
    }
    assert by_text(fates) == {"general": "waiting", "memorised": "rejected", "wide": "rejected"}


def test_an_edit_that_met_the_gates_alone_has_their_verdict():
    state, (entry,), (fate,) = after_rejection(STATE, [GENERAL], [Flips(("v1",), ("v2",))], 9)
    assert (state.memory.shelf, fate["fate"]) == ((), "rejected")
    assert entry.reason.startswith("cured 1 and broke 1 of 9 validation examples")


def test_the_shelf_comes_back_twice_without_its_old_evidence_and_drops_what_no_longer_applies():
    gone = Proposal(Delete(SKILL.rules[0].id), ("a",))
    state, _ = shelve(STATE, [GENERAL, gone], "cut by the edit budget")
    state = replace(state, incumbent=apply_edits(SKILL, [gone.edit]).document)
    state, proposals, fates = unshelve(state, [])
    assert not state.memory.shelf
    (back,) = proposals
    assert (back.edit, back.moved, back.seen, back.returned) == (GENERAL.edit, (), GENERAL.seen, 1)
    assert [entry["fate"] for entry in fates] == ["dropped"]
    _, (last,) = shelve(state, [replace(back, returned=2)], "cut by the edit budget")
    assert (last["fate"], last["why"]) == ("dropped", "came back 2 times")


def test_an_edit_that_is_proposed_again_is_joined_with_the_one_on_the_shelf():
    state, _ = shelve(STATE, [GENERAL], "cut by the edit budget")
    _, proposals, _ = unshelve(state, [add("general", "z")])
    assert [(proposal.cures, proposal.support) for proposal in proposals] == [(("z", "a"), 2)]


def test_what_the_aggregator_leaves_out_is_merged_or_waits():
    merged = [add("both", "a", "b")]
    lost, fates = unmerged([add("one", "a"), add("other", "z"), add("both", "a")], merged)
    assert [proposal.edit.text for proposal in lost] == ["other"]
    assert fates == [{"edit": "add to rules: one", "fate": "merged into another", "why": "add to rules: both"}]


def test_before_the_gates_each_edit_that_is_not_chosen_has_a_fate():
    none, twin = add("none", "c", moved=(("c", 0),)), add("Say a.", "c")
    state, fates = shelve_unchosen(STATE, [GENERAL, MEMORISED, none, twin], [GENERAL], [add("aside", "z")])
    found = by_text(fates)
    assert found == {"memorised": "waiting", "none": "screened out", "Say a.": "refused", "aside": "waiting"}
    assert [proposal.edit.text for proposal in state.memory.shelf] == ["memorised", "aside"]


def test_an_accepted_edit_that_cured_nothing_is_a_free_rider():
    fates = accepted_fates([GENERAL, MEMORISED], [NONE, Flips((), ("v1",))])
    assert by_text(fates) == {"general": "accepted", "memorised": "free rider"}


def test_a_good_edit_of_a_rejected_bundle_is_accepted_in_the_next_step_without_being_proposed_again(tmp_path):
    """`Ruin.` makes the target wrong on all examples but those of two words."""

    def answer(skill, example):
        word = word_of(example)
        if "Ruin." in (skill or "") and word not in ("wrench", "chisel"):
            return "nothing"
        return KIND_OF[word] if word in (skill or "") else "fruit"

    asked = []

    def reply(call):
        if call.stage == "reflect":
            asked.append(call)
            new = len(asked) == 1
            texts = ("Know wrench.", "Know chisel. Ruin.") if new else ()
            return {"edits": [{"op": "add", "section": "rules", "text": text} for text in texts]}
        return "no merge"

    settings = ("optimize.drafts=0", "optimize.update=edits", "optimize.batch=30", "optimize.successes=off",
                "optimize.minibatch=50", "optimize.replay=0", "optimize.screen=0",
                "optimize.speculate=off")  # fmt: skip
    shop = Workshop(tmp_path, reply, settings=settings, answer=answer)
    shop.measure_validation()
    state = asyncio.run(step(shop.engine, shop.state, shop.train[:30], PLACE))
    (first,) = shop.observer.decisions
    assert first["result"] == "reject"
    assert {entry["edit"] for entry in first["fates"]} == {
        "add to rules: Know wrench.",
        "add to rules: Know chisel. Ruin.",
    }
    assert wording(Add("rules", "Know wrench.")) not in {entry.text for entry in state.memory.rejected}
    state = asyncio.run(step(shop.engine, state, shop.train[:30], replace(PLACE, step=2)))
    assert [rule.text for rule in state.incumbent.rules] == ["Know wrench."]
