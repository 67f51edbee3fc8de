"""Every feature on programs made at random: sound ones keep their meaning, damaged ones end nothing."""

import sys
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "language"))

from making import mutated, programs, quick, sound_programs

from skillc.lsp import document, findings, hover, names
from skillc.lsp.completion import completion
from skillc.lsp.findings import as_lsp
from skillc.lsp.hover import signature_help
from skillc.lsp.workspace import Project
from skillc.syntax.source import Span

NAME = "untitled:program"


def opened(text):
    project = Project()
    project.open(NAME, text, 1)
    return project, project.analysis(NAME)


@quick(80)
@given(st.one_of(mutated(), programs(), st.text(max_size=200)), st.data())
def test_no_feature_fails(text, data):
    project, analysis = opened(text)
    length = len(analysis.source.text)
    offset = data.draw(st.integers(0, length))
    for diagnostic in analysis.checked.diagnostics:
        as_lsp(project, diagnostic)
    document.document_symbols(project, analysis)
    document.folding_ranges(project, analysis)
    document.document_links(project, analysis)
    assert len(document.semantic_tokens(project, analysis).data) % 5 == 0
    completion(project, analysis, analysis.source, offset, snippets=True)
    signature_help(analysis.work.module, text, offset)
    names.definition(project, analysis, offset)
    names.references(project, analysis, offset, declaration=True)
    names.highlights(project, analysis, offset)
    findings.code_actions(project, analysis, Span(0, length), ["quickfix"])
    for link in analysis.links:
        hover.hover(analysis, link.symbol)


def test_the_criteria_of_a_rubric_are_in_the_outline_and_highlighted():
    project, analysis = opened('language 1\nrubric good {\n  criterion kind = "Is it kind?"\n}\n')
    (rubric,) = document.document_symbols(project, analysis)
    assert (rubric.name, [each.name for each in rubric.children]) == ("good", ["kind"])
    assert len(document.semantic_tokens(project, analysis).data) // 5 == 7


@quick(30)
@given(sound_programs(), st.data())
def test_a_rename_leaves_a_sound_program_sound(text, data):
    project, analysis = opened(text)
    places = sorted({link.span.start for link in analysis.links if link.symbol.file == NAME})
    offset = data.draw(st.sampled_from(places))
    try:
        symbol = names.renamable(project, analysis, offset).symbol
        edits = names.edits(project, analysis, symbol, "zzfresh")
    except names.RefusedError:
        link = names.link_at(analysis, offset)
        assert link.symbol.kind == "label" or link.symbol.name in ("target", "optimizer")
        return
    after = project.with_texts(names.texts_after(edits)).analysis(NAME)
    assert not after.checked.broken
    before = Counter(each.code for each in analysis.checked.diagnostics)
    assert Counter(each.code for each in after.checked.diagnostics) == before


@quick(40)
@given(mutated())
def test_tokens_stand_in_order_and_apart(text):
    project, analysis = opened(text)
    data = document.semantic_tokens(project, analysis).data
    line = character = end = 0
    for i in range(0, len(data), 5):
        down, right, length, _, _ = data[i : i + 5]
        assert down >= 0
        assert right >= 0
        assert length > 0
        line, character = line + down, right + (0 if down else character)
        assert down or character >= end
        end = character + length
