from __future__ import annotations

import pytest

from skillc.diagnostics.suggest import suggest


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("acuracy", ["accuracy", "cost"], "accuracy"),
        ("secton", ["section", "skill"], "section"),
        ("tmie", ["time"], "time"),
        ("Target", ["target"], "target"),
        ("on-demand", ["on_demand"], "on_demand"),
        ("time", ["cost", "epochs"], None),
        ("a", ["b"], None),
        ("ab", ["ac"], "ac"),
        ("cost", ["cost"], None),
        ("cast", ["cost", "cant"], "cant"),
        ("", ["a"], None),
        ("x" * 10_000, ["x"], None),
    ],
)
def test_suggest(word: str, known: list[str], near: str | None) -> None:
    assert suggest(word, known) == near
