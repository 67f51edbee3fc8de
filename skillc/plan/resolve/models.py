"""The models, each role with its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pydantic import JsonValue

from skillc.language.checked import Amount, Entity, Invocation, Items, Setting, Value
from skillc.language.templates import path_of, words_of
from skillc.plan.resolve.values import amount_of, count_of, env_of, plain, plain_block, value_of
from skillc.plan.schema import DEFAULT_REPLY, AnswerPlan, ExecPlan, ModelPlan, PacingPlan, PricePlan

# What is skillc's own; everything else in a model's block is sent with each call.
_OWN = (
    "base_url",
    "key",
    "price",
    "serve",
    "exec",
    "backend",
    "max_reply",
    "concurrency",
    "rpm",
    "tpm",
    "timeout",
    "down",
)
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
        model_env=env_of(model.value),
        parameters=parameters,
        key_env=env_of(value_of(model, "key")),
        base_url=address if isinstance(address, str) else None,
        base_url_env=env_of(address),
        price=_price(model.settings["price"].block) if "price" in model.settings else None,
        serve=plain_block(serve.block) if serve is not None else None,
        exec=_exec(model.settings["exec"]) if "exec" in model.settings else None,
        backend=_function(value_of(model, "backend")),
        pacing=_pacing(model),
        max_reply=count_of(model, "max_reply") or max(limits, default=DEFAULT_REPLY),
    )


def _pacing(model: Entity) -> PacingPlan:
    times = {name: amount for name in ("timeout", "down") if (amount := amount_of(model, name)) is not None}
    return PacingPlan(
        concurrency=count_of(model, "concurrency"),
        rpm=count_of(model, "rpm"),
        tpm=count_of(model, "tpm"),
        **times,
    )


def _exec(setting: Setting) -> ExecPlan:
    folder = setting.block.get("folder")
    return ExecPlan(
        command=words_of(str(setting.value)),
        answer=_answer(setting.block.get("answer")),
        folder=str(folder.value) if folder is not None else None,
        environment=_variables(setting.block.get("environment")),
    )


def _answer(setting: Setting | None) -> AnswerPlan:
    if setting is None or not isinstance(setting.value, Invocation):
        return AnswerPlan()
    kind, said = setting.value.function, str(setting.value.arguments[0])
    if kind == "json":
        return AnswerPlan(kind="json", path=path_of(said) or ())
    return AnswerPlan.model_validate({"kind": kind, "text": said})


def _variables(setting: Setting | None) -> tuple[str, ...]:
    items = setting.value.items if setting is not None and isinstance(setting.value, Items) else ()
    return tuple(sorted({name for item in items if (name := env_of(item)) is not None}))


def _function(value: Value | None) -> str | None:
    """`module:function` in `python("module:function")`."""
    return str(value.arguments[0]) if isinstance(value, Invocation) else None


def _sent(setting: Setting) -> JsonValue:
    return plain_block(setting.block) if setting.block else plain(setting.value)


def _price(block: Mapping[str, Setting]) -> PricePlan:
    return PricePlan(
        input=_dollars(block, "input") or Fraction(0),
        output=_dollars(block, "output") or Fraction(0),
        cached=_dollars(block, "cached"),
        call=_dollars(block, "call") or Fraction(0),
    )


def _dollars(block: Mapping[str, Setting], name: str) -> Fraction | None:
    setting = block.get(name)
    return setting.value.value if setting is not None and isinstance(setting.value, Amount) else None
