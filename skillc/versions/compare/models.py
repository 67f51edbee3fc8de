"""The models by role. Which one answers is told, and weakens nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator

from skillc.plan.digest import without_secrets
from skillc.plan.schema import ModelPlan
from skillc.versions.change import Change, Place
from skillc.versions.compare.values import entries_that_differ, fields_that_differ, shown
from skillc.versions.version import Version

# What a reply depends on; the rest is how fast and from where it is asked.
_ANSWERS = ("model", "exec", "backend")
_DURATIONS = ("timeout",)


def model_changes(old: Version, new: Version) -> Iterator[Change]:
    """Each role's model with its settings."""
    before, after = without_secrets(old.plan).models, without_secrets(new.plan).models
    for role in sorted(before.keys() | after.keys()):
        one, other = before.get(role), after.get(role)
        if one is None and other is not None:
            yield Change("models", f"model {role}", None, _name(other), place=Place("model", role))
        elif other is None and one is not None:
            yield Change("models", f"model {role}", _name(one), None)
        elif one is not None and other is not None:
            yield from _changed(role, one, other)


def _changed(role: str, old: ModelPlan, new: ModelPlan) -> Iterator[Change]:
    if _name(old) != _name(new):
        yield _change(role, "model", _name(old), _name(new))
    if old.pacing != new.pacing:
        yield from (_change(role, *each) for each in fields_that_differ(old.pacing, new.pacing))
    for name, before, after in entries_that_differ(old.parameters, new.parameters):
        yield _change(role, name, before, after, answers=True)
    for name, before, after in fields_that_differ(old, new, but=("role", "model", "model_env", "parameters", "pacing")):
        if name.endswith("_env"):
            yield _change(role, name.removesuffix("_env"), _variable(before), _variable(after))
        else:
            yield _change(role, name, before, after)


def _change(role: str, name: str, before: object, after: object, *, answers: bool = False) -> Change:
    """Describe one setting that changed; `answers` marks what a reply depends on."""
    whole = name == "model"
    subject = f"model {role}" if whole else f"model {role}: {name}"
    unit = "s" if name in _DURATIONS else ""
    was, is_ = (shown(value, unit) for value in (before, after))
    rule = "model-changed" if answers or name in _ANSWERS else None
    message = f"the {subject} was `{was}` and is `{is_}`"
    return Change("models", subject, was, is_, "", rule, message, place=Place("model", role, None if whole else name))


def _name(model: ModelPlan) -> str:
    return model.model or f'env("{model.model_env}")'


def _variable(name: object) -> str | None:
    return None if name is None else f'env("{name}")'
