"""What the network is trained on: its replies, and, while it learns, how to come by them.

Replies alone teach a network this small next to nothing for a long time. The helpers say where to look: the words of
one rule belong together, a trigger in an input looks at the same trigger in the skill and then at its rule's label, and
the answer looks at the trigger that decides. What only the helpers need is not exported.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everywhere

from .batches import IGNORED
from .network import CODE, MATRICES, Network, Shape, States

# After or in which layer a helper looks, counted from 1.
BEFORE, LISTED, BIND, TOGETHER, MATCH, LABEL, DECIDE, COPY = 1, 2, 3, 3, 4, 5, 6, 7


def lay_out(network: Network, inner: Sequence[int]) -> None:
    """Lays out where words are carried before any of it is learned, and which tokens go on with a word.

    To find out by itself that a code can be handed on takes a network longer than all else together. A piece that goes
    on with a word is the same as another only if what comes before is, too.
    """
    network.mark(inner)
    network.carry(BEFORE, 0, 2)  # each token has the one before it beside it
    network.carry(LISTED, 0, 3)  # a label that was listed is marked by itself
    network.carry(BIND, 0, 1)  # triggers and label of a rule have its first word beside them
    network.carry(MATCH, 1, 1)  # a word of the input has the first word of the rule that it is a trigger of
    network.carry(LABEL, 0, 3)  # and by that the rule's label
    network.carry(DECIDE, 3, 0)  # the answer says it
    network.carry(COPY, 0, 0)  # and goes on with what came after the same piece before


class Helpers(nn.Module):
    """Parameters of the helper losses."""

    def __init__(self, shape: Shape, *, seed: int = 1) -> None:
        super().__init__()
        chance = torch.Generator().manual_seed(seed)
        self.rule = nn.Parameter(torch.randn(64, shape.width, generator=chance) * shape.width**-0.5)
        self.sharpness = nn.Parameter(torch.tensor(2.0))
        self.order = nn.Parameter(torch.zeros(2, shape.width))


def reply_loss(network: Network, last: Tensor, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The replies' mean loss; per input [B, Q], the loss of the label's first token, and whether it is right."""
    inputs, targets = batch["inputs"], batch["targets"]
    count, queries, length = inputs.shape
    chosen = targets != IGNORED
    scores = network.logits(last.view(count, queries, length, -1)[chosen])
    each = F.cross_entropy(scores, targets[chosen], reduction="none")
    losses = torch.zeros_like(targets, dtype=torch.float).masked_scatter(chosen, each)
    right = torch.zeros_like(chosen).masked_scatter(chosen, scores.argmax(-1) == targets[chosen])
    first = batch["first"][..., None]
    label = losses.gather(-1, first)[..., 0]
    # The label decides, so it counts as much as all the rest.
    return each.mean() + label.mean(), label, right.gather(-1, first)[..., 0]


def helper_losses(helpers: Helpers, network: Network, states: States, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each helper's mean loss."""
    length = batch["inputs"].shape[2]
    losses = {"together": _together(helpers, states.skill[TOGETHER], batch)}
    losses["before"] = _before(states)
    losses["listed"] = _listed(states.own[LISTED - 1], batch)
    losses["copy"] = _copied(states.looks[COPY - 1], batch)
    bind = batch["bound"]
    losses["bind"] = _log(states.own[BIND - 1][bind[:, 0], bind[:, 1], bind[:, 2]])
    match = batch["matches"]
    b, row = match[:, 0], match[:, 1] * length + match[:, 2]
    look = states.looks[MATCH - 1]
    losses["match"] = _log(look[b, row, match[:, 3]])
    miss = batch["misses"]
    losses["miss"] = _log(look[miss[:, 0], miss[:, 1] * length + miss[:, 2], 0])
    number, place = batch["found"].unbind(1)
    losses["find"] = _log(_sums(number, states.looks[LABEL - 1][b[number], row[number], place]))
    size, width = network.shape.head, (network.shape.width,)
    plain = match[:, 4] >= 0
    hit = F.rms_norm(states.inputs[LABEL][b, row], width)
    codes = network.embed_tokens[:, :size].detach() / CODE
    said = hit[plain, 3 * size :] / 4
    losses["says"] = F.cross_entropy(F.linear(said.to(MATRICES), codes.to(MATRICES)).float(), match[plain, 4])
    document, token, rule = batch["triggers"].unbind(1)
    read = F.rms_norm(states.skill[TOGETHER][document, token], width)
    losses["order"] = _ordered(read @ helpers.order[0], document, rule) + _ordered(
        hit @ helpers.order[1], b, match[:, 5]
    )
    losses["decide"] = _decided(states.looks[DECIDE - 1], batch)
    return losses


def _log(probability: Tensor) -> Tensor:
    """Mean of the negative logarithms; 0 where a batch happens to have none of the kind."""
    return -(probability.float() + 1e-4).log().sum() / max(1, probability.numel())


def _sums(number: Tensor, probability: Tensor) -> Tensor:
    """The sum of the probabilities of each number: looking at any of several places is as good."""
    numbers, at = number.unique(return_inverse=True)
    return torch.zeros(len(numbers), device=number.device).index_add(0, at, probability.float())


def _before(states: States) -> Tensor:
    """Each token looks at the one before it; of the inputs' tokens, the first of each looks where it likes."""
    own = states.own[BEFORE - 1]
    return _log(own.diagonal(-1, 1, 2))


def _listed(look: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """A rule's label attends to all equal labels before it, if any, and a trigger to nothing."""
    label, trigger = batch["labels"], batch["triggers"]
    tokens = batch["skill"][label[:, 0]]
    place = torch.arange(tokens.shape[1], device=tokens.device)
    same = (tokens == tokens.gather(1, label[:, 1:2])) & (place < batch["rules_start"][label[:, 0]][:, None])
    there = (look[label[:, 0], label[:, 1]] * same).sum(-1)[same.any(-1)]
    return _log(torch.cat([there, look[trigger[:, 0], trigger[:, 1], 0]]))


def _ordered(scores: Tensor, documents: Tensor, rules: Tensor) -> Tensor:
    """Of two triggers of a document, that of the earlier rule has the higher score: the first rule wins."""
    earlier = (documents[:, None] == documents) & (rules[:, None] < rules)
    return F.softplus(scores[None, :] - scores[:, None])[earlier].sum() / max(1, int(earlier.sum()))


def _decided(look: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """The answer attends to its cause, anywhere in the input."""
    skill, (_, queries, length) = batch["skill"].shape[1], batch["inputs"].shape
    b, q, token, near = batch["decided"].unbind(1)
    each = look[b, q * length + batch["first"][b, q], token + skill * near]
    return _log(_sums(b * queries + q, each))


def _copied(look: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """A reply that continues like an earlier text attends to the continuation there."""
    skill, inputs, targets = batch["skill"], batch["inputs"], batch["targets"]
    b, q, t = batch["copied"].unbind(1)
    length = inputs.shape[2]
    tokens = torch.cat([skill[b], inputs[b, q]], dim=1)
    place = torch.arange(length, device=b.device)
    earlier = torch.cat([torch.ones_like(skill[b], dtype=torch.bool), place < t[:, None]], dim=1)
    after = torch.zeros_like(earlier)
    after[:, 1:] = tokens[:, :-1] == inputs[b, q, t][:, None]
    after[:, skill.shape[1]] = False
    there = (tokens == targets[b, q, t][:, None]) & after & earlier
    found = there.any(-1)
    return _log((look[b, q * length + t] * there).sum(-1)[found])


def _together(helpers: Helpers, states: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """Each trigger is nearest to its own rule's label among all labels of the document."""
    triggers, labels = batch["triggers"], batch["labels"]
    near = F.normalize(F.linear(states, helpers.rule), dim=-1)
    a = near[triggers[:, 0], triggers[:, 1]]
    z = near[labels[:, 0], labels[:, 1]]
    scores = a @ z.T * helpers.sharpness.exp()
    other = triggers[:, :1] != labels[None, :, 0]
    scores = scores.masked_fill(other, -1e4)
    own = (triggers[:, :1] == labels[None, :, 0]) & (triggers[:, 2:] == labels[None, :, 2])
    return F.cross_entropy(scores, own.float().argmax(1))
