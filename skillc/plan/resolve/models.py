"""The models, each role with its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pydantic import JsonValue

from skillc.language.checked import Amount, Entity, Setting
from skillc.plan.resolve.values import amount_of, count_of, env_of, plain, plain_block, value_of
from skillc.plan.schema import DEFAULT_REPLY, ModelPlan, PacingPlan, PricePlan

# What is skillc's own; everything else in a model's block is sent with each call.
_OWN = ("base_url", "key", "price", "serve", "max_reply", "concurrency", "rpm", "tpm", "timeout")
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens")


def resolve_models(models: tuple[Entity, ...]) -> dict[str, ModelPlan]:
    """The models by role, in the alphabet's order."""
    plans = [_model(model) for model in models]
    return {plan.role: plan for plan in sorted(plans, key=lambda plan: plan.role)}


def _model(model: Entity) -> ModelPlan:
    parameters = {name: _sent(setting) for name, setting in sorted(model.settings.items()) if name not in _OWN}
    limits = [limit for name in _REPLY_LIMITS if isinstance(limit := parameters.get(name), int)]
    address, serve = value_of(model, "base_url"), model.settings.get("serve")
    return ModelPlan(
        role=model.name or "",
        model=model.value if isinstance(model.value, str) else "",
        parameters=parameters,
        key_env=env_of(value_of(model, "key")),
        base_url=address if isinstance(address, str) else None,
        base_url_env=env_of(address),
        price=_price(model.settings["price"].block) if "price" in model.settings else None,
        serve=plain_block(serve.block) if serve is not None else None,
        pacing=_pacing(model),
        max_reply=count_of(model, "max_reply") or max(limits, default=DEFAULT_REPLY),
    )


def _pacing(model: Entity) -> PacingPlan:
    timeout = amount_of(model, "timeout")
    return PacingPlan(
        concurrency=count_of(model, "concurrency"),
        rpm=count_of(model, "rpm"),
        tpm=count_of(model, "tpm"),
        **({} if timeout is None else {"timeout": timeout}),
    )


def _sent(setting: Setting) -> JsonValue:
    return plain_block(setting.block) if setting.block else plain(setting.value)


def _price(block: Mapping[str, Setting]) -> PricePlan:
    return PricePlan(
        input=_dollars(block, "input") or Fraction(0),
        output=_dollars(block, "output") or Fraction(0),
        cached=_dollars(block, "cached"),
    )


def _dollars(block: Mapping[str, Setting], name: str) -> Fraction | None:
    setting = block.get(name)
    return setting.value.value if setting is not None and isinstance(setting.value, Amount) else None
