"""Each mistake that people bring from elsewhere has a message of its own, with its place and the way out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from checking import program, run

from skillc.syntax.parser import parse
from skillc.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of a text: at which words, and how they are mended (None: nobody can know what was meant)."""

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

TOLD = (
    Told(
        "commas in blocks",
        "budget { epochs = 4, cost = $3 }",
        "SK012",
        "statements are not separated by commas",
        ",",
        "put each on a line of its own, or write `;`",
        ";",
    ),
    Told(
        "`:` for `=`",
        "section rules { limit: 800 tokens }",
        "SK013",
        "a value is given with `=`; `:` names a type",
        ":",
        "write `limit =`",
        " =",
    ),
    Told(
        "`=` for `==`",
        'metric a = team = "billing"',
        "SK014",
        "`=` does not compare",
        "=",
        "write `==` to compare; one `=` gives a name its value",
        "==",
    ),
    Told("`&&`", "gate a = x && y", "SK015", "`&&` is not an operator", "&&", "write `and`", "and"),
    Told("`||`", "gate a = x || y", "SK015", "`||` is not an operator", "||", "write `or`", "or"),
    Told("`!`", "gate a = !x", "SK015", "`!` is not an operator", "!", "write `not`", "not "),
    Told("`=>`", "gate a = x => 3", "SK016", "`=>` is not an operator", "=>", "write `>=`", ">="),
    Told("`≥`", "gate a = x ≥ 3", "SK016", "`≥` is not an operator", "≥", "write `>=`", ">="),
    Told("`≤`", "gate a = x ≤ 3", "SK016", "`≤` is not an operator", "≤", "write `<=`", "<="),
    Told(
        "a < x < b",
        program(f"gate g = {_CHAIN}"),
        "SK312",
        "comparisons don't chain",
        _CHAIN,
        "write `0.2 < candidate.correct and candidate.correct < 0.9`",
        "0.2 < candidate.correct and candidate.correct < 0.9",
        whole=True,
    ),
    Told("x ? a : b", "metric a = x ? y : z", "SK017", "there is no `? :`", "?", _WHEN),
    Told(
        "if",
        "metric a = y if x else z",
        "SK017",
        "there is no `if`",
        "if",
        f"{_WHEN}; a gate is itself a condition",
    ),
    Told(
        "an if statement",
        "if x > 3 {\n}",
        "SK017",
        "there is no `if`",
        "if",
        f"{_WHEN}; a gate is itself a condition",
    ),
    Told(
        "single quotes",
        "model a = 'openai/x'",
        "SK018",
        "single quotes do not hold a text",
        "'openai/x'",
        'write `"openai/x"`',
        '"openai/x"',
    ),
    Told(
        "curly quotes",
        "model a = “openai/x”",
        "SK018",
        "curly quotes do not hold a text",
        "“openai/x”",
        'write `"openai/x"`',
        '"openai/x"',
    ),
    Told("`//`", "goal a = b // why", "SK019", "`//` does not begin a comment", "//", "write `#`", "#"),
    Told(
        "`/* */`",
        "goal a = b /* why */",
        "SK019",
        "`/* */` does not make a comment",
        "/*",
        "write `#` before each line of it",
        "# why",
    ),
    Told(
        "`€3`",
        "budget { cost = €3 }",
        "SK020",
        "money is counted in dollars, not in `€`",
        "€3",
        "write the amount in dollars, such as `$3`",
    ),
    Told(
        "`$ 3`",
        "budget { cost = $ 3 }",
        "SK020",
        "an amount of money is written without a space, the `$` first",
        "$ 3",
        "write `$3`",
        "$3",
    ),
    Told("`.5`", "metric a = .5 * b", "SK021", "a number begins with a digit", ".5", "write `0.5`", "0"),
    Told(
        "a kebab-case name",
        "skill route-tickets { }",
        "SK022",
        "`route-tickets` is not a name: `-` means minus",
        "route-tickets",
        "write `route_tickets`",
        "route_tickets",
    ),
    Told(
        "a kebab-case function",
        program("metric a = exact-match(team)"),
        "SK022",
        "`exact-match` is not a name: `-` means minus",
        "exact-match",
        "write `exact_match`",
        "exact_match",
        whole=True,
    ),
    Told(
        "a kebab-case metric",
        program("metric brief_score = f1(reply)\ngate g = candidate.brief-score >= 50%"),
        "SK022",
        "`brief-score` is not a name: `-` means minus",
        "brief-score",
        "write `brief_score`",
        "brief_score",
        whole=True,
    ),
    Told(
        "a kebab-case word",
        program().replace("skill route {", "skill route { load = on-demand;"),
        "SK022",
        "`on-demand` is not a name: `-` means minus",
        "on-demand",
        "write `on_demand`",
        "on_demand",
        whole=True,
    ),
    Told(
        "a list without commas",
        'tools = ["a" "b"]',
        "SK023",
        "items of a list are separated by commas",
        '"b"',
        "write `,` before it",
        ",",
    ),
    Told(
        "a no-break space",
        "goal\u00a0a = b",
        "SK024",
        "a no-break space (U+00A0) stands here",
        "\u00a0",
        "replace it by a plain space",
        " ",
    ),
    Told(
        "a zero-width space",
        "go\u200bal a = b",
        "SK024",
        "a zero-width space (U+200B) stands here",
        "\u200b",
        "remove it",
        "",
    ),
    Told(
        "a zipped skill",
        "PK\x03\x04 and more",
        "SK025",
        "`main.skill` is a zipped skill, not a program",
        "PK\x03\x04",
        'unpack it, and take its text over with `use "./SKILL.md" as today`',
    ),
)


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told.name)
def test_a_message_of_its_own(told: Told) -> None:
    source = Source("main.skill", told.text)
    diagnostics = run(told.text).diagnostics if told.whole else parse(source).diagnostics
    (found,) = diagnostics
    assert (found.code, found.message) == (told.code, told.message)
    assert found.primary.source.slice(found.primary.span).startswith(told.at)
    assert found.hint == told.hint
    assert (found.fix.text if found.fix else None) == told.fix


def test_no_two_mistakes_are_told_alike() -> None:
    said = [(told.message, told.hint) for told in TOLD if told.name != "an if statement"]
    assert len(said) == len(set(said))


def test_what_a_hyphen_between_names_of_the_program_means_stays() -> None:
    text = program("metric a = f1(reply)\nmetric b = clamp(a-correct, 0, 1)\ngate g = candidate.b >= candidate.a-5%")
    assert [each for each in run(text).diagnostics if each.code != "SK409"] == []


def test_a_name_with_hyphens_that_is_none_either_way_is_an_unknown_name() -> None:
    (found,) = run(program("metric a = no-such")).diagnostics
    assert (found.code, found.message) == ("SK204", "unknown name `no`")
