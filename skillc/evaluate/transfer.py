"""The share of a gain that survives on another model, harness or related data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.evaluate.run import Evaluation
from skillc.evaluate.scores import Gain, ModelScores, ScorePairs
from skillc.evaluate.skills import COMPILED, SkillArm
from skillc.plan.schema import MetricPlan
from skillc.stats.share import Share, share_of_gain


@dataclass(frozen=True, slots=True)
class TransferCell:
    """The gain of the compiled skill with one model in one place.

    Attributes:
        evaluation: of the place.
        model: with its scores.
        gain: over the reference; None if the two are not scored here.
        share: of the original gain; None for the original itself.
    """

    evaluation: Evaluation
    model: ModelScores
    gain: Gain | None
    share: Share | None


@dataclass(frozen=True, slots=True)
class Transfer:
    """The gain of the compiled skill on one split, wherever it was measured.

    Attributes:
        split: of all cells.
        cells: the original first.
        original: the program as it is, with the model that the skill was made with; None if that is not scored.
    """

    split: str
    cells: tuple[TransferCell, ...]
    original: TransferCell | None


def transfers_of(found: Sequence[Evaluation]) -> tuple[Transfer, ...]:
    """Return a transfer for each split, if the compiled skill is compared in two cells or more."""
    splits = dict.fromkeys(each.job.split for each in found)
    transfers = [_transfer(split, [each for each in found if each.job.split == split]) for split in splits]
    return tuple(each for each in transfers if each is not None)


def subject_of(found: Evaluation) -> SkillArm | None:
    """Return the skill whose gain is followed: the compiled one; None if it is the reference or not scored."""
    reference = found.job.arms.reference
    return None if reference is None or reference.name == COMPILED else found.job.arms.compiled


def _transfer(split: str, found: Sequence[Evaluation]) -> Transfer | None:
    every = [(each, model) for each in found for model in each.models if subject_of(each) is not None]
    if len(every) < 2:
        return None
    first = next(((each, model) for each, model in every if each.job.place == "own" and model.made_here), None)
    cells = [_cell(first, each, model) for each, model in every]
    # The original first, whatever the order of the models.
    cells.sort(key=lambda cell: cell.share is not None or first is None)
    original = cells[0] if first is not None else None
    return Transfer(split, tuple(cells), original)


def _cell(first: tuple[Evaluation, ModelScores] | None, found: Evaluation, model: ModelScores) -> TransferCell:
    gain = next((gain for gain in model.gains if gain.arm.name == COMPILED), None)
    if first is None:
        return TransferCell(found, model, gain, Share(reason="the original gain is not measured"))
    if first[1] is model:
        return TransferCell(found, model, gain, None)
    return TransferCell(found, model, gain, _share(first, found, model))


def _share(first: tuple[Evaluation, ModelScores], found: Evaluation, model: ModelScores) -> Share:
    here, there = _pair(first[1]), _pair(model)
    if here is None or there is None:
        return Share(reason="the original gain is not measured" if here is None else "this gain is not measured")
    goal, other = first[0].job.plan.goal, found.job.plan.goal
    if _range(goal) != _range(other):
        return Share(reason=f"`{other.name}` has another range than `{goal.name}`")
    same = found.job.place != "data"
    return share_of_gain(
        here.scores,
        there.scores,
        seed=first[0].job.plan.data.seed,
        same_examples=same,
        # Another program has its own signal, also under the same name.
        rates=None if same else (goal.rates, other.rates),
    )


def _range(goal: MetricPlan) -> tuple[str, Fraction, Fraction]:
    """Return unit and range of what a goal measures: shares of right answers for a noisy signal, whatever its rates."""
    return ("", Fraction(0), Fraction(1)) if goal.rates is not None else (goal.unit, goal.low, goal.high)


def _pair(model: ModelScores) -> ScorePairs | None:
    return next((pair for pair in model.pairs if pair.arm.name == COMPILED), None)
