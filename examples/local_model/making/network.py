"""Qwen3's network, for training: one skill and several inputs that read it, without seeing each other.

The keys and values of a skill are computed once for all its inputs, as a server with a prefix cache does. The weights
carry the names of `Qwen3ForCausalLM`; `tests` compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everywhere


def precision(cpu: Mapping[str, object], *, cuda: bool) -> torch.dtype:
    """Return the type in which matrices are multiplied fastest: a CPU without instructions for bfloat16 emulates it."""
    return torch.bfloat16 if cuda or any(name.endswith("bf16") and has for name, has in cpu.items()) else torch.float32


MATRICES = precision(torch.cpu.get_capabilities(), cuda=torch.cuda.is_available())
CODE = 8.0  # size of a code's numbers: large, so that what layers add at first does not drown it


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network."""

    vocabulary: int
    width: int = 256
    layers: int = 8
    heads: int = 4
    head: int = 64
    inner: int = 384
    theta: float = 1e7
    eps: float = 1e-6


def normalised(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    """RMS norm over the last dimension."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * scale


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions, halves turned against each other as in Hugging Face's Qwen3."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """X times a matrix."""
    return F.linear(x.to(MATRICES), weight.to(MATRICES))


class Surroundings(NamedTuple):
    """What all layers share.

    Attributes:
        skill_cos, skill_sin: rotations of the skills' tokens [1, S, 1, head / 2].
        cos, sin: those of the inputs' tokens [B, Q * L, 1, head / 2].
        own: added to the skills' scores [1, 1, S, S].
        read: added to the inputs' scores [B, 1, Q * L, S + L].
        length: L.
    """

    skill_cos: Tensor
    skill_sin: Tensor
    cos: Tensor
    sin: Tensor
    own: Tensor
    read: Tensor
    length: int


class Block(nn.Module):
    """One layer, over skills [B, S, width] and the inputs [B, Q * L, width] that follow them, each after its skill."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        wide = shape.heads * shape.head
        self.q_proj = nn.Parameter(torch.empty(wide, shape.width))
        self.k_proj = nn.Parameter(torch.empty(wide, shape.width))
        self.v_proj = nn.Parameter(torch.empty(wide, shape.width))
        self.o_proj = nn.Parameter(torch.empty(shape.width, wide))
        self.gate_proj = nn.Parameter(torch.empty(shape.inner, shape.width))
        self.up_proj = nn.Parameter(torch.empty(shape.inner, shape.width))
        self.down_proj = nn.Parameter(torch.empty(shape.width, shape.inner))
        self.q_norm = nn.Parameter(torch.full((shape.head,), 1.4))
        self.k_norm = nn.Parameter(torch.full((shape.head,), 1.4))
        self.input_layernorm = nn.Parameter(torch.ones(shape.width))
        self.post_attention_layernorm = nn.Parameter(torch.ones(shape.width))

    def forward(self, skill: Tensor, inputs: Tensor, around: Surroundings) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The next states of both, and where the first head of each token looks: [B, S, S] and [B, Q * L, S + L]."""
        q, k, v = self._heads(skill, around.skill_cos, around.skill_sin)
        own = torch.softmax(q @ k.transpose(-1, -2) + around.own, dim=-1)
        mixed = own @ v
        q_i, k_i, v_i = self._heads(inputs, around.cos, around.sin)
        batch, heads, rows, size = q_i.shape
        length = around.length
        split = (batch, heads, rows // length, length, size)
        near = q_i.view(split) @ k_i.view(split).transpose(-1, -2)
        scores = torch.cat([q_i @ k.transpose(-1, -2), near.view(batch, heads, rows, length)], dim=-1)
        seen = torch.softmax(scores + around.read, dim=-1)
        far, near = seen.split([k.shape[2], length], dim=-1)
        mixed_i = far @ v + (near.reshape(*split[:-1], length) @ v_i.view(split)).view(q_i.shape)
        return self._rest(skill, mixed), self._rest(inputs, mixed_i), own[:, 0], seen[:, 0]

    def _heads(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [B, heads, tokens, head]."""
        shape = self.shape
        y = normalised(x, self.input_layernorm, shape.eps).to(MATRICES)
        q, k, v = (
            linear(y, weight).view(*x.shape[:2], shape.heads, shape.head)
            for weight in (self.q_proj, self.k_proj, self.v_proj)
        )
        q = rotated(normalised(q.float(), self.q_norm * shape.head**-0.5, shape.eps), cos, sin)
        k = rotated(normalised(k.float(), self.k_norm, shape.eps), cos, sin)
        q, k, v = (each.to(MATRICES).transpose(1, 2).contiguous() for each in (q, k, v))
        return q, k, v

    def _rest(self, x: Tensor, mixed: Tensor) -> Tensor:
        """What follows the heads."""
        x = x + linear(mixed.transpose(1, 2).reshape(*x.shape[:2], -1), self.o_proj)
        y = normalised(x, self.post_attention_layernorm, self.shape.eps).to(MATRICES)
        return x + linear(F.silu(linear(y, self.gate_proj)) * linear(y, self.up_proj), self.down_proj)


class States(NamedTuple):
    """What each layer leaves, and where its first head looks.

    Attributes:
        skill: [B, S, width], the embedding's first.
        inputs: [B, Q * L, width], likewise.
        own: [B, S, S] of the skills' tokens.
        looks: [B, Q * L, S + L] of the inputs' tokens.
    """

    skill: list[Tensor]
    inputs: list[Tensor]
    own: list[Tensor]
    looks: list[Tensor]


class Network(nn.Module):
    """The whole network."""

    def __init__(self, shape: Shape, *, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Parameter(torch.empty(shape.vocabulary, shape.width))
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.full((shape.width,), 0.02))
        chance = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in self.layers.named_parameters():
                if weight.dim() == 2:
                    ends = name.endswith(("o_proj", "down_proj"))
                    weight.normal_(0, 0 if ends else weight.shape[1] ** -0.5, generator=chance)
            # A token's code fills the first of four slots; what a layer says of a token has the others to itself.
            self.embed_tokens.zero_()
            self.embed_tokens[:, : shape.head].normal_(0, CODE, generator=chance)
            # The same for all, so that a head can look at a place whatever stands there.
            self.embed_tokens[:, -1] = 3 * CODE

    def mark(self, tokens: Sequence[int]) -> None:
        """Gives these tokens the same sign in one place of their codes, and all others the opposite."""
        with torch.no_grad():
            self.embed_tokens[:, 0] = -2 * CODE
            self.embed_tokens[list(tokens), 0] = 2 * CODE

    def carry(self, layer: int, source: int, target: int) -> None:
        """Has the first head of a layer, counted from 1, hand on one slot of what it looks at into another."""
        size = self.shape.head
        made = self.layers[layer - 1]
        with torch.no_grad():
            made.v_proj[:size] = 0
            made.v_proj[:size, source * size : (source + 1) * size] = torch.eye(size)
            made.o_proj[:, :size] = 0
            made.o_proj[target * size : (target + 1) * size, :size] = torch.eye(size)

    def forward(self, skill: Tensor, inputs: Tensor, lengths: Tensor) -> States:
        """The states after each layer.

        Args:
            skill: [B, S] tokens, padded at the end to the same length.
            inputs: [B, Q, L] tokens.
            lengths: [B] tokens of each skill.
        """
        batch, queries, length = inputs.shape
        around = self.surroundings(skill.shape[1], queries, length, lengths)
        x, y = self.embed_tokens[skill], self.embed_tokens[inputs.view(batch, -1)]
        states = States([x], [y], [], [])
        for layer in self.layers:
            x, y, own, look = layer(x, y, around)
            states.skill.append(x)
            states.inputs.append(y)
            states.own.append(own)
            states.looks.append(look)
        return states

    def surroundings(self, skill: int, queries: int, length: int, lengths: Tensor) -> Surroundings:
        """Rotations and masks; an input's positions go on where its skill ends."""
        device = lengths.device
        half = self.shape.head // 2
        at = torch.arange(skill, device=device)[None]
        after = (lengths[:, None] + torch.arange(length, device=device)).repeat(1, queries)
        turns = self.shape.theta ** (-torch.arange(half, device=device).float() / half)
        here, there = ((place.float()[..., None] * turns)[:, :, None] for place in (at, after))
        never = torch.finfo(MATRICES).min
        later = torch.ones(skill, skill, dtype=torch.bool, device=device).triu(1)
        own = torch.zeros(1, 1, skill, skill, dtype=MATRICES, device=device).masked_fill(later, never)
        rows = queries * length
        padding = (at >= lengths[:, None])[:, None].expand(-1, rows, -1)
        later = torch.ones(length, length, dtype=torch.bool, device=device).triu(1).repeat(queries, 1)
        hidden = torch.cat([padding, later.expand(len(lengths), -1, -1)], dim=-1)[:, None]
        read = torch.zeros(hidden.shape, dtype=MATRICES, device=device).masked_fill(hidden, never)
        return Surroundings(here.cos(), here.sin(), there.cos(), there.sin(), own, read, length)

    def logits(self, states: Tensor) -> Tensor:
        """Scores of all tokens [N, vocabulary] of states [N, width]."""
        return linear(normalised(states, self.norm, self.shape.eps), self.embed_tokens).float()
