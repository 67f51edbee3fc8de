"""Each error that people bring from other languages has its own message, with its location and its fix."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from checking import program, run

from skillc.syntax.parser import parse
from skillc.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Case:
    """The diagnostic of a text, the words that it points at, and their replacement (None: the intent is unclear)."""

    name: str
    text: str
    code: str
    message: str
    at: str
    hint: str
    fix: str | None = None
    whole: bool = False


_WHEN = "in a metric a condition counts as 0 or 1: `(when) * a + (not when) * b`"
_CHAIN = "0.2 < candidate.correct < 0.9"

CASES = (
    Case(
        "commas in blocks",
        "budget { epochs = 4, cost = $3 }",
        "SK012",
        "statements are not separated by commas",
        ",",
        "write each on a separate line, or write `;`",
        ";",
    ),
    Case(
        "`:` for `=`",
        "section rules { limit: 800 tokens }",
        "SK013",
        "`=` assigns a value; `:` precedes a type",
        ":",
        "write `limit =`",
        " =",
    ),
    Case(
        "`=` for `==`",
        'metric a = team = "billing"',
        "SK014",
        "`=` does not compare",
        "=",
        "write `==` to compare; `=` assigns a value",
        "==",
    ),
    Case("`&&`", "gate a = x && y", "SK015", "`&&` is not an operator", "&&", "write `and`", "and"),
    Case("`||`", "gate a = x || y", "SK015", "`||` is not an operator", "||", "write `or`", "or"),
    Case("`!`", "gate a = !x", "SK015", "`!` is not an operator", "!", "write `not`", "not "),
    Case("`=>`", "gate a = x => 3", "SK016", "`=>` is not an operator", "=>", "write `>=`", ">="),
    Case("`≥`", "gate a = x ≥ 3", "SK016", "`≥` is not an operator", "≥", "write `>=`", ">="),
    Case("`≤`", "gate a = x ≤ 3", "SK016", "`≤` is not an operator", "≤", "write `<=`", "<="),
    Case(
        "a < x < b",
        program(f"gate g = {_CHAIN}"),
        "SK312",
        "comparisons can't be chained",
        _CHAIN,
        "write `0.2 < candidate.correct and candidate.correct < 0.9`",
        "0.2 < candidate.correct and candidate.correct < 0.9",
        whole=True,
    ),
    Case("x ? a : b", "metric a = x ? y : z", "SK017", "the language has no `? :`", "?", _WHEN),
    Case(
        "if",
        "metric a = y if x else z",
        "SK017",
        "the language has no `if`",
        "if",
        f"{_WHEN}; a gate is itself a condition",
    ),
    Case(
        "an if statement",
        "if x > 3 {\n}",
        "SK017",
        "the language has no `if`",
        "if",
        f"{_WHEN}; a gate is itself a condition",
    ),
    Case(
        "single quotes",
        "model a = 'openai/x'",
        "SK018",
        "single quotes can't delimit a string",
        "'openai/x'",
        'write `"openai/x"`',
        '"openai/x"',
    ),
    Case(
        "curly quotes",
        "model a = “openai/x”",
        "SK018",
        "curly quotes can't delimit a string",
        "“openai/x”",
        'write `"openai/x"`',
        '"openai/x"',
    ),
    Case("`//`", "goal a = b // why", "SK019", "`//` does not begin a comment", "//", "write `#`", "#"),
    Case(
        "`/* */`",
        "goal a = b /* why */",
        "SK019",
        "block comments are not supported",
        "/*",
        "write `#` before each line",
        "# why",
    ),
    Case(
        "`€3`",
        "budget { cost = €3 }",
        "SK020",
        "amounts are in dollars, not in `€`",
        "€3",
        "convert the amount to dollars, such as `$3`",
    ),
    Case(
        "`$ 3`",
        "budget { cost = $ 3 }",
        "SK020",
        "`$` must be directly before the amount",
        "$ 3",
        "write `$3`",
        "$3",
    ),
    Case("`.5`", "metric a = .5 * b", "SK021", "a number begins with a digit", ".5", "write `0.5`", "0"),
    Case(
        "a kebab-case name",
        "skill route-tickets { }",
        "SK022",
        "`route-tickets` is not a name: `-` means minus",
        "route-tickets",
        "write `route_tickets`",
        "route_tickets",
    ),
    Case(
        "a kebab-case function",
        program("metric a = exact-match(team)"),
        "SK022",
        "`exact-match` is not a name: `-` means minus",
        "exact-match",
        "write `exact_match`",
        "exact_match",
        whole=True,
    ),
    Case(
        "a kebab-case metric",
        program("metric brief_score = f1(reply)\ngate g = candidate.brief-score >= 50%"),
        "SK022",
        "`brief-score` is not a name: `-` means minus",
        "brief-score",
        "write `brief_score`",
        "brief_score",
        whole=True,
    ),
    Case(
        "a kebab-case word",
        program().replace("skill route {", "skill route { load = on-demand;"),
        "SK022",
        "`on-demand` is not a name: `-` means minus",
        "on-demand",
        "write `on_demand`",
        "on_demand",
        whole=True,
    ),
    Case(
        "a list without commas",
        'tools = ["a" "b"]',
        "SK023",
        "missing comma between list items",
        '"b"',
        "write `,` before it",
        ",",
    ),
    Case(
        "a no-break space",
        "goal\u00a0a = b",
        "SK024",
        "unexpected no-break space (U+00A0)",
        "\u00a0",
        "replace it with a plain space",
        " ",
    ),
    Case(
        "a zero-width space",
        "go\u200bal a = b",
        "SK024",
        "unexpected zero-width space (U+200B)",
        "\u200b",
        "remove it",
        "",
    ),
    Case(
        "a zipped skill",
        "PK\x03\x04 and more",
        "SK025",
        "`main.skill` is a zipped skill, not a program",
        "PK\x03\x04",
        'unpack it, and import its sections with `use "./SKILL.md" as today`',
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_message_of_its_own(case: Case) -> None:
    source = Source("main.skill", case.text)
    diagnostics = run(case.text).diagnostics if case.whole else parse(source).diagnostics
    (found,) = diagnostics
    assert (found.code, found.message) == (case.code, case.message)
    assert found.primary.source.slice(found.primary.span).startswith(case.at)
    assert found.hint == case.hint
    assert (found.fix.text if found.fix else None) == case.fix


def test_no_two_errors_have_the_same_message() -> None:
    said = [(case.message, case.hint) for case in CASES if case.name != "an if statement"]
    assert len(said) == len(set(said))


def test_what_a_hyphen_between_names_of_the_program_means_stays() -> None:
    text = program("metric a = f1(reply)\nmetric b = clamp(a-correct, 0, 1)\ngate g = candidate.b >= candidate.a-5%")
    assert [each for each in run(text).diagnostics if each.code != "SK409"] == []


def test_a_name_with_hyphens_that_is_none_either_way_is_an_unknown_name() -> None:
    (found,) = run(program("metric a = no-such")).diagnostics
    assert (found.code, found.message) == ("SK204", "unknown name `no`")
