"""Which inputs can be cut, as `check` finds it."""

from __future__ import annotations

import pytest

from skillc.frontend import check
from skillc.syntax.source import Source

PROGRAM = """language 1
task { input question: TYPE { SETTINGS }; output answer: text; rollout = KIND }
skill answer { about = "Answer."; trainable section rules }
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "a.jsonl" }
budget { epochs = 1 }
goal right = f1(answer)
gate better = candidate.right > incumbent.right
"""


def found(type_: str, settings: str, kind: str = "predict") -> list[tuple[str, str]]:
    text = PROGRAM.replace("TYPE", type_).replace("SETTINGS", settings).replace("KIND", kind)
    return [(each.code, each.message) for each in check(Source("a.skill", text)).diagnostics]


@pytest.mark.parametrize("type_", ["text", "file", "list[text]", "list[file]", "text | none", "file | none"])
@pytest.mark.parametrize("part", ["start", "middle", "end"])
def test_texts_and_files_can_be_cut(type_: str, part: str) -> None:
    assert found(type_, f"cut = {part}; limit = 400 tokens") == []


@pytest.mark.parametrize(
    ("type_", "settings", "kind", "message"),
    [
        ("text", "cut = end", "predict", "`cut` of `question` has no limit to cut at"),
        ("text", "cut = end; limit = 19 tokens", "predict", "`question` can't be cut to 19 tokens"),
        ("json", "cut = end; limit = 400 tokens", "predict", "`question` can't be cut: only a text"),
        ("list[image]", "cut = end; limit = 400 tokens", "predict", "`question` can't be cut: only a text"),
        ("file", "cut = end; limit = 400 tokens", 'python("a:run")', "this kind of rollout reads the file itself"),
    ],
)
def test_what_cannot_be_cut_is_an_error(type_: str, settings: str, kind: str, message: str) -> None:
    ((code, text),) = found(type_, settings, kind)
    assert code == "SK421"
    assert message in text


def test_the_part_is_one_of_three_and_only_inputs_have_it() -> None:
    ((_, text),) = found("text", "cut = head; limit = 400 tokens")
    assert text == "`cut` takes `start`, `middle` or `end`"
    program = PROGRAM.replace("TYPE", "text").replace("SETTINGS", "").replace("KIND", "predict")
    other = program.replace("answer: text", "answer: text { cut = end; limit = 90 tokens }")
    assert [each.code for each in check(Source("a.skill", other)).diagnostics] == ["SK211"]
