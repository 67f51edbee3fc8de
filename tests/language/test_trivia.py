"""Comments, and what `///` documents."""

from __future__ import annotations

from collections.abc import Iterator

from skillc.syntax import nodes
from skillc.syntax.parser import parse
from skillc.syntax.source import Source


def docs(text: str) -> dict[str, str | None]:
    def walk(statements: tuple[nodes.Statement, ...]) -> Iterator[tuple[str, str | None]]:
        for each in statements:
            if not isinstance(each, nodes.Use):
                yield each.words[-1].text, each.doc
                yield from walk(each.block.statements if each.block else ())

    parsed = parse(Source("test.skill", text))
    assert not parsed.diagnostics
    return dict(walk(parsed.program.statements))


def test_comments_are_in_file_order() -> None:
    text = '\n\n# one\ngoal x = a # two\n\n   \n/// three\nskill s {\n\n  a = "# no" # four\n}\n'
    program = parse(Source("test.skill", text)).program
    assert [(each.text, each.blank, each.documents) for each in program.comments] == [
        ("# one", True, False),
        ("# two", False, False),
        ("/// three", True, True),
        ("# four", False, False),
    ]
    assert [text[each.span.start : each.span.end] for each in program.comments] == [
        each.text for each in program.comments
    ]


def test_comments_inside_texts_are_text() -> None:
    program = parse(Source("test.skill", 'a = """\n# no\n\n/// no\n"""\n')).program
    assert program.comments == ()


def test_docs_above() -> None:
    assert docs("/// one\n/// two\n# not\n\ngoal x = a\ngoal y = b") == {"x": "one\ntwo", "y": None}


def test_docs_behind() -> None:
    assert docs("goal x = a  /// one\ngoal y = b;  /// two") == {"x": "one", "y": "two"}


def test_docs_behind_a_block() -> None:
    text = "task {  /// the task\n  input a: text  /// the input\n  output b: text\n}\nskill s { n = 1 }  /// the skill"
    assert docs(text) == {"task": "the task", "a": "the input", "b": None, "s": "the skill", "n": None}


def test_docs_above_and_behind() -> None:
    assert docs("/// one\ngoal x =\n  a + /// two\n  b /// three\n") == {"x": "one\ntwo\nthree"}


def test_docs_of_nothing() -> None:
    assert docs("goal x = a\n/// lost\n") == {"x": None}
    assert docs("task {\n  /// lost\n}\n/// x\ngoal x = a") == {"task": None, "x": "x"}


def test_docs_inside_a_block() -> None:
    assert docs("skill s {\n  /// the rules\n  section rules\n}") == {"s": None, "rules": "the rules"}
