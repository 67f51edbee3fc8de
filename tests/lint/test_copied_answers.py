"""Right answers that the optimizer may copy, by the settings that apply to the run."""

import pytest

from skillc.frontend import check
from skillc.syntax.source import Source

PROGRAM = """language 1
task {{ input ticket: text; output reply: text }}
skill answer {{ about = "Answer a ticket."; trainable section rules }}
model target = "rulebook/v1"
model optimizer = target
data {{ source = "rows.jsonl" }}
budget {{ epochs = 4 }}
{optimize}
goal correct = exact_match(reply)
gate better = candidate.correct > incumbent.correct
"""


@pytest.mark.parametrize(
    ("optimize", "warned"),
    [
        ("optimize { sees = [gold] }", True),
        ("optimize { sees = [feedback] }", False),
        ("optimize nightly { sees = [gold] }\noptimize { sees = [feedback] }", False),
        ("optimize nightly { sees = [feedback] }\noptimize = nightly { sees = [gold] }", True),
        ("optimize nightly { sees = [gold] }\noptimize = nightly", True),
    ],
)
def test_only_the_settings_of_the_run_count(optimize, warned):
    found = check(Source("answer.skill", PROGRAM.format(optimize=optimize))).diagnostics
    assert ("SK509" in [each.code for each in found]) == warned
