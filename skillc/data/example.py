"""One data item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Example:
    """One data item, with values as JSON has them.

    Attributes:
        id: stable name: the row's own `id`, else a hash of its content. Unique over all splits.
        inputs: by name of the task's inputs.
        gold: by name of the task's outputs; a gold value that is a list means: any of them is right, unless the
            output itself is a list.
        fields: by name of the data fields that the program declares.
        group: the split group, the example's own id where the program names none.
    """

    id: str
    inputs: Mapping[str, JsonValue]
    gold: Mapping[str, JsonValue]
    fields: Mapping[str, JsonValue]
    group: str
