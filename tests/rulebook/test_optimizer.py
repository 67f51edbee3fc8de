from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from prompt_parts import prompt

from skillc.document.edits import Edit, apply_edits, rewrite
from skillc.document.skill import Document, Rule, Section, for_optimizer, for_target
from skillc.models.rulebook import answer
from skillc.models.rulebook.induce import MAJORITY
from skillc.models.rulebook.sentences import read_rules
from skillc.optimize.propose.prompting import (
    DecisionView,
    EditView,
    HitView,
    PairView,
    PatchView,
    SectionView,
    TrajectoryView,
    aggregate_messages,
    budget_messages,
    lookup_messages,
    meta_skill_messages,
    reflect_messages,
    rewrite_messages,
    slow_update_messages,
    tidy_messages,
)
from skillc.optimize.propose.proposals import read_edit
from skillc.optimize.propose.replies import (
    AggregateReply,
    BudgetReply,
    MetaSkillReply,
    ProposedEdit,
    ReflectReply,
    SlowUpdateReply,
    read_reply,
)
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan

TEXT = TypePlan(kind="text")
LABELS = TypePlan(kind="labels", labels=("red", "green", "blue"))
TASK = TaskPlan(
    inputs=(FieldPlan(name="note", type=TEXT, column="note"),),
    outputs=(FieldPlan(name="colour", type=LABELS, column="colour"),),
)
FREE = TaskPlan(inputs=TASK.inputs, outputs=(FieldPlan(name="answer", type=TEXT, column="answer"),))


def skill(*rules: tuple[str, str, str]) -> Document:
    """A document with rules of (topic, text, rationale), whose ids are a1, a2, ..."""
    held = tuple(Rule(f"a{i}", text, topic, why) for i, (topic, text, why) in enumerate(rules, 1))
    return Document("s", "about", (Section("rules", "trainable", rules=held, limit=900), Section("tips", "slow")))


def with_tips(text: str) -> Document:
    """The skill with a text in its slow section."""
    return rewrite(skill(), "tips", text).document


def case(tag: str, note: str, gold: str | None, answered: str = "red", feedback: str | None = None) -> TrajectoryView:
    return TrajectoryView(tag, {"note": note}, answered, gold, feedback, None, "0")


def reflect(
    document: Document,
    cases: Sequence[TrajectoryView],
    *,
    kind: str = "failures",
    budget: int = 8,
    rejected: Sequence[str] = (),
    task: TaskPlan = TASK,
) -> tuple[ProposedEdit, ...]:
    messages = prompt(
        reflect_messages,
        kind=kind,
        skill=for_optimizer(document),
        task=task,
        trajectories=cases,
        edit_budget=budget,
        rejected=rejected,
    )
    return read_reply(ReflectReply, answer(messages)).edits


def edited(document: Document, edit: ProposedEdit) -> Document:
    made: Edit | None = read_edit(edit)
    assert made is not None
    applied = apply_edits(document, [made])
    assert applied.results[0].applied, applied.results[0].message
    return applied.document


FAILURES = [
    case("t1", "the kettle leaks", "green"),
    case("t2", "my kettle is loud", "green"),
    case("t3", "a lamp that flickers", "blue"),
    case("t4", "the lamp and its switch", "blue"),
]


def test_it_finds_what_failures_of_one_answer_share() -> None:
    texts = {edit.text: edit for edit in reflect(skill(), FAILURES)}
    assert texts['If the note mentions "kettle", answer green.'].cures == ("t1", "t2")
    assert texts['If the note mentions "lamp", answer blue.'].cures == ("t3", "t4")
    assert all(edit.op == "add" and edit.section == "rules" and edit.rationale for edit in texts.values())


def test_one_rule_for_each_answer_and_what_one_case_shows_is_only_remembered() -> None:
    edits = reflect(skill(), FAILURES)
    assert len(edits) == 2
    assert not any("leaks" in edit.text for edit in edits)
    assert edits[0].rationale == 'seen: "kettle" 2; once: leaks, loud'


def test_what_was_seen_once_becomes_a_sign_with_the_second_case() -> None:
    document = skill(("", 'If the note mentions "kettle", answer green.', 'seen: "kettle" 3; once: toaster'))
    (edit,) = reflect(document, [case("t1", "a rusty toaster", "green")])
    assert edit.text == 'If the note mentions "kettle" or "toaster", answer green.'
    assert edit.rationale == 'seen: "kettle" 3, "toaster" 2; once: rusty'


def test_a_case_that_comes_back_is_not_counted_twice() -> None:
    known = 'seen: "kettle" 3; once: rusty, toaster, hums'
    document = skill(("", 'If the note mentions "kettle", answer green.', known))
    edits = reflect(document, [case("t1", "a rusty toaster hums", "green")])
    assert not any("toaster" in edit.text for edit in edits)


def test_weekdays_greetings_and_numbers_are_no_signs() -> None:
    cases = [case(f"t{i}", "Hello, on Tuesday morning twenty kettles", "green") for i in (1, 2)]
    (edit,) = reflect(skill(), cases)
    assert edit.text == 'If the note mentions "kettles", answer green.'


def test_contradictions_are_settled_by_counts() -> None:
    document = skill(("", 'If the note mentions "kettle" or "box", answer green.', 'seen: "kettle" 9, "box" 2'))
    cases = [case(f"t{i}", "a kettle in a box", "blue", "green") for i in (1, 2, 3)]
    texts = {edit.text for edit in reflect(document, cases) if edit.rule == "a1"}
    assert 'If the note mentions "kettle", answer green.' in texts


def test_where_rules_get_in_each_others_way_the_answer_with_most_signs_may_win() -> None:
    rules = (
        ("", 'If the note mentions "water" or "leaks", answer red.', 'seen: "water" 9, "leaks" 3'),
        ("", 'If the note mentions "kettle", "spout" or "lid", answer green.', 'seen: "kettle" 4, "spout" 4, "lid" 3'),
        ("", 'If the note mentions "lamp", answer blue.', 'seen: "lamp" 4'),
    )
    edits = reflect(skill(*rules), [case("t1", "water in the kettle with the broken spout", "green")])
    assert MAJORITY in {edit.text for edit in edits}
    counting = skill(*rules, ("", MAJORITY, ""))
    assert not any(edit.text == MAJORITY for edit in reflect(counting, [case("t1", "kettle spout water lamp", "blue")]))


def test_function_words_and_shared_words_are_no_signs() -> None:
    cases = [case("t1", "the thing with a button here", "green"), case("t2", "the thing with a button there", "blue")]
    assert not any(word in edit.text for edit in reflect(skill(), cases) for word in ('"the"', '"with"', '"button"'))


def test_the_edit_budget_is_kept() -> None:
    assert len(reflect(skill(), FAILURES, budget=2)) == 2
    assert reflect(skill(), FAILURES, budget=0) == ()


def test_rejected_texts_are_not_proposed_again() -> None:
    text = 'If the note mentions "kettle", answer green.'
    assert text in {edit.text for edit in reflect(skill(), FAILURES)}
    assert text not in {edit.text for edit in reflect(skill(), FAILURES, rejected=[f"add to rules: {text} (gate)"])}


def test_feedback_serves_where_gold_is_withheld_and_nothing_is_guessed_without_it() -> None:
    told = [case("t1", "the kettle", None, feedback="expected `green`, got `red`")]
    assert any("kettle" in edit.text and "green" in edit.text for edit in reflect(skill(), told))
    assert reflect(skill(), [case("t1", "the kettle", None, feedback="wrong")]) == ()


def test_it_extends_its_own_rule_and_keeps_the_evidence() -> None:
    document = skill(("Clear signs", 'If the note mentions "kettle", answer green.', 'seen: "kettle" 3'))
    cases = [case("t1", "a toaster", "green"), case("t2", "my toaster", "green")]
    (edit,) = (e for e in reflect(document, cases) if e.op == "replace")
    assert edit.rule == "a1"
    assert edit.text == 'If the note mentions "kettle" or "toaster", answer green.'
    assert edit.rationale == 'seen: "kettle" 3, "toaster" 2'


def test_a_rule_for_cases_that_another_rule_decided_stands_above_it() -> None:
    document = skill(("Clear signs", 'If the note mentions "water", answer red.', 'seen: "water" 9'))
    cases = [case("t1", "water in the kettle", "green"), case("t2", "kettle without water", "green")]
    edit = next(e for e in reflect(document, cases) if "kettle" in e.text)
    lines = [rule.answer for rule in read_rules(for_target(edited(document, edit)))]
    assert lines == ["green", "red"]


def test_signs_that_mislead_are_dropped() -> None:
    rules = (
        ("Clear signs", 'If the note mentions "kettle" or "loud", answer red.', 'seen: "kettle" 3, "loud" 1'),
        ("Clear signs", 'If the note mentions "lamp", answer blue.', 'seen: "lamp" 4'),
    )
    edits = reflect(skill(*rules), [case("t1", "a loud lamp", "blue")])
    assert any(e.op == "replace" and e.text == 'If the note mentions "kettle", answer red.' for e in edits)


def test_a_rule_that_only_hurt_is_deleted() -> None:
    rules = (
        ("Clear signs", 'If the note mentions "loud", answer red.', 'seen: "loud" 1'),
        ("Clear signs", 'If the note mentions "lamp", answer blue.', 'seen: "lamp" 4'),
    )
    assert any(e.op == "delete" and e.rule == "a1" for e in reflect(skill(*rules), [case("t1", "a loud lamp", "blue")]))


def test_an_exception_is_made_for_what_a_later_rule_knows() -> None:
    rules = (
        ("Clear signs", 'If the note mentions "water", answer red.', 'seen: "water" 9'),
        ("Clear signs", 'If the note mentions "kettle", answer green.', 'seen: "kettle" 4'),
    )
    document = skill(*rules)
    edits = reflect(document, [case("t1", "water in the kettle", "green")])
    edit = next(e for e in edits if e.op == "replace" and e.rule == "a1")
    assert edit.text == 'If the note mentions "water", unless it mentions "kettle", answer red.'
    assert len(read_rules(for_target(edited(document, edit)))) == 2


def test_every_edit_that_is_cited_cures_a_case_or_is_an_addition() -> None:
    for edit in reflect(skill(), FAILURES):
        assert edit.cures
        edited(skill(), edit)


def test_successes_pass_on_what_they_hold_and_never_more_than_asked() -> None:
    edits = reflect(skill(), FAILURES, kind="successes", budget=1)
    assert len(edits) == 1
    told = json.loads(edits[0].rationale.removeprefix("right where "))
    assert told == {"green": {"kettle": 2, "leaks": 1, "loud": 1}, "blue": {"lamp": 2, "flickers": 1, "switch": 1}}


def test_forms_of_free_text() -> None:
    cases = [case("t1", "q", "paris", answered="Paris"), case("t2", "q", "the nile", answered="The Nile")]
    (edit,) = reflect(skill(), cases, task=FREE)
    assert (edit.text, edit.cures) == ("Answer in lower case.", ("t1", "t2"))


def aggregate(document: Document, *patches: Sequence[ProposedEdit], budget: int = 8) -> tuple[ProposedEdit, ...]:
    messages = prompt(
        aggregate_messages,
        skill=for_optimizer(document),
        task=TASK,
        patches=[PatchView("failures", "", patch) for patch in patches],
        most=budget,
        edit_budget=budget,
    )
    return read_reply(AggregateReply, answer(messages)).edits


def cited(edits: Sequence[ProposedEdit], prefix: str) -> list[ProposedEdit]:
    return [edit.model_copy(update={"cures": tuple(prefix + tag for tag in edit.cures)}) for edit in edits]


def test_aggregate_adds_up_what_several_patches_found() -> None:
    one = cited(reflect(skill(), [case("t1", "the kettle leaks", "green")]), "x")
    two = cited(reflect(skill(), [case("t1", "a kettle hisses", "green")]), "y")
    assert [(e.text, e.cures, e.support) for e in aggregate(skill(), one, two)] == [
        ('If the note mentions "kettle", answer green.', ("xt1", "yt1"), 2)
    ]


def test_aggregate_drops_signs_that_speak_for_two_answers() -> None:
    one = cited(reflect(skill(), [case("t1", "the kettle leaks", "green")]), "x")
    two = cited(reflect(skill(), [case("t1", "a kettle hisses", "blue")]), "y")
    assert not any("kettle" in edit.text for edit in aggregate(skill(), one, two))


def test_aggregate_lets_successes_veto() -> None:
    failed = cited(reflect(skill(), [case("t1", "kettle leaks", "green"), case("t2", "kettle drips", "green")]), "x")
    right = reflect(skill(), [case("t1", "red kettle", "red"), case("t2", "old kettle", "red")], kind="successes")
    assert any("kettle" in edit.text for edit in aggregate(skill(), failed, failed))
    assert not any("kettle" in edit.text for edit in aggregate(skill(), failed, right))


def test_aggregate_passes_on_what_it_does_not_understand_once() -> None:
    strange = ProposedEdit(op="add", section="rules", text="Be kind.", cures=("e1",))
    (edit,) = aggregate(skill(), [strange], [strange.model_copy(update={"cures": ("e2",)})])
    assert (edit.text, edit.cures, edit.support) == ("Be kind.", ("e1", "e2"), 2)


def test_the_budget_leaves_out_what_cured_nothing() -> None:
    edit = ProposedEdit(op="add", section="rules", text="x")
    views = [EditView(edit, 0, 3), EditView(edit, 2, 3), EditView(edit.model_copy(update={"support": 4}), 2, 2)]
    shared = {"skill": for_optimizer(skill()), "task": TASK, "edits": views}
    assert read_reply(BudgetReply, answer(prompt(budget_messages, most=4, **shared))).edits == 2


def test_slow_update_writes_a_default_for_what_no_rule_decides() -> None:
    pairs = [
        PairView("c1", "still_failing", {"note": "what"}, "red", "red", "blue", None),
        PairView("c2", "still_right", {"note": "who"}, "red", "red", "red", None),
    ]
    messages = prompt(
        slow_update_messages,
        skill=for_optimizer(with_tips("Keep calm.\n- Otherwise, answer red.")),
        task=TASK,
        section="tips",
        limit=90,
        pairs=pairs,
    )
    assert read_reply(SlowUpdateReply, answer(messages)).guidance == "Keep calm.\nOtherwise, answer blue."
    unchanged = prompt(
        slow_update_messages,
        skill=for_optimizer(with_tips("Keep calm.")),
        task=TASK,
        section="tips",
        limit=90,
        pairs=pairs[1:],
    )
    assert read_reply(SlowUpdateReply, answer(unchanged)).guidance == "Keep calm."


def test_meta_skill_counts_decisions() -> None:
    decisions = [
        DecisionView(1, True, [("add: x", ""), ("move: y", "")], "ok"),
        DecisionView(2, False, [("add: z", "")], "gate"),
    ]
    messages = prompt(meta_skill_messages, skill=for_optimizer(skill()), task=TASK, decisions=decisions)
    memory = read_reply(MetaSkillReply, answer(messages)).memory
    assert memory.splitlines() == [
        "1 of 2 patches were accepted in the last epoch.",
        "add: 1 of 2 edits were in accepted patches.",
        "move: 1 of 1 edits were in accepted patches.",
    ]


RULES = (
    ("Clear signs", 'If the note mentions "kettle", answer green.', 'seen: "kettle" 3'),
    ("Clear signs", 'If the note mentions "lamp", answer blue.', 'seen: "lamp" 2'),
    ("Hints", 'If the note mentions "loud", answer red.', ""),
)


def asked(document: Document, cases: Sequence[TrajectoryView], **options: object) -> dict[str, Any]:
    """The whole reply to a reflection with a mechanism on."""
    kind = str(options.pop("kind", "failures"))
    shared = {"skill": for_optimizer(document), "task": TASK, "trajectories": cases, "edit_budget": 8}
    return dict(json.loads(answer(prompt(reflect_messages, kind=kind, **shared, **options))))


def test_a_failure_to_follow_a_right_rule_is_a_lapse_and_no_reason_for_an_edit() -> None:
    cases = [
        case("t1", "a kettle", "green", "red"),
        case("t2", "a toaster", "blue", "red"),
        case("t3", "a lamp", "blue"),
    ]
    reply = asked(skill(*RULES), cases, lapses=True)
    assert [(lapse["rule"], lapse["cases"]) for lapse in reply["lapses"]] == [("a1", ["t1"]), ("a2", ["t3"])]
    assert all("green" in lapse["reminder"] or "blue" in lapse["reminder"] for lapse in reply["lapses"])
    assert {tag for edit in reply["edits"] for tag in edit["cures"]} == {"t2"}
    assert "lapses" not in asked(skill(*RULES), cases)


def test_a_reminder_is_no_rule() -> None:
    (lapse,) = asked(skill(*RULES), [case("t1", "a kettle", "green", "red")], lapses=True)["lapses"]
    assert read_rules(lapse["reminder"], ("note",)) == ()


def test_rules_are_marked_where_they_helped_and_where_they_misled() -> None:
    cases = [
        case("t1", "a kettle", "blue", "green"),
        case("t2", "a kettle, rusty", "green", "red"),
        case("t3", "x", "red"),
    ]
    (mark,) = asked(skill(*RULES), cases, rule_counts=True)["marks"]
    assert mark == {"rule": "a1", "helped": ["t2"], "misled": ["t1"]}
    right = asked(skill(*RULES), [case("t1", "a lamp", "blue", "blue")], rule_counts=True, kind="successes")
    assert right["marks"] == [{"rule": "a2", "helped": ["t1"], "misled": []}]


def test_signs_are_looked_up_and_given_up_where_right_cases_speak_against_them() -> None:
    cases = [case("t1", "a toaster hums", "blue"), case("t2", "toaster hums", "blue")]
    shared = {"skill": for_optimizer(skill()), "task": TASK, "trajectories": cases, "edit_budget": 8}
    messages = prompt(reflect_messages, kind="failures", lookups=2, others=9, **shared)
    first = json.loads(answer(messages))
    word = first["lookup"]["text"]
    assert first["lookup"]["op"] == "search"
    hits = [HitView(f"t{i}", 1, "1", "red", f"the {word}") for i in range(5, 9)]
    told = lookup_messages(messages, asked=json.dumps(first), hits=hits, text="4 of 9", left=1)
    second = json.loads(answer(told))
    assert second["lookup"]["text"] != word
    calm = lookup_messages(told, asked=json.dumps(second), hits=[], text="0 of 9", left=0)
    final = json.loads(answer(calm))
    assert "lookup" not in final
    assert final["edits"]
    assert not any(f'"{word}"' in edit["text"] for edit in final["edits"])
    assert any(f'"{word}"' in edit.text for edit in reflect(skill(), cases))


def rewritten(document: Document, *edits: ProposedEdit, limit: int = 900) -> list[dict[str, Any]]:
    messages = prompt(
        rewrite_messages,
        skill=for_optimizer(document),
        task=TASK,
        edits=[EditView(edit) for edit in edits],
        rewritten=["rules"],
        sections=[SectionView("rules", "trainable", limit, 40)],
    )
    (section,) = json.loads(answer(messages))["sections"]
    return list(section["rules"])


def test_a_rewrite_makes_the_edits_and_joins_rules_of_one_answer() -> None:
    document = skill(*RULES)
    added = ProposedEdit(
        op="add", section="rules", text='If the note mentions "pan", answer green.', topic="Clear signs"
    )
    dropped = ProposedEdit(op="delete", rule="a3")
    assert rewritten(document, added, dropped) == [
        {
            "rule": "a1",
            "text": 'If the note mentions "kettle" or "pan", answer green.',
            "topic": "Clear signs",
            "rationale": 'seen: "kettle" 3; once: pan',
        },
        {"rule": "a2"},
    ]


def test_a_tidying_leaves_out_what_nothing_supports_and_joins_rules_of_one_answer() -> None:
    document = skill(
        ("", 'If the note mentions "kettle", answer green.', ""),
        ("", 'If the note mentions "pan", answer green.', ""),
        ("", 'If the note mentions "sky", answer blue.', ""),
        ("", 'If the note mentions "brick", answer red.', ""),
    )
    none, some = "support: cured 0 and broke 2 on validation", "support: cured 3 and broke 0 on validation"
    unseen = "support: cured 0 and broke 0 on validation; it cured unseen training failures"
    messages = prompt(
        tidy_messages,
        skill=for_optimizer(document, {"a1": some, "a2": some, "a3": none, "a4": unseen}),
        task=TASK,
        written=["rules"],
        sections=[SectionView("rules", "trainable", 900, 40)],
    )
    (section,) = json.loads(answer(messages))["sections"]
    assert [rule["rule"] for rule in section["rules"]] == ["a1", "a4"]
    assert section["rules"][0]["text"] == 'If the note mentions "kettle" or "pan", answer green.'
    assert "text" not in section["rules"][1]


def test_a_rewrite_stays_below_its_limit() -> None:
    document = skill(*RULES)
    long = [ProposedEdit(op="add", section="rules", text=f"Rule {i}: " + "word " * 20, topic="x") for i in range(9)]
    kept = rewritten(document, *long, limit=100)
    assert [rule.get("rule") for rule in kept][:3] == ["a1", "a2", "a3"]
    assert 3 < len(kept) < 7


def test_its_memory_of_what_was_never_accepted_puts_such_edits_last() -> None:
    document = skill(("Clear signs", 'If the note mentions "kettle", answer green.', 'seen: "kettle" 3'))
    cases = [case("t1", "a toaster", "green"), case("t2", "my toaster", "green"), case("t3", "a lamp", "blue")]
    shared = {"skill": for_optimizer(document), "task": TASK, "trajectories": cases, "edit_budget": 8}

    def ops(memory: str) -> list[str]:
        return [
            edit["op"]
            for edit in json.loads(answer(prompt(reflect_messages, kind="failures", meta=memory, **shared)))["edits"]
        ]

    assert ops("")[0] == "replace"
    assert ops("replace: 0 of 4 edits were in accepted patches.")[-1] == "replace"
    assert ops("replace: 1 of 4 edits were in accepted patches.") == ops("")
