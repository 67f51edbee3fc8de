"""Skills that the target opens by itself: what it reads first, what it opens, and how that is scored."""

import asyncio
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from model_plans import Scripted, plan_of, reply

from skillc.document.offer import LIST_CHARACTERS, MOST_OPENED, offer_text, shown_descriptions
from skillc.document.skill import Document, document_of
from skillc.errors import SkillcError
from skillc.gates.terms import CallTerm, Constant, Operation, WordTerm
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.company import Company
from skillc.plan.schema import MetricPlan, RolloutPlan
from skillc.tasks import kind as kinds
from skillc.tasks.kind import RolloutKind, Skill, rollout_kind
from skillc.tasks.runner import RolloutRunner
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory

SKILL = document_of(
    "route-tickets", "Route a ticket about invoices.", [("rules", "trainable", "- Invoices: billing.", None)]
)
OTHER = document_of("write-poems", "Write a poem.", [("rules", "frozen", "Rhyme.", None)])
TICKET = Example("1", {"ticket": "my invoice"}, {"team": "billing"}, {}, "1")
OPENED = CallTerm("opened", (WordTerm("route_tickets"),))


def plan(load="on_demand", rollout="predict", **more):
    made = plan_of()
    skill = made.skill.model_copy(update={"load": load})
    task = made.task.model_copy(update={"rollout": RolloutPlan(kind=rollout, **more)})
    return made.model_copy(update={"skill": skill, "task": task})


def says(open_skill="", team="", reasoning=None):
    thought = f"[[ ## reasoning ## ]]\n{reasoning}\n\n" if reasoning is not None else ""
    text = f"{thought}[[ ## open_skill ## ]]\n{open_skill}\n\n[[ ## team ## ]]\n{team}\n\n[[ ## completed ## ]]"
    return reply(text)


def run(replies, *, skill=SKILL, company=(), made=None):
    """Run a rollout with a script of replies; returns it and the requests that were sent."""
    made = made or plan()
    script = iter(replies)
    transport = Scripted(lambda sent: next(script))

    async def scenario():
        with Client(made, transport=transport) as client:
            runner = RolloutRunner(made, client)
            if company:
                runner._kind.site = replace(runner._kind.site, company=Company(company))
            return await runner(Skill.of(skill) if skill else None, TICKET, 0, "rollout")

    return asyncio.run(scenario()), [sent["messages"] for sent in transport.sent]


def text_of(messages):
    return "\n".join(message["content"] for message in messages)


def test_the_target_reads_the_description_and_opens_the_body_with_a_further_call() -> None:
    done, sent = run([says("route-tickets"), says(team="billing")])
    assert "- route-tickets: Route a ticket about invoices." in text_of(sent[0])
    assert "Invoices: billing" in sent[1][-1]["content"]
    assert done.prediction == {"team": "billing"}
    assert [type(step) for step in done.trajectory.steps] == [Message, ToolCall, Observation, Message]
    assert done.trajectory.calls() == (ToolCall("open_skill", {"name": "route-tickets"}),)
    assert "Invoices: billing" in done.trajectory.steps[2].text
    assert done.trajectory.turns == len(sent) == 2


def test_no_word_of_the_body_is_in_the_prompt_that_the_trigger_is_measured_on() -> None:
    _, sent = run([says(team="billing")])
    assert "Invoices: billing" not in text_of(sent[0])
    assert len(sent) == 1


def test_without_the_skill_nothing_is_offered() -> None:
    done, sent = run([reply("[[ ## team ## ]]\nbilling\n\n[[ ## completed ## ]]")], skill=None)
    assert "open_skill" not in text_of(sent[0])
    assert done.prediction == {"team": "billing"}


def test_with_a_skill_that_is_always_read_the_body_is_in_the_first_prompt() -> None:
    _, sent = run([reply("[[ ## team ## ]]\nbilling\n\n[[ ## completed ## ]]")], made=plan("always"))
    assert "Invoices: billing" in text_of(sent[0])
    assert "open_skill" not in text_of(sent[0])


def test_a_skill_that_is_opened_after_another_one_counts_as_opened() -> None:
    done, sent = run([says("write-poems"), says("route-tickets"), says(team="billing")], company=(OTHER,))
    assert opened_skills(done.trajectory) == ("write-poems", "route-tickets")
    assert len(sent) == 3
    assert score(done.trajectory) == 1


def test_skills_beside_it_are_offered_without_the_skill_too() -> None:
    _, sent = run([says(team="billing")], skill=None, company=(OTHER,))
    assert "write-poems" in text_of(sent[0])
    assert "route-tickets" not in text_of(sent[0])


def test_an_unknown_skill_and_one_that_is_open_are_errors_that_the_target_reads() -> None:
    done, sent = run(
        [says("cook"), says("route-tickets"), says("route-tickets"), says(team="billing")], company=(OTHER, *extra(2))
    )
    failed = [step.text for step in done.trajectory.steps if isinstance(step, Observation) and step.failed]
    assert "there is no skill `cook`" in failed[0]
    assert "is open already" in failed[1]
    assert opened_skills(done.trajectory) == ("route-tickets",)
    assert done.prediction == {"team": "billing"}
    assert len(sent) == MOST_OPENED + 1


def extra(count):
    return tuple(Document(f"other-{i}", "Something else.", ()) for i in range(count))


def test_a_target_that_only_opens_reaches_a_limit_and_is_wrong() -> None:
    done, sent = run([says("route-tickets"), says("route-tickets")])
    assert len(sent) == 2
    assert (done.failure, done.trajectory.outcome) == (None, "turns")
    assert "its limit" in done.trajectory.problem


@pytest.mark.parametrize("written", ["`route-tickets`", " route-tickets ", "[route-tickets]"])
def test_a_name_in_quotes_opens_the_skill(written) -> None:
    done, _ = run([says(written), says(team="billing")])
    assert opened_skills(done.trajectory) == ("route-tickets",)


def test_a_reply_that_opens_a_skill_needs_no_other_field() -> None:
    done, _ = run([reply("[[ ## open_skill ## ]]\nroute-tickets"), says(team="billing")])
    assert done.prediction == {"team": "billing"}


def test_chain_of_thought_reasons_before_it_opens() -> None:
    made = plan(rollout="chain_of_thought")
    done, sent = run([says("route-tickets", reasoning="An invoice."), says(team="billing", reasoning="So.")], made=made)
    assert sent[0][0]["content"].index("[[ ## reasoning ## ]]") < sent[0][0]["content"].index("[[ ## open_skill ## ]]")
    assert done.prediction == {"team": "billing"}


def test_an_outage_in_the_second_call_is_unmeasured() -> None:
    done, _ = run([says("route-tickets"), reply("")])
    assert done.failure == "empty"


# ---- scores ---------------------------------------------------------------------------------------


def score(trajectory, term=OPENED):
    metric = MetricPlan(name="used", term=term, low=Fraction(0), high=Fraction(1))
    base = plan()
    meter = Meter(base.model_copy(update={"metrics": (*base.metrics, metric)}), None)
    cell = meter.measure(TICKET, trajectory).cells["used"]
    assert isinstance(cell, Scored)
    return cell.value / MICRO


def test_what_was_opened_is_measured_although_no_answer_can_be_read() -> None:
    done, _ = run([says("route-tickets"), reply("no fields at all")])
    assert done.prediction is None
    assert score(done.trajectory) == 1
    # A metric that is low where the skill was opened must not profit from an unreadable answer.
    closed = Operation("-", (Constant(Fraction(1)), OPENED))
    assert score(done.trajectory, closed) == 0
    assert score(run([reply("nothing")])[0].trajectory) == 0


@pytest.mark.parametrize(
    ("call", "opens"),
    [
        (ToolCall("open_skill", {"name": "route-tickets"}), True),
        (ToolCall("skill", {"name": "route-tickets"}), True),
        (ToolCall("Skill", {"command": "/route-tickets"}), True),
        (ToolCall("skill_view", {"name": "route-tickets"}), True),
        (ToolCall("exec_command", {"cmd": "cat /ws/.agents/skills/route-tickets/SKILL.md"}), True),
        (ToolCall("exec_command", {"cmd": "ls skills/route-tickets"}), False),
        (ToolCall("open_skill", {"name": "write-poems"}), False),
        (ToolCall("search", {"query": "route-tickets"}), False),
    ],
)
def test_the_forms_in_which_agents_open_a_skill(call, opens) -> None:
    assert score(Trajectory((call, Observation("text")), {"team": "billing"})) == opens


def test_a_call_that_failed_opens_nothing() -> None:
    steps = (ToolCall("skill", {"name": "route-tickets"}), Observation("rg is missing", failed=True))
    assert opened_skills(Trajectory(steps)) == ()


# ---- the list -------------------------------------------------------------------------------------


def test_a_long_list_is_cut_to_what_hosts_show_and_keeps_every_name() -> None:
    many = [Document(f"skill-{i}", "x" * 1024, ()) for i in range(40)]
    shown = shown_descriptions([*many, SKILL])
    assert sum(len(name) + len(about) for name, about in shown) <= LIST_CHARACTERS
    assert [name for name, _ in shown] == [each.name for each in (*many, SKILL)]
    assert dict(shown)["route-tickets"] == SKILL.about
    assert all(about.endswith("…") for name, about in shown if name != "route-tickets")


def test_the_list_is_one_line_for_each_skill() -> None:
    lines = offer_text([replace(SKILL, about="Route\na ticket.")]).splitlines()
    assert "- route-tickets: Route a ticket." in lines


# ---- kinds ----------------------------------------------------------------------------------------


def test_a_function_opens_skills_and_every_call_is_a_step(tmp_path) -> None:
    (tmp_path / "opening_agent.py").write_text(
        "def run(inputs, skills, open_skill, folder, lm):\n"
        "    import pathlib\n"
        "    assert skills == {'route-tickets': 'Route a ticket about invoices.'}\n"
        "    assert pathlib.Path(folder, 'route-tickets', 'SKILL.md').exists()\n"
        "    lm('think')\n"
        "    assert 'Invoices: billing' in open_skill('route-tickets')\n"
        "    return 'billing'\n"
    )
    made = plan(rollout="python", arguments=("opening_agent:run",))
    with Client(made, transport=Scripted(lambda sent: reply("an invoice"))) as client:
        runner = RolloutRunner(made, client, root=tmp_path)
        done = asyncio.run(runner(Skill.of(SKILL), TICKET, 0, "rollout"))
    assert [type(step) for step in done.trajectory.steps] == [Message, ToolCall, Observation, Message]
    assert score(done.trajectory) == 1


def test_a_function_that_takes_the_text_cannot_measure_a_trigger(tmp_path) -> None:
    (tmp_path / "reading_agent.py").write_text("def run(inputs, skill):\n    return 'billing'\n")
    made = plan(rollout="python", arguments=("reading_agent:run",))
    with pytest.raises(SkillcError, match="always read"), Client(made, transport=Scripted()) as client:
        RolloutRunner(made, client, root=tmp_path)


def test_a_kind_whose_target_cannot_open_skills_is_refused(monkeypatch) -> None:
    class Closed(RolloutKind):
        async def run(self, skill, example, *, sample):
            raise AssertionError

    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    rollout_kind("closed")(Closed)
    made = plan(rollout="plugin", arguments=("closed",))
    with pytest.raises(SkillcError, match="cannot open skills"), Client(made, transport=Scripted()) as client:
        RolloutRunner(made, client)


def test_two_descriptions_of_one_text_are_two_skills_in_the_record() -> None:
    one, other = Skill.of(SKILL), Skill.of(replace(SKILL, about="Route anything."))
    assert one.digest("always") == other.digest("always")
    assert one.digest("on_demand") != other.digest("on_demand")


def acts(tool, **arguments):
    said = f"[[ ## next_tool_name ## ]]\n{tool}\n\n[[ ## next_tool_args ## ]]\n{json.dumps(arguments)}"
    return reply(f"[[ ## next_thought ## ]]\nlet me see\n\n{said}\n\n[[ ## completed ## ]]")


def test_an_agent_with_tools_opens_skills_by_a_further_tool() -> None:
    made = plan(rollout="react", settings={"turns": 4})
    answer = reply("[[ ## reasoning ## ]]\nso\n\n[[ ## team ## ]]\nbilling\n\n[[ ## completed ## ]]")
    script = [acts("open_skill", name="cook"), acts("open_skill", name="route-tickets"), acts("finish"), answer]
    done, sent = run(script, made=made)
    assert "Route a ticket about invoices." in text_of(sent[0])
    assert "Invoices: billing" not in text_of(sent[1])
    assert "Invoices: billing" in text_of(sent[2])
    assert opened_skills(done.trajectory) == ("route-tickets",)
    assert [step.failed for step in done.trajectory.steps if isinstance(step, Observation)] == [True, False]
    assert done.prediction == {"team": "billing"}
