"""Adding a gate function is an entry in `skillc/gates/functions.py` and an evaluator in `skillc/gates/evaluate.py`."""

from __future__ import annotations

from pathlib import Path

from package_copy import copy_package, insert, run_copy

ENTRY = """    Builtin(
        "errors",
        Level.RUN,
        (BuiltinParameter("mean", "mean"),),
        "one minus a mean",
        None,
        result=lambda quantities: Interval.point(Fraction(1)) - quantities[0],
    ),
"""
EVALUATOR = """def _errors(call: CallTerm, evidence: Evidence) -> Interval:
    return Interval.point(Fraction(1)) - value(call.arguments[0], evidence)


"""
PROGRAM = """language 1
task {
  input ticket: text
  output team: "billing" | "shipping"
}
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
skill route {
  about = "Route."
  trainable section rules
}
data { source = "t.csv" }
goal correct = exact_match(team)
gate better = candidate.correct > incumbent.correct
gate few = errors(candidate.correct) <= LIMIT
budget { steps = 1 }
"""
LOOKS = """
import json
from pathlib import Path

from docs.making.pages import pages
from skillc.outcomes import Example
from skillc.frontend import plan_file
from skillc.gates.prove import Axioms
from skillc.gates.draw import brief, draw
from skillc.gates.evaluate import decide
from skillc.gates.evidence import Evidence, MetricRange, SplitEvidence, TextEvidence
from skillc.gates.prove import as_strict
from skillc.outcomes import MICRO, Scored


def gate(name):
    return plan_file(Path(name)).plan.gates[1]


def known(right, wrong):
    cells = {f"e{i}": Scored(MICRO if i < right else 0) for i in range(right + wrong)}
    cell = lambda state, example, sample: {"correct": cells[example.id]} if example.id in cells else None
    examples = tuple(Example(f"e{i}", {}, {}, {}, f"e{i}") for i in range(10))
    split = SplitEvidence(examples, 1, cell, {"correct": MetricRange(0, MICRO)}, lambda *_: 0, 0)
    return Evidence(split, split, TextEvidence({}, None, {}), planned=1, seed=1)


strict, loose = gate("strict.skill"), gate("loose.skill")
print(json.dumps({
    "stage": strict.stage,
    "early": [decide(strict.term, known(*seen)).name for seen in ((0, 1), (0, 2), (9, 0), (8, 0))],
    "strict": as_strict([strict.term], loose.term, Axioms({})),
    "loose": as_strict([loose.term], strict.term, Axioms({})),
    "drawn": draw(strict.term, known(8, 2)),
    "brief": brief(strict.term, known(8, 2)),
    "pages": [row for page in pages().values() for row in page.splitlines() if "errors(candidate.metric)" in row],
}))
"""


def test_a_gate_function_is_an_entry_and_an_evaluator(tmp_path: Path) -> None:
    copy_package(tmp_path)
    insert(tmp_path / "skillc/gates/functions.py", ENTRY, '    _run(\n        "improved",')
    insert(tmp_path / "skillc/gates/evaluate.py", EVALUATOR, "EVALUATORS: ")
    insert(tmp_path / "skillc/gates/evaluate.py", '        "errors": _errors,\n', '        "improved": _gain_or_loss,')
    for name, limit in (("strict", "10%"), ("loose", "20%")):
        (tmp_path / f"{name}.skill").write_text(PROGRAM.replace("LIMIT", limit), "utf-8")
    found = run_copy(tmp_path, LOOKS)
    assert found["stage"] == "validation"
    # Of ten examples one may be wrong, so the answer is known after the second one or after the ninth right one.
    assert found["early"] == ["UNKNOWN", "FALSE", "TRUE", "UNKNOWN"]
    assert (found["strict"], found["loose"]) == (True, False)
    assert found["drawn"] == "errors(candidate.correct) <= 10%\n|\n20 %"
    assert found["brief"] == "20 %, needs at most 10 %"
    assert len(found["pages"]) == 1 and "one minus a mean" in found["pages"][0]
