"""What `check` says of metrics of an agent's behaviour."""

import pytest

from skillc.frontend import check
from skillc.syntax.source import Source

PROGRAM = """
language 1
use std.gates
task {
  input ticket: text
  output team: "billing" | "shipping"
  rollout = ROLLOUT
}
skill route { about = "Routes."; trainable section rules }
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
metric m = METRIC
goal correct = exact_match(team)
budget { epochs = 1 }
gate better = candidate.correct > incumbent.correct
gate kept = gates.never_lose(m)
"""
REACT = 'react { tools = [python("shop:find_order"), python("shop:pay")]; turns = 4 }'
MIXED = 'react { tools = [python("shop:find_order"), mcp("npx shop", environment = [env("TOKEN")])] }'


def found(rollout, metric):
    text = PROGRAM.replace("ROLLOUT", rollout).replace("METRIC", metric)
    return [(each.code, each.message) for each in check(Source("p.skill", text)).diagnostics]


@pytest.mark.parametrize(
    "metric",
    [
        'used("pay")',
        'calls("pay") / 4',
        'order("find_order", "pay")',
        'call_mentions(["a", "b"])',
        'call_mentions("a", tool = "pay")',
        "1 - turns() / 4 turns",
        "clamp(1 - seconds() / 1 min, 0, 1)",
        "clamp(1 - cost() / $0.1, 0, 1)",
    ],
)
def test_an_agent_is_measured_by_what_it_does(metric) -> None:
    assert found(REACT, metric) == []


@pytest.mark.parametrize(
    ("rollout", "metric", "code", "message"),
    [
        (REACT, 'used("pai")', "SK204", "unknown tool `pai`"),
        ("predict", 'call_mentions("a")', "SK321", "a rollout of `predict` has no calls of tools"),
        (REACT, 'call_mentions("a", tool = "pai")', "SK204", "unknown tool `pai`"),
        (REACT, 'file_contains("a", ["x"])', "SK321", "a rollout of `react` has no files"),
        ("predict", 'used("pay")', "SK321", "a rollout of `predict` has no calls of tools"),
        (REACT, "used(pay)", "SK311", "expected a text in quotes"),
    ],
)
def test_what_a_rollout_does_not_have_is_refused(rollout, metric, code, message) -> None:
    assert any(code == each and message in said for each, said in found(rollout, metric))


def test_the_tools_of_a_server_are_known_to_a_run_alone() -> None:
    assert found(MIXED, 'used("anything")') == []


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        ('react { tools = [mcp("npx shop", token = env("TOKEN"))] }', "`mcp` takes no option `token`"),
        ('react { tools = [mcp("npx shop", key = "abc")] }', "a secret, which a program must not contain"),
        ("react { tools = [mcp()] }", "`mcp` takes 1 argument"),
    ],
)
def test_a_server_that_is_declared_wrongly_is_refused(rollout, message) -> None:
    assert any(message in said for _, said in found(rollout, "f1(team)"))
