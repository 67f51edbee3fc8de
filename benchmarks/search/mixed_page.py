"""The section of the page on mixed worlds: how they were calibrated, and the figures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.search.arms import BUNDLES, DEFAULT, EVERY_MIXED, MIXED, MIXED_ARMS, RECORDED
from benchmarks.search.page import LEFT_OUT, MIXED_SECTION, Runs, parameters, table
from benchmarks.search.statistics import mean, ratio

POINTS = (540, 1_080, 2_160)
# Written by hand: where the parameters come from.
_CALIBRATION = Path(__file__).with_name("calibration.md")
_FULL = 20
_COMMAND = "python -m benchmarks.search --mixed"


def mixed_page(runs: Runs, seeds: int, calls: int) -> str:
    """The section as markdown, from runs of so many target calls."""
    points = [point for point in POINTS if point <= calls]
    whole = seeds >= _FULL and calls >= max(POINTS)
    few = "" if whole else f" **Here: {seeds} seeds, {calls:,} target calls.**"
    parts = [
        _CALIBRATION.read_text(),
        parameters(RECORDED),
        "The odds are those of the kinds general, interfering, wide, memorised and diluting.",
        f"### Share of the attainable gain\n\n`{_COMMAND}` makes these tables: {len(EVERY_MIXED)} worlds, "
        f"{len(MIXED_ARMS)} arms, {_FULL} seeds, {_listed()} target calls (half a CPU second for 1,080 calls). The "
        f"share is that of the run's last accepted skill, on a population that no run sees; below 0 the skill does "
        f"harm. The last rows are the world of the first section, by what its optimizer cites.{few}",
        *(_at(runs, point) for point in points),
        f"### What the skills contain\n\nMeans over seeds at {calls:,} target calls.\n\n" + _left(runs),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def put(folder: Path, text: str) -> None:
    """Write the section to its own file and into README.md, in place of the one before."""
    (folder / MIXED_SECTION.name).write_text(text)
    first, last = (part.read_text().splitlines()[0] for part in (_CALIBRATION, LEFT_OUT))
    readme = folder / "README.md"
    before, after = readme.read_text().split(f"\n{last}\n", 1)
    before = before.split(f"\n{first}\n", 1)[0].rstrip()
    readme.write_text(f"{before}\n\n{text}\n{last}\n{after}")


def _listed() -> str:
    return ", ".join(f"{calls:,}" for calls in POINTS)


def _at(runs: Runs, calls: int) -> str:
    rows = []
    for name, (told, world) in EVERY_MIXED.items():
        shares = {arm: [ran.at(calls) for ran in runs[world, arm]] for arm in MIXED_ARMS.values()}
        # No ratio where the bundles may have gained nothing.
        against = str(ratio(shares[DEFAULT], shares[BUNDLES])) if mean(shares[BUNDLES]).low > 0 else "–"
        rows.append((name, told, *(str(mean(share)) for share in shares.values()), against))
    heads = ("world", "changed", *MIXED_ARMS, "default to bundles")
    return f"At {calls:,} target calls:\n\n{table(heads, rows)}"


def _left(runs: Runs) -> str:
    rows = []
    for name, (_, world) in MIXED.items():
        for arm, changes in MIXED_ARMS.items():
            found = runs[world, changes]
            kinds = [sum(ran.rules.get(kind, 0) for ran in found) / len(found) for kind in "SIWMD"]
            decided = [sum(ran.decisions.get(kind, 0) for ran in found) / len(found) for kind in ("accept", "reject")]
            spent = [sum(ran.stages.get(stage, 0) for ran in found) / len(found) for stage in ("screen", "gate")]
            rows.append(
                (
                    name,
                    arm,
                    " / ".join(f"{count:.1f}" for count in kinds),
                    " / ".join(f"{count:.1f}" for count in decided),
                    " / ".join(f"{calls:,.0f}" for calls in spent),
                )
            )
    heads = ("world", "arm", "general / interfering / wide / memorised / diluting", "accepts / rejects")
    return table((*heads, "calls of screen / gate"), rows)
