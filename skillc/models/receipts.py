"""What was paid, on paper: an attempt's reservation is on the disk before it is sent, what it used when it ends."""

from __future__ import annotations

from pathlib import Path

from skillc.line_file import LineFile
from skillc.models.accounts import Amount
from skillc.models.calls import Usage
from skillc.models.failures import PermanentFailure
from skillc.models.ledger import Book, Where


class Receipts:
    """Books what the network takes, over all sessions of one run.

    An attempt that was under way when a session was killed stays in the book with its whole reservation.

    Args:
        paid: the book, to which earlier sessions are added.
        path: where the receipts are kept; None keeps none.

    Raises:
        SkillcError: the file cannot be used.
    """

    def __init__(self, paid: Book, path: Path | None = None) -> None:
        self._paid = paid
        self._file = LineFile(path, "ledger") if path is not None else None
        self._models: dict[str, str] = {}
        self._next = 0
        if self._file is not None:
            self._read(self._file)

    async def sent(self, where: Where, reserved: Amount) -> int:
        """The number of an attempt that may be sent now."""
        number, self._next = self._next, self._next + 1
        if self._file is not None:
            self._file.write({"attempt": number, "role": where[0], "stage": where[1], "reserved": list(reserved)})
            await self._file.synced()
        return number

    def ended(self, number: int, where: Where, reserved: Amount, usage: Usage, cost: int | None) -> None:
        """An attempt ended; its reservation becomes what it used, `cost` in nano-dollars."""
        self._paid.settle(where, reserved, usage, cost)
        if self._file is not None:
            bound = {"bound": True} if usage.bound else {}
            self._file.write({"attempt": number, "usage": list(usage.counts), "cost": cost, **bound})

    def unserved(self, number: int, reserved: Amount) -> None:
        """An attempt was sent away for want of room, or reached nobody: nothing was paid, so that no cap counts it."""
        self._paid.account.release(reserved)
        if self._file is not None:
            self._file.write({"attempt": number, "refused": True})

    def answered(self, role: str, model: str) -> None:
        """A reply of a role named the model that wrote it.

        Raises:
            PermanentFailure: it is another one than earlier in this run.
        """
        before = self._models.get(role)
        if before is None:
            self._models[role] = model
            if self._file is not None:
                self._file.write({"role": role, "model": model})
        elif before != model:
            raise PermanentFailure(
                f"model `{role}` answered as `{before}` earlier in this run and answers as `{model}` now",
                hint="scores of two models are never mixed: name one version of the model, or start anew: `--fresh`",
            )

    def close(self) -> None:
        """Closes the file, which stays."""
        if self._file is not None:
            self._file.close()

    def _read(self, file: LineFile) -> None:
        opened: dict[int, tuple[Where, Amount]] = {}
        for _, _, line in file.whole_lines():
            if "model" in line:
                self._models[line["role"]] = line["model"]
            elif "reserved" in line:
                opened[line["attempt"]] = ((line["role"], line["stage"]), Amount(*line["reserved"]))
                self._next = line["attempt"] + 1
            elif "refused" in line:
                opened.pop(line["attempt"])
            else:
                where, reserved = opened.pop(line["attempt"])
                self._add(where, reserved, Usage.of(line["usage"], line.get("bound")), line["cost"])
        for where, reserved in opened.values():
            self._add(where, reserved, Usage(prompt=reserved.tokens, bound=True), reserved.cost)

    def _add(self, where: Where, reserved: Amount, usage: Usage, cost: int | None) -> None:
        self._paid.account.reserved = self._paid.account.reserved.plus(reserved)
        self._paid.settle(where, reserved, usage, cost)
