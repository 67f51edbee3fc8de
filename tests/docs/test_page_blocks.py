"""The trial of pages finds what is wrong with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_blocks import blocks_of
from page_console import Typed, matches, renewed, typed_in, written
from page_programs import completed
from page_run import BlockError, PageRun


def trial(page, tmp_path, **options):
    return PageRun("page.md", page, tmp_path / "home", **options).all()


def fenced(language, text):
    return f"# A page\n\n```{language}\n{text}\n```\n"


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("console", "$ echo one\ntwo", "it printed"),
        ("console", "$ false", "ends with 1"),
        ("console", "echo one", "begins with"),
        ("console", "$ make dmeo", "no target"),
        ("console", "$ pip install 'skillc[lps]'", "no extra"),
        ("console", "$ pip install requests", "not skillc"),
        ("python", "1 / 0", "ZeroDivisionError"),
        ("python", "if", "invalid syntax"),
        ("skill", "gate g = candidate.corect > incumbent.correct", "corect"),
        ("{ .skill .wrong }", "gate g = candidate.correct > 0", "nothing is wrong"),
        ("skill", "gate g=candidate.correct > 0", "not the form of `skillc fmt`"),
        ("lua", 'vim.lsp.config("skillc", { cmd = { "skillc", "lps" } })', "there is no `skillc lps`"),
        ("lua", 'vim.lsp.enable("skillc"', "is not closed"),
        ("toml", '[language-server.s]\ncommand = "skillc"\nargs = ["lps"]', "there is no `skillc lps`"),
        ("console", "$ npx @vscode/vsce pack", "known are"),
        ("json", "{", "Expecting"),
        ("yaml", "a: 1", "neither a workflow"),
        ("yaml", "repos: [{repo: x, rev: v1, hooks: [{id: skillc-chekc}]}]", "no hook"),
        ("csv", "a,b\n1", "differ in length"),
        ("text", "anything", "can't be tried"),
        ("", "anything", "can't be tried"),
    ],
)
def test_a_wrong_block_is_a_fault_with_its_line(language, text, said, tmp_path):
    with pytest.raises(BlockError, match=r"^page.md:3: ") as caught:
        trial(fenced(language, text), tmp_path)
    assert said in str(caught.value)


def test_blocks_of_a_page_share_a_folder_and_a_shell(tmp_path):
    page = (
        fenced('json title="a/b.json"', '{"x": 1}')
        + fenced("console", "$ cd a && export WHO=me\n$ cat b.json | tr -d '\\n'; echo $WHO\n{\"x\": 1}me")
        + fenced("console", "$ false\n$ echo $?\n1")
        + "<!-- python\nimport json\n-->\n"
        + fenced("python", 'assert json.load(open("b.json")) == {"x": 1}')
    )
    assert trial(page, tmp_path) == page


def test_outputs_are_renewed_where_they_are_wrong_and_gaps_stay(tmp_path):
    page = fenced("console", "$ seq 9\n7\n...\n9\n$ echo b\na")
    new = trial(page, tmp_path, update=True)
    assert new == fenced("console", "$ seq 9\n1\n...\n9\n$ echo b\nb")
    assert trial(new, tmp_path / "again") == new


def test_a_block_in_a_list_keeps_its_indent(tmp_path):
    page = "- one\n\n  ```console\n  $ echo b\n  a\n  ```\n"
    assert trial(page, tmp_path, update=True) == page.replace("  a\n", "  b\n")


def test_a_hidden_block_is_run_and_not_renewed(tmp_path):
    page = "<!-- console\n$ echo noise > made\n$ echo shown\n-->\n" + fenced("console", "$ cat made\nnoise")
    assert trial(page, tmp_path, update=True) == page


def test_a_program_is_laid_out_anew_where_it_is_wrong(tmp_path):
    page = fenced("skill", "gate g=candidate.correct > 0") + fenced("{ .skill .rough }", "gate g=candidate.correct > 0")
    new = trial(page, tmp_path, update=True)
    assert new == page.replace("gate g=", "gate g = ", 1)


def test_a_part_takes_the_place_of_what_it_declares_anew():
    text = completed("goal close = f1(reply)\ngate second = candidate.close > 0.5")
    assert text.count("goal ") == 1
    assert "gate better" in text
    assert "output urgent: bool\n}" in completed("output urgent: bool")


@given(st.lists(st.text("ab. ", max_size=4).map(str.rstrip), max_size=6))
def test_what_is_printed_matches_itself_with_any_gap(printed):
    assert matches(tuple(printed), printed)
    for start in range(len(printed) + 1):
        for end in range(start, len(printed) + 1):
            assert matches((*printed[:start], "...", *printed[end:]), printed)
    assert not matches((*printed, "more"), printed)


@given(
    st.lists(st.sampled_from(["a", "b", "...", "c ... d"]), max_size=5),
    st.lists(st.sampled_from(["a", "b", "c x d", ""]), max_size=6),
)
def test_a_renewed_output_matches(shown, printed):
    assert matches(renewed(tuple(shown), printed), printed)


@given(
    st.lists(
        st.tuples(st.sampled_from(["ls", "a \\\nb"]), st.lists(st.sampled_from(["x", "$", "y  z"]), max_size=3)),
        min_size=1,
    )
)
def test_a_console_block_is_read_as_it_was_written(commands):
    typed = [Typed(command, tuple(shown)) for command, shown in commands]
    assert typed_in(written(typed)) == typed


def test_fences_within_longer_fences_are_text():
    page = "````markdown\n# Skill\n\n```json\n{}\n```\n````\n"
    assert [block.language for block in blocks_of(page)] == ["markdown"]
