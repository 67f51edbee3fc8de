"""The models by role. Which one answers is told, and weakens nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator

from skillc.plan.address import without_secrets
from skillc.plan.schema import ModelPlan
from skillc.versions.change import Change, Place
from skillc.versions.compare.values import fields_that_differ, shown
from skillc.versions.version import Version

# What a reply depends on; the rest is how fast and from where it is asked.
_ANSWERS = ("model", "model_env", "parameters", "exec", "backend")


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
    for name, before, after in fields_that_differ(old, new, but=("role",)):
        place = Place("model", role, name if name != "model" else None)
        subject = f"model {role}" if name == "model" else f"model {role}: {name}"
        rule = "model-changed" if name in _ANSWERS else None
        was, is_ = (_name(old), _name(new)) if name == "model" else (shown(before), shown(after))
        message = f"the {subject} was `{was}` and is `{is_}`"
        yield Change("models", subject, was, is_, "", rule, message, place=place)


def _name(model: ModelPlan) -> str:
    return model.model or f'env("{model.model_env}")'
