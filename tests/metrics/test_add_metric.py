"""Add a metric: its entry in the table of functions, and the function that measures it."""

from types import MappingProxyType

from skillc.frontend import plan_file
from skillc.gates import functions
from skillc.gates.functions import Builtin, BuiltinParameter, Level
from skillc.metrics.meter import Meter
from skillc.metrics.primitives import PRIMITIVES, Measurement, Subject, expected, primitive, text_of
from skillc.outcomes import MICRO, Example, Scored
from skillc.trajectories.trajectory import Trajectory

PROGRAM = """language 1
task {
  input ticket: text
  output team: text
}
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
skill route {
  about = "Route."
  trainable section rules
}
data { source = "t.csv" }
metric start = same_start(team)
goal correct = exact_match(team)
gate better = candidate.start >= incumbent.start
budget { steps = 1 }
"""


def same_start(subject: Subject) -> Measurement:
    """1 where the answer begins like a right one, else 0."""
    right = any(text_of(subject.value)[:1] == text_of(gold)[:1] for gold in subject.golds)
    return Measurement(int(right), "right" if right else expected(subject))


def test_a_metric_is_an_entry_and_a_function(tmp_path, monkeypatch):
    entry = Builtin(
        "same_start", Level.EXAMPLE, (BuiltinParameter("output", "output"),), "1 where the first letters agree"
    )
    known = MappingProxyType({**functions.EXAMPLE_FUNCTIONS, entry.name: entry})
    monkeypatch.setattr(functions, "EXAMPLE_FUNCTIONS", known)
    monkeypatch.setitem(PRIMITIVES, "same_start", same_start)
    assert primitive(same_start) is PRIMITIVES["same_start"]
    program = tmp_path / "route.skill"
    program.write_text(PROGRAM)
    meter = Meter(plan_file(program).plan, tmp_path)
    example = Example("e1", {"ticket": "x"}, {"team": "billing"}, {}, "e1")
    assert meter.measure(example, Trajectory(answer={"team": "bills"})).cells["start"] == Scored(MICRO)
    wrong = meter.measure(example, Trajectory(answer={"team": "shipping"}))
    assert wrong.cells["start"] == Scored(0)
    assert "expected `billing`, got `shipping`" in wrong.feedback
