"""Codes SK3xx: types, units, ranges and levels."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program


def _labelled(more: str) -> str:
    return program(more).replace("answer: text", 'answer: "yes" | "no"')


_TWICE = "metric twice(m: metric) = (m + m) / 2"

_QUANTITIES = (
    Code(
        301,
        "an unknown unit",
        "Units are `tokens`, `s` (and `ms`, `min`, `h`), `bytes` (and `KB`, `MB`, `GB`), `examples`, `steps`, "
        "`epochs`, `turns`, `rounds` and `%`; dollars are written `$3`. `k` and `M` stand for thousands and millions.",
        program(gate="tokens(candidate) <= 2000 tokns"),
        program(gate="tokens(candidate) <= 2000 tokens"),
    ),
    Code(
        302,
        "units that don't go together",
        "Only numbers of one unit are added or compared. A share is a plain number: `5%` is 0.05. Divide by a number "
        "of the same unit to get a plain one.",
        program(gate="tokens(candidate) <= 2000"),
        program(gate="tokens(candidate) <= 2000 tokens"),
    ),
    Code(
        303,
        "a comparison that is settled beforehand",
        "What the two sides can be decides the comparison, whatever the candidate does, so it protects nothing. Most "
        "often a `%` is missing: `regressed(x)` is at most 1, so `<= 5` always holds.",
        program(gate="regressed(correct) <= 5"),
        program(gate="regressed(correct) <= 5%"),
    ),
    Code(
        304,
        "a metric without a finite range",
        "While results come in, a gate reckons with the best and the worst that the missing ones could be. So every "
        "metric needs a lowest and a highest value; `clamp(x, low, high)` gives it both.",
        program("metric length = tokens(answer)"),
        program("metric length = clamp(tokens(answer), 0 tokens, 300 tokens)"),
    ),
    Code(
        305,
        "a divisor that may be 0",
        "What the divisor can be includes 0. Keep it away from there.",
        program(gate="candidate.correct / incumbent.correct > 1.1"),
        program(gate="candidate.correct > 1.1 * incumbent.correct"),
    ),
    Code(
        315,
        "a number out of bounds",
        "The setting has a least or a greatest value, or is a whole number.",
        program("optimize { batch = 0 }"),
        program("optimize { batch = 40 }"),
    ),
    Code(
        314,
        "a setting without its unit",
        "A setting takes its unit, unless it is named after it: `limit = 800 tokens` and `cost = $3`, but `epochs = "
        "4`.",
        program().replace("epochs = 4", "epochs = 4; time = 90"),
        program().replace("epochs = 4", "epochs = 4; time = 90 min"),
    ),
    Code(
        318,
        "a product or a quotient without a meaning",
        "One side of `*` is a plain number. A number may be divided by one of its own unit, or by a plain one.",
        program("metric odd = clamp(tokens(answer) * 2 tokens, 0 tokens, 9 tokens)"),
        program("metric odd = clamp(tokens(answer) * 2, 0 tokens, 9 tokens)"),
    ),
)

_KINDS = (
    Code(
        306,
        "a metric's function in a gate, or the reverse",
        "A metric measures one rollout and can't see skills; a gate compares skills and can't see examples. Measure "
        "in a metric, and read `candidate.metric` in the gate. A function that takes a metric, such as `regressed`, "
        "also takes the expression of one.",
        program(gate="exact_match(answer) > 0.5"),
        program("metric same = exact_match(answer)", gate="candidate.same > 0.5"),
    ),
    Code(
        307,
        "a text is no number",
        "Texts are measured by functions, or compared by `==` and `!=`.",
        program("metric long = answer > 3"),
        program("metric long = tokens(answer) > 3 tokens"),
    ),
    Code(
        308,
        "a label that is not declared",
        "The field has labels, and the text that it is compared with is none of them, so it would never be equal.",
        _labelled('metric yes = answer == "jes"'),
        _labelled('metric yes = answer == "yes"'),
    ),
    Code(
        309,
        "a number for a condition, or the reverse",
        "A gate holds or does not: it is a comparison, or several with `and`, `or` and `not`. In a metric a condition "
        "counts as 0 or 1, in a gate it is no number.",
        program(gate="candidate.correct"),
        program(gate="candidate.correct >= 0.5"),
    ),
    Code(
        310,
        "arguments too many, too few or unknown",
        "What a function works on is given by position, its options by name.",
        program(goal="exact_match(answer, question)"),
        program(goal="exact_match(answer)"),
    ),
    Code(
        311,
        "an argument of another kind",
        "The function works on something else: an output of the task, a written number, a skill of the run.",
        program(goal="exact_match(question)"),
        program(goal="exact_match(answer)"),
    ),
    Code(
        312,
        "comparisons in a chain",
        "Write both, and join them with `and`.",
        program(gate="0.2 < candidate.correct < 0.9"),
        program(gate="0.2 < candidate.correct and candidate.correct < 0.9"),
    ),
    Code(
        313,
        "a value of another form",
        "Your own data is quoted, the words of the language are bare. A switch is `on` or `off`.",
        program("optimize { slow_update = false }"),
        program("optimize { slow_update = off }"),
    ),
    Code(
        316,
        "a claim that is no written comparison",
        "`confidence` and `e_value` test a claim: a written comparison of the means of one metric for two skills.",
        program(gate="confidence(candidate.correct) >= 95%"),
        program(gate="confidence(candidate.correct > incumbent.correct) >= 95%"),
    ),
    Code(
        317,
        "no plain literal",
        "What is passed on to a server or a model is a number without a unit, a text in quotes, a list, `on`, `off` or "
        "`none`.",
        program().replace('target    = "rulebook/v1"', 'target    = "rulebook/v1" { stop = high }'),
        program().replace('target    = "rulebook/v1"', 'target    = "rulebook/v1" { stop = "high" }'),
    ),
    Code(
        320,
        "an expression that is too large",
        "With all functions written out, what a metric or a gate means is too large to work with. Give its parts "
        "names.",
        program(_TWICE, goal="twice(" * 13 + "f1(answer)" + ")" * 13),
        program(_TWICE, goal="twice(f1(answer))"),
    ),
)

CODES: tuple[Code, ...] = (*_QUANTITIES, *_KINDS)
