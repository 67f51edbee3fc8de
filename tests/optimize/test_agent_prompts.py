"""What the optimizer reads of the cases of an agent that calls tools."""

import asyncio
import re
from dataclasses import replace

import pytest
from workshop import KIND_OF, PLACE, PROGRAM, Workshop, word_of

from skillc.optimize.loop.step import step
from skillc.optimize.memory import with_batch
from skillc.optimize.propose.cases import rendered_calls, trajectory_view
from skillc.optimize.propose.draft import draft
from skillc.optimize.propose.prompting import Briefing, ReflectRequest, reflect_messages, rollout_text
from skillc.optimize.strategies.epoch_review import compare_epoch, comparison_views
from skillc.plan.schema import RolloutPlan, TaskPlan
from skillc.trajectories.trajectory import Message, Observation, ToolCall, one_turn

PLAIN = PROGRAM.replace("split = 2 : 1 : 2", "split = 3 : 1 : 1")
AGENT = PLAIN.replace("task {\n", 'task {\n  rollout = react { tools = [python("shelf:look")]; turns = 3 }\n')
TOOL = '''def look(word: str) -> str:
    """Look up the shelf of a word.

    Args:
        word: the word
    """
    return word
'''
SETTINGS = ("optimize.batch=30", "optimize.speculate=off", "optimize.drafts=1")
CASE = re.compile(r'<case tag="c\d+"[^>]*><input name="text">(.*?)</input>(?:<steps>(.*?)</steps>)?<gold>', re.S)


def looks(example):
    """An agent that looks up a word before it answers."""
    return (
        Message("I look it up."),
        ToolCall("look", {"word": word_of(example)}),
        Observation(f"shelf of {KIND_OF[word_of(example)]}s"),
    )


def written(call):
    rules = [{"text": f"If the shelf has {word}, answer {kind}."} for word, kind in KIND_OF.items()]
    sections = {"analysis": "the shelf", "sections": [{"section": "rules", "rules": rules}]}
    return {**sections, "memory": "m", "edits": [], "guidance": ""}


def shop(folder, **given):
    (folder / "shelf.py").write_text(TOOL)
    made = Workshop(folder, written, program=AGENT, settings=SETTINGS, steps=looks, **given)
    made.measure_validation()
    return made


def draft_prompt(made, measured, state=None):
    asyncio.run(draft(made.engine, state or made.state, measured, PLACE))
    return made.script.of("draft")[0]


def test_further_cases_of_an_agent_are_shown_with_their_calls_and_left_out_without(tmp_path):
    made = shop(tmp_path)
    measured = made.measured(made.train[:30])
    wrong = [pair for pair in measured if not pair[1].cells["correct"].value]
    found = CASE.findall(draft_prompt(made, wrong[:6]))
    known = {example.inputs["text"] for example, _ in measured}
    assert found
    for text, steps in found:
        assert text in known
        assert re.fullmatch(r'\[call\] look \{"word": "\w+"\}\n\[result\] shelf of \w+s', steps)
    fresh = shop(tmp_path)
    assert not CASE.findall(draft_prompt(fresh, wrong[:5]))


def test_calls_under_an_earlier_skill_are_shown_too(tmp_path):
    made = shop(tmp_path)
    measured = made.measured(made.train[:30])
    state = with_batch(made.engine, made.state, made.train[:30])
    later = replace(made.state.incumbent, about="A later skill.")
    state = replace(state, incumbent=later)
    wrong = [pair for pair in measured if not pair[1].cells["correct"].value]
    found = CASE.findall(draft_prompt(made, wrong[:5], state))
    assert found and all(steps for _, steps in found)


def test_further_cases_of_one_turn_have_no_steps_and_need_no_rollout(tmp_path):
    made = Workshop(tmp_path, written, program=PLAIN, settings=SETTINGS)
    measured = made.measured(made.train[:10])
    found = CASE.findall(draft_prompt(made, [pair for pair in measured if not pair[1].cells["correct"].value]))
    assert len(found) > 10 and not any(steps for _, steps in found)


def test_withheld_trajectories_show_no_calls(tmp_path):
    made = shop(tmp_path)
    ((_, outcome),) = made.measured(made.train[:1])
    hidden = made.plan.model_copy(update={"optimize": replace(made.plan.optimize, sees=("gold",))})
    assert rendered_calls(made.plan, outcome, None)
    assert rendered_calls(hidden, outcome, None) is None


def test_the_last_reply_loses_the_answer_that_is_shown_beside_it(tmp_path):
    made = shop(tmp_path)
    ((example, outcome),) = made.measured(made.train[:1])
    reply = "[[ ## reasoning ## ]]\nThe shelf decides.\n\n[[ ## kind ## ]]\nfruit\n\n[[ ## completed ## ]]"
    whole = replace(outcome, trajectory=one_turn(reply, {"kind": "fruit"}))
    several = replace(whole, trajectory=replace(whole.trajectory, steps=(*looks(example), Message(reply))))
    unread = replace(several, trajectory=replace(several.trajectory, answer=None))
    seen = [trajectory_view(made.plan, "t1", example, each, limit=None).trajectory for each in (whole, several, unread)]
    assert seen[0] == reply
    assert seen[1].endswith("\nThe shelf decides.") and "[[" not in seen[1]
    assert seen[2].endswith(reply)


def test_a_slow_update_and_effects_show_the_calls(tmp_path):
    made = shop(tmp_path)
    compared = asyncio.run(compare_epoch(made.engine, made.state.initial, made.state.incumbent, 1))
    assert all("[result] shelf of" in view.calls for view in comparison_views(made.engine, compared))
    after = asyncio.run(step(made.engine, made.state, made.train[:30], PLACE))
    lines = [line for effect in after.memory.effects for part in effect.parts for line in part.better]
    assert lines and all("[result] shelf of" in line for line in lines if "was fruit" in line)


@pytest.mark.parametrize(
    ("rollout", "text"),
    [
        (RolloutPlan(), "predict"),
        (
            RolloutPlan(kind="react", settings={"turns": 4}),
            "react (the target calls one tool a turn, in at most 4 turns, ",
        ),
        (
            RolloutPlan(kind="react", settings={"tool_calls": "native"}),
            "react (the target calls one or more tools a turn",
        ),
        (RolloutPlan(kind="react"), "react (the target calls one tool a turn, in at most "),
        (RolloutPlan(kind="environment"), "environment (the target acts in at most 50 turns)"),
        (
            RolloutPlan(kind="environment", settings={"agent": "react", "turns": 5}),
            "environment (the target calls tools and acts in at most 5 turns)",
        ),
        (RolloutPlan(kind="code"), "code (the target writes and runs Python in at most 10 rounds, then answers)"),
        (RolloutPlan(kind="codex"), "codex (an agent that works in a folder of files)"),
        (RolloutPlan(kind="python"), "python"),
    ],
)
def test_a_task_says_how_the_target_works(rollout, text):
    assert rollout_text(rollout).startswith(text)


@pytest.mark.parametrize("kind", ["predict", "react"])
def test_steps_are_explained_where_an_agent_acts(kind):
    task = TaskPlan(inputs=(), outputs=(), rollout=RolloutPlan(kind=kind))
    request = ReflectRequest("failures", (), edit_budget=2)
    system, user = (message["content"] for message in reflect_messages(Briefing("# D", task, lead="Obey."), request))
    assert ("[call] is what the target called" in system) == (kind == "react")
    assert ("A rule may say what to call" in system) == (kind == "react")
    assert "Above the first rule that a skill gets, the target also reads: Obey.\n" in user


def test_the_text_of_the_opened_skill_is_not_repeated_in_steps(tmp_path):
    made = shop(tmp_path)
    ((example, outcome),) = made.measured(made.train[:1])
    asked = "[[ ## reasoning ## ]]\nI need it.\n\n[[ ## open_skill ## ]]\nsort-things\n\n[[ ## kind ## ]]\n\n\n"
    steps = (
        Message(f"{asked}[[ ## completed ## ]]"),
        ToolCall("open_skill", {"name": "other"}),
        Observation("The skill other:\n\n# Other"),
        ToolCall("open_skill", {"name": made.plan.skill.artifact}),
        Observation(f"The skill {made.plan.skill.artifact}:\n\n# Sort things"),
        Message(""),
        Message("[[ ## kind ## ]]\nfruit\n\n[[ ## completed ## ]]"),
    )
    opened = replace(outcome, trajectory=replace(one_turn("", {"kind": "fruit"}), steps=steps))
    seen = trajectory_view(made.plan, "t1", example, opened, limit=None).trajectory
    assert seen.splitlines() == [
        "I need it.",
        '[call] open_skill {"name": "other"}',
        "[result] The skill other:",
        "",
        "# Other",
        f'[call] open_skill {{"name": "{made.plan.skill.artifact}"}}',
        f"[result] The skill {made.plan.skill.artifact}:",
        "(its text)",
    ]
