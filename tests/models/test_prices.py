from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_plans import model, plan_of

from skillc.models.calls import Usage
from skillc.models.prices import FREE, Price, price_of, price_table
from skillc.plan.schema import ModelPlan, PricePlan


def test_declared_prices_win_and_are_exact() -> None:
    price = price_of(model(price=PricePlan(input=Fraction(1, 3), output=Fraction(2), cached=Fraction(1, 10))))
    assert price is not None
    assert price.cost(Usage(prompt=3, cached=2, completion=1)) == 3000
    assert price.discounted(Usage(prompt=3, cached=2, completion=1)) == 2534  # 333.3 + 200 + 2000, rounded up
    assert price.most(3, 1) == 3000


QWEN = "hosted_vllm/Qwen/Qwen3.5-4B"


@pytest.mark.parametrize(
    "free",
    [
        model(name="rulebook/v1", base_url=None),
        model(name="ollama/llama", base_url=None),
        model(name=QWEN, base_url=None, serve={"max_len": 8192}),
        model(name=QWEN, base_url="http://localhost:8000/v1"),
        model(name=QWEN, base_url="http://127.0.0.2:8000/v1", serve={}),
        model(name=QWEN, base_url="[::1]:8000"),
    ],
)
def test_what_runs_on_this_machine_is_free(free: ModelPlan) -> None:
    assert price_of(free) == FREE


@pytest.mark.parametrize(
    "unknown",
    [
        model(name="openai/never-heard-of"),
        model(name=QWEN, base_url="https://models.example/v1"),
        model(name=QWEN, base_url="http://10.0.0.7:8000/v1"),
        model(name=QWEN, base_url=None, base_url_env="MODELS_URL"),
    ],
)
def test_what_anybody_may_be_paid_for_is_not_free(unknown: ModelPlan) -> None:
    assert price_of(unknown) is None


def test_listed_prices_and_their_dearest_tier() -> None:
    price = price_of(model(name="openai/gpt-4o-mini"))
    assert price is not None
    assert price.input == Fraction(150)  # $0.15 a million tokens
    assert price.output == Fraction(600)
    gemini = price_of(model(name="gemini/gemini-2.5-pro"))
    assert gemini is not None
    assert gemini.most_input > gemini.input


def test_tokens_of_thought_cost_what_the_table_says_of_them() -> None:
    price = price_of(model(name="dashscope/qwen-turbo"))
    assert price is not None
    assert price.reasoning is not None
    assert price.reasoning > price.output
    thinking = Usage(prompt=10, completion=8, reasoning=6)
    assert price.cost(thinking) == 10 * price.input + 2 * price.output + 6 * price.reasoning
    assert price.cost(thinking) <= price.most(10, 8)


def test_prices_need_no_litellm() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/models')\n"
        "from model_plans import model\n"
        "from skillc.models.prices import price_of\n"
        "assert price_of(model()) is not None\n"
        "import skillc.models.client\n"
        "assert not {'litellm', 'dspy', 'numpy', 'openai'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_table_for_the_estimate_is_in_dollars_per_million() -> None:
    declared = PricePlan(input=Fraction(1), output=Fraction(4), cached=Fraction(1, 2))
    table = price_table(plan_of(model(price=declared), model("judge", name="openai/never-heard-of")))
    assert table == {"target": declared, "judge": None}


@given(
    st.lists(st.fractions(0, 10**6, max_denominator=999), min_size=7, max_size=7),
    st.lists(st.integers(0, 999), min_size=4, max_size=4),
)
def test_whole_numbers_cost_what_fractions_cost(rates: list[Fraction], counts: list[int]) -> None:
    price = Price(*rates[:5], reasoning=rates[5], call=rates[6])
    usage = Usage(*counts)
    cached, thought = min(usage.cached, usage.prompt), min(usage.reasoning, usage.completion)
    rest = (usage.completion - thought) * price.output + thought * rates[5] + price.call
    assert price.cost(usage) == math.ceil(usage.prompt * price.input + rest)
    assert price.discounted(usage) == math.ceil((usage.prompt - cached) * price.input + cached * price.cached + rest)
    assert price.most(usage.prompt, usage.completion) == math.ceil(
        price.call + usage.prompt * price.most_input + usage.completion * price.most_output
    )
