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


TOOLS = 'agent = react { tools = [python("shop:find"), python("shop:pay")]; calls = 2 }; turns = 5'


@pytest.mark.parametrize(
    "metric",
    ['used("find")', 'used("act")', 'calls("find") / 10', 'order("find", "act")', "1 - turns() / 5 turns"],
)
def test_an_agent_with_tools_is_measured_by_its_calls(metric) -> None:
    checked, errors = found(TOOLS, f"metric looked = {metric}")
    assert errors == []
    looked = next(each for each in checked.metrics if each.name == "looked")
    assert (looked.low, looked.high) == (0, 1)


@pytest.mark.parametrize(
    ("rollout", "metric", "code", "message"),
    [
        (TOOLS, 'used("fnd")', "SK204", "unknown tool `fnd`"),
        ("agent = react { tool = [] }", "turns() / 50 turns", "SK202", "unknown setting `tool`"),
        ("agent = react { turns = 3 }", "turns() / 50 turns", "SK202", "unknown setting `turns`"),
        ("agent = react { calls = 0 }", "turns() / 50 turns", "SK315", "must be at least 1"),
    ],
)
def test_what_an_agent_with_tools_does_not_have_is_refused(rollout, metric, code, message) -> None:
    errors = found(rollout, f"metric looked = {metric}")[1]
    assert any(code == each and message in said for each, said in errors), errors


def test_a_skill_may_be_opened_in_an_environment() -> None:
    program = PROGRAM.replace("trainable section", "load = on_demand; trainable section")
    assert found("turns = 3", "metric opens = opened(find_things)", program)[1] == []


@pytest.mark.parametrize(
    ("setting", "hint"), [("load = on_demand", "write `load = always`"), ('beside = ["../skills"]', "remove `beside`")]
)
def test_a_target_that_cannot_open_skills_is_refused(setting, hint) -> None:
    program = PROGRAM.replace('environment("house:House") { rooms = 3; ROLLOUT }', "code")
    program = program.replace("reward()", "exact_match(action)").replace(
        "trainable section", f"{setting}; trainable section"
    )
    checked, errors = found(program=program)
    assert errors == [("SK422", "a target of `rollout = code` cannot open skills")]
    (error,) = [each for each in checked.diagnostics if each.code == "SK422"]
    assert (
        error.hint,
        checked.diagnostics[0].primary.source.text[error.primary.span.start : error.primary.span.end],
    ) == (hint, setting)
