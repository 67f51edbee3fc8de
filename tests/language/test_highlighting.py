"""Colours: what is made from the tables is in step with them, and is right about the repository's programs."""

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Comment, Error, Generic, Keyword, Name, Number, String

from editors import make
from editors.textmate import textmate
from skillc import __version__
from skillc.language.kinds import KINDS
from skillc.language.vocabulary import vocabulary
from skillc.pygments_lexer import ConsoleLexer, SkillLexer
from skillc.syntax import nodes
from skillc.syntax.files import read_source
from skillc.syntax.parser import parse

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("stdlib", "examples", "programs", "benchmarks", "tests/language/programs", "tests/language/golden")
PROGRAMS = sorted(path for each in FOLDERS for path in (ROOT / each).rglob("*.skill"))


# ---- in step --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", make.files())
def test_what_is_made_is_what_stands_there(path):
    made = make.files()[path]
    assert (make.FOLDER / path).read_text("utf-8") == made, "run `python -m editors.make`"


def test_every_word_of_the_tables_is_known():
    known = vocabulary()
    assert {"trainable", "slow"} <= set(known.modifiers)
    assert {"max_tokens", "trajectory_limit"} <= set(known.settings)
    assert {"on_demand", "cosine", "gepa"} <= set(known.values)
    assert set(known.kinds) == set(KINDS)


# ---- TextMate -------------------------------------------------------------------------------------


def in_python(pattern):
    """A pattern of Oniguruma in the syntax of Python, as far as the grammar uses it."""
    pattern = pattern.replace(r"[\p{L}_][\p{L}\p{N}_]*", r"[^\W\d]\w*").replace(r"[\p{L}_{0-9]", r"[\w{]")
    assert r"\p{" not in pattern
    return re.compile(pattern)


def statements(program):
    waiting = list(program.statements)
    while waiting:
        each = waiting.pop()
        if isinstance(each, nodes.Declaration):
            yield each
            waiting += each.block.statements if each.block is not None else ()


def test_the_grammar_finds_kinds_and_names():
    pattern = in_python(textmate()["repository"]["statement"]["match"])
    count = 0
    for path in PROGRAMS:
        if "golden" in path.parts:
            continue
        source = read_source(path)
        for statement in statements(parse(source).program):
            spoken = [word.text for word in statement.words]
            at = next((i for i, word in enumerate(spoken[:2]) if word in KINDS and len(spoken) > i + 1), None)
            line, column = source.position(statement.span.start)
            # As an editor does: line by line, a statement may begin in the middle of one.
            found = [m for m in pattern.finditer(source.line(line)) if m.end() > column - 1 and m.start() < column]
            assert found, source.slice(statement.span)[:50]
            if at is not None:
                assert found[0][2] == spoken[at]
                assert found[0][3] == spoken[at + 1]
                assert found[0][1] == (spoken[0] if at else None)
                count += 1
    assert count > 100


def test_every_pattern_is_one():
    def patterns(value):
        if isinstance(value, dict):
            for key, each in value.items():
                if key in ("match", "begin", "end", "while"):
                    yield each
                else:
                    yield from patterns(each)
        elif isinstance(value, list):
            for each in value:
                yield from patterns(each)

    found = list(patterns(textmate()))
    assert len(found) > 15
    for each in found:
        in_python(each.replace(r"\G", ""))


# ---- the extension --------------------------------------------------------------------------------


def test_the_extension_says_what_it_has():
    package = json.loads((make.FOLDER / "package.json").read_text("utf-8"))
    assert package["version"] == __version__
    added = package["contributes"]
    assert added["languages"][0]["id"] == "skill"
    assert added["languages"][0]["extensions"] == [".skill"]
    for path in (
        package["main"],
        added["languages"][0]["configuration"],
        added["grammars"][0]["path"],
        added["snippets"][0]["path"],
    ):
        assert (make.FOLDER / path).is_file()
    assert added["grammars"][0]["scopeName"] == textmate()["scopeName"]
    json.loads((make.FOLDER / "language-configuration.json").read_text("utf-8"))
    script = (make.FOLDER / package["main"]).read_text("utf-8")
    for setting in added["configuration"]["properties"]:
        name = setting.removeprefix("skillc.")
        assert name == "trace.server" or f'"{name}"' in script
    for command in added["commands"]:
        assert f'"{command["command"]}"' in script


def test_the_snippet_of_a_program_is_a_program():
    from skillc.frontend import check
    from skillc.syntax.source import Source

    body = "\n".join(make.snippets()["program"]["body"])
    named = dict(re.findall(r"\$\{(\d+):([^}]*)\}", body))
    text = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", body)
    text = re.sub(r"\$([1-9])", lambda match: named[match[1]], text).replace("$0", "")
    assert not check(Source("p.skill", text)).failed


# ---- Pygments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_pygments_colours_every_program(path):
    text = path.read_bytes().decode("utf-8", "replace")
    found = list(SkillLexer().get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in found) == text
    assert not [value for _, kind, value in found if kind is Error]


@given(st.text(alphabet=st.sampled_from('ab1 \n\t"#/{}()=:;.%$\\é😀\r\0'), max_size=60))
def test_pygments_colours_any_text(text):
    found = list(SkillLexer().get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in found) == text


def coloured(text):
    return [(kind, value) for _, kind, value in SkillLexer().get_tokens_unprocessed(text) if value.strip()]


def test_pygments_knows_what_words_are():
    found = coloured(
        "language 1\nuse std.gates\n/// Told.\ntrainable section rules { limit = 300 tokens }  # why\n"
        'optimize { method = gepa; control = on }\ngate g for slow = candidate.m > "x" and gates.strict(m, 5%)\n'
        'model target = "a/b"\nmetric tokens_used = tokens(task)\n'
    )
    for expected in (
        (Keyword.Declaration, "language"),
        (Keyword.Namespace, "use"),
        (Name.Namespace, "std.gates"),
        (String.Doc, "/// Told."),
        (Keyword.Declaration, "trainable"),
        (Keyword.Declaration, "section"),
        (Name.Variable, "rules"),
        (Name.Attribute, "limit"),
        (Number, "300"),
        (Keyword.Type, "tokens"),
        (Comment.Single, "# why"),
        (Keyword.Constant, "gepa"),
        (Keyword.Constant, "on"),
        (Keyword, "slow"),
        (Name.Builtin.Pseudo, "candidate"),
        (Name.Function, "strict"),
        (Keyword.Type, "%"),
        (Name.Variable, "target"),
        (Name.Builtin, "tokens"),
        (Name, "task"),
    ):
        assert expected in found, expected


@pytest.mark.parametrize("kind", KINDS)
def test_pygments_knows_every_kind(kind):
    assert (Keyword.Declaration, kind) in coloured(
        f"{kind} name = 1\n" if KINDS[kind].name != "forbidden" else f"{kind} {{"
    )


def test_pygments_finds_the_lexer():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module, _, name = project["entry-points"]["pygments.lexers"]["skill"].partition(":")
    lexer = getattr(importlib.import_module(module), name)
    assert lexer is SkillLexer
    assert "skill" in lexer.aliases
    assert "*.skill" in lexer.filenames


# ---- terminal sessions ----------------------------------------------------------------------------


def test_printed_lines_are_output_whatever_they_begin_with():
    text = "$ cat SKILL.md\n# Choose team\n> quoted\n#1 of 2\n$ echo a \\\n> b\nc\n"
    found = list(ConsoleLexer().get_tokens(text))
    assert "".join(part for _, part in found) == text
    assert [part for kind, part in found if kind is Generic.Output] == [
        "# Choose team\n",
        "> quoted\n",
        "#1 of 2\n",
        "c\n",
    ]
    assert [part for kind, part in found if kind is Generic.Prompt] == ["$ ", "$ ", "> "]
    assert not [part for kind, part in found if kind in Comment]


@given(st.text())
def test_a_session_keeps_every_character(text):
    indexed = list(ConsoleLexer().get_tokens_unprocessed(text))
    assert "".join(part for _, _, part in indexed) == text
    assert [at for at, _, _ in indexed] == [sum(len(p) for _, _, p in indexed[:i]) for i in range(len(indexed))]
