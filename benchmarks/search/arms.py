"""Worlds, and arms as changes of one program. The parameters of the worlds were fixed before the first run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.search.mixed import Mix, Odds
from benchmarks.search.world import Settings

PLAIN = Settings()
WORLDS: Mapping[str, tuple[str, Settings]] = {
    "plain": ("the parameters above", PLAIN),
    "more noise": ("slip 0.10", replace(PLAIN, slip=0.10)),
    "no pairs": ("no rules that only work together", replace(PLAIN, pairs=0)),
    "more pairs": ("8 single rules, 6 pairs", replace(PLAIN, singles=8, pairs=6)),
    "more harm": ("odds 0.30, 0.20, 0.50", replace(PLAIN, odds=(0.30, 0.20, 0.50))),
    "tempting harm": ("18 of 24 harmful rules mend half of one failure", replace(PLAIN, harmful=6, tempting=18)),
    "small validation": ("50 validation examples", replace(PLAIN, validation=50)),
}

RECORDED = Mix()
STRONG = replace(RECORDED, right=0.75)


def _of(*odds: float) -> Mix:
    """The same odds for edits and drafts, with contrast and without."""
    same = Odds(*odds)
    return replace(RECORDED, edits=same, edits_contrast=same, drafts=same, drafts_contrast=same)


MIXED: Mapping[str, tuple[str, Mix]] = {
    "recorded, 30 % right": ("the parameters above", RECORDED),
    "recorded, 75 % right": ("right 0.75", STRONG),
    "cites everything": ("cites everything", replace(RECORDED, cites="everything")),
    "cites nothing": ("cites nothing", replace(RECORDED, cites="nothing")),
    "cites wrongly": ("cites wrongly", replace(RECORDED, cites="wrongly")),
    "cites everything, 75 % right": ("right 0.75, cites everything", replace(STRONG, cites="everything")),
    "no noise": ("noise 0", replace(RECORDED, noise=0.0)),
    "memorised": ("odds 0.3 general, 0.7 memorised", _of(0.3, 0, 0, 0.7, 0)),
    "wide": ("odds 0.3 general, 0.7 wide", _of(0.3, 0, 0.7, 0, 0)),
    "interfering": ("odds 0.3 general, 0.7 interfering", _of(0.3, 0.7, 0, 0, 0)),
    "diluting": (
        "odds 0.3 general, 0.4 memorised, 0.3 diluting; dilution 0.01",
        replace(_of(0.3, 0, 0, 0.4, 0.3), dilution=0.01),
    ),
}
CITING: Mapping[str, tuple[str, Settings]] = {
    f"plain, cites {cites}": (f"the plain world above, cites {cites}", replace(PLAIN, cites=cites))
    for cites in ("exactly", "everything", "nothing", "wrongly")
}
EVERY_MIXED: Mapping[str, tuple[str, Settings | Mix]] = {**MIXED, **CITING}

Arm = tuple[str, ...]


def set_to(name: str, value: object) -> str:
    """One change, as `--set` takes it."""
    return f"optimize.{name}={value}"


DEFAULT: Arm = ()
EDITS: Arm = (set_to("drafts", 0), set_to("update", "edits"))
BUNDLES: Arm = (*EDITS, set_to("screen", 0), set_to("replay", 0))
BUNDLES_REPLAY: Arm = (*EDITS, set_to("screen", 0))
NOTHING_AHEAD: Arm = (set_to("speculate", "off"),)
WIDER: Arm = (*NOTHING_AHEAD, set_to("edits", "cosine(8, 4)"))
MAIN: Mapping[str, Arm] = {
    "skillc's default": DEFAULT,
    "bundles by rank": BUNDLES,
    "bundles by rank, with replay": BUNDLES_REPLAY,
}
PLAIN_EDITS: Arm = (set_to("update", "edits"),)
ONE_DRAFT: Arm = (set_to("drafts", 1),)
MIXED_ARMS: Mapping[str, Arm] = {
    "skillc's default": DEFAULT,
    "`update = edits`": PLAIN_EDITS,
    "`drafts = 1`": ONE_DRAFT,
    "bundles by rank": BUNDLES,
}


# One mechanism off at a time: as shipped, and with a wider edit budget and nothing sent ahead.
MECHANISMS: Mapping[str, Arm] = {
    "nothing": (),
    "`control = off`": (set_to("control", "off"),),
    "`together = off`": (set_to("together", "off"),),
    "`replay = 0`": (set_to("replay", 0),),
    "all three": (set_to("control", "off"), set_to("together", "off"), set_to("replay", 0)),
    "`screen = 0`": BUNDLES_REPLAY,
    "`screen = 0; replay = 0`": BUNDLES,
}
SHIPPED = "plain, as shipped"
ABLATED = ("plain", "more noise", "more pairs", "more harm")
# One number changed at a time, with the screen and without.
VARIED: Mapping[str, tuple[str, tuple[object, ...]]] = {
    "screen": ("examples an edit is tried on", (0, 1, 3, 6)),
    "batch": ("training examples a step", (20, 40, 80)),
    "edits": ("edits a candidate may carry", (2, 4, 8, 16)),
    "replay": ("earlier failures a batch takes in", (0, 10, 20, 40)),
}


def varied(arm: Arm, name: str, value: object) -> Arm:
    """An arm with one setting at another value."""
    return (*(change for change in arm if not change.startswith(set_to(name, ""))), set_to(name, value))
