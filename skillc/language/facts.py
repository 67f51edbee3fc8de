"""What the declarations of the main program tell expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from skillc.language.checked import Amount, Entity, Setting, Shares
from skillc.language.kinds import default_of
from skillc.language.modules import Module
from skillc.language.scope import Declarations
from skillc.language.types import ColumnType


def gather(entities: Iterable[Entity], module: Module, broken: Iterable[str]) -> Declarations:
    """The facts of a program."""
    by_kind: dict[str, list[Entity]] = {}
    for entity in entities:
        by_kind.setdefault(entity.kind, []).append(entity)
    columns: dict[str, ColumnType] = {}
    for kind in ("task", "data"):
        for entity in by_kind.get(kind, ()):
            for child in entity.children:
                columns.setdefault(child.name or "", _column(child))
    tasks, skills = by_kind.get("task", []), by_kind.get("skill", [])
    return Declarations(
        columns=columns,
        broken=frozenset(broken),
        roles=tuple(module.named("model")),
        rubrics=tuple(module.named("rubric")),
        skills=tuple(module.named("skill")),
        turns=_turns(tasks[0]) if tasks else None,
        without=frozenset({"data", "goal"} - {stated.kind.word for stated in module.stated}),
        change=most_change(skills),
    )


def fields_of(entities: Iterable[Entity]) -> dict[str, Entity]:
    """The fields of task and data by name."""
    found: dict[str, Entity] = {}
    for entity in entities:
        for child in entity.children if entity.kind in ("task", "data") else ():
            found.setdefault(child.name or "", child)
    return found


def amount(settings: Mapping[str, Setting], name: str) -> Fraction | None:
    """The number of a setting, in its base unit."""
    setting = settings.get(name)
    return setting.value.value if setting is not None and isinstance(setting.value, Amount) else None


def train_size(data: Entity | None) -> int | None:
    """Training examples, where `split` counts them."""
    split = data.settings.get("split") if data is not None else None
    if split is None or not isinstance(split.value, Shares):
        return None
    first = split.value.parts[0]
    return int(first.value) if first.unit == "examples" else None


def epoch_steps(data: Entity | None, optimize: Entity | None) -> int | None:
    """Steps of an epoch, where the text says how many training examples there are."""
    train = train_size(data)
    if train is None:
        return None
    settings = optimize.settings if optimize is not None else {}
    batch, batches = amount(settings, "batch"), amount(settings, "accumulate")
    return -(
        -train // (int(batch or default_of("optimize", "batch")) * int(batches or default_of("optimize", "accumulate")))
    )


def _column(entity: Entity) -> ColumnType:
    limit = amount(entity.settings, "limit")
    assert entity.type is not None
    return ColumnType(entity.name or "", entity.kind, entity.type, None if limit is None else int(limit))


def _turns(task: Entity) -> Fraction | None:
    rollout = task.settings.get("rollout")
    return amount(rollout.block, "turns") if rollout is not None else None


def most_change(skills: Iterable[Entity]) -> Fraction | None:
    """Bound of `change`, where every section that may change has a limit.

    At most all old tokens go and all allowed ones come, and `change` divides by the larger of both.
    """
    sections = [
        child for skill in skills for child in skill.children if ("trainable" in child.words or "slow" in child.words)
    ]
    limited = [child.kind == "section" and amount(child.settings, "limit") is not None for child in sections]
    return Fraction(2) if sections and all(limited) else None
