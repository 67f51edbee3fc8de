"""The page: what was run, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from benchmarks.search.arms import (
    ABLATED,
    BUNDLES,
    BUNDLES_REPLAY,
    DEFAULT,
    MAIN,
    MECHANISMS,
    NOTHING_AHEAD,
    PLAIN,
    SHIPPED,
    VARIED,
    WIDER,
    WORLDS,
    Arm,
    varied,
)
from benchmarks.search.chart import chart
from benchmarks.search.mixed import Mix
from benchmarks.search.run import Ran
from benchmarks.search.statistics import mean, ratio
from benchmarks.search.world import Settings

CALLS = 1_080
HALF = CALLS // 2
_GRID = range(0, 2 * CALLS + 1, 60)
# Written by hand: designs that are not in skillc.
LEFT_OUT = Path(__file__).with_name("left_out.md")
# Written by `--mixed`.
MIXED_SECTION = Path(__file__).with_name("mixed.md")

Runs = dict[tuple[Settings | Mix, Arm], list[Ran]]


def page(runs: Runs, seeds: int) -> str:
    """The whole page as markdown."""
    parts = [
        _head(runs, seeds),
        _parameters(),
        "## Worlds\n\n" + _worlds(runs),
        "## Each mechanism\n\nOne off at a time; share at 1,080 target calls. The first column starts from the "
        "default as it is shipped, the others from `edits = cosine(8, 4); speculate = off`.\n\n" + _mechanisms(runs),
        "## Screen, batch, edits and replay varied\n\nOne number changed at a time, plain world, share at 1,080 target "
        "calls.\n\n" + _varied(runs),
        "## Where the calls go\n\nPlain world, means over seeds at 2,160 target calls.\n\n" + _spent(runs),
        MIXED_SECTION.read_text(),
        LEFT_OUT.read_text(),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def plot(runs: Runs) -> str:
    """The curve of gain against calls of the main arms, with 95 % bands."""
    series = {
        name: [(calls, mean([ran.at(calls) for ran in runs[PLAIN, arm]])) for calls in _GRID]
        for name, arm in MAIN.items()
    }
    return chart(series, x_label="target calls, train and validation", y_label="share of the attainable gain")


def _head(runs: Runs, seeds: int) -> str:
    default, bundles, replayed = (_at(runs, PLAIN, arm) for arm in (DEFAULT, BUNDLES, BUNDLES_REPLAY))
    quiet, wider = (mean(_at(runs, PLAIN, arm)) for arm in (NOTHING_AHEAD, WIDER))
    return f"""
# Edits chosen by evidence

`python -m benchmarks.search` drives skillc's own loop in a simulated world of hidden rules with a scripted target and a
scripted optimizer, both arms with the same proposals at fixed odds, and counts target calls: baseline, training
rollouts, screen and gates. The measure is the share of the attainable gain: the true gain of the best skill by the
hidden truth, on a population of its own, over that of the ideal rule set. {seeds} seeds, none of which the designs were
chosen on; brackets are 95 % intervals (bootstrap over seeds).

At {CALLS:,} target calls in the plain world, `screen = 3` and all that is on by default reaches {mean(default)}.
Bundles picked by rank (`screen = 0; replay = 0`) reach {mean(bundles)}: **{ratio(default, bundles)} times** as much
with evidence. Where the bundles are given the replay of earlier failures too, they reach {mean(replayed)}, and the
ratio is {ratio(default, replayed)}.

Two settings matter beside the screen. Work ahead of need is done only where the last step had no accept: a screened
candidate is mostly accepted, and what was rolled out for the old incumbent would be thrown away. `speculate = off`
reaches {quiet}, so it costs nothing there. An
edit budget of four is too narrow for what the screen lets through: `edits = cosine(8, 4); speculate = off` reaches
{wider}.

In this world a rule is either good or bad. The mixed worlds below have proposals of the kinds that a recorded optimizer
wrote; where the two disagree, trust those.

![gain against calls](gain.svg)
"""


def _parameters() -> str:
    return (
        "## The world\n\nThe parameters were chosen before the first run, the other worlds before a comparison, "
        "but for tempting harm, the hardest on a screen, which was added after it. Besides, an optimizer that looks at "
        "successes proposes an edit in half of its replies, a useless or (1 in 3) a harmful one; it proposes to delete "
        "a harmful rule of the skill as it proposes to add a missing one; a merge joins edits of one idea and puts "
        "those with more support first, then those that cite more. It does not heed the rejected-edit buffer.\n\n"
        + parameters(PLAIN)
    )


def parameters(settings: Settings | Mix) -> str:
    """The parameters of a world as a table."""
    about = dict(
        line.strip().split(": ", 1)
        for line in (type(settings).__doc__ or "").split("Attributes:")[1].strip().splitlines()
        if ": " in line
    )
    rows = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        shown = ", ".join(f"{share:.2f}" for share in value) if hasattr(value, "_fields") else str(value)
        rows.append((f"`{field.name}`", shown, about[field.name].rstrip(".")))
    return table(("parameter", "value", "meaning"), rows)


def _worlds(runs: Runs) -> str:
    rows = []
    for name, (told, settings) in WORLDS.items():
        arms = [_at(runs, settings, arm) for arm in MAIN.values()]
        half = [_at(runs, settings, arm, HALF) for arm in MAIN.values()]
        rows.append(
            (
                name,
                told,
                *(str(mean(arm)) for arm in arms),
                str(ratio(arms[0], arms[1])),
                " / ".join(f"{mean(arm).value:.2f}" for arm in half),
                str(mean(_at(runs, settings, NOTHING_AHEAD))),
                str(mean(_at(runs, settings, WIDER))),
            )
        )
    return table(
        (
            "world",
            "changed",
            *MAIN,
            "ratio to bundles by rank",
            f"all three at {HALF}",
            "default, `speculate = off`",
            "and `edits = cosine(8, 4)`",
        ),
        rows,
    )


def _mechanisms(runs: Runs) -> str:
    rows = []
    for told, arm in MECHANISMS.items():
        wider = (mean(_at(runs, WORLDS[name][1], (*WIDER, *arm))) for name in ABLATED)
        rows.append((told, str(mean(_at(runs, PLAIN, arm))), *map(str, wider)))
    return table(("off", SHIPPED, *ABLATED), rows)


def _varied(runs: Runs) -> str:
    tables = []
    for name, (told, values) in VARIED.items():
        rows = []
        for value in values:
            shares = []
            for arm in MAIN.values():
                shares.append(str(mean(_at(runs, PLAIN, varied(arm, name, value)))))
            rows.append((str(value), *shares))
        heads = [f"`{name}`", *MAIN]
        if name in ("screen", "replay"):
            # The arms without a screen or a replay would repeat what another column says.
            heads, rows = heads[:2], [row[:2] for row in rows]
        tables.append(f"`{name}`: {told}.\n\n" + table(heads, rows))
    return "\n\n".join(tables)


def _spent(runs: Runs) -> str:
    stages = ("baseline", "rollout", "screen", "gate", "validation")
    rows = []
    for name, arm in MAIN.items():
        all_runs = runs[PLAIN, arm]
        figures = [sum(ran.stages.get(stage, 0) for ran in all_runs) / len(all_runs) for stage in stages]
        decided = [sum(ran.decisions.get(kind, 0) for ran in all_runs) / len(all_runs) for kind in ("accept", "reject")]
        asked = sum(ran.asked for ran in all_runs) / len(all_runs)
        left = [sum(ran.rules.get(kind, 0) for ran in all_runs) / len(all_runs) for kind in "SPHTU"]
        rows.append(
            (
                name,
                *(f"{figure:,.0f}" for figure in figures),
                " / ".join(f"{each:.1f}" for each in decided),
                f"{asked:.0f}",
                " / ".join(f"{each:.1f}" for each in left),
            )
        )
    heads = ("arm", *stages, "accepts / rejects", "optimizer calls", "rules left: S / P / H / T / U")
    return table(heads, rows)


def _at(runs: Runs, world: Settings | Mix, arm: Arm, calls: int = CALLS) -> list[float]:
    return [ran.at(calls) for ran in runs[world, arm]]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
