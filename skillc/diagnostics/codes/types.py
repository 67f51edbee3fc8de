"""Codes SK3xx: types, units, ranges and levels."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code, program

_TWICE = "metric twice(m: metric) = (m + m) / 2"


def _labelled(more: str) -> str:
    return program(more).replace("answer: text", 'answer: "yes" | "no"')


CODES: tuple[Code, ...] = (
    Code(
        301,
        "unknown unit",
        "Units are `tokens`, `s` (and `ms`, `min`, `h`), `bytes` (and `KB`, `MB`, `GB`), `examples`, `steps`, "
        "`epochs`, `turns`, `rounds` and `%`; dollars are written `$3`. `k` means thousand and `M` million.",
        program(gate="tokens(candidate) <= 2000 tokns"),
        program(gate="tokens(candidate) <= 2000 tokens"),
    ),
    Code(
        302,
        "incompatible units",
        "Only numbers with the same unit can be added or compared. A share is a plain number: `5%` is 0.05. To get a "
        "plain number, divide by a number with the same unit.",
        program(gate="tokens(candidate) <= 2000"),
        program(gate="tokens(candidate) <= 2000 tokens"),
    ),
    Code(
        303,
        "comparison is always true or always false",
        "The ranges of both sides decide the comparison, so it protects nothing. Usually a `%` is missing: "
        "`regressed(x)` is at most 1, so `<= 5` always holds.",
        program(gate="regressed(correct) <= 5"),
        program(gate="regressed(correct) <= 5%"),
    ),
    Code(
        304,
        "metric without a finite range",
        "While results are missing, a gate assumes the best and the worst value for them, so every metric needs a "
        "lowest and a highest value. Set both with `clamp(x, low, high)`, or with `low` and `high` of `python(...)`.",
        program("metric length = tokens(answer)"),
        program("metric length = clamp(tokens(answer), 0 tokens, 300 tokens)"),
    ),
    Code(
        305,
        "possible division by zero",
        "The range of the divisor includes 0. Multiply instead, or bound the divisor away from 0.",
        program(gate="candidate.correct / incumbent.correct > 1.1"),
        program(gate="candidate.correct > 1.1 * incumbent.correct"),
    ),
    Code(
        315,
        "number out of range",
        "The setting has a minimum or a maximum, or takes whole numbers only.",
        program("optimize { batch = 0 }"),
        program("optimize { batch = 40 }"),
    ),
    Code(
        314,
        "missing unit",
        "A setting takes a unit unless it is named after it: `limit = 800 tokens` and `cost = $3`, but `epochs = 4`.",
        program().replace("epochs = 4", "epochs = 4; time = 90"),
        program().replace("epochs = 4", "epochs = 4; time = 90 min"),
    ),
    Code(
        318,
        "product or quotient of incompatible units",
        "One factor of `*` is a plain number. Divide by a plain number, or by one with the same unit.",
        program("metric odd = clamp(tokens(answer) * 2 tokens, 0 tokens, 9 tokens)"),
        program("metric odd = clamp(tokens(answer) * 2, 0 tokens, 9 tokens)"),
    ),
    Code(
        306,
        "metric function in a gate, or gate function in a metric",
        "A metric measures one rollout and can't read skills; a gate compares skills and can't read examples. Measure "
        "in a metric, then read `candidate.metric` in the gate. `regressed` and the like also accept expressions.",
        program(gate="exact_match(answer) > 0.5"),
        program("metric same = exact_match(answer)", gate="candidate.same > 0.5"),
    ),
    Code(
        307,
        "text used as a number",
        "Measure a text with a function, or compare it with `==` or `!=`.",
        program("metric long = answer > 3"),
        program("metric long = tokens(answer) > 3 tokens"),
    ),
    Code(
        308,
        "undeclared label",
        "The field is compared with a text that is not one of its labels, so the two are never equal.",
        _labelled('metric yes = answer == "jes"'),
        _labelled('metric yes = answer == "yes"'),
    ),
    Code(
        309,
        "number used as a condition, or condition used as a number",
        "A gate is a condition: a comparison, or several joined with `and`, `or` and `not`. A condition counts as 0 or "
        "1 in a metric, but is not a number in a gate.",
        program(gate="candidate.correct"),
        program(gate="candidate.correct >= 0.5"),
    ),
    Code(
        310,
        "wrong arguments",
        "There are too many arguments, too few, or an unknown one. Operands are given by position, options by name.",
        program(goal="exact_match(answer, question)"),
        program(goal="exact_match(answer)"),
    ),
    Code(
        311,
        "argument of the wrong kind",
        "The function takes something else here, such as an output of the task, a literal number, or a skill.",
        program(goal="exact_match(question)"),
        program(goal="exact_match(answer)"),
    ),
    Code(
        312,
        "chained comparison",
        "Write two comparisons and join them with `and`.",
        program(gate="0.2 < candidate.correct < 0.9"),
        program(gate="0.2 < candidate.correct and candidate.correct < 0.9"),
    ),
    Code(
        313,
        "value of the wrong form",
        "User data is quoted, and words of the language are not. A switch is `on` or `off`.",
        program("optimize { slow_update = false }"),
        program("optimize { slow_update = off }"),
    ),
    Code(
        316,
        "claim is not a comparison",
        "`confidence` and `e_value` test a claim: a literal comparison of the means of one metric for two skills.",
        program(gate="confidence(candidate.correct) >= 95%"),
        program(gate="confidence(candidate.correct > incumbent.correct) >= 95%"),
    ),
    Code(
        317,
        "value is not a plain literal",
        "Settings for a server or model are a plain number, a quoted text, a list, `on`, `off` or `none`.",
        program().replace('target    = "rulebook/v1"', 'target    = "rulebook/v1" { stop = high }'),
        program().replace('target    = "rulebook/v1"', 'target    = "rulebook/v1" { stop = "high" }'),
    ),
    Code(
        319,
        "condition that depends on the rollout",
        "`precision(metric, condition)` and `recall(metric, condition)` compare what a rollout does with what it "
        "should do. What it should do is a property of the example, so the condition reads a field of the data or an "
        "input, not an answer.",
        program(gate='precision(contains(answer), answer == "Lima") >= 90%'),
        program(gate='precision(contains(answer), topic == "places") >= 90%'),
    ),
    Code(
        321,
        "measurement that no rollout of the program has",
        "`reward()` is the score that an environment gives a rollout; `used`, `calls` and `order` read the calls of "
        "tools, and `file_contains` the files of a workspace. This kind of rollout has none of it. Measure the output "
        'instead, or run the skill where it is used: `environment("module:Class")`, `react { tools = [...] }`, '
        '`command("...")`.',
        program("metric won = reward()"),
        program("metric won = exact_match(answer)"),
    ),
    Code(
        322,
        "signal that says nothing",
        "A noisy signal is corrected by its sensitivity, the share of right answers that it calls right, and its "
        "specificity, the share of wrong answers that it calls wrong. A coin has 100 % together, and then nothing is "
        "left to correct. Usually one of the two is the share of errors: a signal that calls 8 % of the wrong answers "
        "right has `specificity = 92%`.",
        program(goal="noisy(exact_match(answer), sensitivity = 90%, specificity = 8%)"),
        program(goal="noisy(exact_match(answer), sensitivity = 90%, specificity = 92%)"),
    ),
    Code(
        323,
        "metric that computes with a corrected signal",
        "The correction of a noisy signal makes its mean right, not a single value: that is below 0 or above 1. What "
        "another metric computes with it, such as a minimum, a product or a comparison, would have no such mean. "
        "`noisy(...)` is the whole of a metric. Compute first and correct the result, or compare several metrics in "
        "gates.",
        program(
            "metric short = clamp(1 - words(answer) / 20, 0, 1)",
            goal="0.9 * noisy(exact_match(answer), sensitivity = 90%, specificity = 92%) + 0.1 * short",
        ),
        program(
            "metric short = clamp(1 - words(answer) / 20, 0, 1)",
            goal="noisy(exact_match(answer), sensitivity = 90%, specificity = 92%)",
            gate="candidate.short >= incumbent.short - 5%",
        ),
    ),
    Code(
        320,
        "expression too large",
        "With all functions expanded, the metric or gate is too large to analyse. Move parts into named metrics.",
        program(_TWICE, goal="twice(" * 13 + "f1(answer)" + ")" * 13),
        program(_TWICE, goal="twice(f1(answer))"),
    ),
)
