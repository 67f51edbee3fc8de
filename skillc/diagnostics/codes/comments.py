"""Codes SK04x: files that can't be read, and comments that are meant for skillc."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program

_UNREAD = "metric close = f1(answer)"


def _code(number: int, title: str, explanation: str, bad: str = "", good: str = "") -> Code:
    return Code(f"SK{number:03}", "syntax", title, explanation, bad, good)


CODES: tuple[Code, ...] = (
    _code(
        40,
        "a file that is no program",
        "There is no such file, it may not be read, or what it holds is no text in UTF-8. The other files of the "
        "command are checked all the same, and the exit status is 2. No text of a program can show it.",
    ),
    _code(
        41,
        "a suppression that can't be read",
        "A finding is suppressed by `# skillc: ignore[SK409] why it may stay`: the codes in square brackets, then the "
        "reason. At the end of a line it holds for the findings that begin on that line; on a line of its own for "
        "those in the statement below, its block included.",
        program(f"{_UNREAD}  # skillc: ignore SK409, the report shows it"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    _code(
        42,
        "a suppression without a reason",
        "Whoever reads the program later sees that something was passed over, and must be able to tell whether it "
        "still may be. So nothing is suppressed until the reason stands behind the codes.",
        program(f"{_UNREAD}  # skillc: ignore[SK409]"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    _code(
        43,
        "a suppression of a code that does not exist",
        "`skillc explain` lists all codes.",
        program(f"{_UNREAD}  # skillc: ignore[SK4O9] the report shows it"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    _code(
        44,
        "an error that can't be suppressed",
        "Warnings and notes may be passed over, an error may not: what it is about has no meaning, so there is "
        "nothing to go on with.",
        program(gate="regressed(correct) <= 5  # skillc: ignore[SK303] it is meant so"),
        program(gate="regressed(correct) <= 5%"),
    ),
    _code(
        45,
        "a suppression that suppresses nothing",
        "What it was for is gone, or begins on another line. It would hide the next finding of this code. Codes that "
        "only `skillc plan` or `skillc check --data` finds are judged there, on the program as it is written.",
        program("metric close = f1(answer)  # skillc: ignore[SK409] shown", gate="candidate.close > 0.5"),
        program("metric close = f1(answer)", gate="candidate.close > 0.5"),
    ),
)
