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
