"""The question to an agent, and the outputs read from its last message."""

import pytest

from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan
from skillc.tasks.answers import question, read_answer


def task(*outputs: tuple[str, TypePlan]) -> TaskPlan:
    def field(name: str, type_: TypePlan) -> FieldPlan:
        return FieldPlan(name=name, type=type_, column=name)

    return TaskPlan(
        inputs=(field("ticket", TypePlan(kind="text")),), outputs=tuple(field(name, type_) for name, type_ in outputs)
    )


TEAM = ("team", TypePlan(kind="labels", labels=("billing", "shipping")))
COUNT = ("count", TypePlan(kind="integer"))
NOTE = ("note", TypePlan(kind="text"))
TAGS = ("tags", TypePlan(kind="list", item=TypePlan(kind="text")))


def test_the_question_has_the_task_the_inputs_and_the_form_of_the_answer() -> None:
    asked = question(task(TEAM, NOTE), Example("1", {"ticket": "my invoice"}, {}, {}, "1"))
    assert "my invoice" in asked
    assert "`team` and `note`" in asked


@pytest.mark.parametrize(
    ("outputs", "text", "answer"),
    [
        ((TEAM,), "billing", {"team": "billing"}),
        ((TEAM,), "It is about money.\n\n**billing**.", {"team": "billing"}),
        ((TEAM,), '{"team": "shipping"}', {"team": "shipping"}),
        ((COUNT,), "12", {"count": 12}),
        ((NOTE,), "two\nlines", {"note": "two\nlines"}),
        ((TAGS,), '["a", "b"]', {"tags": ["a", "b"]}),
        ((TEAM, COUNT), 'so:\n```json\n{"team": "billing", "count": 3}\n```\n', {"team": "billing", "count": 3}),
    ],
)
def test_the_outputs_are_read_from_the_last_message(outputs, text, answer) -> None:
    assert read_answer(task(*outputs), text) == (answer, None)


@pytest.mark.parametrize(
    ("outputs", "text", "problem"),
    [
        ((TEAM,), "marketing", "`marketing`"),
        ((TEAM,), "", "empty"),
        ((TEAM, COUNT), "billing", "`team`, `count`"),
        ((TEAM, COUNT), '{"team": "billing"}', "`count`"),
        ((TEAM, COUNT), '{"team": "billing", "count": "many"}', "`count`"),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_problem(outputs, text, problem) -> None:
    answer, found = read_answer(task(*outputs), text)
    assert answer is None
    assert problem in str(found)
