"""From a checked program to its plan, with every default filled in."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from math import gcd, lcm
from typing import cast, get_args

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Reporter
from skillc.document.markdown import heading
from skillc.document.skill import Mode
from skillc.document.skill_md import further_keys
from skillc.gates.stages import stage_of
from skillc.gates.terms import metrics_read
from skillc.language.checked import (
    Checked,
    CheckedMetric,
    Entity,
    FieldType,
    Invocation,
    Setting,
    Settings,
    Shares,
    count_of,
    is_trained,
    items_of,
    of_kind,
    text_of,
    value_of,
    word_of,
)
from skillc.language.loop import BudgetPlan, EvolvePlan, OptimizePlan
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
from skillc.plan.settings import block_plan, plain, plain_block
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
    report, source = Reporter(), checked.program.source
    if checked.library:
        place, hint = Span(0, min(1, len(source.text))), "compile a program that uses it"
        report.add("SK559", source, place, f"`{source.name}` only declares what other programs use", hint=hint)
        return ResolvedPlan(None, report.diagnostics())
    (task,), (data,) = (of_kind(checked.entities, kind) for kind in ("task", "data"))
    skills = sorted(of_kind(checked.entities, "skill"), key=lambda each: not is_trained(each))
    skill_plan, *other_plans = (_skill(report, each) for each in skills)
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
        models=resolve_models(of_kind(checked.entities, "model")),
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
            **{rubric.name or "": rubric_of_entity(rubric) for rubric in of_kind(checked.entities, "rubric")},
            **{name: rubric_of_entity(rubric) for name, rubric in sorted(checked.rubrics.items())},
        },
        evolve=block_plan(EvolvePlan, settings["evolve"]) if "evolve" in settings else None,
    )
    return ResolvedPlan(plan, report.diagnostics())


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
    if setting is None or setting.word != "ray":
        return None
    return ExecutorPlan.model_validate(plain_block(setting.block))


def _fields(entity: Entity, kind: str) -> tuple[FieldPlan, ...]:
    """Inputs, outputs, or columns of the data; the column has the name of the field unless another is declared."""
    return tuple(
        FieldPlan(
            name=child.name or "",
            type=_type(child.type or FieldType("text")),
            column=text_of(child.settings, "column") or child.name or "",
            about=text_of(child.settings, "about"),
            limit=count_of(child.settings, "limit"),
            cut=cast(CutPart | None, word_of(child.settings, "cut")),
            pixels=count_of(child.settings, "pixels"),
        )
        for child in entity.children_of(kind)
    )


def _type(type_: FieldType) -> TypePlan:
    item = _type(type_.item) if type_.item is not None else None
    return TypePlan(kind=type_.kind, labels=type_.labels, item=item, optional=type_.optional)


def _rollout(setting: Setting) -> RolloutPlan:
    call = setting.value if isinstance(setting.value, Invocation) else Invocation(setting.word)
    return RolloutPlan(
        kind=call.function,
        arguments=tuple(map(plain, call.arguments)),
        settings={**{name: plain(value) for name, value in call.options}, **plain_block(setting.block)},
    )


# ---- skill ----------------------------------------------------------------------------------------


def _skill(report: Reporter, skill: Entity) -> SkillPlan:
    name, settings = skill.name or "", skill.settings
    return SkillPlan.model_validate(
        {
            "name": name,
            "artifact": artifact_name(name),
            "about": _on_one_line(settings, "about"),
            "about_trainable": any("trainable" in each.words for each in skill.children_of("about")),
            "sections": tuple(_section(child) for child in skill.children_of("section")),
            "title": _title(settings),
            "frontmatter": _frontmatter(report, settings),
            "load": word_of(settings, "load") or "always",
            "beside": tuple(each for each in items_of(settings, "beside") if isinstance(each, str)),
            "present": word_of(settings, "present") or "rules",
            "files": _path(settings, "files"),
        }
    )


def _section(section: Entity) -> SectionPlan:
    mode: Mode = next((mode for mode in get_args(Mode) if mode in section.words), "frozen")
    settings = section.settings
    return SectionPlan(
        name=section.name or "",
        mode=mode,
        text=section.text,
        limit=count_of(settings, "limit"),
        title=_title(settings),
        file=text_of(settings, "file"),
        about=_on_one_line(settings, "about").rstrip(".:") or None,
        rename=value_of(settings, "rename") is True or None,
        tests=_tests(settings),
    )


def _tests(settings: Settings) -> TestsPlan | None:
    path = _path(settings, "tests")
    if path is None:
        return None
    return TestsPlan.model_validate({**plain_block(settings["tests"].block), "path": path})


def _path(settings: Settings, name: str) -> str | None:
    """A path beside the program, in its shortest form."""
    written = text_of(settings, name)
    return resolve_path(written, "") if written is not None else None


def _on_one_line(settings: Settings, name: str) -> str:
    return " ".join((text_of(settings, name) or "").split())


def _title(settings: Settings) -> str | None:
    """A heading on one line, as markdown reads it; None if it is made from the name."""
    if "title" not in settings:
        return None
    found = heading(f"## {_on_one_line(settings, 'title')}")
    return found.title if found else None


def _frontmatter(report: Reporter, settings: Settings) -> str:
    text = text_of(settings, "frontmatter") or ""
    if not text.strip():
        return ""
    keys, setting = further_keys(text), settings["frontmatter"]
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
    settings, source = data.settings, text_of(data.settings, "source")
    return DataPlan(
        source=source,
        train=text_of(settings, "train"),
        validation=text_of(settings, "validation"),
        test=text_of(settings, "test"),
        fields=tuple(sorted(_fields(data, "field"), key=lambda field: field.name)),
        split=_split(settings) or (SplitPlan() if source is not None else None),
        group=word_of(settings, "group"),
        seed=count_of(settings, "seed") or 0,
    )


def _split(settings: Settings) -> SplitPlan | None:
    """The declared split; shares in the smallest whole numbers, so that `4 : 2 : 4` and `2 : 1 : 2` are equal."""
    value = value_of(settings, "split")
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
