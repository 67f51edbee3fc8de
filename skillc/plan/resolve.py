"""From a checked program to the plan, every default filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import gcd, lcm
from typing import Literal, cast

from skillc.diagnostics.diagnostic import Diagnostic, Reporter
from skillc.document.markdown import heading
from skillc.document.skill_md import further_keys
from skillc.gates.stages import stage_of
from skillc.gates.terms import metrics_read
from skillc.language.checked import (
    Checked,
    CheckedGate,
    CheckedMetric,
    Entity,
    FieldType,
    Invocation,
    Setting,
    Shares,
    Word,
)
from skillc.language.loop import BudgetPlan, OptimizePlan
from skillc.plan.models import resolve_models
from skillc.plan.schema import (
    DataPlan,
    FieldPlan,
    GatePlan,
    MetricPlan,
    Plan,
    RequirePlan,
    RolloutPlan,
    SectionPlan,
    SkillPlan,
    SplitPlan,
    TaskPlan,
    TypePlan,
)
from skillc.plan.settings import (
    block_plan,
    count_of,
    plain,
    plain_block,
    text_of,
    value_of,
    word_of,
)
from skillc.syntax.source import Span


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """The plan of a program, None where the program has errors or is a library, and what resolving found."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...] = ()


def resolve(checked: Checked) -> ResolvedPlan:
    """The plan of a checked program.

    A program with errors has no plan, and nothing is added to what the checker said.
    """
    if checked.broken:
        return ResolvedPlan(None)
    report = Reporter()
    found = {
        kind: tuple(e for e in checked.entities if e.kind == kind)
        for kind in ("task", "skill", "data", "model", "rubric")
    }
    if not _compilable(report, checked, found["skill"]):
        return ResolvedPlan(None, report.diagnostics())
    (task,), (skill, *_), (data,) = found["task"], found["skill"], found["data"]
    metrics = resolve_metrics(checked.metrics)
    skill_plan = resolve_skill(report, skill)
    data_plan = resolve_data(data)
    if report.errors:
        return ResolvedPlan(None, report.diagnostics())
    plan = Plan(
        language=checked.version,
        task=resolve_task(task),
        skill=skill_plan,
        models=resolve_models(found["model"]),
        data=data_plan,
        metrics=metrics,
        optimize=block_plan(OptimizePlan, _once(checked, "optimize")),
        budget=block_plan(BudgetPlan, _once(checked, "budget")),
        gates=resolve_gates(checked.gates),
        requires=resolve_requires(checked.gates),
        required_verdict=checked.required.verdict if checked.required is not None else None,
        rubrics={rubric.name or "": str(rubric.value or "") for rubric in found["rubric"]},
    )
    return ResolvedPlan(plan, report.diagnostics())


def _once(checked: Checked, kind: str) -> Entity | None:
    return next((entity for entity in checked.entities if entity.kind == kind and entity.name is None), None)


def _compilable(report: Reporter, checked: Checked, skills: Sequence[Entity]) -> bool:
    """Report a library, which has nothing to compile, and a second skill; return whether there is neither."""
    source, start = checked.program.source, Span(0, min(1, len(checked.program.source.text)))
    if checked.library:
        hint = "compile a program that uses it"
        report.add("SK559", source, start, f"`{source.name}` only declares what others use", hint=hint)
    for skill in skills[1:]:
        message = f"`{skill.name}` is a second skill; this version trains one skill of a program"
        report.add("SK560", skill.source, skill.span, message, hint="move it into a program of its own")
    return not report.errors


def resolve_task(task: Entity) -> TaskPlan:
    """The task of the program."""
    rollout = task.settings.get("rollout")
    return TaskPlan(
        inputs=tuple(field_plan(child) for child in task.children if child.kind == "input"),
        outputs=tuple(field_plan(child) for child in task.children if child.kind == "output"),
        rollout=_rollout(rollout) if rollout is not None else RolloutPlan(),
    )


def field_plan(entity: Entity) -> FieldPlan:
    """An input, an output, or a column of the data, which bears the field's own name unless one is given."""
    name = entity.name or ""
    return FieldPlan(
        name=name,
        type=_type(entity.type or FieldType("text")),
        column=text_of(entity, "column") or name,
        about=text_of(entity, "about"),
        limit=count_of(entity, "limit"),
    )


def _type(type_: FieldType) -> TypePlan:
    item = _type(type_.item) if type_.item is not None else None
    return TypePlan(kind=type_.kind, labels=type_.labels, item=item, optional=type_.optional)


def _rollout(setting: Setting) -> RolloutPlan:
    settings = plain_block(setting.block)
    if isinstance(setting.value, Invocation):
        arguments = tuple(plain(argument) for argument in setting.value.arguments)
        options = {name: plain(value) for name, value in setting.value.options}
        return RolloutPlan(kind=setting.value.function, arguments=arguments, settings={**options, **settings})
    kind = setting.value.text if isinstance(setting.value, Word) else "predict"
    return RolloutPlan(kind=kind, settings=settings)


Mode = Literal["frozen", "trainable", "slow"]
_MODES: tuple[Mode, ...] = ("frozen", "trainable", "slow")


def resolve_skill(report: Reporter, skill: Entity) -> SkillPlan:
    """The skill of the program, with the name that its artifact will bear."""
    name = skill.name or ""
    about = _about(skill)
    load, present = word_of(skill, "load"), word_of(skill, "present")
    return SkillPlan(
        name=name,
        artifact=artifact_name(name),
        about=about,
        about_trainable=_about_is_trainable(skill),
        sections=tuple(_section(child) for child in skill.children if child.kind == "section"),
        title=_title(skill),
        frontmatter=_frontmatter(report, skill),
        load=cast('Literal["always", "on_demand"]', load or "always"),
        present=cast('Literal["advice", "rules"]', present or "rules"),
    )


def artifact_name(name: str) -> str:
    """The name by Agent Skills rules: `route_tickets` becomes `route-tickets`, no hyphen doubled or at an end."""
    return "-".join(part for part in name.lower().replace("-", "_").split("_") if part)


def _about(skill: Entity) -> str:
    """The description on one line, as the frontmatter of the artifact holds it."""
    return " ".join((text_of(skill, "about") or "").split())


def _about_is_trainable(skill: Entity) -> bool:
    setting = skill.settings.get("about")
    children = (word for child in skill.children if child.kind == "about" for word in child.words)
    words = (*(setting.words if setting is not None else ()), *children, *skill.words)
    return any("trainable" in word.split() for word in words)


def _section(section: Entity) -> SectionPlan:
    mode: Mode = next((mode for mode in _MODES if mode in section.words), "frozen")
    text = section.value if isinstance(section.value, str) else ""
    name, limit = section.name or "", count_of(section, "limit")
    return SectionPlan(name=name, mode=mode, text=text, limit=limit, title=_title(section))


def _title(entity: Entity) -> str | None:
    """A heading on one line, as markdown reads it back; None where the name makes it."""
    title = text_of(entity, "title")
    if title is None:
        return None
    found = heading(f"## {' '.join(title.split())}")
    return found.title if found else None


def _frontmatter(report: Reporter, skill: Entity) -> str:
    text, setting = text_of(skill, "frontmatter"), skill.settings.get("frontmatter")
    if text is None or setting is None or not text.strip():
        return ""
    keys = further_keys(text)
    if keys is None:
        hint = "write one key a line: `license: MIT`"
        message = "an agent can't load this `frontmatter`: it is not YAML"
        report.add("SK563", setting.source, setting.span, message, hint=hint)
    elif keys & {"name", "description"}:
        hint = "the skill's name and its `about` make `name` and `description`"
        message = "`frontmatter` repeats a key that the skill has already"
        report.add("SK563", setting.source, setting.span, message, hint=hint)
    return text.strip("\n")


_FILES = ("source", "train", "validation", "test")


def resolve_data(data: Entity) -> DataPlan:
    """The data of the program; a source without a split has the default one."""
    files = {name: text_of(data, name) for name in _FILES}
    split = _split(data) or (SplitPlan() if files["source"] is not None else None)
    fields = (field_plan(child) for child in data.children if child.kind == "field")
    return DataPlan(
        source=files["source"],
        train=files["train"],
        validation=files["validation"],
        test=files["test"],
        fields=tuple(sorted(fields, key=lambda field: field.name)),
        split=split,
        group=word_of(data, "group") or text_of(data, "group"),
        seed=count_of(data, "seed") or 0,
    )


def _split(data: Entity) -> SplitPlan | None:
    value = value_of(data, "split")
    if not isinstance(value, Shares):
        return None
    parts = [part.value for part in value.parts]
    parts += [Fraction(0)] * (3 - len(parts))
    if value.parts[0].unit == "examples":
        return SplitPlan(unit="examples", parts=tuple(parts))
    return SplitPlan(parts=_smallest(parts))


def _smallest(parts: list[Fraction]) -> tuple[Fraction, ...]:
    """The same ratio in the smallest whole numbers, so that `4 : 2 : 4` and `2 : 1 : 2` are one split."""
    scale = lcm(*(part.denominator for part in parts))
    whole = [int(part * scale) for part in parts]
    shared = gcd(*whole)
    return tuple(Fraction(part, shared) for part in whole)


def resolve_metrics(metrics: Sequence[CheckedMetric]) -> tuple[MetricPlan, ...]:
    """The metrics, each after those that it reads, else in the alphabet's order."""
    plans = {metric.name: _metric(metric) for metric in metrics}
    return tuple(plans[name] for name in _ordered({name: metrics_read(plan.term) for name, plan in plans.items()}))


def resolve_gates(gates: Sequence[CheckedGate]) -> tuple[GatePlan, ...]:
    """The gates in their declared order, which decides who is blamed."""
    return tuple(
        GatePlan(name=gate.name, term=gate.term, text=gate.text, stage=stage_of(gate.term), for_=gate.for_)
        for gate in gates
        if gate.kind == "gate"
    )


def resolve_requires(gates: Sequence[CheckedGate]) -> tuple[RequirePlan, ...]:
    """What is decided before the first step."""
    return tuple(
        RequirePlan(name=gate.name, term=gate.term, text=gate.text) for gate in gates if gate.kind == "require"
    )


def _metric(metric: CheckedMetric) -> MetricPlan:
    assert metric.low is not None and metric.high is not None, "the checker reports open ranges"
    return MetricPlan(
        name=metric.name,
        term=metric.term,
        unit=metric.unit,
        low=metric.low,
        high=metric.high,
        goal=metric.goal,
        declared=metric.declared,
    )


def _ordered(reads: dict[str, frozenset[str]]) -> list[str]:
    """Names such that each comes after those that it reads; of those that may come next, the first by alphabet.

    The checker reports cycles, so that every name gets its place.
    """
    missing = {name: read & reads.keys() for name, read in reads.items()}
    readers: dict[str, list[str]] = {name: [] for name in reads}
    for name, read in missing.items():
        for each in read:
            readers[each].append(name)
    waiting = {name: len(read) for name, read in missing.items()}
    free = sorted(name for name, count in waiting.items() if not count)
    placed: list[str] = []
    while free:
        placed.append(heappop(free))
        for name in readers[placed[-1]]:
            waiting[name] -= 1
            if not waiting[name]:
                heappush(free, name)
    return placed
