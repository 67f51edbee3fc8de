"""One of DSPy's optimizers from start to end: on a thread of its own, silenced, and cut off where a cap says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import dspy

from skillc.document.skill import Document, digest
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.models.dspy_lm import RoleLM
from skillc.optimize.engine import Engine
from skillc.optimize.methods.asking import AskingEngine, answering_lm, asking_lm
from skillc.optimize.methods.bridge import Bridge, Halt
from skillc.optimize.methods.found import Found
from skillc.optimize.methods.quiet import quiet
from skillc.optimize.methods.student import Item, Student, document_of, items
from skillc.optimize.observer import cut_by


@dataclass(frozen=True, slots=True)
class Bench:
    """What an optimizer works with: the module, the examples, the two models, and how many rollouts run at once."""

    bridge: Bridge
    student: Student
    train: list[Item]
    validation: list[Item]
    optimizer: RoleLM
    target: RoleLM
    threads: int


Peer = Callable[[Bench], Any]


def require(package: str, method: str) -> None:
    """Checks that a method's package is there.

    Raises:
        SkillcError: it is not; the hint says what to install.
    """
    if find_spec(package) is None:
        raise SkillcError(
            f"`method = {method}` needs the package `{package}`, which is not installed",
            hint=f"pip install 'skillc[{method}]'",
        )


async def search(engine: Engine, initial: Document, client: Client, peer: Peer, most: int) -> Found:
    """The result of an optimizer, or the best skill that it had measured when it was cut off.

    Args:
        engine: after the baseline.
        initial: the skill to start from.
        client: the models.
        peer: builds the optimizer and runs it, on a thread.
        most: rollouts that it may make.

    Raises:
        SkillcError: the run cannot go on: a model refuses, a metric fails.
    """
    bridge = Bridge(engine, initial, most)
    asking = AskingEngine(client, bridge)
    bench = Bench(
        bridge=bridge,
        student=Student(bridge),
        train=items(engine.plan, engine.dataset.train),
        validation=items(engine.plan, engine.dataset.validation),
        optimizer=asking_lm(client, asking),
        target=answering_lm(client),
        threads=max(2, engine.wave),
    )
    engine.observer.stage(engine.plan.optimize.method, most)
    program, broken, cut = None, None, True
    try:
        program, broken = await asyncio.to_thread(_run, peer, bench)
        cut = False
    except asyncio.CancelledError:
        # The thread ends by itself, at its next question or rollout.
        bridge.halt(cut_by(engine.observer))
    finally:
        await bridge.close(cut=cut)
    if bridge.error is not None:
        raise bridge.error
    if broken is not None:
        engine.observer.note(f"{engine.plan.optimize.method} gave up: {broken}")
    if asking.unanswered:
        engine.observer.note(f"{asking.unanswered} of {asking.calls} questions to the optimizer were not answered")
    document, problem = document_of(bridge, program) if program is not None else (bridge.best() or initial, None)
    return Found(
        document=document,
        stopped=bridge.stopped or ("failed" if broken is not None else "method"),
        problem=problem,
        rollouts=bridge.rollouts,
        questions=asking.calls,
        tried=len(bridge.tried.keys() - {digest(initial)}),
    )


def _run(peer: Peer, bench: Bench) -> tuple[Any, str | None]:
    """The optimizer's module, or None and, where it failed by itself, what it said."""
    settings = {"lm": bench.target, "adapter": dspy.ChatAdapter(), "disable_history": True, "callbacks": []}
    try:
        with quiet(), dspy.context(**settings, track_usage=False, num_threads=bench.threads):
            return peer(bench), None
    except Halt:
        return None, None
    except Exception as problem:
        # An optimizer that a reached cap pulled the ground from under may say anything.
        halted = bench.bridge.stopped is not None or bench.bridge.error is not None
        return None, None if halted else f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
