"""The optimizer model as DSPy's optimizers call it: through the client, one sample index after the other."""

from __future__ import annotations

from typing import Any

from dspy.lm15 import Request, Response

from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.models.dspy_lm import RoleEngine, RoleLM, make_lm, scope
from skillc.models.failures import CallFailed
from skillc.optimize.methods.bridge import Bridge, Halt

PROPOSE = "propose"


class AskingEngine(RoleEngine):
    """Numbers its calls, so that a question that comes again is not given the same reply for ever; a cap halts."""

    def __init__(self, client: Client, bridge: Bridge) -> None:
        super().__init__(client, "optimizer")
        self._bridge = bridge
        self.calls = 0
        self.unanswered = 0

    def complete(self, request: Request) -> Response:
        """One reply.

        Raises:
            Halt: a cap does not admit the call, or the run cannot go on.
            CallFailed: no whole reply came; the optimizer goes on without.
        """
        self._bridge.check()
        self.calls += 1
        try:
            with scope(PROPOSE, (self.calls,)):
                return super().complete(request)
        except CallFailed:
            self.unanswered += 1
            raise
        except SkillcError as problem:
            self._bridge.fail(problem)
        raise Halt

    def __deepcopy__(self, memo: dict[int, Any]) -> AskingEngine:
        return self


def asking_lm(client: Client, engine: AskingEngine) -> RoleLM:
    """The optimizer's LM; DSPy's own cache and retries are off."""
    return RoleLM(client.roles["optimizer"].plan.model, cache=False, num_retries=0, engine=engine)


def answering_lm(client: Client) -> RoleLM:
    """The target's LM, for optimizers that want to be given one; rollouts do not use it."""
    return make_lm(client, "target")
