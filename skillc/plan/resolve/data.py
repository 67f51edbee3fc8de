"""The data: where examples come from, and how they are split."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

from skillc.language.checked import Entity, Shares
from skillc.plan.resolve.task import field_plan
from skillc.plan.resolve.values import Findings, count_of, text_of, value_of, word_of
from skillc.plan.schema import DataPlan, SplitPlan

_FILES = ("source", "train", "validation", "test")


def resolve_data(findings: Findings, data: Entity) -> DataPlan:
    """The data of the program. A source without a split is split 2 : 1 : 2 (LANGUAGE rule 14)."""
    files = {name: text_of(data, name) for name in _FILES}
    split = _split(findings, data)
    if not any(files.values()):
        findings.error("SK565", "the data names no file", data.source, data.span, 'write `source = "examples.jsonl"`')
    elif files["source"] is None:
        for side in ("train", "validation"):
            if files[side] is None:
                hint = f'write `{side} = "..."`, or one `source` that is split'
                findings.error("SK565", f"the data has no {side} file", data.source, data.span, hint)
    elif split is None:
        split = SplitPlan()
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


def _split(findings: Findings, data: Entity) -> SplitPlan | None:
    value = value_of(data, "split")
    if not isinstance(value, Shares):
        return None
    setting = data.settings["split"]
    parts = [part.value for part in value.parts]
    units = {part.unit for part in value.parts}
    if len(parts) not in (2, 3) or len(units) != 1 or any(part < 0 for part in parts) or 0 in parts[:2]:
        hint = "write `2 : 1 : 2`, or `80 examples : 40 examples : 280 examples`"
        message = "`split` is train : validation, or train : validation : test"
        findings.error("SK566", message, setting.source, setting.span, hint)
        return None
    parts += [Fraction(0)] * (3 - len(parts))
    if units == {"examples"}:
        return SplitPlan(unit="examples", parts=tuple(parts))
    return SplitPlan(parts=_smallest(parts))


def _smallest(parts: list[Fraction]) -> tuple[Fraction, ...]:
    """The same ratio in the smallest whole numbers, so that `4 : 2 : 4` and `2 : 1 : 2` are one split."""
    scale = lcm(*(part.denominator for part in parts))
    whole = [int(part * scale) for part in parts]
    shared = gcd(*whole)
    return tuple(Fraction(part, shared) for part in whole)
