"""What may be typed at a place, for every position of the language."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.language.kinds import KINDS, kinds_in
from skillc.lsp.completion import completion
from skillc.lsp.cursor import cursor_at
from skillc.lsp.hover import signature_help
from skillc.lsp.workspace import Project
from skillc.syntax.reader import Derivation, parse_prefix

PROGRAM = """language 1

use std.gates
use "./lab.skill" as lab

/// As the house does it.
gate family(m: metric, most: share = 5%) = candidate.m > incumbent.m and regressed(m) <= most

task {
  input question: text
  output answer: "yes" | "no"
}

skill decide {
  about = "Decide."
  trainable section rules { limit = 300 tokens }
}

model target = "rulebook/v1"
model optimizer = target
model referee = target

rubric polite = "Is it polite?"

data {
  source = "x.jsonl"
  field country: text
}

metric right = exact_match(answer)
goal score = right

budget {
  epochs = 4
}

gate better = family(score)
"""
LIBRARY = """language 1

/// How the house writes.
rubric style = "Is it in style?"
gate firm(m: metric) = candidate.m > incumbent.m
metric half(m: metric) = 0.5 * m
budget nightly { cost = $2 }
model large = "openai/gpt-5.5"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    (folder / "lab.skill").write_text(LIBRARY)
    (folder / "notes.md").write_text("# notes\n\n## Tone\n\nKind.\n")
    (folder / "more").mkdir()
    (folder / "more" / "deep.skill").write_text("language 1\n")
    (folder / "x.jsonl").write_text("")
    project = Project()
    project.folders = (folder,)
    return project


def offered(project, added, *, to=PROGRAM):
    """The labels that are offered at the bar of a text that stands behind the program, and the items."""
    text = to + added.replace("|", "", 1) if "|" in added else to + added
    offset = len(to) + added.index("|")
    name = str(project.folders[0] / "main.skill")
    project.open("file://" + name, text, 1)
    analysis = project.analysis(name)
    items = completion(project, analysis, analysis.source, offset, snippets=True).items
    labels = [item.label for item in items]
    assert len(labels) == len(set(labels))
    return {item.label: item for item in items}


def test_statements_come_from_the_table(project):
    found = offered(project, "|")
    for kind in kinds_in("").values():
        if kind.modifiers:
            assert f"trainable {kind.word}" in found
        elif kind.once and kind.name == "forbidden" and kind.word != "evolve":
            assert kind.word not in found, "there is one already"
        else:
            assert found[kind.word].detail == kind.about
    assert "use" in found
    assert "language" not in found
    assert "input" not in found, "it stands in a task"


def test_a_new_file_begins_with_its_language(project):
    found = offered(project, "|", to="")
    assert found["language"].text_edit.new_text == "language 1"
    assert "task" in found


def test_settings_of_a_block_that_are_not_given_yet(project):
    found = offered(project, "optimize {\n  batch = 4\n  |\n}\n")
    names = {setting.name for setting in KINDS["optimize"].settings}
    assert set(found) == names - {"batch"}
    assert "training examples" in offered(project, "optimize {\n  |\n}\n")["batch"].documentation.value
    assert set(offered(project, "skill more {\n  trainable |\n}\n")) == {"section", "about"}
    assert "column" in offered(project, "data {\n  field a: text { | }\n}\n")


def test_settings_behind_a_value(project):
    assert "max_len" in offered(project, 'model big = "vllm/x" { serve = vllm { | } }\n')
    assert "input" in offered(project, 'model big = "vllm/x" { price { | } }\n')


@pytest.mark.parametrize(
    ("added", "wanted", "unwanted"),
    [
        ("optimize { method = |", {"skillc", "gepa"}, {"on"}),
        ("optimize { control = |", {"on", "off"}, {"skillc"}),
        ("optimize { edits = |", {"constant", "cosine", "model"}, {"on"}),
        ("optimize { sees = [gold, |", {"feedback", "trajectory"}, {"on"}),
        ("data { group = |", {"country"}, {"right"}),
        ("budget { time = 4 |", {"min", "h", "s"}, {"epochs_"}),
        ("budget { time = 4 m|", {"min", "ms"}, set()),
        ("task { input other: |", {"text", "bool", "list"}, {"metric"}),
        ("metric m(x: |", {"metric", "share", "text"}, {"image"}),
        ("metric m = |", {"question", "right", "exact_match", "lab", "not"}, {"candidate", "worst"}),
        ("metric m = right |", {"and", "or"}, {"question"}),
        ("metric m = exact_match(|", {"answer"}, {"question", "right"}),
        ("metric m = lab.|", {"half"}, {"firm", "style"}),
        ("metric m = judge(answer, |", {"polite", "model"}, {"right"}),
        ("metric m = judge(answer, polite, model = |", {"referee", "target"}, {"right"}),
        ("gate g = |", {"candidate", "incumbent", "worst", "family", "gates", "lab"}, {"exact_match", "question"}),
        ("gate g = candidate.|", {"right", "score"}, {"country", "candidate"}),
        ("gate g = candidate.sc|", {"score"}, set()),
        ("gate g = gates.|", {"strict", "fair"}, {"half"}),
        ("gate g = lab.|", {"firm"}, {"half"}),
        ("gate g = regressed(|", {"right", "score", "by", "on"}, {"candidate"}),
        ("gate g = regressed(right, by = |", {"country"}, {"right", "answer"}),
        ("gate g = improved(right, on = |", {"batch"}, {"right"}),
        ("gate g = family(right, |", {"most"}, set()),
        ("gate g = family(|", {"right", "m", "most"}, {"candidate"}),
        ("gate g = tokens(|", {"candidate", "incumbent"}, {"right"}),
        ("gate g(m: metric) = candidate.m > |", {"m", "candidate"}, {"right"}),
        ("gate g |", {"for slow"}, set()),
        ("gate g for |", {"slow"}, set()),
        ("budget = |", {"lab"}, {"right"}),
        ("budget = lab.|", {"nightly"}, {"large"}),
        ("model judge = |", {"target", "lab", "env"}, {"right"}),
        ("model judge = lab.|", {"large"}, {"nightly"}),
        ("use |", {"std"}, {"right"}),
        ("use std.|", {"gates", "text", "scores"}, {"right"}),
        ('use "|', {"./lab.skill", "./notes.md", "./more/"}, {"./main.skill", "./x.jsonl"}),
        ('use "./more/|', {"./more/deep.skill"}, {"./lab.skill"}),
        ('data { source = "|', {"x.jsonl"}, {"lab.skill"}),
    ],
)
def test_what_is_offered(project, added, wanted, unwanted):
    found = set(offered(project, added))
    assert wanted <= found, found
    assert not unwanted & found


@pytest.mark.parametrize(
    "added",
    [
        "# a comm|ent",
        "/// gate |",
        'rubric r = """\ngate |\n"""',
        'rubric r = """\ngate |',
        'rubric r = "gate |"',
        'skill s { about = "x |" }',
        "gate g = candidate.score >= $1 |",
        "gate g = candidate.a.|",
        'use "../|',
        "model new |",
    ],
)
def test_nothing_is_offered_where_nothing_is_known(project, added):
    found = set(offered(project, added))
    assert not found - {"and", "or"}


def test_a_mistake_before_it_is_passed_over(project):
    assert "strict" in offered(project, "gate bad = )(\ngate g = gates.|")
    assert "on" in offered(project, "optimize {\n  batch = = 4\n  control = |\n}")
    assert "min" in offered(project, "budget { time = 3 |\n\ngate other = candidate.score > 1", to="language 1\n")


def test_what_is_typed_is_replaced(project):
    item = offered(project, "gate g = gates.str|")["strict"]
    line = PROGRAM.count("\n")
    assert (item.text_edit.range.start.line, item.text_edit.range.start.character) == (line, len("gate g = gates."))
    assert item.text_edit.range.end.character == len("gate g = gates.str")
    assert item.text_edit.new_text == "strict($1)"
    assert "The candidate's mean" in item.documentation.value


@pytest.mark.parametrize(
    ("added", "label", "active"),
    [
        ("gate g = family(right, |", "family(m: metric, most: share = 5%)", 1),
        ("gate g = gates.fair(most = 1%, m = |", "fair(m: metric, by: field, most: share = 2%)", 0),
        ("gate g = worst(candidate.right, by = |", "worst(candidate.metric, by = field)", 1),
        ("metric m = clamp(1, |", "clamp(x, low, high)", 1),
    ],
)
def test_the_signature_of_a_call(project, added, label, active):
    text = PROGRAM + added.replace("|", "")
    name = str(project.folders[0] / "main.skill")
    project.open("file://" + name, text, 1)
    found = signature_help(project.analysis(name).work.module, text, len(text))
    assert found.signatures[0].label == label
    assert found.active_parameter == active
    assert found.signatures[0].parameters[active].label in label


def test_there_is_no_signature_outside_of_calls(project):
    for added in ("gate g = ", "optimize { edits = cosine(", "metric m = unknown("):
        text = PROGRAM + added
        name = str(project.folders[0] / "main.skill")
        project.open("file://" + name, text, 1)
        assert signature_help(project.analysis(name).work.module, text, len(text)) is None


# ---- the parser's own expected tokens -------------------------------------------------------------


@pytest.mark.parametrize("offset", range(0, len(PROGRAM), 7))
def test_offers_agree_with_what_the_parser_takes(project, offset):
    """Each name that is offered can be read there: the parser takes it as the next token."""
    name = str(project.folders[0] / "main.skill")
    project.open("file://" + name, PROGRAM, 1)
    analysis = project.analysis(name)
    for item in completion(project, analysis, analysis.source, offset, snippets=False).items:
        cursor = cursor_at(PROGRAM, offset)
        if cursor.section == "string":
            continue
        found = parse_prefix(PROGRAM[: cursor.start] + item.label + " ")
        assert isinstance(found, Derivation), item.label


@settings(max_examples=example_count(200))
@given(st.text(alphabet=st.sampled_from('abg{}()[]=:.,;"#/ \n\t1%$é😀\r\0'), max_size=80), st.data())
def test_no_text_makes_it_fail(text, data):
    cursor_at(text, data.draw(st.integers(0, len(text))))


@settings(max_examples=example_count(100))
@given(st.integers(0, len(PROGRAM)), st.integers(0, 40), st.text(max_size=4), st.data())
def test_no_damage_to_a_program_makes_it_fail(start, length, new, data):
    text = PROGRAM[:start] + new + PROGRAM[start + length :]
    project = Project()
    project.open("untitled:one", text, 1)
    offset = data.draw(st.integers(0, len(text)))
    analysis = project.analysis("untitled:one")
    completion(project, analysis, analysis.source, offset, snippets=True)
    signature_help(analysis.work.module, text, offset)


def test_in_a_long_program_the_names_of_a_moment_ago_are_offered():
    project = Project()
    text = PROGRAM + "# long\n" * 5_000
    project.open("untitled:one", text, 1)
    before = project.analysis("untitled:one")
    project.open("untitled:one", text + "gate g = candidate.", 2)
    source = project.source("untitled:one")
    analysis = project.names("untitled:one")
    assert analysis is before
    items = completion(project, analysis, source, len(source.text), snippets=True).items
    assert {item.label for item in items} == {"right", "score"}
    assert items[0].text_edit.range.start.line == source.text.count("\n")


def test_installed_packages_are_offered_with_their_modules(project, tmp_path, monkeypatch):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "language"))
    from distributions import install

    library = "language 1\ngate most(m: metric) = candidate.m > incumbent.m\n"
    install(tmp_path, {"acme_skills/gates.skill": library, "acme_skills/judging/strict.skill": library})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "acme" in offered(project, "use |")
    assert {"gates", "judging.strict"} <= set(offered(project, "use acme.|"))
    assert set(offered(project, "use acme.judging.|")) == {"strict"}
    assert not offered(project, "use nobody.|")


def test_the_required_verdict_is_offered_once_explained_and_not_renamed(project):
    from skillc.lsp.hover import hover
    from skillc.lsp.names import RefusedError, link_at, renamable

    assert "final test" in offered(project, "require |\n")["improved"].detail
    assert "improved" not in offered(project, "require improved\nrequire |\n")
    text = PROGRAM + "require improved\n"
    name = str(project.folders[0] / "main.skill")
    project.open("file://" + name, text, 2)
    analysis, at = project.analysis(name), text.rindex("improved") + 2
    link = link_at(analysis, at)
    assert link is not None
    assert "delivers the skill only if the final test shows an improvement" in hover(analysis, link.symbol)
    with pytest.raises(RefusedError, match="`improved` is a word of the language"):
        renamable(project, analysis, at)
