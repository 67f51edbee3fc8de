"""Generated pages are what the grammar, the registries and the command line say today."""

import re
import shlex

import click
import pytest
from page_session import ROOT

from docs.making import commands, grammar
from docs.making.pages import pages
from skillc.cli import skillc
from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS
from skillc.gates.units import UNITS
from skillc.language.kinds import KINDS

MADE = pages()


@pytest.mark.parametrize("path", sorted(MADE))
def test_a_page_is_in_step(path):
    file = ROOT / path
    assert file.exists(), "`make pages` writes it"
    assert file.read_text(encoding="utf-8") == MADE[path], "`make pages` brings it up to date"


def test_every_word_of_the_registries_has_its_place():
    for kind in KINDS.values():
        assert f"\n## {kind.word}\n" in MADE["docs/reference/statements.md"]
        for setting in kind.settings or ():
            assert re.search(rf"^\| `(?:\S+ )?{setting.name}` \|", MADE["docs/reference/statements.md"], re.MULTILINE)
    for name in {**EXAMPLE_FUNCTIONS, **RUN_FUNCTIONS}:
        assert f"\n### {name}\n" in MADE["docs/reference/functions.md"]
    for unit in UNITS:
        assert f"| `{unit}` |" in MADE["docs/reference/types.md"]


def test_every_name_in_the_grammar_is_defined_in_it():
    found = grammar.data()
    defined = {rule.split()[0] for rule in found["rules"]} | {terminal.name for terminal in found["terminals"]}
    used = set(re.findall(r"\b[A-Za-z]\w*\b", re.sub(r'"[^"]*"', "", "\n".join(found["rules"]))))
    assert used - defined == set()
    assert "statement" in used
    assert all(rule.count("(") - rule.count('"("') == rule.count(")") - rule.count('")"') for rule in found["rules"])


HELPS = list(commands.verbs())


@pytest.mark.parametrize("verb", HELPS, ids=lambda verb: verb.path)
def test_a_verb_says_its_exit_statuses_and_an_example_that_it_takes(verb):
    examples = re.findall(r"^  Example: ((?:.|\n)*?)(?:\n\n|\Z)", verb.help, re.MULTILINE)
    assert re.fullmatch(r"0 .*", verb.statuses), verb.help
    assert examples, verb.help
    for example in examples:
        words = shlex.split(" ".join(example.split()))
        if words[0] != "skillc":
            continue
        command: click.Command = skillc
        context = click.Context(skillc)
        assert words[1 : len(verb.path.split())] == verb.path.split()[1:]
        for name in verb.path.split()[1:]:
            found = command.get_command(context, name)
            assert found is not None
            command = found
        rest = words[len(verb.path.split()) :]
        if isinstance(command, click.Group):
            inner = command.get_command(context, rest[0])
            assert inner is not None
            command, rest = inner, rest[1:]
        command.make_context(words[1], rest)


@pytest.mark.parametrize("verb", HELPS, ids=lambda verb: verb.path)
def test_a_help_text_is_written_like_the_others(verb):
    for line in re.findall(r"^  (?:-\w, )?--[\w-]+.*(?:\n {4,}.*)*", verb.help, re.MULTILINE):
        said = " ".join(line.split())
        assert re.search(r"\.( \[[^]]*\])?$", said), f"an option's help is a sentence: {said}"
