"""The canonical form of programs that are drawn at random: the same program and comments, and its own form."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from making import EXAMPLES, layouts, mutated, programs, quick, sound_programs
from trees import meaning

from skillc.syntax.formatting import format_source
from skillc.syntax.formatting.lines import LIMIT, indented
from skillc.syntax.literals import text_value
from skillc.syntax.parser import parse
from skillc.syntax.source import Source
from skillc.text import text_width

CLUTTERED = """\
gate family(m: metric, most: share = 5%, by: field = none) = candidate.m > incumbent.m + -most and (regressed(m, by
  = by) <= most or not (a < b and c)) or f(x, [1, 2 tokens, $3], "abc",) * (1 + 2) / 3 - 4 >= 2k
metric long = clamp(python("one:a_function_with_a_long_name", low = 0 s, high = 60 s) / 300 tokens,
  judge(reply, "A text."), 1)
task { input mail: text | none { about = "x"; limit = 6k tokens }
  output team: list["billing" | "shipping"] | "a label that is long, and longer" | "and another of its kind"
    { column = "z" }
  rollout = react { tools = [python("a:b"), python("c:d")]; turns = 3 } }
skill s { about = \"\"\"one line\"\"\"
  frozen section a = \"\"\"
      text
        here
  \"\"\" { limit = 3 tokens; b = [] ; c = f() }
  trainable section b { }
}
data { split = 2 : (1) : 2
 x = ((a)) }
goal x = not -(-a.b.c(d).e) == +3 % or (a + b) / 2 < c or ((a + b)) and judge(reply, \"\"\"
  text
\"\"\", x = (a or b))
empty {}
"""
"""Long lines, nesting and brackets, for comments to be strewn into."""

QUOTED = r'"""(?:[^"\\]|\\(?s:.)|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|#.*|///.*'
"""Strings, texts and comments, in which anything may stand."""

SHOWN = [path.read_text("utf-8") for path in sorted((Path(__file__).parent / "formatting").glob("*.skill"))]


def formatted(text: str) -> str:
    done = format_source(Source("test.skill", text))
    assert done.diagnostics == ()
    assert done.text is not None
    return done.text


def check(text: str) -> None:
    made = formatted(text)
    assert meaning(made) == meaning(text)
    assert formatted(made) == made
    assert made == "" or (made.endswith("\n") and not made.endswith("\n\n") and not made.startswith("\n"))
    bare = re.sub(QUOTED, "x", made)
    assert "\n\n\n" not in bare
    assert "\t" not in bare


@given(programs())
@quick(60)
def test_programs(text: str) -> None:
    check(text)


@given(st.data())
@quick(100)
def test_layouts_of_examples(data: st.DataObject) -> None:
    check(data.draw(layouts(data.draw(st.sampled_from(EXAMPLES)), docs=True)))


@given(layouts(CLUTTERED, docs=True))
@quick(120)
def test_comments_anywhere(text: str) -> None:
    check(text)


@given(st.data())
@quick(60)
def test_layouts_of_what_shows_the_form(data: st.DataObject) -> None:
    check(data.draw(layouts(data.draw(st.sampled_from(SHOWN)), docs=True)))


@given(st.data())
@quick(60)
def test_layouts_of_random_programs(data: st.DataObject) -> None:
    check(data.draw(layouts(data.draw(programs() | sound_programs()), docs=True)))


@given(st.data())
@quick(60)
def test_blanks_do_not_matter(data: st.DataObject) -> None:
    """Blanks between the tokens of a line are nothing that the form depends on."""
    text = formatted(data.draw(st.sampled_from(EXAMPLES)))
    chance = data.draw(st.randoms(use_true_random=False))
    pieces = re.split(f"({QUOTED})", text)
    other = "".join(
        piece if i % 2 else re.sub("(?<=\\S) +(?=\\S)", lambda _: " " * chance.randint(1, 4), piece)
        for i, piece in enumerate(pieces)
    )
    assert formatted(other) == text


@given(mutated())
@quick(100)
def test_damaged_programs_are_refused_or_formatted(text: str) -> None:
    if parse(Source("test.skill", text)).diagnostics:
        done = format_source(Source("test.skill", text))
        assert done.text is None
        assert done.diagnostics
        assert all(each.code != "SK901" for each in done.diagnostics)
    else:
        check(text)


@given(programs())
@quick(60)
def test_only_what_cannot_be_broken_is_longer_than_a_line(text: str) -> None:
    made = re.sub(r'"""(?:[^"\\]|\\.|"(?!""))*"""', "", formatted(text), flags=re.DOTALL)
    for line in made.splitlines():
        # A string, a chain of names, or the words of a statement with the sign behind them.
        unbroken = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', line.split("#")[0])
        assert (
            text_width(line) <= LIMIT or '"' in line or "#" in line or unbroken.count("(") + unbroken.count("[") <= 2
        ), line


@given(
    st.lists(st.text('ab \t"\\\r\u00a0é', max_size=8), max_size=6).map("\n".join).filter(lambda t: '"""' not in t),
    st.sampled_from([0, 2, 8]),
)
@quick(300)
def test_texts_keep_their_value(body: str, indent: int) -> None:
    raw = f'"""{body}\n"""'
    if re.fullmatch(r'"""(?:[^"\\]|\\.|"(?!""))*"""', raw, re.DOTALL) is None:
        return
    made = "\n".join(indented(raw, indent))
    assert text_value(made) == text_value(raw)
    assert "\n".join(indented(made, indent)) == made
