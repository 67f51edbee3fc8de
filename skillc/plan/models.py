"""The models of a plan: as declared, as overridden for one call, and those that a run calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from pydantic import JsonValue

from skillc.diagnostics.suggest import spelling_hint
from skillc.errors import SkillcError
from skillc.language.checked import (
    Entity,
    Invocation,
    Setting,
    Settings,
    amount_of,
    count_of,
    items_of,
    text_of,
    value_of,
    variable_of,
)
from skillc.language.commands import split_command
from skillc.language.judges import judge_calls, judge_roles
from skillc.language.kinds import MODEL_PARAMETERS, default_of
from skillc.plan.schema import RULEBOOK, AnswerPlan, ExecPlan, ModelPlan, PacingPlan, Plan, PricePlan, provider_of
from skillc.plan.settings import plain, plain_block
from skillc.text import listed

# Settings of skillc; all other settings of a model are sent with each call.
_OWN = frozenset(each.name for each in MODEL_PARAMETERS if not each.sent)
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens")


def resolve_models(models: Iterable[Entity]) -> dict[str, ModelPlan]:
    """The models by role, sorted."""
    plans = [_model(model) for model in models]
    return {plan.role: plan for plan in sorted(plans, key=lambda plan: plan.role)}


def _model(model: Entity) -> ModelPlan:
    parameters: dict[str, JsonValue] = {
        name: plain_block(setting.block) if setting.block else plain(setting.value)
        for name, setting in sorted(model.settings.items())
        if name not in _OWN
    }
    limits = [limit for name in _REPLY_LIMITS if isinstance(limit := parameters.get(name), int)]
    settings, serve = model.settings, model.settings.get("serve")
    return ModelPlan(
        role=model.name or "",
        model=model.text,
        model_env=variable_of(model.value),
        parameters=parameters,
        key_env=variable_of(value_of(settings, "key")),
        base_url=text_of(settings, "base_url"),
        base_url_env=variable_of(value_of(settings, "base_url")),
        price=_price(settings["price"].block) if "price" in settings else None,
        serve=plain_block(serve.block) if serve is not None else None,
        exec=_exec(settings["exec"]) if "exec" in settings else None,
        backend=_function(settings.get("backend")),
        pacing=_pacing(settings),
        max_reply=count_of(settings, "max_reply") or max(limits, default=default_of("model", "max_reply")),
    )


def _pacing(settings: Settings) -> PacingPlan:
    given = {name: amount_of(settings, name) for name in PacingPlan.model_fields}
    return PacingPlan.model_validate({name: value for name, value in given.items() if value is not None})


def _exec(setting: Setting) -> ExecPlan:
    variables = map(variable_of, items_of(setting.block, "environment"))
    return ExecPlan(
        command=split_command(str(setting.value)),
        answer=_answer(setting.block.get("answer")),
        folder=text_of(setting.block, "folder"),
        environment=tuple(sorted({name for name in variables if name is not None})),
    )


def _answer(setting: Setting | None) -> AnswerPlan:
    if setting is None or not isinstance(setting.value, Invocation):
        return AnswerPlan()
    return AnswerPlan.of(setting.value.function, str(setting.value.arguments[0]))


def _function(setting: Setting | None) -> str | None:
    """`module:function` in `python("module:function")`."""
    value = setting.value if setting is not None else None
    return str(value.arguments[0]) if isinstance(value, Invocation) else None


def _price(block: Settings) -> PricePlan:
    return PricePlan(
        input=amount_of(block, "input") or Fraction(0),
        output=amount_of(block, "output") or Fraction(0),
        cached=amount_of(block, "cached"),
        call=amount_of(block, "call") or Fraction(0),
    )


TARGET, OPTIMIZER = "target", "optimizer"


def with_used_models(plan: Plan) -> Plan:
    """Keep only the models that a compile calls: no other has to exist or changes the identity of a run."""
    roles = {TARGET, OPTIMIZER, *judges(plan), *simulated_users(plan)}
    return plan.model_copy(update={"models": {name: model for name, model in plan.models.items() if name in roles}})


def simulated_users(plan: Plan) -> Iterator[str]:
    """The role of the simulated user that a rollout talks to, if it has one."""
    if plan.task.rollout.kind == "environment":
        user = plan.task.rollout.settings.get("user")
        role = user.get("kind") if isinstance(user, dict) else user
        if isinstance(role, str):
            yield role


def judges(plan: Plan) -> Iterator[str]:
    """The role of each judge of the metrics, once for each of its judgements of a rollout."""
    for call in judge_calls(metric.term for metric in plan.metrics):
        yield from judge_roles(call)


OFFLINE_MODEL = f"{RULEBOOK}/v1"

# Parameters that every provider accepts.
_COMMON = frozenset({each.name for each in MODEL_PARAMETERS if each.sent} | {"stop"})


def override_models(plan: Plan, changes: Mapping[str, str]) -> Plan:
    """Replace the models of some roles.

    With the same provider a role keeps its settings, except the price. With another provider it keeps only the
    parameters that every provider accepts.

    Raises:
        SkillcError: the role is unknown, or the model names no provider.
    """
    models = dict(plan.models)
    for role, name in changes.items():
        if role not in models:
            hint = spelling_hint(role, models) or f"valid roles: {listed(models)}"
            raise SkillcError(f"the program has no model `{role}`", hint=hint)
        if not _names_provider(name):
            raise SkillcError(f"`{name}` names no provider", hint=f"write `--model {role}=openai/{name.strip('/')}`")
        models[role] = _replaced(models[role], name)
    return plan.model_copy(update={"models": models})


def capped_roles(plan: Plan) -> frozenset[str]:
    """The roles whose price must be known: all under a cap on the cost, judges under a cap on their cost."""
    if plan.budget.cost is not None:
        return frozenset(plan.models)
    return frozenset(judges(plan)) if plan.budget.judge_cost is not None else frozenset()


def resolve_model_names(plan: Plan, environ: Mapping[str, str]) -> Plan:
    """Fill in the names of models from the environment; unset ones stay open.

    Raises:
        SkillcError: a variable is not the name of a model. Its value is not shown, as it may be a key.
    """
    models = dict(plan.models)
    for role, model in plan.models.items():
        if model.model_env is None or not environ.get(model.model_env):
            continue
        name = environ[model.model_env].strip()
        if not _names_provider(name):
            raise SkillcError(
                f"model `{role}` takes its name from `{model.model_env}`, which names no provider",
                hint=f"export {model.model_env}=openai/gpt-5.5-mini",
            )
        models[role] = model.model_copy(update={"model": name, "model_env": None})
    return plan.model_copy(update={"models": models})


def _names_provider(model: str) -> bool:
    provider, _, name = model.partition("/")
    return bool(provider and name)


def require_names(plan: Plan) -> None:
    """Check that every model has a name.

    Raises:
        SkillcError: the environment variable of a name is not set.
    """
    for role, model in plan.models.items():
        if model.model_env is not None:
            raise SkillcError(
                f"model `{role}` takes its name from `{model.model_env}`, which is not set",
                hint=f"export {model.model_env}=openai/gpt-5.5-mini, or give it once: `--model {role}=provider/name`",
            )


def put_offline(plan: Plan) -> Plan:
    """Replace every model by the rulebook; of the settings only the limit of replies stays."""
    models = {
        role: model
        if model.provider == RULEBOOK
        else ModelPlan(role=role, model=OFFLINE_MODEL, max_reply=model.max_reply)
        for role, model in plan.models.items()
    }
    return plan.model_copy(update={"models": models})


def _replaced(model: ModelPlan, name: str) -> ModelPlan:
    if name == model.model:
        return model
    if provider_of(name) == model.provider:
        return model.model_copy(update={"model": name, "price": None, "serve": _served_as(model, name)})
    if provider_of(name) == RULEBOOK:
        return ModelPlan(role=model.role, model=name, max_reply=model.max_reply)
    kept: dict[str, JsonValue] = {key: value for key, value in model.parameters.items() if key in _COMMON}
    return ModelPlan(role=model.role, model=name, parameters=kept, max_reply=model.max_reply)


def _served_as(model: ModelPlan, name: str) -> dict[str, JsonValue] | None:
    """The server settings for another model: without those of the old model, unless the new one is its adapter."""
    if model.serve is None:
        return None
    lora = model.serve.get("lora")
    listed = [str(each).partition("=")[0] for each in lora] if isinstance(lora, list) else []
    kept = name.partition("/")[2] in (lora if isinstance(lora, dict) else listed)
    own = ("model", "revision", "tokenizer", "chat_template", "lora")
    return {key: value for key, value in model.serve.items() if kept or key not in own}


_RULEBOOK_LIMITS = {
    **dict.fromkeys(("number", "integer"), "only learns which number of the input to copy, and computes nothing"),
    "text": "only learns which part of the input to copy, and writes no text",
    "json": "only learns keys that copy a part of the input or have a few fixed values, and no nested ones",
    "list": "only learns lists of all similar parts of the input",
    "image": "can answer no image",
    "file": "can answer no file",
}
"""The limits of the rulebook on outputs, by the kind of type; other kinds have none."""


def rulebook_limits(plan: Plan) -> list[str]:
    """One sentence for each field that the rulebook cannot handle, or only in part; none without the rulebook.

    The limits of a target and of an optimizer are the same: what the one can answer, the other can propose.
    """
    if not any(model.provider == RULEBOOK for role, model in plan.models.items() if role in (TARGET, OPTIMIZER)):
        return []
    readable = ("file", None) if plan.task.rollout.one_turn else (None,)
    unread = [field for field in plan.task.inputs if field.type.file_kind not in readable]
    limits = [f"it cannot read the {field.type.file_kind} `{field.name}`" for field in unread]
    outputs = ((field.name, _RULEBOOK_LIMITS.get(field.type.kind)) for field in plan.task.outputs)
    limits += [f"for `{name}` it {limit}" for name, limit in outputs if limit]
    return [f"the rulebook is not a language model: {limit}" for limit in limits]
