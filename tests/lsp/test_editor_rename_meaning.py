"""A rename changes a name and nothing else: over every name of every program of the repository."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from skillc.language.links import Symbol
from skillc.lsp.names import RefusedError, edits, renamable, texts_after
from skillc.lsp.workspace import Project
from skillc.plan.resolve import resolve

ROOT = Path(__file__).resolve().parents[2]
FRESH = "zzfresh"
PROGRAMS = sorted(
    [*ROOT.glob("examples/*/*.skill"), *ROOT.glob("programs/*/*.skill"), *ROOT.glob("tests/language/programs/*.skill")]
)


def project_in(folder):
    project = Project()
    project.folders = (folder,)
    return project


def names_of(project, analysis):
    """A use of every symbol that the user may rename, and those that are refused."""
    found: dict[Symbol, int] = {}
    for link in analysis.links:
        found.setdefault(link.symbol, link.span.start)
    for symbol, offset in found.items():
        try:
            yield renamable(project, analysis, offset).symbol
        except RefusedError:
            assert symbol.file is None or symbol.kind in ("model", "file", "label") or "stdlib" in symbol.file


def plan_of(analysis):
    return None if analysis.checked.failed else resolve(analysis.checked).plan


def shown(plan):
    return json.dumps(plan.model_dump(mode="json"), sort_keys=True)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.quick_cases(4)
def test_the_plan_is_the_same_up_to_the_name(path, tmp_path):
    shutil.copytree(
        path.parent, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("model", "*.npz", "making")
    )
    project = project_in(tmp_path)
    name = str(tmp_path / path.name)
    analysis = project.analysis(name)
    before = plan_of(analysis)
    count = 0
    for symbol in names_of(project, analysis):
        count += 1
        texts = texts_after(edits(project, analysis, symbol, FRESH))
        after = project.with_texts(texts).analysis(name)
        codes = Counter(d.code for d in analysis.checked.diagnostics)
        assert Counter(d.code for d in after.checked.diagnostics) == codes, symbol.name
        assert len([link for link in after.links if link.symbol.name == FRESH]) == len(
            [link for link in analysis.links if link.symbol == symbol]
        )
        if before is not None:
            artifact = symbol.name.replace("_", "-")
            old = shown(before).replace(f'"artifact": "{artifact}"', f'"artifact": "{symbol.name}"')
            assert renamed_back(shown(plan_of(after)), symbol.name) == renamed_back(old, symbol.name), symbol.name
    assert count > 1


def renamed_back(plan, name):
    """A plan with one name for both; what stands in the order of names stands in another then."""
    return ordered(json.loads(plan.replace(FRESH, name)))


def ordered(value):
    if isinstance(value, dict):
        return {key: ordered(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((ordered(each) for each in value), key=json.dumps)
    return value


LIBRARY = """language 1

/// Of the house.
gate family(m: metric, most: share = 5%) = regressed(m) <= most

budget nightly { cost = $2 }
"""
MAIN = """language 1

use std.gates
use "./lab.skill" as lab

task {
  input question: text
  output answer: text { about = "The answer." }
}

skill decide {
  about = "Decide."
  trainable section rules { limit = 300 tokens }
}

model target = "rulebook/v1"
model optimizer = target
data { source = "x.jsonl" }
goal score = exact_match(answer)
budget = lab.nightly
gate better = candidate.score > incumbent.score
gate safe = lab.family(score, most = 1%)
gate kept = gates.keeps(score)
"""


@pytest.fixture
def house(tmp_path):
    (tmp_path / "lab.skill").write_text(LIBRARY)
    (tmp_path / "main.skill").write_text(MAIN)
    return project_in(tmp_path)


def rename(project, file, marked, new):
    """The texts of all files after a rename at the bar of a marked piece."""
    name = str(project.folders[0] / file)
    analysis = project.analysis(name)
    piece = marked.replace("|", "")
    assert analysis.source.text.count(piece) == 1
    offset = analysis.source.text.index(piece) + marked.index("|")
    symbol = renamable(project, analysis, offset).symbol
    return {Path(file): text for file, text in texts_after(edits(project, analysis, symbol, new)).items()}


def test_a_function_is_renamed_in_every_file(house, tmp_path):
    for file, marked in (("lab.skill", "gate fam|ily"), ("main.skill", "lab.|family")):
        texts = rename(house, file, marked, "house")
        assert texts[tmp_path / "lab.skill"] == LIBRARY.replace("family", "house")
        assert texts[tmp_path / "main.skill"] == MAIN.replace("family", "house")


def test_a_parameter_is_renamed_at_the_calls_too(house, tmp_path):
    texts = rename(house, "lab.skill", "m: metric, mo|st", "share_of")
    assert "lab.family(score, share_of = 1%)" in texts[tmp_path / "main.skill"]
    assert "share_of: share = 5%) = regressed(m) <= share_of" in texts[tmp_path / "lab.skill"]


def test_a_field_goes_on_being_read_from_its_column(house, tmp_path):
    texts = rename(house, "main.skill", "input que|stion", "text")
    assert 'input text: text { column = "question" }' in texts[tmp_path / "main.skill"]
    texts = rename(house, "main.skill", "output an|swer", "reply")
    text = texts[tmp_path / "main.skill"]
    assert 'output reply: text { column = "answer"; about = "The answer." }' in text
    assert "exact_match(reply)" in text


def test_a_module_gets_an_alias(house, tmp_path):
    text = rename(house, "main.skill", "use std.ga|tes", "house")[tmp_path / "main.skill"]
    assert "use std.gates as house" in text
    assert "house.keeps(score)" in text
    text = rename(house, "main.skill", "as la|b", "ours")[tmp_path / "main.skill"]
    assert 'use "./lab.skill" as ours' in text
    assert "budget = ours.nightly" in text


@pytest.mark.parametrize(
    ("marked", "new", "why"),
    [
        ("goal sc|ore", "two words", "is not a name"),
        ("goal sc|ore", "not", "is a word of the language"),
        ("goal sc|ore", "answer", "`answer` is both a field and a metric"),
        ("gate be|tter", "safe", "`safe` is declared twice"),
        ("as la|b", "gates", "two modules are named `gates`"),
        ("as la|b", "candidate", "`candidate` is reserved for a skill"),
        ("model tar|get", "student", "role that every compile needs"),
        ("exact_|match(", "x", "a word of the language"),
        ("gates.ke|eps", "x", "belongs to the standard library"),
        ("gate better = cand|idate", "x", "a word of the language"),
        ("trainable sec|tion", "x", "a word of the language"),
        ('about = "De|cide', "x", "no declared name is at this position"),
    ],
)
def test_what_can_not_be_renamed_says_why(house, marked, new, why):
    with pytest.raises(RefusedError, match=why):
        rename(house, "main.skill", marked, new)


def test_a_name_that_would_be_caught_by_another_is_refused(house):
    with pytest.raises(RefusedError, match=r"something else|can't be renamed"):
        rename(house, "lab.skill", "m: metric, mo|st", "m")


def test_a_file_with_mistakes_holds_a_rename_up(house, tmp_path):
    (tmp_path / "main.skill").write_text(MAIN + "gate broken = lab.family((\n")
    with pytest.raises(RefusedError, match=r"main.skill` has syntax errors"):
        rename(house, "lab.skill", "gate fam|ily", "house")


def test_a_file_outside_the_workspace_is_not_written(house, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "p.skill").write_text('language 1\nmodel target = "a/b"\nmodel judge = target\n')
    project = project_in(tmp_path / "elsewhere")
    name = str(inner / "p.skill")
    analysis = project.analysis(name)
    with pytest.raises(RefusedError, match="outside this workspace"):
        renamable(project, analysis, analysis.source.text.index("judge"))
