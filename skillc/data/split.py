"""Splits: the side of each example, and the examples that a skill was made with."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal

from skillc.errors import SkillcError
from skillc.json_values import canonical_ascii
from skillc.outcomes import Example
from skillc.plan.schema import SplitPlan
from skillc.text import counted, joined, listed

Side = Literal["train", "validation", "test"]
SIDES: tuple[Side, ...] = ("train", "validation", "test")


def rank(seed: int, name: str) -> int:
    """Return the position of a group or an example in hash order, 0 to 2^256."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).digest())


def split_groups(groups: Iterable[str], plan: SplitPlan, seed: int, *, file: str) -> Mapping[str, Side]:
    """Return the side of every group; a group without a side is left out.

    Shares: a group's side depends only on its hash, so that a new row never moves another group. The sizes approach the
    shares as the number of groups grows.

    Counts of examples: groups fill train, then validation, then test in hash order. A side is full as soon as it has
    its number of examples, and a large group may exceed it. The rest has no side. A new row can move the groups after
    it in hash order to the next side.

    Args:
        groups: the group of each example.
        plan: shares or counts.
        seed: chooses among equal splits.
        file: the data's name in messages.

    Raises:
        SkillcError: a side with a share would be empty, or there are fewer examples than counted.
    """
    sizes = Counter(groups)
    parts = [*plan.parts, Fraction(0), Fraction(0)][: len(SIDES)]
    sides = _by_share(sizes, parts, seed) if plan.unit == "share" else _by_count(sizes, parts, seed, file)
    _check_sizes(sizes, sides, parts, plan, file)
    return sides


def written(count: int) -> str:
    """Return a number of examples as a program writes it: `1 example`, `1200 examples`."""
    return "1 example" if count == 1 else f"{count} examples"


def _by_share(sizes: Mapping[str, int], parts: Sequence[Fraction], seed: int) -> dict[str, Side]:
    total = sum(parts)
    bounds = [bound * 2**256 / total for bound in itertools.accumulate(parts)]
    whole = [-(-bound.numerator // bound.denominator) for bound in bounds]
    sides: dict[str, Side] = {}
    for group in sizes:
        place = rank(seed, group)
        sides[group] = next(side for side, bound in zip(SIDES, whole, strict=True) if place < bound)
    return sides


def _by_count(sizes: Mapping[str, int], parts: Sequence[Fraction], seed: int, file: str) -> dict[str, Side]:
    there, needed = sum(sizes.values()), sum(parts)
    if there < needed:
        counts = " : ".join(written(int(part)) for part in parts if part)
        raise SkillcError(
            f"`split = {counts}` needs {needed} examples, {file} has {there}",
            hint="lower the counts, or split by shares: `split = 2 : 1 : 2`",
        )
    order = sorted(sizes, key=lambda group: (rank(seed, group), group))
    sides: dict[str, Side] = {}
    at = 0
    for side, part in zip(SIDES, parts, strict=True):
        filled = 0
        while filled < part and at < len(order):
            sides[order[at]] = side
            filled += sizes[order[at]]
            at += 1
    return sides


def _check_sizes(
    sizes: Mapping[str, int], sides: Mapping[str, Side], parts: Sequence[Fraction], plan: SplitPlan, file: str
) -> None:
    got = Counter[str]()
    for group, side in sides.items():
        got[side] += sizes[group]
    empty = [side for side, part in zip(SIDES, parts, strict=True) if part and not got[side]]
    if not empty:
        return
    on_sides = ", ".join(f"{side} {got[side]}" for side, part in zip(SIDES, parts, strict=True) if part)
    examples, groups = sum(sizes.values()), len(sizes)
    what = counted(examples, "example")
    if groups != examples:
        what += f" in {counted(groups, 'group')}"
    raise SkillcError(
        f"the split of {file} leaves {joined(empty)} empty: {what} fall on {on_sides}",
        hint=_fix(plan, parts, groups),
    )


def _fix(plan: SplitPlan, parts: Sequence[Fraction], groups: int) -> str:
    sides = sum(part > 0 for part in parts)
    if plan.unit == "examples" or groups < 2 * sides:
        return f"add more data: each of the {sides} sides needs its own groups"
    total = sum(parts)
    counts = [max(1, int(part * groups / total)) for part in parts if part]
    return f"split few examples by counts: `split = {' : '.join(written(count) for count in counts)}`"


_NAMED = 3
_DIGITS = 10
QUOTED_CHARACTERS = 24
"""The fewest characters of an input that is looked for in other texts."""


def marks(examples: Iterable[Example]) -> str:
    """Return short digests of the examples' ids, in order, so that a lock can list a hundred thousand of them."""
    return "".join(sorted(_digest_of(example) for example in examples))


def input_marks(examples: Iterable[Example]) -> str:
    """Return short digests of the examples' inputs, in order: the same example is known under another id too."""
    return "".join(sorted({_input_digest(example) for example in examples}))


def marked(examples: Iterable[Example], ids: str, inputs: str) -> list[str]:
    """Return the ids of the examples that `marks` or `input_marks` name, in order."""
    known_ids, known_inputs = ({text[i : i + _DIGITS] for i in range(0, len(text), _DIGITS)} for text in (ids, inputs))
    found = (each for each in examples if _digest_of(each) in known_ids or _input_digest(each) in known_inputs)
    return sorted(example.id for example in found)


def quoted(examples: Iterable[Example], text: str) -> list[str]:
    """Return the ids of the examples whose inputs are all in a text; short inputs are no evidence."""
    found = []
    for example in examples:
        inputs = [value.strip() for value in example.inputs.values() if isinstance(value, str)]
        inputs = [each for each in inputs if len(each) >= QUOTED_CHARACTERS]
        if inputs and all(each in text for each in inputs):
            found.append(example.id)
    return found


def _input_digest(example: Example) -> str:
    return hashlib.sha256(canonical_ascii(dict(example.inputs)).encode()).hexdigest()[:_DIGITS]


def _digest_of(example: Example) -> str:
    return hashlib.sha256(example.id.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]


def check_unused(used: str, test: Sequence[Example], *, skill: str) -> None:
    """Refuse to start from a skill that was trained or selected on examples of the current test split.

    `used` has the marks of the examples of its train and validation splits, from its lock.

    Raises:
        SkillcError: some examples are the same.
    """
    shared = marked(test, used, "")
    if not shared:
        return
    raise SkillcError(
        f"`{skill}` was made with {counted(len(shared), 'example')} of the current test split: "
        f"{listed(shared, most=_NAMED)}",
        hint="use the `seed`, `group` and `split` that it was made with, or test on new examples",
    )


def split_digest(examples: Sequence[Example]) -> str:
    """Return the digest of a split's inputs; other ids, labels, groups or another order make no new split."""
    inputs = {canonical_ascii(dict(e.inputs)) for e in examples}
    return hashlib.sha256("\n".join(sorted(inputs)).encode()).hexdigest()
