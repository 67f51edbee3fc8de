"""What the optimizer reads of an agent's tools."""

from skillc.document.skill import document_of
from skillc.optimize.propose.prompting import Briefing, ReflectRequest, reflect_messages
from skillc.plan.schema import TaskPlan
from skillc.tools.tool import Tool, text_lines, with_texts


async def call(arguments, seconds):
    return ""


ARGUMENTS = {"number": {"type": "string", "description": "such as A-100"}, "all": {}}
ORDER = Tool("order", "Look up\nan order.", ARGUMENTS, (), call)


def test_the_texts_of_tools_are_those_that_the_agent_reads():
    skill = document_of("desk", "about", [("tools", "trainable", "- order: Use it first.", None)])
    assert text_lines([ORDER]) == ["order: Look up an order.", "order.number: such as A-100", "order.all:"]
    assert text_lines(with_texts([ORDER], skill))[0] == "order: Use it first."


def test_a_prompt_describes_the_tools_of_the_task():
    task = TaskPlan(inputs=(), outputs=())
    request = ReflectRequest("failures", (), edit_budget=2)
    prompt = reflect_messages(Briefing("# Desk", task, tools=text_lines([ORDER])), request)[-1]["content"]
    assert "rollout: predict\ntool order: Look up an order.\ntool order.number: such as A-100\n" in prompt
    assert "\ntool " not in reflect_messages(Briefing("# Desk", task), request)[-1]["content"]


def test_every_method_says_how_a_tool_is_renamed_where_that_is_allowed():
    from dataclasses import replace

    from skillc.document.tool_lines import HOW_TO_RENAME, SECTION
    from skillc.optimize.methods.bridge import guidance
    from skillc.optimize.methods.one_shot import one_shot_messages

    task, request = TaskPlan(inputs=(), outputs=()), ReflectRequest("failures", (), edit_budget=2)
    kept = document_of("desk", "about", [(SECTION, "trainable", "- order: Use it first.", None)])
    (section,) = kept.sections
    renamed = kept.with_section(replace(section, renames=("order",)))
    for skill, asked in ((kept, False), (renamed, True)):
        brief = Briefing("# Desk", task, renames_tools=asked)
        prompts = [
            reflect_messages(brief, request)[-1]["content"],
            one_shot_messages(task=task, document=skill, trajectories=(), best="1")[-1]["content"],
            guidance(task, skill, skill.sections[0]),
        ]
        assert [HOW_TO_RENAME in prompt for prompt in prompts] == [asked] * 3
