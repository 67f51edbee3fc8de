"""What each name stands for: complete for sound programs, and safe for all others."""

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import mutated, quick, sound_programs
from thorough import example_count

from skillc.language.check import analyse
from skillc.language.links import links
from skillc.syntax import nodes
from skillc.syntax.files import read_source
from skillc.syntax.source import Source, Span

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(
    [*ROOT.glob("stdlib/*.skill"), *ROOT.glob("examples/*/*.skill"), *ROOT.glob("tests/language/programs/*.skill")]
)
SOUND = [path for path in PROGRAMS if not analyse(read_source(path)).checked.failed]

PROGRAM = """language 1

use std.gates
use std.text as words

/// What a gate of the house asks.
gate family(m: metric, most: share = 5%, by: field = none) = candidate.m > incumbent.m and regressed(m, by = by) <= most

task {
  input question: text
  output answer: "yes" | "no"
}

skill decide {
  about = "Decide."
  frozen section style = \"\"\"
  Be brief.
  \"\"\"
  trainable section rules { limit = 300 tokens }
}

model target = "rulebook/v1"
model optimizer = target

data { source = "x.jsonl"; field country: text; group = country }

metric right = exact_match(answer)
metric short = words.short(question, most = 20 tokens)
metric agrees = answer == "yes"
goal score = 0.8 * right + 0.1 * short + 0.1 * agrees

budget { epochs = 4 }

gate better = family(score, by = country)
gate kept = gates.keeps(right) and worst(candidate.score, by = country) >= 0
gate small = tokens(candidate) <= 300 tokens
"""


def linked(text, path="/nowhere/program.skill"):
    work = analyse(Source(path, text))
    return {link.span: link for link in links(work.module, work.program)}, work


def at(text, marked, found):
    """The link whose name stands between two bars of a piece of the text."""
    before, name, after = marked.split("|")
    piece = before + name + after
    assert text.count(piece) == 1, piece
    start = text.index(piece) + len(before)
    return found.get(Span(start, start + len(name)))


def walk(node):
    yield node
    for field in fields(node) if is_dataclass(node) else ():
        value = getattr(node, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, nodes.Node) and not isinstance(each, nodes.Program):
                yield from walk(each)


def plain(node):
    """The references that are passed on as plain literals, or are words of a setting that takes any."""
    return {"on", "off", "true", "false"} & {getattr(node, "name", None)}


def assert_all_known(work):
    found = {link.span for link in links(work.module, work.program)}
    for statement in work.program.statements:
        for node in walk(statement):
            if isinstance(node, nodes.Reference) and not plain(node):
                span = Span(node.span.start, node.span.end)
                text = work.source.slice(span)
                if text.startswith("("):
                    continue
                assert span in found, f"`{node.name}` at {work.source.position(span.start)}"
            elif isinstance(node, nodes.Member) or (isinstance(node, nodes.Argument) and node.name is not None):
                assert node.name.span in found, f"`{node.name.text}` at {work.source.position(node.span.start)}"


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_every_name_of_a_sound_program_is_known(path):
    assert_all_known(analyse(read_source(path)))


@quick(60)
@given(sound_programs())
def test_every_name_of_a_sound_program_at_random_is_known(text):
    assert_all_known(analyse(Source("/nowhere/program.skill", text)))


@quick(60)
@given(mutated())
def test_no_damaged_program_makes_it_fail(text):
    linked(text)


def test_there_are_programs_to_look_at():
    assert len(SOUND) >= 8


@pytest.mark.parametrize(
    ("use", "declaration"),
    [
        ("gate better = |family|(score", "gate |family|(m: metric"),
        ("gate better = family(|score|, by", "goal |score| = 0.8"),
        ("family(score, |by| = country)", "most: share = 5%, |by|: field"),
        ("family(score, by = |country|)", "field |country|: text; group"),
        ("group = |country| }", "field |country|: text; group"),
        ("0.8 * |right| +", "metric |right| = exact"),
        ("exact_match(|answer|)", 'output |answer|: "yes"'),
        ("words.short(|question|, most", "input |question|: text"),
        ("metric short = |words|.short(", "use std.text as |words|"),
        ("gate kept = |gates|.keeps", "use std.|gates|\n"),
        ("worst(candidate.|score|, by", "goal |score| = 0.8"),
        ("model optimizer = |target|", 'model |target| = "rule'),
        ("candidate.|m| > incumbent", "gate family(|m|: metric"),
        ("regressed(m, by = |by|) <=", "most: share = 5%, |by|: field"),
        ("by = by) <= |most|", "|most|: share = 5%, by"),
        ('answer == |"yes"|', 'output answer: |"yes"| '),
    ],
)
def test_a_use_leads_to_its_declaration(use, declaration):
    found, _ = linked(PROGRAM)
    link, declared = at(PROGRAM, use, found), at(PROGRAM, declaration, found)
    assert link is not None
    assert declared is not None
    assert declared.declares
    assert link.symbol == declared.symbol
    assert link.symbol.span == declared.span


def test_a_name_of_another_file_leads_there():
    found, _ = linked(PROGRAM)
    symbol = at(PROGRAM, "gates.|keeps|(right)", found).symbol
    assert symbol.kind == "gate"
    assert symbol.source.slice(symbol.span) == "keeps"
    assert symbol.file.endswith("gates.skill")
    parameter = at(PROGRAM, "question, |most| = 20", found).symbol
    assert (parameter.kind, parameter.owner) == ("parameter", "short")
    assert parameter.file.endswith("text.skill")


def test_words_of_the_language_have_no_place():
    found, _ = linked(PROGRAM)
    for marked, kind in (
        ("|task| {", "statement"),
        ("|trainable| section", "statement"),
        ("rules { |limit| =", "setting"),
        ("|regressed|(m", "function"),
        ("worst(|candidate|.score", "state"),
        ("worst(candidate.score, |by| =", "option"),
        ("field country: |text|; group", "type"),
    ):
        link = at(PROGRAM, marked, found)
        assert link.symbol.kind == kind
        assert link.symbol.file is None


def test_names_behind_a_mistake_are_known():
    broken = PROGRAM.replace("0.8 * right +", "0.8 * rihgt + tokens(nothing) +")
    found, work = linked(broken)
    assert work.checked.failed
    assert at(broken, "0.1 * |short| +", found).symbol.kind == "metric"
    half = PROGRAM + "gate new = candidate.score > incumbent.score and ("
    found, work = linked(half)
    assert work.checked.failed
    assert at(half, "gate |better| =", found).declares


def test_a_program_of_a_markdown_skill(tmp_path):
    from skillc.document.skill_md import sections_of
    from skillc.language.modules import Loader

    (tmp_path / "SKILL.md").write_text("# today\n\n## When to use\n\nAlways.\n")
    text = 'language 1\nuse "./SKILL.md" as today\nskill s {\n  frozen section w = today.when_to_use\n}\n'
    loader = Loader(tmp_path, skill_sections=lambda path: sections_of(path.read_text()))
    work = analyse(Source(str(tmp_path / "p.skill"), text), loader)
    found = {link.span: link for link in links(work.module, work.program)}
    assert at(text, "today.|when_to_use|", found).symbol.kind == "heading"


@settings(max_examples=example_count(150))
@given(st.integers(0, len(PROGRAM)), st.integers(0, 60), st.text(max_size=5))
def test_no_text_makes_it_fail(start, length, new):
    text = PROGRAM[:start] + new + PROGRAM[start + length :]
    found, work = linked(text)
    for span, link in found.items():
        assert 0 <= span.start < span.end <= len(text)
        assert link.declares <= (link.symbol.file == work.source.name)
