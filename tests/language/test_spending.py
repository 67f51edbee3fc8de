"""What the text says of caps never says more than the plan would."""

from __future__ import annotations

import pytest
from checking import program, run
from hypothesis import given
from hypothesis import strategies as st

from skillc.budget.bounds import bounds
from skillc.budget.spend import Sizes
from skillc.frontend import check
from skillc.plan.resolve import resolve
from skillc.plan.schema import PricePlan
from skillc.syntax.source import Source
from skillc.tokens import LEAST_AROUND_QUESTION, LEAST_AROUND_ROLLOUT

_FREE = PricePlan(input=0, output=0)


def counted(budget: str, sides: tuple[int, int, int], more: str = "") -> str:
    split = " : ".join(f"{side} examples" for side in sides)
    text = program(more).replace('"tickets.jsonl"', f'"tickets.jsonl"; split = {split}')
    return text.replace("epochs = 4", budget)


def findings(text: str) -> list[tuple[str, str | None]]:
    return [(each.message, each.hint) for each in run(text).diagnostics if each.code in ("SK516", "SK517")]


@given(
    st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(0, 60)),
    st.integers(1, 3),
    st.sampled_from(["skillc", "gepa", "miprov2", "one_shot"]),
    st.sampled_from(["", "gate t = tokens(candidate) < 400 tokens"]),
)
def test_what_is_said_to_be_too_little_is_too_little_for_the_plan(
    sides: tuple[int, int, int], samples: int, method: str, gate: str
) -> None:
    more = f"optimize {{ samples = {samples}; method = {method} }}\n{gate}"
    checked = check(Source("main.skill", counted("epochs = 1; calls = 1; tokens = 1", sides, more)))
    messages = [each.message for each in checked.diagnostics if each.code == "SK516"]
    assert [message.split()[4] for message in messages] == ["calls,", "tokens,"]
    (calls,) = {int(message.split(" = ")[1].split()[0]) for message in messages}
    plan = resolve(checked).plan
    assert plan is not None
    train, validation, test = sides
    least = bounds(plan, Sizes(train, validation, test, groups=test), {"target": _FREE, "optimizer": _FREE}).minimum
    assert 1 < calls <= least.total.calls
    assert (calls - 1) * LEAST_AROUND_ROLLOUT + LEAST_AROUND_QUESTION <= least.total.tokens


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("calls = 160", "the budget allows 160 calls, and any run takes at least baseline 40 + one question"),
        ("epochs = 1; time = 0 s", "the budget allows no time"),
        ("epochs = 1; min_gain = 101%", "no accept adds more than 1 to `correct`, so none resets the patience"),
    ],
)
def test_caps_that_admit_nothing(budget: str, message: str) -> None:
    ((found, _),) = findings(counted(budget, (80, 40, 60)))
    assert found.startswith(message)


@pytest.mark.parametrize(
    "budget",
    ["calls = 161", "tokens = 31M", "epochs = 1; cost = $0", "time = 1 s", "epochs = 1; min_gain = 100%"],
)
def test_caps_that_may_do(budget: str) -> None:
    assert findings(counted(budget, (80, 40, 60))) == []


def test_tokens_without_their_scale() -> None:
    assert findings(counted("tokens = 31", (80, 40, 60)))[0][1] == "did you mean `31k`?"
    assert findings(counted("tokens = 3", (80, 40, 60)))[0][1] == "did you mean `3M`?"


def test_without_money_a_model_with_a_price_can_not_be_asked() -> None:
    text = counted("epochs = 1; cost = $0", (80, 40, 60))
    priced = text.replace('target = "rulebook/v1"', 'target = "rulebook/v1" { price { input = $1; output = $2 } }')
    assert findings(priced) == [("the budget is $0, and a call of `target` has a price", "write `cost = $3`")]
    free = text.replace('target = "rulebook/v1"', 'target = "rulebook/v1" { price { input = $0; output = $0 } }')
    assert findings(free) == []


def test_a_split_by_shares_says_only_that_each_side_has_an_example() -> None:
    assert findings(program().replace("epochs = 4", "calls = 4")) == []
    assert len(findings(program().replace("epochs = 4", "calls = 3"))) == 1
