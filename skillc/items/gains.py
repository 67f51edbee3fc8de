"""The gain of the compiled skill on train, validation and test side by side, and whether it holds outside of train."""

from __future__ import annotations

from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.items.record import SPLITS, Item, RunItems, Score, SplitName
from skillc.outcomes import MICRO
from skillc.stats.verdict import PairedScore, Verdict, judge

# The share of the items of the initial skill on which a later one has to be measured to be compared with other splits.
_WHOLE = Fraction(9, 10)


@dataclass(frozen=True, slots=True)
class SplitGain:
    """The initial skill against a later one on the items of a split that both were measured on.

    Attributes:
        initial, later: their means; None without such an item.
        interval: of the gain at 95 %, paired by group; None with fewer than six groups.
        n: items.
        ran: those that the initial skill was measured on.
        items: of the whole split.
    """

    split: SplitName
    initial: Fraction | None
    later: Fraction | None
    interval: tuple[Fraction, Fraction] | None
    n: int
    ran: int
    items: int

    @property
    def is_selective(self) -> bool:
        """Whether the later skill was run on a part of the items only: mostly on those that had failed before."""
        return self.n < _WHOLE * self.ran

    @property
    def gain(self) -> Fraction | None:
        """The mean difference."""
        return None if self.initial is None or self.later is None else self.later - self.initial

    @property
    def is_shown(self) -> bool:
        """Whether the gain is above 0, as far as the interval goes."""
        return self.interval is not None and self.interval[0] > 0


@dataclass(frozen=True, slots=True)
class Gains:
    """The gain in one metric by split.

    Attributes:
        version: the place where the later skill was accepted.
        compiled: whether that is the compiled skill.
        splits: those on which both skills were measured, in the order train, validation, test.
    """

    metric: str
    version: str
    compiled: bool
    splits: tuple[SplitGain, ...]

    def on(self, split: SplitName) -> SplitGain | None:
        """Return the gain on a split, None where it was not measured."""
        return next((each for each in self.splits if each.split == split), None)

    @property
    def vanishes(self) -> tuple[SplitGain, SplitGain, tuple[Fraction, Fraction]] | None:
        """Return the gain on train and the one that is not there, with the interval of their difference.

        A gain vanishes if it is shown on train, not shown on items that nothing was learned from (test, or validation
        without one), and smaller there by more than chance explains. Nothing is said of a gain on items that were
        chosen because they had failed.
        """
        train, other = self.on("train"), self.on("test") or self.on("validation")
        if train is None or other is None or train.is_selective or not train.is_shown or other.is_shown:
            return None
        apart = difference(train, other)
        return (train, other, apart) if apart is not None and apart[0] > 0 else None

    @property
    def is_open(self) -> bool:
        """Whether a gain on train is shown on no other items, which are too few to say that it vanishes."""
        train, other = self.on("train"), self.on("test") or self.on("validation")
        shown = train is not None and train.is_shown and not train.is_selective
        return shown and other is not None and not other.is_shown and self.vanishes is None


def gains_of(items: RunItems, metric: str, version: int | None = None) -> Gains:
    """Return the gain of a version over the initial skill, by default of the compiled skill."""
    later = items.compiled if version is None else version
    found = [_gain(items, metric, split, later) for split in SPLITS]
    return Gains(metric, items.versions[later].place, later == items.compiled, tuple(each for each in found if each.n))


def last_learned(items: RunItems) -> int:
    """Return the last version that was measured on train, which remembers most of it."""
    train = items.of("train")
    measured = [i for i in range(len(items.versions)) if any(isinstance(_cell(items, item, i), int) for item in train)]
    return measured[-1] if measured else 0


def _cell(items: RunItems, item: Item, version: int) -> Score:
    return item.cells[items.goal][version]


def _gain(items: RunItems, metric: str, split: SplitName, version: int) -> SplitGain:
    measure, own = items.measure(metric), items.of(split)
    ran = sum(isinstance(item.cells[metric][0], int) for item in own)
    pairs = []
    for item in own:
        initial, later = item.cells[metric][0], item.cells[metric][version]
        if isinstance(initial, int) and isinstance(later, int):
            pairs.append(PairedScore(item.group, initial, later))
    if not pairs:
        return SplitGain(split, None, None, None, 0, ran, items.sizes.get(split, 0))
    n = len(pairs)
    verdict = judge(pairs, low=measure.low, high=measure.high, look=1, seed=0)
    return SplitGain(
        split,
        Fraction(sum(pair.initial or 0 for pair in pairs), n * MICRO),
        Fraction(sum(pair.best or 0 for pair in pairs), n * MICRO),
        verdict.interval,
        n,
        ran,
        items.sizes.get(split, 0),
    )


def excess_of(items: RunItems, signal: str, truth: str, version: int) -> Verdict | None:
    """Test whether a noisy signal gains more or less than the truth, on test or else validation; None without cells.

    The errors of a signal have the same rates for both skills exactly if the two gains are equal on average. Each item
    adds the difference of its two gains, so that what is right for both skills cancels.
    """
    split: SplitName = "test" if items.of("test") else "validation"
    pairs = []
    for item in items.of(split):
        cells = [item.cells[name][i] for i in (0, version) for name in (signal, truth)]
        known = [cell for cell in cells if isinstance(cell, int)]
        if len(known) == len(cells):
            pairs.append(PairedScore(item.group, known[0] - known[1], known[2] - known[3]))
    low, high = items.measure(signal).low - 1, items.measure(signal).high
    return judge(pairs, low=low, high=high, look=1, seed=0) if pairs else None


def difference(one: SplitGain, other: SplitGain) -> tuple[Fraction, Fraction] | None:
    """Return the 95 % interval of the difference of two gains on different items; None without both intervals.

    Each end is the difference less the two distances of the nearer ends, added as independent errors (G. Y. Zou and
    A. Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008).
    """
    if one.gain is None or other.gain is None or one.interval is None or other.interval is None:
        return None
    apart = one.gain - other.gain

    def reach(first: Fraction, second: Fraction) -> Fraction:
        return Fraction(round((float(first) ** 2 + float(second) ** 2) ** 0.5 * MICRO), MICRO)

    low = apart - reach(one.gain - one.interval[0], other.interval[1] - other.gain)
    high = apart + reach(one.interval[1] - one.gain, other.gain - other.interval[0])
    return low, high
