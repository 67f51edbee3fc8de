"""Codes SK510 to SK519: gates that decide nothing, and caps that end every run."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program


def _code(number: int, title: str, explanation: str, bad: str, good: str) -> Code:
    return Code(f"SK{number}", "gates", title, explanation, bad, good)


_BETTER = "gate better = candidate.correct > incumbent.correct"


def _many(count: int) -> str:
    return "\n".join(f"gate g{i} = candidate.correct >= incumbent.correct - {i + 1}%" for i in range(count))


CODES: tuple[Code, ...] = (
    _code(
        510,
        "a gate that can never hold",
        "No candidate can meet it, so a run would spend its budget and keep the first skill. The same "
        "quantity is asked to be above and below something, each alternative of an `or` excludes itself, or what is "
        "asked lies outside of what the quantities can be together: `worst(candidate.m, by = f)` is never above "
        "`candidate.m`, a skill never has fewer tokens than its frozen sections, `improved(m) - regressed(m)` is what "
        "the mean grew by. The answer is exact for sums and differences of quantities; of products and quotients only "
        "the ranges are known. Where one alternative of several can never hold, a note says so.\n\n"
        "`change(candidate) <= 0` lets no edit through but one that moves a rule or adds to an empty section.",
        program(gate="candidate.correct > 90% and not candidate.correct > 50%"),
        program(gate="candidate.correct > 50% and not candidate.correct > 90%"),
    ),
    _code(
        511,
        "a gate that always holds",
        "Every candidate meets it, so it protects nothing. Most often a sign is the wrong way round, or "
        "both sides of an `or` together leave nothing out. Where one condition of several always holds, a "
        "note says so.",
        program(gate="candidate.correct + 1% > candidate.correct"),
        program(gate="candidate.correct + 1% > incumbent.correct and regressed(correct) <= 5%"),
    ),
    _code(
        512,
        "gates that exclude each other",
        "All gates must hold, and these can't hold together, so no candidate is ever accepted. The hint "
        "names the comparisons. Each gate alone is possible. Gates `for slow` are looked at together, the others "
        "together, each with what a `require` says of the initial skill.",
        program(gate="incumbent.correct >= candidate.correct"),
        program(gate="candidate.correct >= initial.correct"),
    ),
    _code(
        513,
        "a gate that another one implies",
        "Wherever the other gates hold, this one does too, so it decides nothing. A gate that was meant to ask "
        "for less is not needed; one that was meant to ask for more does not.",
        program(gate="candidate.correct >= incumbent.correct - 5%"),
        program(gate="regressed(correct) <= 5%"),
    ),
    _code(
        514,
        "a goal that no gate reads",
        "The gates ask for something else alone, such as tokens, so a candidate is accepted however much "
        "worse it is by the goal. The goal counts as read where a gate speaks of it, or of a metric that it is made "
        "of. With `accept = always` no gate decides, and nothing is said.",
        program().replace(_BETTER, "gate compact = tokens(candidate) <= 900 tokens"),
        program(gate="tokens(candidate) <= 900 tokens"),
    ),
    _code(
        516,
        "a cap that no run fits into",
        "The text alone shows that a run would end before it has a result. It scores the first skill on the "
        "validation split, asks the optimizer at least once, and tests two skills; where `split` counts examples, they "
        "are counted. A cap of `$0` admits models that cost nothing, and no others. `skillc plan` reckons with the "
        "data and writes the whole sum out.",
        program().replace("epochs = 4", "epochs = 4; calls = 3"),
        program().replace("epochs = 4", "epochs = 4; calls = 3k"),
    ),
    _code(
        517,
        "a gain that no accept can reach",
        "An accept that adds less than `min_gain` to the goal does not reset the patience, and the goal's "
        "range is narrower than that. Most often a `%` is missing.",
        program().replace("epochs = 4", "epochs = 4; patience = 8 steps; min_gain = 2"),
        program().replace("epochs = 4", "epochs = 4; patience = 8 steps; min_gain = 2%"),
    ),
    _code(
        518,
        "more gates than are held against each other",
        "`check` holds each gate against all others together, to find what excludes or repeats what. That takes time "
        "which grows faster than the number of gates, so it ends after the first 64; the others are checked alone. "
        "People write a handful of gates: hundreds of them are made by a program, and one expression says the same.",
        program(_many(65)),
        program(_many(4)),
    ),
)
