"""A skill to start from that was made from other examples: none of those it learnt from may stand on test now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from skillc.data.example import Example
from skillc.errors import SkillcError
from skillc.json_values import canonical_ascii
from skillc.text import counted, listed

_NAMED = 3


_MARK = 10


def marks(examples: Iterable[Example]) -> str:
    """The examples by a short digest of their ids, in order, so that a lock can list a hundred thousand of them."""
    return "".join(sorted(_mark(example) for example in examples))


def _mark(example: Example) -> str:
    return hashlib.sha256(example.id.encode(errors="surrogatepass")).hexdigest()[:_MARK]


def check_unused(used: str, test: Sequence[Example], *, skill: str) -> None:
    """Refuses a start from a skill that was trained, or selected, on examples of the present test split.

    Args:
        used: marks of the examples that its lock lists as used: of its training and of its validation split.
        test: the present test split.
        skill: how the program names the skill that it starts from.

    Raises:
        SkillcError: some are the same; the message says how many, and names the first.
    """
    known = {used[i : i + _MARK] for i in range(0, len(used), _MARK)}
    shared = sorted(example.id for example in test if _mark(example) in known)
    if not shared:
        return
    raise SkillcError(
        f"`{skill}` was made with {counted(len(shared), 'example')} that the test split holds now: "
        f"{listed(shared, most=_NAMED)}",
        hint="split with the `seed`, `group` and `split` that it was made with, or test on new examples",
    )


def split_digest(examples: Sequence[Example]) -> str:
    """Names a test split by its inputs alone: other ids, labels or groups, or another order, make no new split."""
    inputs = {canonical_ascii(dict(e.inputs)) for e in examples}
    return hashlib.sha256("\n".join(sorted(inputs)).encode()).hexdigest()
