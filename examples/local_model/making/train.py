"""Trains the model: `python -m local_model.making.train FOLDER`, from the folder `examples`.

With `--first MODEL` it is the second stage, which begins with the model that was exported after the first.

Checkpoints go to FOLDER, and a run that is started again goes on from the last one. The same seed gives the same
documents; on the same machine with as many threads, the same weights.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch

from . import tokenizer
from .batches import Batch, batch
from .export import read
from .grow import grown
from .losses import Helpers, helper_losses, lay_out, reply_loss
from .muon import Muon
from .network import Network, Shape
from .sources import Level


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of the training: documents of one level, from a step on.

    Attributes:
        start: its first step, where the whole training has `STEPS`.
        rooms: the most tokens of a skill; one of them for each batch, because each shape is compiled anew.
        length: the most tokens of an input with its reply.
    """

    start: int
    level: Level
    rooms: tuple[int, ...]
    length: int


STAGES = (
    Stage(0, Level((1, 4), (1, 2), (2, 4), 0, 0, 1, 0, queries=8, phrasings=12), (192,), 96),
    Stage(308, Level((2, 8), (1, 3), (2, 6), odd=0.03, sentences=2, phrases=0.05, queries=8), (320,), 128),
    Stage(968, Level((2, 12), (1, 5), (2, 8), odd=0.08, sentences=3, queries=8, bare=0.05), (320, 576), 160),
    Stage(1980, Level((3, 18), (1, 6), (2, 10), odd=0.1, sentences=4, queries=8, bare=0.05), (448, 832), 192),
    Stage(
        3500,
        Level((3, 18), (1, 6), (2, 10), odd=0.1, sentences=4, queries=8, bare=0.05, two=0.35, pieces=0.6),
        (448, 832),
        192,
    ),
)
STEPS = 6000
# The learning rate's factor at some steps; straight lines between them.
RATE = ((-1, 0.0), (49, 1.0), (2222, 1.0), (3500, 0.42), (STEPS, 0.0))

# The second stage: capitals as tokens, other labels and forms of rules; every fourth batch has long skills.
FORMS = Level(
    (3, 9), (1, 3), (3, 6), odd=0.12, strange=0.06, sentences=3, queries=8, bare=0.03, two=0.25, pieces=0.4,
    forms=0.45, written=0.5, pages=0.7,
)  # fmt: skip
LONG = replace(FORMS, rules=(8, 17), triggers=(1, 5), labels=(2, 8), sentences=5, forms=0.25, written=0.3)
SHORT_ROOM, LONG_ROOM = (416, 112), (832, 192)  # tokens of a skill, and of an input
REPORT = 25  # steps between two lines of figures


@dataclass(frozen=True, slots=True)
class Settings:
    """What a stage of the training is made of."""

    stage: int = 1
    steps: int = STEPS
    tokens: int = 10_000
    seed: int = 5
    matrices: float = 0.015  # learning rate of Muon
    others: float = 3e-3  # learning rate of AdamW, for scales
    codes: float = 0.04  # learning rate of AdamW, for the codes of tokens that may move
    helpers: float = 1.0  # weight of the helper losses, falling to a tenth
    helped: float = 0.513  # share of the steps after which it is a tenth


SECOND = Settings(stage=2, steps=550, tokens=5000, matrices=0.005, others=1e-3, helped=0.85)


def stage_of(step: int, settings: Settings) -> Stage:
    """The stage that a step is in; a shorter training has shorter stages."""
    return [stage for stage in STAGES if step * STEPS >= stage.start * settings.steps][-1]


def rate(step: int, settings: Settings) -> float:
    """The learning rate's factor."""
    if settings.stage == 2:
        return min(1.0, (step + 1) / 50, (settings.steps - step) / (0.8 * settings.steps))
    at, factor = zip(*RATE, strict=True)
    return float(np.interp(step * STEPS / settings.steps, at, factor))


def _one(settings: Settings, step: int) -> Batch:
    seed = f"{settings.seed}:{step}"
    if settings.stage == 2:
        level, sizes = (LONG, LONG_ROOM) if step % 4 == 3 else (FORMS, SHORT_ROOM)
        return batch(seed, level, settings.tokens, *sizes)
    stage = stage_of(step, settings)
    room = stage.rooms[step % len(stage.rooms)]
    return batch(seed, stage.level, settings.tokens, room, stage.length, marks=True)


def batches(settings: Settings, start: int, workers: int) -> Iterator[Batch]:
    """The batches from a step on, made in other processes ahead of their use."""
    with ProcessPoolExecutor(workers) as pool:
        ahead: deque[Future[Batch]] = deque()
        step = start
        for _ in range(start, settings.steps):
            while len(ahead) < 2 * workers + 2 and step < settings.steps:
                ahead.append(pool.submit(_one, settings, step))
                step += 1
            yield ahead.popleft().result()


class Training:
    """The network, its helpers and their optimizers."""

    def __init__(self, settings: Settings, device: str, *, compiled: bool, first: Path | None = None) -> None:
        words = tokenizer.build(marks=settings.stage == 1)
        self.settings, self.device = settings, device
        if first:
            self.network = grown(read(first))
        else:
            self.network = Network(Shape(words.get_vocab_size()), seed=settings.seed)
            lay_out(self.network, tokenizer.inner(words))
        self.network.to(device)
        self.helpers = Helpers(self.network.shape).to(device)
        codes = self.network.embed_tokens
        if settings.stage == 1:
            moving = torch.zeros(words.get_vocab_size(), 1)
            moving[tokenizer.structural(words)] = 1
            # The other tokens keep their random codes: a word that was never seen is then as good as any.
            codes.register_hook(moving.to(device).__mul__)
        codes.requires_grad_(settings.stage == 1)
        matrices = [*self.network.layers.parameters(), self.helpers.rule]
        matrices = [weight for weight in matrices if weight.dim() == 2]
        known = set(map(id, matrices))
        known.add(id(codes))
        others = [w for w in (*self.network.parameters(), *self.helpers.parameters()) if id(w) not in known]
        self.optimizers = (
            Muon(matrices, lr=settings.matrices, momentum=0.95, weight_decay=0.01),
            torch.optim.AdamW(others, lr=settings.others, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
            torch.optim.AdamW([codes], lr=settings.codes, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
        )
        if compiled:
            for layer in self.network.layers:
                layer.compile(dynamic=False)

    def step(self, number: int, made: Batch) -> dict[str, float]:
        """One step; what was measured in it."""
        tops = (self.settings.matrices, self.settings.others, self.settings.codes)
        for optimizer, top in zip(self.optimizers, tops, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = top * rate(number, self.settings)
        tensors = {each.name: torch.from_numpy(getattr(made, each.name)).to(self.device) for each in fields(made)}
        states = self.network(tensors["skill"], tensors["inputs"], tensors["lengths"])
        loss, label, right = reply_loss(self.network, states.inputs[-1], tensors)
        helped = helper_losses(self.helpers, self.network, states, tensors)
        weight = self.settings.helpers * max(0.1, 1 - number / (self.settings.helped * self.settings.steps))
        (loss + weight * sum(helped.values(), torch.zeros((), device=self.device))).backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        found = {"loss": loss.detach(), "label": label.mean().detach(), "right": right.float().mean()}
        return {name: float(value.detach()) for name, value in {**found, **helped}.items()}

    def save(self, path: Path, step: int) -> None:
        """A checkpoint, whole or not at all."""
        state = {
            "step": step,
            "settings": asdict(self.settings),
            "network": self.network.state_dict(),
            "helpers": self.helpers.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    def load(self, path: Path) -> int:
        """Takes up a checkpoint; the step to go on with."""
        state = torch.load(path, map_location=self.device)
        self.network.load_state_dict(state["network"])
        self.helpers.load_state_dict(state["helpers"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        return int(state["step"])


def train(
    folder: Path,
    settings: Settings,
    *,
    first: Path | None,
    device: str,
    workers: int,
    every: int,
    compiled: bool,
    minutes: float,
) -> None:
    """Train until the last step, with figures and checkpoints on the way; `first` is the first stage's model."""
    folder.mkdir(parents=True, exist_ok=True)
    training = Training(settings, device, compiled=compiled, first=first)
    checkpoint = folder / "checkpoint.pt"
    start = training.load(checkpoint) if checkpoint.exists() else 0
    began, sums, counted, seen = time.monotonic(), dict[str, float](), 0, 0
    for number, made in enumerate(batches(settings, start, workers), start):
        figures = training.step(number, made)
        if not math.isfinite(figures["loss"]):
            sys.exit(f"the loss is not finite at step {number}; start again from the last checkpoint with a lower rate")
        counted += 1
        seen += made.skill.size + made.inputs.size
        for name, value in figures.items():
            sums[name] = sums.get(name, 0.0) + value
        last = number + 1 == settings.steps
        if (number + 1) % REPORT == 0 or last:
            spent = time.monotonic() - began
            means = " ".join(f"{name} {value / counted:.3f}" for name, value in sums.items())
            left = spent / (number + 1 - start) * (settings.steps - number - 1)
            print(
                f"step {number + 1}/{settings.steps} {means} | {seen / spent:,.0f} tokens/s, {left / 60:.0f} min left",
                flush=True,
            )
            with (folder / "log.jsonl").open("a") as log:
                log.write(
                    json.dumps({"step": number + 1, **{name: round(v / counted, 4) for name, v in sums.items()}}) + "\n"
                )
            sums, counted = {}, 0
        if (number + 1) % every == 0 or last:
            training.save(checkpoint, number + 1)
        if minutes and time.monotonic() - began > 60 * minutes:
            training.save(checkpoint, number + 1)
            return


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="train the model that follows rules")
    parser.add_argument("folder", type=Path, help="for checkpoints and the log")
    parser.add_argument("--first", type=Path, help="the first stage's model, to begin the second stage with")
    for each in fields(Settings)[1:]:
        parser.add_argument(f"--{each.name}", type=type(each.default))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--workers", type=int, default=1, help="processes that make documents")
    parser.add_argument("--every", type=int, default=250, help="steps between checkpoints")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long, to go on later")
    parser.add_argument("--eager", action="store_true", help="do not compile the layers")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    chosen = {each.name: value for each in fields(Settings)[1:] if (value := getattr(given, each.name)) is not None}
    settings = replace(SECOND if given.first else Settings(), **chosen)
    train(
        given.folder,
        settings,
        first=given.first,
        device=given.device,
        workers=given.workers,
        every=given.every,
        compiled=not given.eager,
        minutes=given.minutes,
    )


if __name__ == "__main__":
    main()
