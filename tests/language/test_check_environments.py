"""What `check` finds about environments, their metrics and their simulated users."""

import pytest
from checking import run

from skillc.diagnostics.diagnostic import Severity

PROGRAM = """language 1

task {
  input  wish: text
  output action: text
  rollout = environment("house:House") { rooms = 3; ROLLOUT }
}

skill find_things {
  about = "Find things in a house."
  trainable section rules { limit = 200 tokens }
}

model target    = "openai/gpt-4o-mini"
model optimizer = "openai/gpt-4o"
model customer  = "openai/gpt-4o-mini"
data { source = "games.jsonl"; field need: text }
goal won = reward()
METRICS
budget { epochs = 2 }
gate better = candidate.won > incumbent.won
"""


def found(rollout="", metrics="", program=PROGRAM):
    text = program.replace("ROLLOUT", rollout).replace("METRICS", metrics)
    checked = run(text)
    return checked, [(d.code, d.message) for d in checked.diagnostics if d.severity is Severity.ERROR]


def test_an_environment_has_a_reward_and_a_bounded_number_of_turns() -> None:
    checked, errors = found("turns = 20", "metric quick = 1 - turns() / 20 turns")
    assert errors == []
    quick = next(metric for metric in checked.metrics if metric.name == "quick")
    assert (quick.low, quick.high) == (0, 1)


def test_without_a_limit_the_default_bounds_the_turns() -> None:
    assert found(metrics="metric length = turns() / 50 turns")[1] == []


@pytest.mark.parametrize("kind", ["predict", "chain_of_thought"])
def test_one_turn_has_no_reward(kind) -> None:
    program = PROGRAM.replace('environment("house:House") { rooms = 3; ROLLOUT }', kind)
    assert found(program=program)[1] == [("SK321", f"a rollout of `{kind}` has no reward")]


def test_a_simulated_user_is_a_model_with_a_goal() -> None:
    assert found("user = customer { goal = need }")[1] == []
    assert found("user = custommer")[1] == [("SK206", "the program has no model for `custommer`")]
    assert found("user = customer { goal = nead }")[1] == [("SK403", "unknown field `nead`")]


def test_the_model_of_a_simulated_user_is_used() -> None:
    assert "SK604" in [each.code for each in found()[0].diagnostics]
    assert "SK604" not in [each.code for each in found("user = customer")[0].diagnostics]


def test_an_agent_of_a_later_version_is_refused() -> None:
    assert found("agent = react")[1][0][1].startswith("`agent = react` needs skillc")
