"""Prices of tokens: declared, zero for local models, or from litellm's list. An unknown price is None, not zero."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from skillc.dataclass import dataclass
from skillc.models.backends.litellm import price_list
from skillc.models.calls import Usage
from skillc.models.endpoint import LOCAL_PROVIDERS
from skillc.models.ledger import NANO_PER_DOLLAR
from skillc.plan.schema import ModelPlan, Plan, PricePlan

# A dollar per million tokens, in nano-dollars per token.
_NANO_PER_TOKEN = 1000
_TIER = re.compile(r"(?:in|out)put_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True)
class Price:
    """Nano-dollars per token; `most_*` is the most expensive tier, which reservations use.

    Attributes:
        reasoning: tokens of reasoning, if they have their own price.
        dear_above: a call with a longer prompt is billed at the most expensive tier; None with one tier.
        call: nano-dollars per call.
    """

    input: Fraction
    output: Fraction
    cached: Fraction
    most_input: Fraction
    most_output: Fraction
    dear_above: int | None = None
    reasoning: Fraction | None = None
    call: Fraction = Fraction(0)
    # The rates as whole numbers over one denominator: calls are priced several times, and fractions are slow.
    _whole: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        reasoning = self.output if self.reasoning is None else self.reasoning
        rates = (self.input, self.cached, self.output, reasoning, self.most_input, self.most_output, self.call)
        denominator = math.lcm(*(rate.denominator for rate in rates))
        whole = (rate.numerator * (denominator // rate.denominator) for rate in rates)
        object.__setattr__(self, "_whole", (denominator, *whole))

    def cost(self, usage: Usage) -> int:
        """Return the nano-dollars at list price, a function of the tokens alone: no discount for cached prompts."""
        return self._cost(usage, discount=False)

    def discounted(self, usage: Usage) -> int:
        """Return the nano-dollars with the discount for prompts that the provider had cached."""
        return self._cost(usage, discount=True)

    def most(self, prompt: int, completion: int) -> int:
        """Return the nano-dollars that a call costs at most."""
        denominator, *_, most_input, most_output, call = self._whole
        return -(-(call + prompt * most_input + completion * most_output) // denominator)

    def _cost(self, usage: Usage, *, discount: bool) -> int:
        if self.dear_above is not None and usage.prompt > self.dear_above:
            return self.most(usage.prompt, usage.completion)
        denominator, full, cheap, output, reasoning, _, _, call = self._whole
        cached = min(usage.cached, usage.prompt)
        prompt = (usage.prompt - cached) * full + cached * (cheap if discount else full)
        thought = min(usage.reasoning, usage.completion)
        return -(-(call + prompt + (usage.completion - thought) * output + thought * reasoning) // denominator)

    def in_dollars(self) -> PricePlan:
        """Return the most expensive tier in the units of a program."""
        return PricePlan(
            input=self.most_input / _NANO_PER_TOKEN,
            output=self.most_output / _NANO_PER_TOKEN,
            cached=min(self.cached, self.most_input) / _NANO_PER_TOKEN,
            call=self.call / NANO_PER_DOLLAR,
        )


FREE = Price(Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0))


def price_of(model: ModelPlan) -> Price | None:
    """Return the price of a role's model, None if unknown; open no socket and import no litellm."""
    if model.price is not None:
        output = model.price.output * _NANO_PER_TOKEN
        uncached = model.price.input * _NANO_PER_TOKEN
        cached = uncached if model.price.cached is None else model.price.cached * _NANO_PER_TOKEN
        call = model.price.call * NANO_PER_DOLLAR
        return Price(uncached, output, cached, max(uncached, cached), output, call=call)
    return FREE if _is_local(model) else _listed_price(model)


def price_table(plan: Plan) -> dict[str, PricePlan | None]:
    """Return for each role the most that its tokens cost, in dollars per million; None if unknown."""
    prices = {role: price_of(model) for role, model in plan.models.items()}
    return {role: price.in_dollars() if price is not None else None for role, price in prices.items()}


def _is_local(model: ModelPlan) -> bool:
    """Whether the model is free: a local provider at skillc's server or an address of this machine."""
    if model.provider not in LOCAL_PROVIDERS or model.base_url_env is not None:
        return False
    if model.base_url is None:
        return True
    host = urlsplit(model.base_url if "://" in model.base_url else f"http://{model.base_url}").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listed_price(model: ModelPlan) -> Price | None:
    table = price_list()
    bare = model.bare_name
    entry = table.get(model.model)
    if entry is None and bare and table.get(bare, {}).get("litellm_provider") == model.provider:
        entry = table[bare]
    if entry is None or "input_cost_per_token" not in entry or "output_cost_per_token" not in entry:
        return None
    priority = model.parameters.get("service_tier") == "priority"
    most_input = _most(entry, "input_cost_per_token", priority)
    thought = entry.get("output_cost_per_reasoning_token")
    most_output = max(_most(entry, "output_cost_per_token", priority), _rate(thought))
    return Price(
        input=most_input if priority else _rate(entry["input_cost_per_token"]),
        output=most_output if priority else _rate(entry["output_cost_per_token"]),
        cached=_rate(entry.get("cache_read_input_token_cost", entry["input_cost_per_token"])),
        most_input=most_input,
        most_output=most_output,
        dear_above=min((int(tier[1]) * 1000 for tier in map(_TIER.match, entry) if tier), default=None),
        reasoning=_rate(thought) if thought and not priority else None,
    )


def _most(entry: Mapping[str, Any], name: str, priority: bool) -> Fraction:
    tiers = (f"{name}_above_", f"{name}_priority") if priority else (f"{name}_above_",)
    return max(_rate(value) for key, value in entry.items() if key == name or key.startswith(tiers))


def _rate(dollars: Any) -> Fraction:
    """Convert dollars of litellm's list, as the shortest decimal, to nano-dollars."""
    return Fraction(repr(dollars)) * NANO_PER_DOLLAR if isinstance(dollars, int | float) else Fraction(0)
