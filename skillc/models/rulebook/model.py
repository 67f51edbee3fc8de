"""rulebook as a function of messages and parameters: target or optimizer, decided by the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillc.errors import SkillcError
from skillc.models.rulebook.optimizer import answer_optimizer, answer_peer, is_request
from skillc.models.rulebook.target import answer_target

NAME = "v1"


class UnknownRulebook(SkillcError):  # noqa: N818
    """There is only one rulebook."""


def check_name(model: str) -> None:
    """Accepts `rulebook/v1` and `v1`.

    Raises:
        UnknownRulebook: any other name.
    """
    if model.removeprefix("rulebook/") != NAME:
        name = model if model.startswith("rulebook/") else f"rulebook/{model}"
        raise UnknownRulebook(f"there is no model `{name}`", hint=f"the embedded model is `rulebook/{NAME}`")


def answer(messages: Sequence[Mapping[str, object]], parameters: Mapping[str, object] | None = None) -> str:
    """The reply to a prompt; the same messages and parameters give the same reply.

    Args:
        messages: as a chat model gets them.
        parameters: `noise`, the share of wrong labels (0 to 1, default 0); `seed` of the noise (default 0); `sample`,
            a number or a list of numbers that tells apart samples of one call. Others are ignored.

    Raises:
        SkillcError: `noise` is no share, or `seed` no whole number.
    """
    if is_request(messages):
        return answer_optimizer(messages)
    given = parameters or {}
    peer = answer_peer(messages, given.get("sample", 0))
    if peer is not None:
        return peer
    noise, seed = given.get("noise") or 0.0, given.get("seed") or 0
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1:
        raise SkillcError(f"`noise` is a share between 0 and 1, not `{noise}`")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise SkillcError(f"`seed` is a whole number, not `{seed}`")
    return answer_target(messages, noise=float(noise), seed=seed, sample=given.get("sample", 0))
