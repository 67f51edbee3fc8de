"""`skillc diff` and `skillc breaking` as a user types them."""

import json

import pytest
from click.testing import CliRunner
from shops import PROGRAM, edited

from skillc.cli import skillc
from skillc.errors import SkillcError


def run(*words):
    return CliRunner().invoke(skillc, [str(word) for word in words], standalone_mode=False)


def test_diff_says_what_changed_in_meaning(repo):
    repo.write(
        "<= 10% => <= 20%", "You sort texts. => You sort things.", "cost = $2 => cost = $1", "seed = 3 => seed  =  3"
    )
    done = run("diff", "things.skill")
    assert done.return_value == 0
    assert done.stdout == (
        "things.skill: HEAD → the working tree\n"
        "skill\n"
        "  ~ frozen section role\n"
        "      - You sort texts.\n"
        "      + You sort things.\n"
        "        One answer for each.\n"
        "gates\n"
        "  ~ gate safe   regressed(correct, by = shop) <= 10% → regressed(correct, by = shop) <= 20%   (looser)\n"
        "budget\n"
        "  ~ cost   $2 → $1   (stricter)\n"
    )
    assert run("diff", "things.skill", "--exit-code").return_value == 1


def test_diff_without_a_change(repo):
    repo.write("seed = 3 => seed  =  3", "goal correct => # what counts\ngoal correct")
    done = run("diff", "things.skill", "--exit-code")
    assert done.stdout.endswith("no change in meaning\n")
    assert done.return_value == 0


def test_diff_of_two_files(repo):
    (repo.folder / "other.skill").write_text(edited("gate small  = gates.small_step(30%)\n => "))
    done = run("diff", "things.skill", "other.skill")
    assert "- gate small   change(candidate) <= 30%   (looser)" in done.stdout
    done = run("diff", "other.skill", "things.skill")
    assert "+ gate small   change(candidate) <= 30%   (stricter)" in done.stdout
    assert isinstance(run("diff", "a.skill", "b.skill", "--against", "main").exception, SkillcError)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            "output why: text => output why: text\n  rollout = chain_of_thought",
            "~ rollout   predict → chain_of_thought",
        ),
        ("samples = 2; => samples = 2; edits = linear(8, 2);", "~ edits   cosine(8, 4) → linear(8, 2)"),
        ("samples = 2; => samples = 2; edits = 3;", "~ edits   cosine(8, 4) → constant(3)"),
        (
            'field shop: text; => field shop: text { column = "store" };',
            '~ field shop   text → text { column = "store" }',
        ),
        ("epochs = 2; => epochs = 2; time = 90 min;", "~ time   no cap → 90 min   (stricter)"),
        (
            'optimizer = "rulebook/v1" => optimizer = "rulebook/v1" { temperature = 0.5; timeout = 90 s }',
            "~ model optimizer: timeout   5 min → 90 s",
        ),
        (
            'optimizer = "rulebook/v1" => optimizer = "openai/x" { temperature = 0.5; key = env("K") }',
            '~ model optimizer: key   none → env("K")',
        ),
        (
            'target    = "rulebook/v1" => target = "hosted_vllm/q" { price { input = $1; output = $2 }; '
            'serve = vllm { max_len = 8192; env { A = "b c" } } }',
            '~ model target: serve   none → max_len = 8192; env { A = "b c" }',
        ),
        (
            'target    = "rulebook/v1" => target = "hosted_vllm/q" { price { input = $1; output = $2 } }',
            "~ model target: price   none → input = $1; output = $2",
        ),
    ],
)
def test_diff_writes_values_as_a_program_does(repo, change, line):
    repo.write(change)
    printed = run("diff", "things.skill").stdout
    assert f"  {line}\n" in printed
    assert "kind " not in printed


def test_diff_as_json(repo):
    repo.write("epochs = 2 => epochs = 3")
    found = json.loads(run("diff", "things.skill", "--json").stdout)
    (change,) = found["programs"][0]["changes"]
    assert (change["group"], change["kind"], change["before"], change["after"]) == ("budget", "changed", "2", "3")


@pytest.mark.parametrize(
    ("change", "status"),
    [("seed = 3 => seed  = 3", 0), ("epochs = 2 => epochs = 3", 1), ("epochs = 2 => epochs = 1", 0)],
)
def test_the_status_of_breaking(repo, change, status):
    repo.write(change)
    assert run("breaking", "things.skill", "--against", "main").return_value == status
    assert run("breaking", ".", "--against", "main", "--format", "concise").return_value == status


def test_breaking_prints_the_place_and_both_texts(repo):
    repo.write("epochs = 2 => epochs = 3")
    done = run("breaking", "things.skill", "--against", "main")
    assert "error[SK709]: the budget's `epochs` was 2 and is 3" in done.stdout
    assert "main:things.skill:23" in done.stdout
    concise = run("breaking", "things.skill", "--against", "main", "--format", "concise").stdout
    assert concise == "things.skill:23:10: error[SK709]: the budget's `epochs` was 2 and is 3\n"


def test_a_new_program_has_nothing_to_be_compared_with(repo):
    (repo.folder / "fresh.skill").write_text(PROGRAM)
    done = run("breaking", "fresh.skill", "--against", "main")
    assert done.return_value == 0
    assert "is new since `main`" in done.stderr


def test_language_2_is_refused_with_what_this_skillc_knows(repo):
    repo.write("language 1 => language 2")
    done = run("check", "things.skill", "--format", "concise")
    assert done.return_value == 1
    assert "SK208" in done.stdout
    assert "`language 2` is newer than this skillc, which supports language 1" in done.stdout
    problem = run("diff", "things.skill").exception
    assert "`things.skill` has" in problem.message


def test_annotations_and_sarif_for_workflows(repo):
    repo.write("epochs = 2 => epochs = 3")
    line = run("breaking", "things.skill", "--against", "main", "--format", "github").stdout
    assert line.startswith("::error file=things.skill,line=23,")
    log = json.loads(run("breaking", "things.skill", "--against", "main", "--format", "sarif").stdout)
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "SK709"


def test_a_removed_program_is_printed_in_every_format(repo):
    (repo.folder / "other.skill").write_text(edited("sort_things => others"))
    repo.commit("two")
    (repo.folder / "other.skill").unlink()
    for style in ("text", "concise", "json", "sarif", "github"):
        done = run("breaking", ".", "--against", "HEAD", "--format", style)
        assert done.return_value == 1
        assert "SK723" in done.stdout
    assert "the program is removed" in run("diff", ".").stdout
