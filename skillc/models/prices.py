"""Prices of tokens: as declared, nothing on this machine, else from litellm's list. An unknown price is not zero."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from skillc.models.backends.litellm import price_list
from skillc.models.calls import Usage
from skillc.models.endpoint import LOCAL_PROVIDERS
from skillc.plan.schema import ModelPlan, Plan, PricePlan

_NANO_A_DOLLAR = 1_000_000_000
_TIER = re.compile(r"(?:in|out)put_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True)
class Price:
    """Nano-dollars a token; `most_*` is the dearest tier, which is what a reservation reckons with.

    Attributes:
        reasoning: tokens of a reply that are thought and not shown; None where they cost what others do.
        dear_above: prompts of more tokens are billed at the dearest tier, reply and all; None where there is one tier.
        call: nano-dollars a call, whatever its tokens.
    """

    input: Fraction
    output: Fraction
    cached: Fraction
    most_input: Fraction
    most_output: Fraction
    dear_above: int | None = None
    reasoning: Fraction | None = None
    call: Fraction = Fraction(0)

    def cost(self, usage: Usage) -> int:
        """Nano-dollars at list price, no discount for cached prompts: the same for the same tokens, whenever sent."""
        if self._dear(usage):
            return self.most(usage.prompt, usage.completion)
        return math.ceil(self.call + usage.prompt * self.input + self._reply(usage))

    def discounted(self, usage: Usage) -> int:
        """Nano-dollars with the discount for what the provider had cached."""
        if self._dear(usage):
            return self.most(usage.prompt, usage.completion)
        fresh = max(0, usage.prompt - usage.cached)
        return math.ceil(self.call + fresh * self.input + usage.cached * self.cached + self._reply(usage))

    def most(self, prompt: int, completion: int) -> int:
        """Nano-dollars that a call of so many tokens costs at worst."""
        return math.ceil(self.call + prompt * self.most_input + completion * self.most_output)

    def _reply(self, usage: Usage) -> Fraction:
        thought = min(usage.reasoning, usage.completion)
        rate = self.output if self.reasoning is None else self.reasoning
        return (usage.completion - thought) * self.output + thought * rate

    def _dear(self, usage: Usage) -> bool:
        return self.dear_above is not None and usage.prompt > self.dear_above

    def in_dollars(self) -> PricePlan:
        """The dearest tier as a program would declare it."""
        a_thousand = 1000  # nano-dollars a token are thousandths of a dollar per million tokens
        return PricePlan(
            input=self.most_input / a_thousand,
            output=self.most_output / a_thousand,
            cached=min(self.cached, self.most_input) / a_thousand,
            call=self.call / _NANO_A_DOLLAR,
        )


FREE = Price(Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0))


def price_of(model: ModelPlan) -> Price | None:
    """The price of a role's model, None where it is not known. Opens no socket and imports no litellm."""
    if model.price is not None:
        # Dollars per million tokens are thousands of nano-dollars per token.
        entry, exit_, cached = model.price.input, model.price.output, model.price.cached
        kept = cached if cached is not None else entry
        return Price(
            entry * 1000,
            exit_ * 1000,
            kept * 1000,
            max(entry, kept) * 1000,
            exit_ * 1000,
            call=model.price.call * _NANO_A_DOLLAR,
        )
    return FREE if _is_here(model) else _listed(model)


def price_table(plan: Plan) -> dict[str, PricePlan | None]:
    """For each role the most that its tokens cost, in dollars per million; None where it is not known."""
    prices = {role: price_of(model) for role, model in plan.models.items()}
    return {role: price.in_dollars() if price is not None else None for role, price in prices.items()}


def _is_here(model: ModelPlan) -> bool:
    """Whether the model is free: a local provider at skillc's own server or an address of this machine."""
    if model.provider not in LOCAL_PROVIDERS or model.base_url_env is not None:
        return False
    if model.base_url is None:
        return True
    host = urlsplit(model.base_url if "://" in model.base_url else f"http://{model.base_url}").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listed(model: ModelPlan) -> Price | None:
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
        dear_above=_dear_above(entry),
        reasoning=_rate(thought) if thought and not priority else None,
    )


def _dear_above(entry: Mapping[str, Any]) -> int | None:
    found = (_TIER.match(name) for name in entry)
    return min((int(tier[1]) * 1000 for tier in found if tier), default=None)


def _most(entry: Mapping[str, Any], name: str, priority: bool) -> Fraction:
    tiers = (f"{name}_above_", f"{name}_priority") if priority else (f"{name}_above_",)
    return max(_rate(value) for key, value in entry.items() if key == name or key.startswith(tiers))


def _rate(dollars: Any) -> Fraction:
    """Nano-dollars from a table's dollars; the shortest decimal is what was meant."""
    return Fraction(repr(dollars)) * _NANO_A_DOLLAR if isinstance(dollars, int | float) else Fraction(0)
