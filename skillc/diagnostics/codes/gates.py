"""Codes SK50x: budgets and gates, as far as the text alone shows them."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code, Phase
from skillc.diagnostics.codes.samples import program


def _code(number: int, title: str, explanation: str, bad: str, good: str, *, settled_by: Phase | None = None) -> Code:
    return Code(f"SK{number}", "gates", title, explanation, bad, good, settled_by=settled_by)


CODES: tuple[Code, ...] = (
    _code(
        502,
        "a gate without a candidate",
        "A gate decides on a candidate, so it must look at one. What must hold once, before the first step, is a "
        "`require`.",
        program(gate="best.correct > initial.correct"),
        program(gate="candidate.correct > initial.correct"),
    ),
    _code(
        503,
        "a require that looks at a candidate",
        "A require is decided before the first step, when the only skill is `initial`.",
        program("require able = candidate.correct > 10%"),
        program("require able = initial.correct > 10%"),
    ),
    _code(
        504,
        "a gate that can't be decided early",
        "A gate is decided as soon as no result that is still missing could change the answer. Time has no upper "
        "bound, so a gate that reads a latency waits for the whole validation split, which a note says. What a rollout "
        "costs is bounded by the plan, but only where the target's price is known: without one a gate on `cost` is "
        "never decided, and `skillc plan` warns of it.",
        program(gate="latency(candidate) <= 1.1 * latency(incumbent)"),
        program(gate="cost(candidate) <= 1.1 * cost(incumbent)"),
        settled_by="plan",
    ),
    _code(
        506,
        "a cap on tokens that is kept anyway",
        "A note: frozen texts and the limits of the other sections already keep the skill below the cap.",
        program(gate="tokens(candidate) <= 2k tokens").replace("section rules", "section rules { limit = 800 tokens }"),
        program(gate="tokens(candidate) <= 2k tokens"),
    ),
    _code(
        507,
        "patience that never runs out",
        "`patience = n steps` ends a run after n steps without an accept. With fewer steps than that in the whole run "
        "it can never do so. A note where the text says how many steps there are, and a warning of the plan, which "
        "knows it from the data.",
        program().replace("epochs = 4", "steps = 4; patience = 8 steps"),
        program().replace("epochs = 4", "steps = 40; patience = 8 steps"),
        settled_by="plan",
    ),
    _code(
        508,
        "a budget that caps nothing",
        "Without a cap on epochs, steps, calls, tokens, cost or time a run has no end.",
        program().replace("epochs = 4", "patience = 4 steps"),
        program(),
    ),
    _code(
        509,
        "answers that may be copied into the skill",
        "A note: `sees` shows the optimizer the right answers, they are texts, and no gate looks at what it copies of "
        "them. A skill that repeats its training examples does well on those and on nothing else. "
        "`overlap(candidate)` is the share of the words of the trainable and slow sections that stand, five or more in "
        "a row, in a training example's inputs or answers.",
        program("optimize { sees = [gold, feedback] }"),
        program("optimize { sees = [gold, feedback] }", gate="overlap(candidate) <= 20%"),
    ),
)
