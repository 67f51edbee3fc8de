"""The page: each switch against the default over the same seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.ablation.arms import ARMS, DEFAULT, GROUPS, Arm
from benchmarks.ablation.optimizer import HEEDS, MISJUDGED
from benchmarks.search.optimizer import LOST
from benchmarks.search.statistics import Estimate, mean

# By column, then by arm: a figure for each seed, the same seeds for all arms.
Figures = Mapping[str, Mapping[str, Sequence[float]]]

NONE = "–"


def page(figures: Figures, seeds: Mapping[str, int], seconds: float, *, arms: Sequence[Arm] = ARMS) -> str:
    """The whole page as markdown; `arms` are those that were run."""
    parts = [_head(figures, seeds, seconds), _found(figures)]
    for title, group in GROUPS.items():
        run = [arm for arm in group if arm in arms]
        parts += [f"## {title}\n\n{_table(figures, run)}"] if run else []
    parts += [_silent(), _world()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _head(figures: Figures, seeds: Mapping[str, int], seconds: float) -> str:
    tests = sum(len(column) - 1 for column in figures.values())
    defaults = "; ".join(f"{name}: {mean(column[DEFAULT.name])}" for name, column in figures.items())
    counted = "; ".join(f"{name}: {count} seeds" for name, count in seeds.items())
    return f"""
# What each mechanism is worth

`python -m benchmarks.ablation` turns one switch of the default at a time and compares the two runs of each seed, at
equal target calls: baseline, training rollouts, screen, gates and validation, speculation too. Each cell is the mean
difference from the default and its 95 % interval (bootstrap over seeds); **bold** where the interval leaves out zero.
Positive means that the change is better than the default. {counted}.

- *world*: skillc's own loop in the simulated world of `benchmarks/search` with a scripted optimizer. The figure is the
  share of the attainable gain that the best skill has by the hidden truth, after 1,080 target calls (about an epoch).
- *harm*: the same world where half of what the optimizer proposes is harmful (odds 0.30, 0.20, 0.50), after 2,160.
- *tickets*: `examples/tickets` with its own program (`edits = cosine(8, 4)`, four gates) and the embedded rulebook as
  target and optimizer. The figure is the gain of the best skill on the test split, as a share of 1, after 1,600.

The default itself: {defaults}. The whole page took {seconds / 60:.1f} minutes.

**Read it with care.** There are {tests} comparisons here: about {tests * 0.05:.0f} would be bold if no mechanism did
anything, more on the tickets, because so few seeds make such intervals a little too narrow. What is not bold is not
shown to be useless, only not shown to be worth more than the interval. The world and the rulebook are no language
models; what a mechanism is worth to one depends on its habits.
"""


def _found(figures: Figures) -> str:
    """What is bold, in words: the figures themselves choose it."""
    lines = []
    for name, column in figures.items():
        for better, told in ((True, "better than the default"), (False, "worse than the default")):
            arms = [arm for arm in ARMS if arm.name in column and arm is not DEFAULT]
            found = [(arm, _difference(column, arm)) for arm in arms]
            shown = [f"`{arm.name}` ({e.value:+.2f})" for arm, e in found if (e.low > 0 if better else e.high < 0)]
            lines.append(f"- *{name}*, {told}: {', '.join(shown) or 'none'}.")
    return "## Outside the noise\n\n" + "\n".join(lines)


def _difference(column: Mapping[str, Sequence[float]], arm: Arm) -> Estimate:
    pairs = zip(column[arm.name], column[DEFAULT.name], strict=True)
    return mean([ours - theirs for ours, theirs in pairs])


def _table(figures: Figures, arms: Sequence[Arm]) -> str:
    lines = [("change", *figures), ("---",) * (1 + len(figures))]
    lines += [(f"`{arm.name}`", *(_cell(column, arm) for column in figures.values())) for arm in arms]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(column: Mapping[str, Sequence[float]], arm: Arm) -> str:
    if arm.name not in column:
        return NONE
    found = _difference(column, arm)
    text = f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f})"
    return f"**{text}**" if found.low > 0 or found.high < 0 else text


def _silent() -> str:
    lines = [f"- `{arm.name}`: {arm.silent}." for arm in ARMS if arm.silent]
    return f"## Where the world is silent\n\nA `{NONE}` in its columns:\n\n" + "\n".join(lines)


def _world() -> str:
    return f"""
## What the scripted optimizer does with a mechanism

- It heeds {HEEDS:.0%} of the ideas in the rejected-edit buffer, be they good or bad: of a bundle that was rejected it
  knows no better which edit was to blame.
- What it proposes from successes is useless or harmful by construction, so that `successes = off` costs the world
  nothing but a source of noise.
- Where it rewrites a section it loses each standing rule with a chance of {LOST:.0%}.
- It misjudges a rule on a case with a chance of {MISJUDGED:.0%} when it marks rules as helpful or harmful.
- At an epoch's end it writes one line of guidance for one case that is wrong, at the odds of any proposal.
- A schedule runs over the 60 steps that the program admits, of which the calls pay for about 5 to 15: within them
  `cosine(4, 2)` is `constant(4)`, and `cosine(8, 2)` is nearly `constant(8)`.
- `speculate` has no worth in gain: it saves time (`benchmarks/line`) and spends calls on batches that are thrown away
  when a candidate is accepted, which is what its row shows.
"""
