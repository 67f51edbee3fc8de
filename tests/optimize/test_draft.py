"""Whole-section drafts: what their authors see, how they are tried, revised and gated, and who has a step."""

import asyncio
import json
import re
from dataclasses import replace

from workshop import KIND_OF, PLACE, PROGRAM, Workshop, rows, word_of

from skillc.data.starter import ColumnChoice, start
from skillc.document.skill import digest
from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.step import maker_of, step
from skillc.optimize.propose.cases import failures_to_replay
from skillc.optimize.propose.draft import draft
from skillc.optimize.propose.proposals import without_tags
from skillc.outcomes import Scored
from skillc.pipeline.compile import Job, compile_job

ON = ("optimize.drafts=2", "optimize.speculate=off", "optimize.batch=30")


def reply(words, **more):
    """A draft with a rule for each of these words."""
    rules = [{"text": f"If the text has {word}, answer {KIND_OF[word]}.", "topic": ""} for word in words]
    return {"analysis": "by word", "sections": [{"section": "rules", "rules": rules}], **more}


def shop(folder, make, **more):
    made = Workshop(folder, make, settings=ON, **more)
    made.measure_validation()
    return made


def stepped(made):
    return asyncio.run(step(made.engine, made.state, made.train[:30], PLACE))


class Heard:
    """Keeps what a step tells."""

    def __init__(self, made):
        self.records = []
        made.engine.observer.decided = self.records.append


def test_an_empty_skill_is_written_by_a_draft_that_passes_the_gates(tmp_path):
    made = shop(tmp_path, lambda call: reply(KIND_OF))
    heard = Heard(made)
    after = stepped(made)
    assert digest(after.incumbent) != digest(made.state.incumbent)
    assert len(after.incumbent.rules) == len(KIND_OF)
    assert after.counters.lost == {"draft": 0}
    (record,) = heard.records
    assert record["maker"] == "draft" and record["result"] == "accept"
    assert {stage for stage, _ in made.script.prompts} == {"draft"}


def test_a_draft_does_not_see_the_cases_that_judge_it(tmp_path):
    made = shop(tmp_path, lambda call: reply(list(KIND_OF)[:4]))
    heard = Heard(made)
    stepped(made)
    first, second, *_ = made.script.of("draft")
    (record,) = heard.records
    assert all(trial["of_failures"] >= 6 and trial["of_rights"] > 0 for trial in record["drafts"])
    wrong = [e for e in made.train[:30] if KIND_OF[word_of(e)] != "fruit"]
    for prompt in (first, second):
        hidden = [e for e in wrong if e.inputs["text"] not in prompt]
        assert len(wrong) // 3 <= len(hidden) <= len(wrong) // 3 + 1
    assert first != second


def test_a_prompt_holds_contrast_and_further_cases_with_their_answers(tmp_path):
    made = shop(tmp_path, lambda call: reply(KIND_OF))
    stepped(made)
    prompt = made.script.of("draft")[0]
    assert '<trajectories kind="failures">' in prompt and '<trajectories kind="right">' in prompt
    assert "<cases>" in prompt and "<confusion>" in prompt
    unseen = [e for e in made.train[30:] if e.inputs["text"] in prompt]
    assert len(unseen) > 10
    assert "answered fruit" in prompt


def test_where_gold_is_withheld_no_right_answer_is_shown(tmp_path):
    made = Workshop(tmp_path, lambda call: reply(KIND_OF), settings=(*ON, "optimize.sees=[feedback]"))
    made.measure_validation()
    stepped(made)
    prompt = made.script.calls[0].messages[1].content
    assert "<gold>" not in prompt and "<cases>" not in prompt and "<confusion>" not in prompt


def test_the_better_draft_is_revised_with_what_it_did(tmp_path):
    words = list(KIND_OF)

    def answer(call):
        prompt = call.messages[-1].content
        if 'tried="on"' in prompt:
            assert "came out wrong" in prompt
            return reply(words)
        return reply(words[: 2 + 4 * call.sample[2]])

    made = shop(tmp_path, answer)
    heard = Heard(made)
    after = stepped(made)
    (record,) = heard.records
    assert [trial["chosen"] for trial in record["drafts"]] == [False, True]
    assert record["revised"] is True
    assert len(after.incumbent.rules) == len(words)
    assert len(made.script.of("draft")) == 3


def test_a_revision_that_cannot_be_read_leaves_the_draft(tmp_path):
    words = list(KIND_OF)

    def answer(call):
        return "no" if 'tried="on"' in call.messages[1].content else reply(words[:-3])

    made = shop(tmp_path, answer)
    heard = Heard(made)
    after = stepped(made)
    assert heard.records[0]["revised"] is False
    assert len(after.incumbent.rules) == len(words) - 3


def test_without_a_readable_draft_the_step_is_lost(tmp_path):
    made = shop(tmp_path, lambda call: "nothing to say")
    heard = Heard(made)
    after = stepped(made)
    assert heard.records[0]["result"] == "empty"
    assert after.counters.lost == {"draft": 1}
    measured = made.measured(made.train[:30])
    assert maker_of(made.engine, after, measured) == "edits"


def test_the_maker_that_lost_less_has_the_step_and_the_share_of_failures_breaks_ties(tmp_path):
    made = shop(tmp_path, lambda call: reply(KIND_OF))
    measured = made.measured(made.train[:30])
    won = stepped(made)
    right = [pair for pair in measured if KIND_OF[word_of(pair[0])] == "fruit"]
    assert maker_of(made.engine, won, measured) == "draft"
    assert maker_of(made.engine, won, right) == "edits"
    lost = won.with_counters(lost={"draft": 1})
    assert maker_of(made.engine, lost, measured) == "edits"
    assert maker_of(made.engine, won.with_counters(lost={"draft": 1, "edits": 1}), measured) == "draft"


def test_a_case_that_no_author_can_explain_comes_back_once_only(tmp_path):
    made = shop(tmp_path, lambda call: reply(list(KIND_OF)[:1], unexplained=["t1"]))
    after = stepped(made)
    assert after.counters.unexplained and set(after.counters.unexplained.values()) <= {1, 2}
    failed = after.memory.failures[0].id
    once, twice = (after.with_counters(unexplained={failed: times}) for times in (1, 2))
    assert failed in [e.id for e in failures_to_replay(made.engine, once, ())]
    assert failed not in [e.id for e in failures_to_replay(made.engine, twice, ())]


def test_each_author_counts_who_cannot_explain_a_case(tmp_path):
    tags = [f"t{i}" for i in range(1, 30)]
    made = shop(tmp_path, lambda call: reply(list(KIND_OF), unexplained=tags))
    after = stepped(made)
    assert set(after.counters.unexplained.values()) == {1, 2}


def test_a_draft_is_not_asked_for_where_every_failure_was_given_up(tmp_path):
    made = shop(tmp_path, lambda call: reply(list(KIND_OF)))
    given_up = {example.id: 1 for example in made.train}
    made.state = made.state.with_counters(unexplained=given_up)
    stepped(made)
    assert not made.script.of("draft")


def test_a_draft_may_answer_that_nothing_should_change(tmp_path):
    made = shop(tmp_path, lambda call: {"analysis": "nothing to gain", "sections": []})
    after = stepped(made)
    assert after.incumbent == made.state.incumbent
    assert len(made.script.of("draft")) == 2  # one for each author, and no second question
    assert [decision["result"] for decision in made.observer.decisions] == ["empty"]


def test_further_cases_have_tags_and_stand_by_answer_with_what_the_target_made_of_them(tmp_path):
    made = shop(tmp_path, lambda call: reply(list(KIND_OF)))
    stepped(made)
    prompt = made.script.of("draft")[0]
    cases = re.findall(r'<case tag="(c\d+)"(?: target="(right|wrong)")?>.*?<gold>(.*?)</gold>', prompt)
    assert [tag for tag, _, _ in cases] == [f"c{i}" for i in range(1, len(cases) + 1)]
    golds = [gold for _, _, gold in cases]
    assert golds == sorted(golds)


def test_without_drafts_all_steps_are_edits(tmp_path):
    made = Workshop(tmp_path, lambda call: {"edits": []}, settings=("optimize.drafts=0",))
    made.measure_validation()
    asyncio.run(step(made.engine, made.state, made.train[:30], PLACE))
    assert not made.script.of("draft") and made.script.of("reflect")


def test_rationales_lose_the_tags_of_their_prompt():
    told = without_tags("right in t1, t4 and k2; r3 was too wide (t6)")
    assert told == "right in some cases; r3 was too wide (some cases)"


def test_where_most_is_right_a_draft_is_to_change_little(tmp_path):
    made = shop(tmp_path, lambda call: reply(KIND_OF), answer=lambda skill, example: KIND_OF[word_of(example)])
    measured = made.measured(made.train[:30])
    wrong = [(e, replace(o, cells={"correct": Scored(0)})) for e, o in measured[:8]]
    asyncio.run(draft(made.engine, made.state, [*wrong, *measured[8:]], PLACE))
    asyncio.run(draft(made.engine, made.state, wrong, PLACE))
    mostly, hardly = made.script.calls[0].messages[1].content, made.script.calls[-1].messages[1].content
    assert "answers most cases rightly already" in mostly and "kept back" in mostly
    assert "Every answer that occurs needs a rule" in hardly and "rightly already" not in hardly


def test_a_whole_draft_reaches_the_gates_of_a_program_that_skillc_wrote(tmp_path):
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    program = start(tmp_path / "things.jsonl", choice=ColumnChoice(answers=("kind",))).text
    length = "also so " * 38
    rules = [{"text": f"If the text has {word}, answer {kind}. {length}"} for word, kind in KIND_OF.items()]
    made = shop(
        tmp_path, lambda call: {"analysis": "", "sections": [{"section": "rules", "rules": rules}]}, program=program
    )
    heard = Heard(made)
    after = stepped(made)
    (record,) = heard.records
    assert record["result"] == "accept" and len(after.incumbent.rules) == len(rules)
    assert after.incumbent.section("rules").tokens > 1_000


# ---- the cases behind a rule ------------------------------------------------------------------------

OF_SESSIONS = PROGRAM.replace('source = "things.jsonl"', 'source = "things.jsonl"; field session: text')
_CASE = re.compile(r'<(?:trajectory|case) tag="(\w+)".*?</(?:trajectory|case)>', re.DOTALL)


def has(word, text):
    return re.search(rf"\b{word}\b", text) is not None


def cited_reply(prompt, **more):
    """A draft whose rules name the cases with their word in the prompt, and one that is none."""
    made = reply(KIND_OF, **more)
    for word, rule in zip(KIND_OF, made["sections"][0]["rules"], strict=True):
        rule["cases"] = [each[1] for each in _CASE.finditer(prompt) if has(word, each[0])] + ["t999"]
    return made


def from_sessions():
    return [{**row, "session": f"s:{row['id']}"} for row in rows()]


def test_rules_of_a_draft_cite_the_sessions_of_the_cases_that_it_names(tmp_path):
    made = shop(
        tmp_path,
        lambda call: cited_reply("\n".join(each.content for each in call.messages)),
        program=OF_SESSIONS,
        data=from_sessions(),
    )
    heard = Heard(made)
    stepped(made)
    prompt, (record,) = made.script.of("draft")[0], heard.records
    assert 'cite="on"' in prompt and '"cases": ["t1", "t4"]' in prompt
    assert record["result"] == "accept" and len(record["edits"]) == len(KIND_OF)
    for edit in record["edits"]:
        word = next(each for each in KIND_OF if has(each, edit["text"]))
        with_word = {each.fields["session"] for each in made.train if has(word, each.inputs["text"])}
        assert len(edit["cited"]) >= 2 and set(edit["cited"]) <= with_word
        assert set(edit["cited"]) < set(edit["sessions"])


def test_a_reply_without_cases_stays_valid_and_other_programs_are_not_asked_for_them(tmp_path):
    (tmp_path / "a").mkdir()
    made = shop(tmp_path / "a", lambda call: reply(KIND_OF), program=OF_SESSIONS, data=from_sessions())
    heard = Heard(made)
    stepped(made)
    assert heard.records[0]["result"] == "accept"
    assert not any("cited" in edit for edit in heard.records[0]["edits"])
    made = shop(tmp_path, lambda call: reply(KIND_OF))
    heard = Heard(made)
    stepped(made)
    prompt = made.script.of("draft")[0]
    assert 'cite="on"' not in prompt and '"cases":' not in prompt and "names in" not in prompt
    assert not any("cited" in edit or "sessions" in edit for edit in heard.records[0]["edits"])


def test_a_revised_rule_cites_what_its_own_reply_names_and_a_kept_one_what_the_draft_named(tmp_path):
    words = list(KIND_OF)

    def answer(call):
        prompt = "\n".join(each.content for each in call.messages)
        if 'tried="on"' not in prompt:
            made = cited_reply(prompt)
            made["sections"][0]["rules"] = made["sections"][0]["rules"][:-2]
            return made
        made = reply(words)
        made["sections"][0]["rules"][0]["text"] += " Always."
        return made

    made = shop(tmp_path, answer, program=OF_SESSIONS, data=from_sessions())
    heard = Heard(made)
    stepped(made)
    (record,) = heard.records
    assert record["revised"] is True
    cited = {next(each for each in words if each in edit["text"]): edit.get("cited") for edit in record["edits"]}
    assert cited[words[0]] is None and cited[words[-1]] is None
    assert all(len(cited[word]) >= 2 for word in words[1:-2])


def test_a_draft_less_some_of_its_edits_still_cites_what_it_names(tmp_path):
    """The rule on one fruit breaks all of them."""
    words = ["hammer", "otter", "apple"]

    def answer(call):
        made = reply(words)
        prompt = "\n".join(each.content for each in call.messages)
        for word, rule in zip(words, made["sections"][0]["rules"], strict=True):
            rule["cases"] = [each[1] for each in _CASE.finditer(prompt) if has(word, each[0])]
        return made

    def target(skill, example):
        word = word_of(example)
        if KIND_OF[word] == "fruit" and "apple" in (skill or ""):
            return "tool"
        return KIND_OF[word] if word in (skill or "") else "fruit"

    program = OF_SESSIONS.replace("drafts = 0", "drafts = 0; retries = 1")
    made = shop(tmp_path, answer, program=program, data=from_sessions(), answer=target)
    heard = Heard(made)
    after = stepped(made)
    whole, smaller = heard.records
    assert (whole["result"], smaller["result"], smaller["smaller"]) == ("reject", "accept", 1)
    assert [word in after.incumbent.section("rules").body for word in words] == [True, True, False]
    assert [edit["cited"] for edit in smaller["edits"]] == [edit["cited"] for edit in whole["edits"][:2]]


def test_the_lock_of_a_compile_by_drafts_has_the_cited_sessions(tmp_path):
    (tmp_path / "things.skill").write_text(OF_SESSIONS)
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in from_sessions()))
    planned = plan_file(tmp_path / "things.skill", settings=("budget.steps=2", "optimize.drafts=2"), runnable=True)
    job = Job(planned, estimate(planned), tmp_path / "skills", tmp_path / ".skillc")
    with Client(planned.plan, cache_folder=None) as client:
        done = compile_job(job, SilentObserver(), client)
    lock = done.lock
    assert lock.sessions and set(lock.cited) <= set(lock.sessions)
    assert len(lock.cited) >= 2 and all(len(keys) >= 2 for keys in lock.cited.values())
