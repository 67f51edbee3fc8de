"""The formatter behind the editor's command."""

import pytest
from editor import applied
from lsprotocol import types

ROUGH = """language 1
task {   input   q:text
    output a : text }
# 精度 😀
goal   right=exact_match( a )
budget { epochs=4 }
"""


@pytest.fixture
def formatted(editor):
    def formatted(text):
        editor.open("rough.skill", text)
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        return editor.about("textDocument/formatting", "rough.skill", types.DocumentFormattingParams, options=options)

    yield formatted
    editor.close("rough.skill")


def test_a_document_gets_its_canonical_form(formatted):
    from skillc.syntax.formatting import format_source
    from skillc.syntax.source import Source

    edits = formatted(ROUGH)
    text = applied(ROUGH, edits)
    assert text == format_source(Source("rough.skill", ROUGH)).text != ROUGH
    assert "# 精度 😀\n" in text


def test_only_lines_that_differ_are_touched(formatted):
    from skillc.syntax.formatting import format_source
    from skillc.syntax.source import Source

    canonical = format_source(Source("rough.skill", ROUGH)).text
    assert not formatted(canonical)


def test_one_rough_line_is_one_edit(formatted):
    from skillc.syntax.formatting import format_source
    from skillc.syntax.source import Source

    canonical = format_source(Source("rough.skill", ROUGH)).text
    line = next(i for i, each in enumerate(canonical.splitlines()) if each.startswith("goal right"))
    edits = formatted(canonical.replace("goal right =", "goal right  ="))
    assert [(edit.range.start.line, edit.range.end.line) for edit in edits] == [(line, line + 1)]


@pytest.mark.parametrize("text", ["metric m = (\n", "language 1\nbudget {\n", '"""', "\0", ""])
def test_a_document_with_mistakes_stays_as_it_is(formatted, text):
    assert not [edit for edit in formatted(text) or [] if edit.new_text.strip()]
