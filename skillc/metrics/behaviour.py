"""What metrics measure of a whole rollout, by the names of their functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillc.errors import SkillcError
from skillc.metrics.primitives import Measurement
from skillc.trajectories.trajectory import Trajectory


def reward(trajectory: Trajectory) -> Measurement:
    """Return the score that the environment gave.

    Raises:
        SkillcError: the rollout has none.
    """
    if trajectory.reward is None:
        raise SkillcError("the rollout has no reward", hint="set `reward` of the `skillc.Trajectory` that it returns")
    limit = f"; the limit of {trajectory.turns} turns was reached" if trajectory.outcome == "turns" else ""
    return Measurement(trajectory.reward, f"the environment gave {trajectory.reward:g}{limit}")


def turns(trajectory: Trajectory) -> Measurement:
    """Return the number of turns."""
    return Measurement(trajectory.turns)


TRAJECTORY: Mapping[str, Callable[[Trajectory], Measurement]] = {"reward": reward, "turns": turns}
"""Functions of metrics that read the trajectory."""
