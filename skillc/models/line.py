"""Places in line: calls reach the ledger in the order of the plan, however long each takes to be put together."""

from __future__ import annotations

import asyncio
from collections import deque


class Turn:
    """A place in line that was taken and not yet used."""

    __slots__ = ("ahead", "left")

    def __init__(self) -> None:
        self.left = False
        self.ahead: asyncio.Future[None] | None = None


class Line:
    """First come, first served, where coming and being ready are two things.

    Places are taken on any thread; all else happens on one event loop.
    """

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque()

    def take(self) -> Turn:
        """Takes the next place; it has to be left, used or not."""
        turn = Turn()
        self._turns.append(turn)
        return turn

    async def reach(self, turn: Turn) -> None:
        """Waits until all earlier places are left."""
        if turn.left or self._turns[0] is turn:
            return
        turn.ahead = asyncio.get_running_loop().create_future()
        await turn.ahead

    def leave(self, turn: Turn) -> None:
        """Lets the next one come forward."""
        turn.left = True
        while self._turns and self._turns[0].left:
            self._turns.popleft()
        if self._turns:
            ahead = self._turns[0].ahead
            if ahead is not None and not ahead.done():
                ahead.set_result(None)
