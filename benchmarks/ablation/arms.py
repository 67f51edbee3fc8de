"""The arms: each is the default with one switch turned, as `--set` takes it."""

from __future__ import annotations

from dataclasses import dataclass

Changes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """One change of the default.

    Attributes:
        name: as a program would say it.
        changes: settings of `optimize`.
        silent: why the simulated world cannot show what it is worth; empty where it can.
        worlds: whether it is run in the simulated world at all.
    """

    name: str
    changes: Changes
    silent: str = ""

    @property
    def settings(self) -> Changes:
        """For `plan_file`."""
        return tuple(f"optimize.{change}" for change in self.changes)


def _arm(*changes: str, silent: str = "") -> Arm:
    return Arm("; ".join(change.replace("=", " = ", 1) for change in changes), changes, silent)


DEFAULT = Arm("default", ())

GROUPS: dict[str, tuple[Arm, ...]] = {
    "Which edits are tried": (
        _arm("screen=0"),
        _arm("screen=1"),
        _arm("screen=6"),
        _arm("control=off"),
        _arm("together=off"),
        _arm("replay=0"),
        _arm("candidates=4"),
        _arm("retries=2"),
    ),
    "How gates are decided": (
        _arm("wave=8"),
        _arm("wave=1000"),
        _arm("samples=2"),
        _arm("speculate=off"),
        _arm("accept=always"),
        _arm("accept=always", "rollback=5%"),
    ),
    "How much changes, and how": (
        _arm("edits=constant(2)"),
        _arm("edits=constant(4)"),
        _arm("edits=constant(8)"),
        _arm("edits=constant(16)"),
        _arm("edits=linear(8, 2)"),
        _arm("edits=cosine(8, 2)"),
        _arm("edits=model"),
        _arm("update=rewrite_section"),
        _arm("update=rewrite_all"),
        _arm("accumulate=2"),
    ),
    "What the optimizer learns from": (
        _arm("successes=off"),
        _arm("rejected_buffer=off"),
        _arm("slow_update=off"),
        _arm("tidy=on"),
        _arm("pairs=changed"),
        _arm("pairs=unchanged"),
        _arm("rule_counts=on"),
        _arm("meta_skill=off", silent="its optimizer's odds are fixed, so memory teaches it nothing"),
        _arm("lapses=on", silent="its target follows a rule or slips at random; no reminder could help"),
        _arm("lookups=3", silent="its optimizer sees the cause of a failure at once, so it need not look"),
        _arm("sees=[feedback]", silent="its optimizer reads case numbers and needs no gold"),
    ),
}
ARMS: tuple[Arm, ...] = (DEFAULT, *(arm for group in GROUPS.values() for arm in group))
QUICK = (DEFAULT, *(arm for arm in ARMS if arm.name in ("screen = 0", "successes = off", "speculate = off")))
