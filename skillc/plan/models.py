"""The models of a plan: as the program declares them, as one call replaces them, and which of them a run asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from pydantic import JsonValue

from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.gates.terms import WordTerm, calls
from skillc.language.checked import Amount, Entity, Invocation, Items, Setting, Value
from skillc.language.commands import json_path, split_command
from skillc.language.kinds import MODEL_PARAMETERS, default_of
from skillc.plan.schema import (
    RULEBOOK,
    AnswerPlan,
    ExecPlan,
    FieldPlan,
    ModelPlan,
    PacingPlan,
    Plan,
    PricePlan,
    TypePlan,
    provider_of,
)
from skillc.plan.settings import count_of, env_of, plain, plain_block, value_of
from skillc.text import listed

# Settings of skillc itself; everything else in a model's block is sent with each call.
_OWN = frozenset(each.name for each in MODEL_PARAMETERS if not each.sent)
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
        max_reply=count_of(model, "max_reply") or max(limits, default=default_of("model", "max_reply")),
    )


def _pacing(model: Entity) -> PacingPlan:
    given = {
        name: value.value for name in PacingPlan.model_fields if isinstance(value := value_of(model, name), Amount)
    }
    return PacingPlan.model_validate(given)


def _exec(setting: Setting) -> ExecPlan:
    folder = setting.block.get("folder")
    return ExecPlan(
        command=split_command(str(setting.value)),
        answer=_answer(setting.block.get("answer")),
        folder=str(folder.value) if folder is not None else None,
        environment=_variables(setting.block.get("environment")),
    )


def _answer(setting: Setting | None) -> AnswerPlan:
    if setting is None or not isinstance(setting.value, Invocation):
        return AnswerPlan()
    kind, said = setting.value.function, str(setting.value.arguments[0])
    if kind == "json":
        return AnswerPlan(kind="json", path=json_path(said) or ())
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


TARGET, OPTIMIZER = "target", "optimizer"


def with_used_models(plan: Plan) -> Plan:
    """The plan with only the models that a compile asks: no other needs to exist or changes a run's identity."""
    roles = {TARGET, OPTIMIZER, *judges(plan)}
    return plan.model_copy(update={"models": {name: model for name, model in plan.models.items() if name in roles}})


def judges(plan: Plan) -> Iterator[str]:
    """The role of each judge that a rollout is shown to."""
    for metric in plan.metrics:
        for each in calls(metric.term):
            if each.function == "judge":
                model = each.option("model")
                yield model.word if isinstance(model, WordTerm) else getattr(model, "name", "judge")


OFFLINE_MODEL = f"{RULEBOOK}/v1"

# Parameters that mean the same to every provider, so that they outlive a change of provider.
_COMMON = frozenset({each.name for each in MODEL_PARAMETERS if each.sent} | {"stop"})


def override_models(plan: Plan, changes: Mapping[str, str]) -> Plan:
    """The plan with other models in its roles.

    A role keeps its settings where the provider stays the same, its price excepted; else those that belong to the old
    provider go: address, key, server, and all parameters that not every provider knows.

    Raises:
        SkillcError: there is no such role, or the model names no provider.
    """
    models = dict(plan.models)
    for role, name in changes.items():
        if role not in models:
            near = suggest(role, models)
            hint = f"did you mean `{near}`?" if near else f"there are {listed(models)}"
            raise SkillcError(f"there is no model `{role}`", hint=hint)
        provider, slash, rest = name.partition("/")
        if not (provider and slash and rest):
            raise SkillcError(f"`{name}` names no provider", hint=f"write `--model {role}=openai/{name.strip('/')}`")
        models[role] = _replaced(models[role], name)
    return plan.model_copy(update={"models": models})


def resolve_model_names(plan: Plan, environ: Mapping[str, str]) -> Plan:
    """The plan with the names of models that the environment holds; those that it does not hold are left open.

    Raises:
        SkillcError: a variable holds no name of a model. Its value is not shown, for it may be a key.
    """
    models = dict(plan.models)
    for role, model in plan.models.items():
        if model.model_env is None or not environ.get(model.model_env):
            continue
        name = environ[model.model_env].strip()
        provider, slash, rest = name.partition("/")
        if not (provider and slash and rest):
            raise SkillcError(
                f"model `{role}` takes its name from `{model.model_env}`, and what that holds names no provider",
                hint=f"export {model.model_env}=openai/gpt-5.5-mini",
            )
        models[role] = model.model_copy(update={"model": name, "model_env": None})
    return plan.model_copy(update={"models": models})


def require_names(plan: Plan) -> None:
    """Sees to it that every model has a name.

    Raises:
        SkillcError: the environment variable that should hold it is not set.
    """
    for role, model in plan.models.items():
        if model.model_env is not None:
            raise SkillcError(
                f"model `{role}` takes its name from `{model.model_env}`, which is not set",
                hint=f"export {model.model_env}=openai/gpt-5.5-mini, or give it once: `--model {role}=provider/name`",
            )


def put_offline(plan: Plan) -> Plan:
    """The plan with the rulebook in place of every model; settings of other providers go, the reply's limit stays."""
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
    """The server's settings for another model: what named the old one goes, unless the new one is its adapter."""
    if model.serve is None:
        return None
    lora = model.serve.get("lora")
    listed = [str(each).partition("=")[0] for each in lora] if isinstance(lora, list) else []
    kept = name.partition("/")[2] in (lora if isinstance(lora, dict) else listed)
    own = ("model", "revision", "tokenizer", "chat_template", "lora")
    return {key: value for key, value in model.serve.items() if kept or key not in own}


_UNSEEN = frozenset({"image", "file"})


def rulebook_roles(plan: Plan) -> tuple[str, ...]:
    """The roles that the rulebook plays."""
    return tuple(role for role, model in plan.models.items() if model.provider == RULEBOOK)


def rulebook_limits(plan: Plan) -> list[str]:
    """One sentence for each field that is beyond the rulebook or only partly within its reach; none without it.

    An optimizer alone is limited by what it can propose, a target alone by what it can answer: both are the same forms.
    """
    if not {"target", "optimizer"} & set(rulebook_roles(plan)):
        return []
    return [*_inputs(plan.task.inputs), *_outputs(plan.task.outputs)]


def _inputs(fields: Sequence[FieldPlan]) -> list[str]:
    return [
        f"the rulebook is not a language model: it cannot look into the {field.type.kind} `{field.name}`"
        for field in fields
        if field.type.kind in _UNSEEN
    ]


def _outputs(fields: Sequence[FieldPlan]) -> list[str]:
    found = [(field.name, limit) for field in fields if (limit := _limit(field.type))]
    return [f"the rulebook is not a language model: for `{name}` it {limit}" for name, limit in found]


def _limit(kind: TypePlan) -> str:
    if kind.kind in ("number", "integer"):
        return "only learns which number of the input to copy, and computes nothing"
    if kind.kind == "text":
        return "only learns which part of the input to copy, and writes no text of its own"
    if kind.kind == "json":
        return "only learns keys that copy a part of the input or have a few fixed values, and no nested ones"
    if kind.kind == "list":
        return "only learns lists of all parts of the input that look alike"
    return f"can answer no {kind.kind}" if kind.kind in _UNSEEN else ""
