"""Digests of a plan, independent of layout, comments and irrelevant order, and of the tests of its scripts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.json_values import digest, fields_of
from skillc.language.kinds import DATA_FILES
from skillc.language.loop import BUDGET
from skillc.plan.models import TARGET, judges, simulated_users
from skillc.plan.schema import Plan, TestsPlan
from skillc.skill_files import FILE_LIMIT, list_folder

_ADDRESS = re.compile(r"\w+://\S*$")
# Names of secret query parameters.
SECRET_NAME = re.compile(r"key|token|secret|sig|pass|auth|code", re.IGNORECASE)


def redact_address(url: str) -> str:
    """Remove secrets from an address."""
    if not any(sign in url for sign in "@?#"):
        return url
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
    except ValueError:
        return "***"
    public = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not SECRET_NAME.search(pair[0])]
    bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, urlencode(public), ""))
    return bare if "://" in url else bare.removeprefix("//")


def redact_plan(plan: Plan) -> Plan:
    """Remove secrets from the addresses of the models and of the tools."""
    models = {
        role: model if model.base_url is None else model.model_copy(update={"base_url": redact_address(model.base_url)})
        for role, model in plan.models.items()
    }
    rollout = plan.task.rollout
    settings = {name: _redact_value(value) for name, value in rollout.settings.items()}
    task = plan.task.model_copy(update={"rollout": rollout.model_copy(update={"settings": settings})})
    return plan.model_copy(update={"models": models, "task": task})


def _redact_value(value: JsonValue) -> JsonValue:
    """Remove secrets from every address in a setting."""
    if isinstance(value, str):
        return redact_address(value) if _ADDRESS.match(value) else value
    if isinstance(value, list):
        return [_redact_value(each) for each in value]
    return {name: _redact_value(each) for name, each in value.items()} if isinstance(value, dict) else value


# Raise it when the same program decides differently: a run recorded before then starts anew.
DECISION_VERSION = "9"

# Pacing and retries of calls, which change no outcome.
RETRIES = frozenset({"retries", "max_retries", "num_retries", "max_in_flight"})
_NOT_SENT = ("key_env", "pacing")
# Location and speed of a server, which change no reply.
SERVED_ALIKE = frozenset({"port", "python", "keep", "timeout", "gpu_share", "tensor_parallel", "data_parallel"})
# The condition of delivery changes no decision, so a rejected skill can be delivered without a new run; neither do the
# settings of nights.
_AFTERWARDS = ("required_verdict", "evolve")
# Settings of `optimize` that change no decision.
_BESIDE = frozenset({"null_arm"})


def plan_digest(plan: Plan) -> str:
    """Hex sha256 of the whole plan, caps included, `required_verdict`, `evolve`, the null arm and the notation of
    gates excluded.
    """
    return digest({"skillc": "plan/1", "plan": _meaning(redact_plan(plan))})


def run_parts(
    plan: Plan,
    data_digest: str,
    initial_skill: str,
    metric_sources: Mapping[str, str],
    decision_version: str,
    model_sources: Mapping[str, str] | None = None,
    rollout_source: str = "",
    tests: str = "",
) -> dict[str, str]:
    """Hex digest of each input of a run's decisions, by its name for users.

    They exclude caps that only truncate, concurrency, rates, timeouts, retries of calls, display, secrets, and the
    paths of data, whose content is in `data_digest` (docs/design/resume.md).

    Args:
        plan: the program.
        data_digest: digest of the examples and their split.
        initial_skill: digest of the document that the run starts from.
        metric_sources: digest of the source of each `python` metric, by `module:function`.
        decision_version: `DECISION_VERSION`.
        model_sources: digest of the user's code that answers for a model, by role.
        rollout_source: digest of the user's code that runs a rollout.
        tests: digest of the tests of scripts.
    """
    plan = redact_plan(plan)
    # `epochs` and `steps` shape the schedule of edits, so they belong to the run.
    budget = {each.name: getattr(plan.budget, each.name) for each in BUDGET if not each.truncates}
    data = {name: value for name, value in fields_of(plan.data).items() if name not in DATA_FILES}
    models = {role: _sent(fields_of(model)) for role, model in plan.models.items()}
    for role, source in (model_sources or {}).items():
        models[role] = {**models[role], "source": source}
    return {
        "program": digest({**_meaning(plan), "budget": budget, "data": data, "models": None}),
        "data": data_digest,
        "models": digest(models),
        "initial skill": initial_skill,
        "metrics": digest(dict(metric_sources)),
        "skillc": decision_version,
        **({"rollout": rollout_source} if rollout_source else {}),
        **({"tests": tests} if tests else {}),
    }


def run_id(parts: Mapping[str, str]) -> str:
    """The id of a run: hex sha256 of its `run_parts`."""
    return digest({"run/1": dict(parts)})


def measuring_digest(plan: Plan) -> str:
    """Hex sha256 of what a measured rollout depends on, beside its skill, its example and the user's code."""
    plan = redact_plan(plan)
    used = {TARGET, *judges(plan), *simulated_users(plan)}
    initial = plan.skill.load != "always" or bool(plan.rubrics)
    return digest(
        {
            "task": plan.task.model_copy(update={"executor": None}),
            "metrics": [metric for metric in plan.metrics if metric.declared or metric.goal],
            "rubrics": plan.rubrics,
            "models": {role: _sent(fields_of(model)) for role, model in plan.models.items() if role in used},
            "load": [plan.skill.load, plan.skill.present, *plan.skill.beside],
            # A judge may compare with the initial skill, and a skill that is opened on demand is offered by its texts.
            "skill": plan.skill if initial else None,
        }
    )


def _meaning(plan: Plan) -> dict[str, object]:
    fields = fields_of(plan)
    for name in _AFTERWARDS:
        fields.pop(name, None)
    fields["optimize"] = {name: value for name, value in fields_of(plan.optimize).items() if name not in _BESIDE}
    fields["task"] = plan.task.model_copy(update={"executor": None})
    for kind in ("gates", "requires"):
        fields[kind] = [{k: v for k, v in fields_of(gate).items() if k != "text"} for gate in getattr(plan, kind)]
    return fields


def _sent(model: dict[str, object]) -> dict[str, object]:
    """The settings of a model that reach the endpoint, or identify it."""
    parameters = model["parameters"]
    assert isinstance(parameters, dict)
    kept = {name: value for name, value in model.items() if name not in _NOT_SENT}
    serve = model["serve"]
    if isinstance(serve, dict):
        kept["serve"] = {name: value for name, value in serve.items() if name not in SERVED_ALIKE}
    return {**kept, "parameters": {name: value for name, value in parameters.items() if name not in RETRIES}}


# ---- tests of scripts -------------------------------------------------------------------------------


def read_tests(plan: TestsPlan, root: Path) -> dict[str, bytes]:
    """Return the files of some tests by their paths beside the program.

    Raises:
        SkillcError: they are missing, cannot be read or are too large.
    """
    place = root / plan.path
    try:
        if place.is_dir():
            return {f"{plan.path}/{name}": file.read_bytes() for name, file in list_folder(place).items()}
        if place.stat().st_size > FILE_LIMIT:
            raise SkillcError(f"`{place}` is too large for a test")
        return {plan.path: place.read_bytes()}
    except OSError as problem:
        raise SkillcError(
            f"the tests `{plan.path}` cannot be read: {problem.strerror}", hint="write them, or change `tests`"
        ) from None


def digest_of_tests(plan: Plan, root: Path) -> str:
    """Return the digest of the tests of a program's scripts; empty without any.

    Raises:
        SkillcError: as `read_tests`.
    """
    found = {each.name: read_tests(each.tests, root) for each in plan.skill.sections if each.tests is not None}
    if not found:
        return ""
    return digest({name: digest_of_files(files) for name, files in found.items()})


def digest_of_files(files: Mapping[str, bytes]) -> str:
    """Return a digest of the paths and contents of files."""
    lines = (f"{name}\0{hashlib.sha256(content).hexdigest()}\n" for name, content in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
