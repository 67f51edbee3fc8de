"""The text of a model."""

from skillc.frontend import check
from skillc.syntax.source import Source


def test_a_model_in_a_text_of_several_lines_is_named_on_one():
    found = check(Source("main.skill", 'language 1\nmodel target = """\n\n\n"""\n')).diagnostics
    assert [each.message for each in found if each.code == "SK601"] == ['"" has no provider']
