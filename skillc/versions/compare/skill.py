"""The document: its sections, who may change them, and how long they may become."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from skillc.document.opposite import marked
from skillc.plan.schema import SectionPlan
from skillc.versions.change import Bearing, Change, Place
from skillc.versions.compare.values import shown
from skillc.versions.version import Version

_FREEDOM = {"frozen": 0, "slow": 1, "trainable": 2}


def skill_changes(old: Version, new: Version) -> Iterator[Change]:
    """Name, description and sections."""
    before, after = old.plan.skill, new.plan.skill
    for name in ("name", "title", "frontmatter", "load", "present"):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield Change("skill", name, shown(one), shown(other), place=Place("skill", after.name, name))
    place = Place("skill", after.name, "about")
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
            "skill", "order of sections", shown(list(sections)), shown(list(now)), place=Place("skill", after.name)
        )


def _thawed(called: str, subject: str, was: bool, is_: bool, place: Place) -> Change:
    modes = ("trainable" if was else "frozen", "trainable" if is_ else "frozen")
    if was:
        return Change("skill", subject, *modes, "stricter", place=place)
    message = f"{called} was frozen, and the optimizer may change it now"
    return Change("skill", subject, *modes, "looser", "section-thawed", message, place=place)


def _section(old: SectionPlan | None, new: SectionPlan | None, labels: Collection[str]) -> Iterator[Change]:
    if old is None and new is not None:
        lines = tuple(f"+ {line}" for line in new.text.splitlines())
        yield Change("skill", f"{new.mode} section {new.name}", None, "", lines=lines, place=Place("section", new.name))
    elif new is None and old is not None:
        lines = tuple(f"- {line}" for line in old.text.splitlines())
        frozen = old.mode == "frozen"
        message = f"the frozen section `{old.name}` is gone"
        yield Change(
            "skill", f"{old.mode} section {old.name}", "", None, "looser" if frozen else "",
            "frozen-changed" if frozen else None, message, lines=lines, place=Place("section", old.name),
        )  # fmt: skip
    elif old is not None and new is not None:
        yield from _changed(old, new, labels)


def _changed(old: SectionPlan, new: SectionPlan, labels: Collection[str]) -> Iterator[Change]:
    place = Place("section", new.name)
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
    place = Place("section", new.name, "limit")
    return Change(
        "skill", f"section {new.name}: limit", before, after, "looser" if raised else "stricter",
        "limit-raised" if raised else None, message, place=place,
    )  # fmt: skip


def _lines(old: str, new: str, labels: Collection[str] = ()) -> tuple[str, ...]:
    """Both texts line by line, without what is the same but for a line on either side; opposites are pointed out."""
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    return marked([f"{line[:1]} {line[1:]}" for line in list(found)[2:] if not line.startswith("@@")], labels)
