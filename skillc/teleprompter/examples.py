"""DSPy's examples as skillc's, with ids that stay when rows are added or moved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillc.data.dataset import Dataset
from skillc.errors import SkillcError
from skillc.outcomes import Example
from skillc.teleprompter.rollouts import as_json

# Without a validation set, this share of the training set is kept for it.
_VALIDATION = 3


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """The examples of a run, and the user's own objects by id."""

    dataset: Dataset
    originals: Mapping[str, Any]


def example_set(
    train: Sequence[Any], validation: Sequence[Any] | None, test: Sequence[Any] | None, *, group: str | None, seed: int
) -> ExampleSet:
    """All examples. Without a validation set, a third of the training set by hash of seed and example takes its place.

    Args:
        train: examples with their inputs set.
        validation: that the gates are decided on.
        test: that are scored once, at the end.
        group: a key whose equal values belong together in the final test.
        seed: of the split.

    Raises:
        SkillcError: a set is empty, an example has no inputs, or it stands on two sides.
    """
    if not train:
        raise SkillcError("the training set is empty")
    ids = _Ids()
    sides = [[(ids.of(example), example) for example in side or ()] for side in (train, validation, test)]
    if validation is None:
        order = sorted(sides[0], key=lambda pair: hashlib.sha256(f"{seed}\0{pair[0]}".encode()).digest())
        kept = max(1, len(order) // _VALIDATION)
        sides[1], sides[0] = order[:kept], order[kept:]
    if not sides[0] or not sides[1]:
        raise SkillcError("training and validation need at least one example each")
    _apart(sides)
    made = [tuple(_example(id_, original, group) for id_, original in side) for side in sides]
    digest = hashlib.sha256(json.dumps([[e.id for e in side] for side in made]).encode()).hexdigest()
    dataset = Dataset(made[0], made[1], made[2], digest)
    return ExampleSet(dataset, {id_: original for side in sides for id_, original in side})


class _Ids:
    """Ids from content; equal rows are numbered."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, example: Any) -> str:
        told = json.dumps(as_json(example.toDict()), sort_keys=True)
        digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self._seen[digest] = self._seen.get(digest, 0) + 1
        return digest if self._seen[digest] == 1 else f"{digest}-{self._seen[digest]}"


def _apart(sides: Iterable[Sequence[tuple[str, Any]]]) -> None:
    """The test may share no example with what the run learns from or decides on."""
    train, validation, test = ({id_.partition("-")[0] for id_, _ in side} for side in sides)
    shared = test & (train | validation)
    if shared:
        raise SkillcError(
            f"{len(shared)} examples of the test set are in the training or validation set too",
            hint="keep them on one side: the verdict is only worth what the test set hides",
        )


def _example(id_: str, original: Any, group: str | None) -> Example:
    try:
        inputs = original.inputs().toDict()
    except ValueError:
        raise SkillcError("an example has no inputs", hint="say which they are: `example.with_inputs(...)`") from None
    gold = {name: value for name, value in original.toDict().items() if name not in inputs}
    return Example(
        id=id_,
        inputs={name: as_json(value) for name, value in inputs.items()},
        gold={name: as_json(value) for name, value in gold.items()},
        fields={},
        group=str(original[group]) if group is not None else id_,
    )
