"""From a checked program to its plan, with every default filled in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from math import gcd, lcm
from typing import cast, get_args

from skillc.diagnostics.diagnostic import Diagnostic, Reporter
from skillc.document.markdown import heading
from skillc.document.skill import Mode
from skillc.document.skill_md import further_keys
from skillc.gates.stages import stage_of
from skillc.gates.terms import metrics_read
from skillc.language.checked import Checked, CheckedMetric, Entity, FieldType, Invocation, Items, Setting, Shares, Word
from skillc.language.loop import BudgetPlan, OptimizePlan
from skillc.plan.judges import rubric_of_entity
from skillc.plan.models import resolve_models
from skillc.plan.schema import (
    CutPart,
    DataPlan,
    ExecutorPlan,
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
    TestsPlan,
    TypePlan,
    artifact_name,
)
from skillc.plan.settings import block_plan, count_of, plain, plain_block, text_of, value_of, word_of
from skillc.syntax.files import resolve_path
from skillc.syntax.source import Span


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """The plan of a program, None if it has errors or is a library, and the diagnostics of resolving."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...] = ()


def resolve(checked: Checked) -> ResolvedPlan:
    """Resolve a checked program; one with errors has no plan and gets no further diagnostics."""
    if checked.broken:
        return ResolvedPlan(None)
    report = Reporter()
    found = {
        kind: tuple(e for e in checked.entities if e.kind == kind)
        for kind in ("task", "skill", "data", "model", "rubric")
    }
    if not _is_compilable(report, checked):
        return ResolvedPlan(None, report.diagnostics())
    (task,), (data,) = found["task"], found["data"]
    skill, *others = sorted(found["skill"], key=lambda each: not _is_trained(each))
    skill_plan, *other_plans = (_skill(report, each) for each in (skill, *others))
    if report.errors:
        return ResolvedPlan(None, report.diagnostics())
    settings = {entity.kind: entity for entity in checked.entities if entity.name is None}
    gates = [gate for gate in checked.gates if gate.kind == "gate"]
    requires = [gate for gate in checked.gates if gate.kind == "require"]
    plan = Plan(
        language=checked.version,
        task=_task(task),
        skill=skill_plan,
        others=tuple(other_plans),
        models=resolve_models(found["model"]),
        data=_data(data),
        metrics=resolve_metrics(checked.metrics),
        optimize=block_plan(OptimizePlan, settings.get("optimize")),
        budget=block_plan(BudgetPlan, settings.get("budget")),
        # In declared order, which decides which failed gate is reported.
        gates=tuple(
            GatePlan(name=each.name, term=each.term, text=each.text, stage=stage_of(each.term), for_=each.for_)
            for each in gates
        ),
        requires=tuple(RequirePlan(name=each.name, term=each.term, text=each.text) for each in requires),
        required_verdict=checked.required.verdict if checked.required is not None else None,
        rubrics={
            **{rubric.name or "": rubric_of_entity(rubric) for rubric in found["rubric"]},
            **{name: rubric_of_entity(rubric) for name, rubric in sorted(checked.rubrics.items())},
        },
    )
    return ResolvedPlan(plan, report.diagnostics())


def _is_compilable(report: Reporter, checked: Checked) -> bool:
    """Report a library, which has nothing to compile; return whether the program is none."""
    source, start = checked.program.source, Span(0, min(1, len(checked.program.source.text)))
    if checked.library:
        hint = "compile a program that uses it"
        report.add("SK559", source, start, f"`{source.name}` only declares what other programs use", hint=hint)
    return not report.errors


# ---- task -----------------------------------------------------------------------------------------


def _task(task: Entity) -> TaskPlan:
    rollout = task.settings.get("rollout")
    return TaskPlan(
        inputs=_fields(task, "input"),
        outputs=_fields(task, "output"),
        rollout=_rollout(rollout) if rollout is not None else RolloutPlan(),
        executor=_executor(task.settings.get("executor")),
    )


def _executor(setting: Setting | None) -> ExecutorPlan | None:
    if setting is None or not isinstance(setting.value, Word) or setting.value.text != "ray":
        return None
    return ExecutorPlan.model_validate(plain_block(setting.block))


def _fields(entity: Entity, kind: str) -> tuple[FieldPlan, ...]:
    """Inputs, outputs, or columns of the data; the column has the name of the field unless another is declared."""
    return tuple(
        FieldPlan(
            name=child.name or "",
            type=_type(child.type or FieldType("text")),
            column=text_of(child, "column") or child.name or "",
            about=text_of(child, "about"),
            limit=count_of(child, "limit"),
            cut=cast(CutPart | None, word_of(child, "cut")),
            pixels=count_of(child, "pixels"),
        )
        for child in entity.children
        if child.kind == kind
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


# ---- skill ----------------------------------------------------------------------------------------


def _skill(report: Reporter, skill: Entity) -> SkillPlan:
    name = skill.name or ""
    return SkillPlan.model_validate(
        {
            "name": name,
            "artifact": artifact_name(name),
            "about": " ".join((text_of(skill, "about") or "").split()),
            "about_trainable": _is_about_trainable(skill),
            "sections": tuple(_section(child) for child in skill.children if child.kind == "section"),
            "title": _title(skill),
            "frontmatter": _frontmatter(report, skill),
            "load": word_of(skill, "load") or "always",
            "beside": _texts(skill, "beside"),
            "present": word_of(skill, "present") or "rules",
            "files": _files(skill),
        }
    )


def _is_about_trainable(skill: Entity) -> bool:
    setting = skill.settings.get("about")
    children = (word for child in skill.children if child.kind == "about" for word in child.words)
    words = (*(setting.words if setting is not None else ()), *children, *skill.words)
    return any("trainable" in word.split() for word in words)


def _is_trained(skill: Entity) -> bool:
    """Whether a compile can change a skill."""
    return _is_about_trainable(skill) or any({"trainable", "slow"} & set(child.words) for child in skill.children)


def _texts(entity: Entity, name: str) -> tuple[str, ...]:
    value = value_of(entity, name)
    return tuple(item for item in value.items if isinstance(item, str)) if isinstance(value, Items) else ()


def _section(section: Entity) -> SectionPlan:
    mode: Mode = next((mode for mode in get_args(Mode) if mode in section.words), "frozen")
    text = section.value if isinstance(section.value, str) else ""
    name, limit = section.name or "", count_of(section, "limit")
    file, about = text_of(section, "file"), " ".join((text_of(section, "about") or "").split()).rstrip(".:")
    rename = True if value_of(section, "rename") is True else None
    return SectionPlan(
        name=name,
        mode=mode,
        text=text,
        limit=limit,
        title=_title(section),
        file=file,
        about=about or None,
        rename=rename,
        tests=_tests(section),
    )


def _tests(section: Entity) -> TestsPlan | None:
    setting = section.settings.get("tests")
    if setting is None or not isinstance(setting.value, str):
        return None
    return TestsPlan.model_validate({**plain_block(setting.block), "path": resolve_path(setting.value, "")})


def _files(skill: Entity) -> str | None:
    """The folder of kept files, in the shortest form of its path."""
    written = text_of(skill, "files")
    return resolve_path(written, "") if written is not None else None


def _title(entity: Entity) -> str | None:
    """A heading on one line, as markdown reads it; None if it is made from the name."""
    title = text_of(entity, "title")
    found = heading(f"## {' '.join(title.split())}") if title is not None else None
    return found.title if found else None


def _frontmatter(report: Reporter, skill: Entity) -> str:
    text, setting = text_of(skill, "frontmatter"), skill.settings.get("frontmatter")
    if text is None or setting is None or not text.strip():
        return ""
    keys = further_keys(text)
    if keys is None:
        message, hint = "`frontmatter` is not YAML, so no agent can load it", "write one key a line: `license: MIT`"
        report.add("SK563", setting.source, setting.span, message, hint=hint)
    elif keys & {"name", "description"}:
        hint = "`name` and `description` are made from the skill's name and its `about`"
        report.add("SK563", setting.source, setting.span, "`frontmatter` repeats a key of the skill", hint=hint)
    return text.strip("\n")


# ---- data -----------------------------------------------------------------------------------------


def _data(data: Entity) -> DataPlan:
    """The data of the program; a source without a split has the default one."""
    source = text_of(data, "source")
    return DataPlan(
        source=source,
        train=text_of(data, "train"),
        validation=text_of(data, "validation"),
        test=text_of(data, "test"),
        fields=tuple(sorted(_fields(data, "field"), key=lambda field: field.name)),
        split=_split(data) or (SplitPlan() if source is not None else None),
        group=word_of(data, "group") or text_of(data, "group"),
        seed=count_of(data, "seed") or 0,
    )


def _split(data: Entity) -> SplitPlan | None:
    """The declared split; shares in the smallest whole numbers, so that `4 : 2 : 4` and `2 : 1 : 2` are equal."""
    value = value_of(data, "split")
    if not isinstance(value, Shares):
        return None
    parts = [part.value for part in value.parts]
    parts += [Fraction(0)] * (3 - len(parts))
    if value.parts[0].unit == "examples":
        return SplitPlan(unit="examples", parts=tuple(parts))
    scale = lcm(*(part.denominator for part in parts))
    whole = [int(part * scale) for part in parts]
    return SplitPlan(parts=tuple(Fraction(part, gcd(*whole)) for part in whole))


# ---- metrics --------------------------------------------------------------------------------------


def resolve_metrics(metrics: Iterable[CheckedMetric]) -> tuple[MetricPlan, ...]:
    """Sort metrics so that each comes after those that it reads, else by name."""
    plans = {metric.name: _metric(metric) for metric in metrics}
    # The checker rejects cycles.
    sorter = TopologicalSorter({name: metrics_read(plan.term) & plans.keys() for name, plan in plans.items()})
    sorter.prepare()
    ready: list[str] = []
    placed: list[MetricPlan] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, name)
        name = heappop(ready)
        placed.append(plans[name])
        sorter.done(name)
    return tuple(placed)


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
