"""Metrics of what an agent did: tools, their order, files, cost and time."""

from fractions import Fraction

import pytest
from model_plans import plan_of

from skillc.gates.terms import CallTerm, ListTerm, TextConstant
from skillc.metrics.meter import Meter, MetricError
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.schema import MetricPlan
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall, Trajectory

STEPS = (
    ToolCall("search", {"query": "lamp"}),
    Observation("3 found"),
    ToolCall("open", {"id": 1}),
    Observation("a lamp"),
    ToolCall("search", {"query": "desk"}),
    FileChange("notes/a.md", "added", "first draft"),
    FileChange("notes/a.md", "changed", "The Lamp is late"),
    Message("done"),
)
EXAMPLE = Example("1", {"ticket": "?"}, {}, {}, "1")


def call(function, *arguments):
    return CallTerm(function, tuple(each if isinstance(each, ListTerm) else TextConstant(each) for each in arguments))


def measured(tmp_path, term, high=100, **trajectory):
    metric = MetricPlan(name="m", term=term, low=Fraction(0), high=Fraction(high), goal=True)
    plan = plan_of().model_copy(update={"metrics": (metric,)})
    told = {"steps": STEPS, "answer": {"team": "billing"}, **trajectory}
    found = Meter(plan, tmp_path).measure(EXAMPLE, Trajectory(**told))
    cell = found.cells["m"]
    assert isinstance(cell, Scored)
    return cell.value / MICRO, found.feedback


@pytest.mark.parametrize(
    ("term", "score", "feedback"),
    [
        (call("used", "open"), 1, ""),
        (call("used", "buy"), 0, "it never called `buy`"),
        (call("calls", "search"), 2, "it called `search` 2 times"),
        (call("order", "search", "open"), 1, ""),
        (call("order", "open", "search"), 0, "it called `search` then `open`, not `open` then `search`"),
        (call("order", "open", "buy"), 0, "it called `open`, not `open` then `buy`"),
        (call("order", "buy", "sell"), 0, "it called none of them, not `buy` then `sell`"),
        (call("file_contains", "notes/a.md", ListTerm((TextConstant("lamp"), TextConstant("paid")))), 0.5, None),
        (call("file_contains", "b.md", ListTerm((TextConstant("lamp"),))), 0, "it wrote no text to `b.md`"),
        (call("call_mentions", "LAMP"), 1, "its call of `search` contains what no call may contain"),
        (call("call_mentions", ListTerm((TextConstant("chair"), TextConstant("desk")))), 1, None),
        (call("call_mentions", "late"), 0, ""),
    ],
)
def test_what_an_agent_did_is_measured_with_a_reason(tmp_path, term, score, feedback) -> None:
    found, said = measured(tmp_path, term)
    assert found == score
    assert feedback is None or said == feedback


def test_only_calls_of_the_named_tool_are_searched(tmp_path) -> None:
    def of(tool):
        return CallTerm("call_mentions", (TextConstant("lamp"),), (("tool", TextConstant(tool)),))

    assert measured(tmp_path, of("search"))[0] == 1
    assert measured(tmp_path, of("open"))[0] == 0


def test_arguments_are_searched_at_any_depth(tmp_path) -> None:
    deep = (ToolCall("", {"queries": [{"q": ["the  GAIA\nbenchmark"]}]}, "web"),)
    found = measured(tmp_path, call("call_mentions", "gaia benchmark"), steps=deep)
    assert found == (1, "its call of `web` contains what no call may contain")


def test_time_and_cost_are_measured_in_their_units(tmp_path) -> None:
    assert measured(tmp_path, call("seconds"), seconds=2.5) == (2.5, "")
    assert measured(tmp_path, call("cost"), cost=12_000_000) == (0.012, "")
    with pytest.raises(MetricError, match="price of the rollout's calls is unknown"):
        measured(tmp_path, call("cost"), cost=None)


def test_an_agent_without_a_readable_answer_has_still_called_its_tools(tmp_path) -> None:
    found, said = measured(tmp_path, call("used", "open"), answer=None, problem="the reply lacks `team`")
    assert (found, said) == (1, "the reply lacks `team`")
