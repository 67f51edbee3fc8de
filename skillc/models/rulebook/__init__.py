"""The embedded model `rulebook/v1`, which reads and writes rules without weights, key or network. See README.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillc.errors import SkillcError
from skillc.models.rulebook.judge import answer_adherence, answer_judge, is_case, is_rollout
from skillc.models.rulebook.optimizer import answer_optimizer, answer_peer, is_request
from skillc.models.rulebook.target import Messages, answer_target, call_tool


def answer(messages: Messages, parameters: Mapping[str, object] | None = None) -> str:
    """Return the reply to a prompt; the prompt decides whether it is a target's, an optimizer's or a judge's.

    Args:
        messages: as a chat model gets them.
        parameters: `noise`, the share of wrong labels (0 to 1, default 0); `seed` of the noise (default 0); `sample`,
            a number or a list of numbers that distinguishes samples of one call. Others are ignored.

    Raises:
        SkillcError: `noise` is not a share, or `seed` not a whole number.
    """
    if is_request(messages):
        return answer_optimizer(messages)
    if is_case(messages):
        return answer_judge(messages)
    if is_rollout(messages):
        return answer_adherence(messages)
    options = parameters or {}
    sample = options.get("sample", 0)
    peer = answer_peer(messages, sample)
    if peer is not None:
        return peer
    noise, seed = _noise(options)
    return answer_target(messages, noise=noise, seed=seed, sample=sample)


def answer_with_tools(
    messages: Messages, tools: Sequence[Mapping[str, Any]], parameters: Mapping[str, object]
) -> dict[str, Any]:
    """Return the message of an agent that is given tools, in the OpenAI chat format; parameters are as in `answer`.

    Raises:
        SkillcError: as `answer`.
    """
    noise, seed = _noise(parameters)
    return call_tool(messages, tools, noise=noise, seed=seed, sample=parameters.get("sample", 0))


def _noise(options: Mapping[str, object]) -> tuple[float, int]:
    """Return the share of wrong labels, and the seed by which they are drawn."""
    noise, seed = options.get("noise") or 0.0, options.get("seed") or 0
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1:
        raise SkillcError(f"`noise` must be a share between 0 and 1, not `{noise}`")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise SkillcError(f"`seed` must be a whole number, not `{seed}`")
    return float(noise), seed
