from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

from model_plans import model, plan_of

from skillc.models.calls import Usage
from skillc.models.prices import FREE, price_of, price_table
from skillc.plan.schema import PricePlan


def test_declared_prices_win_and_are_exact() -> None:
    price = price_of(model(price=PricePlan(input=Fraction(1, 3), output=Fraction(2), cached=Fraction(1, 10))))
    assert price is not None
    assert price.cost(Usage(prompt=3, cached=2, completion=1)) == 3000
    assert price.discounted(Usage(prompt=3, cached=2, completion=1)) == 2534  # 333.3 + 200 + 2000, rounded up
    assert price.most(3, 1) == 3000


def test_local_models_are_free_and_unknown_ones_are_not() -> None:
    assert price_of(model(name="rulebook/v1")) == FREE
    assert price_of(model(name="hosted_vllm/Qwen/Qwen3.5-4B")) == FREE
    assert price_of(model(name="openai/never-heard-of")) is None


def test_listed_prices_and_their_dearest_tier() -> None:
    price = price_of(model(name="openai/gpt-4o-mini"))
    assert price is not None
    assert price.input == Fraction(150)  # $0.15 a million tokens
    assert price.output == Fraction(600)
    gemini = price_of(model(name="gemini/gemini-2.5-pro"))
    assert gemini is not None
    assert gemini.most_input > gemini.input


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
