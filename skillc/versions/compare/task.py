"""Changes of the task and of the skill's declaration."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from skillc.document.change import annotate_opposites
from skillc.json_values import fields_of
from skillc.plan.schema import FieldPlan, SectionPlan, SkillPlan, TypePlan
from skillc.versions.change import Anchor, Bearing, Change
from skillc.versions.compare.settings import entries_that_differ, fields_that_differ, render_value
from skillc.versions.version import Version


def task_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of inputs, outputs and the rollout."""
    before, after = old.plan.task, new.plan.task
    yield from _fields("input", before.inputs, after.inputs)
    yield from _fields("output", before.outputs, after.outputs)
    for kind, one, other in (("inputs", before.inputs, after.inputs), ("outputs", before.outputs, after.outputs)):
        names, now = [field.name for field in one], [field.name for field in other]
        if names != now and sorted(names) == sorted(now):
            yield Change("task", f"order of {kind}", render_value(names), render_value(now), Anchor("task"))
    if before.rollout != after.rollout:
        values = render_value(before.rollout), render_value(after.rollout)
        yield Change("task", "rollout", *values, Anchor("task", None, "rollout"))


def _fields(kind: str, old: tuple[FieldPlan, ...], new: tuple[FieldPlan, ...]) -> Iterator[Change]:
    before, after = ({field.name: field for field in fields} for fields in (old, new))
    for _, one, other in entries_that_differ(before, after):
        if one is not None and other is not None:
            yield from _changed_field(kind, one, other)
        elif other is not None:
            yield _added_field(kind, other)
        elif one is not None:
            yield _removed_field(kind, one)


def _added_field(kind: str, field: FieldPlan) -> Change:
    subject, text, anchor = f"{kind} {field.name}", field.type.text, Anchor(kind, field.name)
    if kind == "output" or field.type.optional:
        return Change("task", subject, None, text, anchor)
    message = f"the input `{field.name}` is new, and every caller must provide it"
    hint = f"make it optional: `input {field.name}: {text} | none`"
    return Change("task", subject, None, text, anchor, "input-added", message, hint)


def _removed_field(kind: str, field: FieldPlan) -> Change:
    subject, text = f"{kind} {field.name}", field.type.text
    if kind == "input":
        return Change("task", subject, text, None, Anchor("task"))
    message = f"the output `{field.name}` is gone, and every caller that reads it fails"
    return Change("task", subject, text, None, Anchor("output", field.name), "output-removed", message)


def _changed_field(kind: str, old: FieldPlan, new: FieldPlan) -> Iterator[Change]:
    subject = f"{kind} {new.name}"
    if old.type != new.type:
        before, after = old.type.text, new.type.text
        rule, message = _output_rule(new.name, old.type, new.type)
        if kind == "input":
            rule = None if _fits(old.type, new.type) else "input-changed"
            message = f"the input `{new.name}` no longer accepts all its old values: `{before}` became `{after}`"
        yield Change("task", subject, before, after, Anchor(kind, new.name), rule, message)
    for name, one, other in fields_that_differ(old, new, but=("type", "name")):
        anchor = Anchor(kind, new.name, name)
        yield Change("task", f"{subject}: {name}", render_value(one), render_value(other), anchor)


def _output_rule(name: str, old: TypePlan, new: TypePlan) -> tuple[str | None, str]:
    gone = ", ".join(f'`"{label}"`' for label in old.labels if label not in new.labels)
    added = ", ".join(f'`"{label}"`' for label in new.labels if label not in old.labels)
    if old.kind == new.kind == "labels" and (gone or added) and not (new.optional and not old.optional):
        if gone:
            return "labels-removed", f"the output `{name}` can no longer be {gone}"
        return "labels-added", f"the output `{name}` can also be {added} now, which callers may not expect"
    if _fits(new, old):
        return None, ""
    return "output-changed", f"the output `{name}` was `{old.text}` and is `{new.text}`"


def _fits(narrow: TypePlan, wide: TypePlan) -> bool:
    """Return whether every value of one type is a value of the other."""
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
    for name in ("name", "title", "frontmatter", "load", "present", "files"):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield Change("skill", name, render_value(one), render_value(other), Anchor("skill", after.name, name))
    yield from _about(before, after)
    labels = [label for field in new.plan.task.outputs for label in field.type.labels]
    sections = {section.name: section for section in before.sections}
    now = {section.name: section for section in after.sections}
    for name in {**sections, **now}:
        yield from _section(sections.get(name), now.get(name), labels)
        yield from _script_files(old, new, sections.get(name), now.get(name))
    if [name for name in sections if name in now] != [name for name in now if name in sections]:
        values = render_value(list(sections)), render_value(list(now))
        yield Change("skill", "order of sections", *values, Anchor("skill", after.name))


def _about(old: SkillPlan, new: SkillPlan) -> Iterator[Change]:
    anchor = Anchor("skill", new.name, "about")
    if old.about != new.about:
        yield Change("skill", "about", "", "", anchor, lines=_diff(old.about, new.about))
    if old.about_trainable and not new.about_trainable:
        yield Change("skill", "about", "trainable", "frozen", anchor, stated="stricter")
    elif new.about_trainable and not old.about_trainable:
        message = "`about` was frozen, and the optimizer may change it now"
        yield Change("skill", "about", "frozen", "trainable", anchor, "section-thawed", message)


def _section(old: SectionPlan | None, new: SectionPlan | None, labels: Collection[str]) -> Iterator[Change]:
    if old is not None and new is not None:
        yield from _changed_section(old, new, labels)
    elif new is not None:
        lines = tuple(f"+ {line}" for line in new.text.splitlines())
        yield Change("skill", f"{new.mode} section {new.name}", None, "", Anchor("section", new.name), lines=lines)
    elif old is not None:
        subject, anchor = f"{old.mode} section {old.name}", Anchor("section", old.name)
        lines = tuple(f"- {line}" for line in old.text.splitlines())
        if old.mode == "frozen":
            message = f"the frozen section `{old.name}` is gone"
            yield Change("skill", subject, "", None, anchor, "frozen-changed", message, stated="looser", lines=lines)
        else:
            yield Change("skill", subject, "", None, anchor, lines=lines)


def _changed_section(old: SectionPlan, new: SectionPlan, labels: Collection[str]) -> Iterator[Change]:
    name, anchor, was_frozen = f"section {new.name}", Anchor("section", new.name), old.mode == "frozen"
    if old.mode != new.mode:
        looser = _FREEDOM[new.mode] > _FREEDOM[old.mode]
        message = f"the section `{new.name}` was frozen, and the optimizer may change it now"
        rule = "section-thawed" if was_frozen else None
        bearing: Bearing = "looser" if looser else "stricter"
        yield Change("skill", name, old.mode, new.mode, anchor, rule, message, stated=bearing)
    for setting in ("title", "file", "about"):
        one, other = getattr(old, setting), getattr(new, setting)
        if one != other:
            place = Anchor("section", new.name, setting)
            yield Change("skill", f"{name}: {setting}", render_value(one), render_value(other), place)
    if old.rename != new.rename:
        place = Anchor("section", new.name, "rename")
        bearing = "looser" if new.rename else "stricter"
        before, after = (render_value(bool(each.rename)) for each in (old, new))
        yield Change("skill", f"{name}: rename", before, after, place, stated=bearing)
    yield from _tests(old, new)
    if old.text != new.text:
        rule, message = "frozen-changed", f"the text of the frozen section `{new.name}` changed"
        lines = _diff(old.text, new.text, labels)
        yield Change("skill", f"{new.mode} {name}", "", "", anchor, rule if was_frozen else None, message, lines=lines)
    if old.limit != new.limit and "frozen" not in (old.mode, new.mode):
        yield _limit(old, new)


def _tests(old: SectionPlan, new: SectionPlan) -> Iterator[Change]:
    """Yield changes of the tests of a script."""
    if old.tests == new.tests:
        return
    before, after = ({} if each is None else fields_of(each) for each in (old.tests, new.tests))
    for setting in {**before, **after}:
        was, now = (None if (value := each.get(setting)) in (None, (), []) else str(value) for each in (before, after))
        if was != now:
            subject = f"section {new.name}: {'tests' if setting == 'path' else f'{setting} of tests'}"
            yield Change("skill", subject, was, now, Anchor("section", new.name, "tests"))


def _script_files(
    before: Version, after: Version, old: SectionPlan | None, new: SectionPlan | None
) -> Iterator[Change]:
    """Yield changes of the file that a script begins with, and of its tests if they are one file at the same path."""
    if old is None or new is None or old.tests is None or new.tests is None:
        return
    first = tuple(f"{each.plan.skill.files}/{new.file}" for each in (before, after))
    for what, paths in ((f"script {new.name}", first), (f"tests of {new.name}", (old.tests.path, new.tests.path))):
        one, other = (version.read(path) for version, path in zip((before, after), paths, strict=True))
        if paths[0] == paths[1] and one is not None and other is not None and one != other:
            lines = _diff(*(each.decode(errors="replace") for each in (one, other)))
            yield Change("skill", what, "", "", Anchor("section", new.name), lines=lines)


def _limit(old: SectionPlan, new: SectionPlan) -> Change:
    raised = old.limit is not None and (new.limit is None or new.limit > old.limit)
    before, after = (
        render_value(limit, "tokens") if limit is not None else "no limit" for limit in (old.limit, new.limit)
    )
    message = f"the section `{new.name}` may become longer: {before} became {after}"
    subject, anchor = f"section {new.name}: limit", Anchor("section", new.name, "limit")
    if raised:
        return Change("skill", subject, before, after, anchor, "limit-raised", message)
    return Change("skill", subject, before, after, anchor, stated="stricter")


def _diff(old: str, new: str, labels: Collection[str] = ()) -> tuple[str, ...]:
    """Diff two texts by line with one line of context, and mark opposites."""
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    return annotate_opposites(
        [f"{line[:1]} {line[1:]}" for line in list(found)[2:] if not line.startswith("@@")], labels
    )
