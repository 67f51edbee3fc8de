"""Skills that the target opens by itself in an environment: `load = on_demand`."""

from types import SimpleNamespace

import pytest
from model_plans import reply
from test_environments import WON, plan, play

from skillc.document.skill import document_of
from skillc.document.skill_md import to_skill_md
from skillc.plan.schema import SectionPlan, SkillPlan
from skillc.tasks.kind import Skill
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Message, Observation, ToolCall

SKILL = Skill.of(document_of("find-things", "Find a thing.", [("rules", "trainable", "- Look in the kitchen.", None)]))
POEMS = document_of("write-poems", "Write a poem.", [("rules", "frozen", "Rhyme.", None)])


def on_demand(load="on_demand", others=(), beside=(), **settings):
    made = plan(**settings)
    skill = made.skill.model_copy(update={"load": load, "beside": tuple(beside)})
    return made.model_copy(update={"skill": skill, "others": tuple(others)})


def run(folder, script, *, skill=SKILL, made=None, **settings):
    """Play a script of replies; the prompts are those of the target, as texts."""
    left, sent = iter(script), []

    def answer(request):
        sent.append(["", *(message["content"] for message in request["messages"])])
        return reply(next(left), usage=(10, 2))

    done = play(folder, answer, made=made or on_demand(**settings), skill=skill)
    return SimpleNamespace(**{**vars(done), "prompts": ["\n".join(each) for each in sent], "sent": sent})


def test_the_target_reads_the_description_and_opens_the_body_without_a_turn(tmp_path) -> None:
    done = run(tmp_path, ["open_skill find-things", *WON])
    first, second, third, _ = done.prompts
    assert "- find-things: Find a thing." in first
    assert "- finish\n- open_skill find-things\n" in first
    assert "Look in the kitchen" not in first
    assert "Look in the kitchen" in second
    assert "open_skill" not in second
    assert second.count("You are in the hall") == third.count("You are in the hall") == 1
    assert (done.trajectory.reward, done.trajectory.turns) == (1.0, 3)
    opened = done.trajectory.steps[2]
    assert done.trajectory.steps[1] == ToolCall("open_skill", {"name": "find-things"})
    assert (opened.failed, "Look in the kitchen" in opened.text) == (False, True)
    assert opened_skills(done.trajectory) == ("find-things",)


def test_a_skill_that_stays_closed_is_in_no_prompt(tmp_path) -> None:
    done = run(tmp_path, WON)
    assert "Look in the kitchen" not in "".join(done.prompts)
    assert all("- find-things: Find a thing." in prompt for prompt in done.prompts)
    assert opened_skills(done.trajectory) == ()


def test_the_arms_without_the_skill_and_with_it_always_read(tmp_path) -> None:
    bare = run(tmp_path, WON, skill=None)
    assert "open_skill" not in "".join(bare.prompts)
    always = run(tmp_path, WON, made=on_demand("always"))
    assert "open_skill" not in "".join(always.prompts)
    assert "Look in the kitchen" in always.prompts[0]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "written",
    [
        "I look first.\n`open_skill find-things`",
        "Action: open_skill find-things.",
        '{"action": "open_skill find-things"}',
        'open_skill("find-things")',
        "open_skill: find-things",
    ],
)
def test_an_opening_is_recognised_as_models_write_it(tmp_path, written) -> None:
    assert opened_skills(run(tmp_path, [written, *WON]).trajectory) == ("find-things",)


def test_a_reasoning_target_opens_on_its_last_line(tmp_path) -> None:
    done = run(tmp_path, ["It may help.\nopen_skill find-things", *WON], agent="chain_of_thought")
    assert "on the last line, for example" in done.prompts[0]
    assert done.trajectory.steps[1] == Message("It may help.\nopen_skill find-things")
    assert opened_skills(done.trajectory) == ("find-things",)


def beside(folder):
    (place := folder / "shared" / "write-poems").mkdir(parents=True)
    (place / "SKILL.md").write_text(to_skill_md(POEMS))
    return on_demand(beside=["shared/*"])


def test_what_cannot_be_opened_is_said_and_counts(tmp_path) -> None:
    script = ["open_skill cook", "open_skill write-poems", "open_skill find-things", *WON]
    done = run(tmp_path, script, made=beside(tmp_path))
    assert "[open_skill: there is no skill `cook`; there is `find-things` and `write-poems`]" in done.prompts[1]
    assert "Rhyme." in done.prompts[2]
    # Two skills are offered, so two openings are a rollout's limit.
    failed = Observation("no further skill can be opened, after 2 times; nothing was done", failed=True)
    assert failed in done.trajectory.steps
    assert opened_skills(done.trajectory) == ("write-poems",)
    assert done.trajectory.turns == 4


def test_an_open_skill_stays_in_the_prompt_whatever_the_history_is(tmp_path) -> None:
    walk = ["go to garden", "go to hall"] * 8
    done = run(tmp_path, ["open_skill find-things", *walk, *WON], history=60)
    assert "earlier turns left out]" in done.prompts[-1]
    assert all("Look in the kitchen" in prompt for prompt in done.prompts[1:])


def test_a_skill_beside_it_that_is_always_read_is_read(tmp_path) -> None:
    section = SectionPlan(name="rules", mode="frozen", text="Rhyme.")
    other = SkillPlan(name="write_poems", artifact="write-poems", about="Write.", sections=(section,))
    done = run(tmp_path, WON, made=on_demand("always", others=[other]))
    assert "Rhyme." in done.prompts[0]
    assert "Look in the kitchen" in done.prompts[0]


def test_an_environment_that_names_no_actions_offers_skills_too(tmp_path) -> None:
    made = on_demand(name="toy_house:Quiet")
    done = run(tmp_path, ["open_skill find-things", "anything"], made=made)
    assert "- find-things: Find a thing." in done.prompts[0]
    assert "Possible actions" not in done.prompts[0]
    assert opened_skills(done.trajectory) == ("find-things",)
