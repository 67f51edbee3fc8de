"""Changes of the task and of the skill's declaration."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from skillc.document.change import annotate_opposites
from skillc.plan.schema import FieldPlan, SectionPlan, TypePlan
from skillc.versions.change import Anchor, Bearing, Change
from skillc.versions.compare.settings import fields_that_differ, shown
from skillc.versions.version import Version


def task_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of inputs, outputs and the rollout."""
    before, after = old.plan.task, new.plan.task
    yield from _fields("input", before.inputs, after.inputs)
    yield from _fields("output", before.outputs, after.outputs)
    for kind, one, other in (("inputs", before.inputs, after.inputs), ("outputs", before.outputs, after.outputs)):
        names, now = [field.name for field in one], [field.name for field in other]
        if names != now and sorted(names) == sorted(now):
            yield Change("task", f"order of {kind}", shown(names), shown(now), place=Anchor("task"))
    if before.rollout != after.rollout:
        place = Anchor("task", None, "rollout")
        yield Change("task", "rollout", shown(before.rollout), shown(after.rollout), place=place)


def _fields(kind: str, old: tuple[FieldPlan, ...], new: tuple[FieldPlan, ...]) -> Iterator[Change]:
    before, after = ({field.name: field for field in fields} for fields in (old, new))
    for name in before.keys() | after.keys():
        one, other = before.get(name), after.get(name)
        if one is None and other is not None:
            yield _added(kind, other)
        elif other is None and one is not None:
            yield _removed(kind, one)
        elif one is not None and other is not None:
            yield from _changed(kind, one, other)


def _added(kind: str, field: FieldPlan) -> Change:
    text, place = field.type.text, Anchor(kind, field.name)
    if kind == "output" or field.type.optional:
        return Change("task", f"{kind} {field.name}", None, text, place=place)
    message = f"the input `{field.name}` is new, and every caller has to give it"
    hint = f"make it one that may be left out: `input {field.name}: {text} | none`"
    return Change("task", f"{kind} {field.name}", None, text, "", "input-added", message, hint, place=place)


def _removed(kind: str, field: FieldPlan) -> Change:
    text = field.type.text
    if kind == "input":
        return Change("task", f"{kind} {field.name}", text, None, place=Anchor("task"))
    message = f"the output `{field.name}` is gone, and every caller that reads it fails"
    return Change(
        "task",
        f"{kind} {field.name}",
        text,
        None,
        "",
        "output-removed",
        message,
        place=Anchor("output", field.name),
    )


def _changed(kind: str, old: FieldPlan, new: FieldPlan) -> Iterator[Change]:
    subject, place = f"{kind} {new.name}", Anchor(kind, new.name)
    if old.type != new.type:
        before, after = old.type.text, new.type.text
        if kind == "input":
            wider = _fits(old.type, new.type)
            message = f"the input `{new.name}` no longer takes all that it took: `{before}` became `{after}`"
            yield Change("task", subject, before, after, "", None if wider else "input-changed", message, place=place)
        else:
            rule, message = _output_rule(new.name, old.type, new.type)
            yield Change("task", subject, before, after, "", rule, message, place=place)
    for name, one, other in fields_that_differ(old, new, but=("type", "name")):
        yield Change("task", f"{subject}: {name}", shown(one), shown(other), place=Anchor(kind, new.name, name))


def _output_rule(name: str, old: TypePlan, new: TypePlan) -> tuple[str | None, str]:
    gone = [label for label in old.labels if label not in new.labels]
    fresh = [label for label in new.labels if label not in old.labels]
    if old.kind == new.kind == "labels" and (gone or fresh) and not (new.optional and not old.optional):
        if gone:
            listed = ", ".join(f'`"{label}"`' for label in gone)
            return "labels-removed", f"the output `{name}` can no longer be {listed}"
        listed = ", ".join(f'`"{label}"`' for label in fresh)
        return "labels-added", f"the output `{name}` can be {listed} now, which callers may not know"
    if _fits(new, old):
        return None, ""
    return "output-changed", f"the output `{name}` was `{old.text}` and is `{new.text}`"


def _fits(narrow: TypePlan, wide: TypePlan) -> bool:
    """Return whether every value of one type is one of the other."""
    if narrow.optional and not wide.optional:
        return False
    if narrow.kind == "labels":
        return wide.kind == "text" or (wide.kind == "labels" and set(narrow.labels) <= set(wide.labels))
    if narrow.kind == "integer" and wide.kind == "number":
        return True
    if narrow.item is not None and wide.item is not None:
        return _fits(narrow.item, wide.item)
    return narrow.kind == wide.kind


_FREEDOM = {"frozen": 0, "slow": 1, "trainable": 2}


def skill_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of name, description and sections."""
    before, after = old.plan.skill, new.plan.skill
    for name in ("name", "title", "frontmatter", "load", "present"):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield Change("skill", name, shown(one), shown(other), place=Anchor("skill", after.name, name))
    place = Anchor("skill", after.name, "about")
    if before.about != after.about:
        yield Change("skill", "about", "", "", lines=_lines(before.about, after.about), place=place)
    if before.about_trainable != after.about_trainable:
        yield _thawed("`about`", "about", before.about_trainable, after.about_trainable, place)
    labels = [label for field in new.plan.task.outputs for label in field.type.labels]
    sections = {section.name: section for section in before.sections}
    now = {section.name: section for section in after.sections}
    for name in [*sections, *(each for each in now if each not in sections)]:
        yield from _section(sections.get(name), now.get(name), labels)
    names = [name for name in sections if name in now]
    if names != [name for name in now if name in sections]:
        yield Change(
            "skill", "order of sections", shown(list(sections)), shown(list(now)), place=Anchor("skill", after.name)
        )


def _thawed(called: str, subject: str, was: bool, is_: bool, place: Anchor) -> Change:
    modes = ("trainable" if was else "frozen", "trainable" if is_ else "frozen")
    if was:
        return Change("skill", subject, *modes, "stricter", place=place)
    message = f"{called} was frozen, and the optimizer may change it now"
    return Change("skill", subject, *modes, "looser", "section-thawed", message, place=place)


def _section(old: SectionPlan | None, new: SectionPlan | None, labels: Collection[str]) -> Iterator[Change]:
    if old is None and new is not None:
        lines = tuple(f"+ {line}" for line in new.text.splitlines())
        yield Change(
            "skill", f"{new.mode} section {new.name}", None, "", lines=lines, place=Anchor("section", new.name)
        )
    elif new is None and old is not None:
        lines = tuple(f"- {line}" for line in old.text.splitlines())
        frozen = old.mode == "frozen"
        message = f"the frozen section `{old.name}` is gone"
        yield Change(
            "skill", f"{old.mode} section {old.name}", "", None, "looser" if frozen else "",
            "frozen-changed" if frozen else None, message, lines=lines, place=Anchor("section", old.name),
        )  # fmt: skip
    elif old is not None and new is not None:
        yield from _changed_section(old, new, labels)


def _changed_section(old: SectionPlan, new: SectionPlan, labels: Collection[str]) -> Iterator[Change]:
    place = Anchor("section", new.name)
    if old.mode != new.mode:
        thawed = old.mode == "frozen"
        bearing: Bearing = "looser" if _FREEDOM[new.mode] > _FREEDOM[old.mode] else "stricter"
        message = f"the section `{new.name}` was frozen, and the optimizer may change it now"
        rule = "section-thawed" if thawed else None
        yield Change("skill", f"section {new.name}", old.mode, new.mode, bearing, rule, message, place=place)
    if old.title != new.title:
        yield Change("skill", f"section {new.name}: title", shown(old.title), shown(new.title), place=place)
    if old.text != new.text:
        frozen = old.mode == "frozen"
        message = f"the text of the frozen section `{new.name}` changed"
        yield Change(
            "skill", f"{new.mode} section {new.name}", "", "", "",
            "frozen-changed" if frozen else None, message, lines=_lines(old.text, new.text, labels), place=place,
        )  # fmt: skip
    if old.limit != new.limit and "frozen" not in (old.mode, new.mode):
        yield _limit(old, new)


def _limit(old: SectionPlan, new: SectionPlan) -> Change:
    raised = old.limit is not None and (new.limit is None or new.limit > old.limit)
    before, after = (shown(limit, "tokens") if limit is not None else "no limit" for limit in (old.limit, new.limit))
    message = f"the section `{new.name}` may become longer: {before} became {after}"
    place = Anchor("section", new.name, "limit")
    return Change(
        "skill", f"section {new.name}: limit", before, after, "looser" if raised else "stricter",
        "limit-raised" if raised else None, message, place=place,
    )  # fmt: skip


def _lines(old: str, new: str, labels: Collection[str] = ()) -> tuple[str, ...]:
    """Diff two texts by line with one line of context, and point out opposites."""
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    return annotate_opposites(
        [f"{line[:1]} {line[1:]}" for line in list(found)[2:] if not line.startswith("@@")], labels
    )
