"""Skills beside the one that is trained: others of the program, and folders that it names."""

import json
from dataclasses import replace

import pytest

from skillc.errors import SkillcError
from skillc.frontend import check_file, estimate, plan_file
from skillc.json_values import fields_of
from skillc.plan.company import NOBODY, company_of
from skillc.plan.digest import plan_digest
from skillc.run.session import parts_of_run

PROGRAM = """language 1
task { input ticket: text; output team: "billing" | "shipping" }
skill route_it { about = "Route a ticket."; load = on_demand; BESIDE; trainable section rules }
MORE
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { train = "train.jsonl"; validation = "validation.jsonl" }
budget { steps = 1 }
goal correct = exact_match(team)
gate better = candidate.correct > incumbent.correct
"""
POEMS = 'skill write_poems { about = "Write a poem."; load = LOAD; frozen section rhymes = "Rhyme." }'


def program(folder, beside="", more=""):
    folder.mkdir(exist_ok=True)
    (folder / "p.skill").write_text(PROGRAM.replace("BESIDE; ", f"{beside}; " if beside else "").replace("MORE", more))
    for side in ("train", "validation"):
        row = {"ticket": f"{side} invoice", "team": "billing"}
        (folder / f"{side}.jsonl").write_text(json.dumps(row) + "\n")
    return folder / "p.skill"


def skill(folder, name, about="Cook a meal.", body="Salt it."):
    place = folder / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {about}\n---\n\n{body}\n")


def company(path):
    return company_of(plan_file(path).plan, path.parent)


def test_other_skills_of_the_program_are_offered_or_read_as_they_are(tmp_path) -> None:
    offered = company(program(tmp_path, more=POEMS.replace("LOAD", "on_demand")))
    assert [each.name for each in offered.offered] == ["write-poems"]
    assert "Rhyme." in offered.offered[0].sections[0].body
    read = company(program(tmp_path, more=POEMS.replace("LOAD", "always")))
    assert ([each.name for each in read.read], read.offered) == (["write-poems"], ())


def test_a_compiled_skill_is_read_as_it_was_compiled(tmp_path) -> None:
    path = program(tmp_path, more=POEMS.replace("LOAD", "on_demand"))
    skill(tmp_path / "skills", "write-poems", "Write an ode.", "Praise it.")
    (found,) = company(path).offered
    assert (found.about, "Praise it." in found.sections[0].text) == ("Write an ode.", True)


def test_the_first_skill_with_a_trainable_part_is_trained(tmp_path) -> None:
    text = program(tmp_path, more=POEMS.replace("LOAD", "on_demand")).read_text()
    lines = text.splitlines()
    lines[2], lines[3] = lines[3], lines[2]
    (tmp_path / "p.skill").write_text("\n".join(lines) + "\n")
    plan = plan_file(tmp_path / "p.skill").plan
    assert plan.skill.name == "route_it"
    assert [other.name for other in plan.others] == ["write_poems"]


def test_folders_beside_the_program_are_offered_by_name(tmp_path) -> None:
    for name in ("cook-meals", "bake-bread"):
        skill(tmp_path / "shared", name)
    (tmp_path / "shared" / "notes").mkdir()
    path = program(tmp_path / "here", 'beside = ["../shared/*"]')
    assert [each.name for each in company(path).offered] == ["bake-bread", "cook-meals"]
    one = program(tmp_path / "here", 'beside = ["../shared/cook-meals"]')
    assert [each.name for each in company(one).offered] == ["cook-meals"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("../nowhere/*", "names no folder with a `SKILL.md`"), ("../twins/*", "two skills are named `route-it`")],
)
def test_a_folder_that_offers_nothing_is_an_error(tmp_path, pattern, message) -> None:
    skill(tmp_path / "twins", "route-it")
    with pytest.raises(SkillcError, match=message):
        company(program(tmp_path / "here", f'beside = ["{pattern}"]'))


def test_checking_reads_no_folder(tmp_path) -> None:
    path = program(tmp_path / "here", 'beside = ["../nowhere/*"]')
    assert not [each for each in check_file(path).diagnostics if each.severity.name == "ERROR"]


def test_their_tokens_and_calls_are_in_the_plan(tmp_path) -> None:
    alone = estimate(plan_file(program(tmp_path / "here")))
    skill(tmp_path / "shared", "cook-meals", body="Salt it. " * 200)
    beside = estimate(plan_file(program(tmp_path / "here", 'beside = ["../shared/*"]')))
    for stage in ("baseline", "no skill"):
        less, more = (each.bounds.stage(stage).bound.most for each in (alone, beside))
        assert more.prompt > less.prompt + 400
        assert more.calls > less.calls
    assert (beside.sizes.company.offered, alone.sizes.company.offered) == (1, 0)


def test_a_program_without_company_keeps_its_digest_and_a_changed_one_is_another_run(tmp_path) -> None:
    plan = plan_file(program(tmp_path / "here")).plan
    assert "others" not in fields_of(plan)
    assert "beside" not in fields_of(plan.skill)
    assert company_of(plan, tmp_path) is NOBODY
    skill(tmp_path / "shared", "cook-meals")
    planned = plan_file(program(tmp_path / "here", 'beside = ["../shared/*"]'))
    assert plan_digest(planned.plan) != plan_digest(plan)
    dataset = estimate(planned).dataset
    before = parts_of_run(planned.plan, planned.root, dataset, {})
    file = tmp_path / "shared" / "cook-meals" / "SKILL.md"
    file.write_text(file.read_text().replace("Cook a meal", "Cook a feast"))
    after = parts_of_run(planned.plan, planned.root, dataset, {})
    assert {name for name in before if before[name] != after[name]} == {"rollout"}
    assert replace(estimate(planned).sizes.company, listed=0) == replace(estimate(planned).sizes.company, listed=0)


def test_another_skill_is_trained_into_its_own_file(tmp_path) -> None:
    other = 'skill write_poems { about = "Write a poem."; load = on_demand; trainable section rhymes }'
    path = program(tmp_path, more=other)
    planned = plan_file(path, settings=["skill.train=write_poems"])
    assert (planned.plan.skill.artifact, [each.name for each in planned.plan.others]) == ("write-poems", ["route_it"])
    assert planned.options.settings == ("skill.train=write_poems",)
    found = [(each.code, each.message) for each in estimate(plan_file(path)).diagnostics if each.code == "SK560"]
    assert found == [("SK560", "`write_poems` is not trained: this compile trains `route_it`")]


@pytest.mark.parametrize(
    ("name", "message"), [("cook", "has no skill `cook`"), ("write_poems", "has no trainable part")]
)
def test_a_skill_that_cannot_be_trained_is_an_error(tmp_path, name, message) -> None:
    path = program(tmp_path, more=POEMS.replace("LOAD", "on_demand"))
    with pytest.raises(SkillcError, match=message):
        plan_file(path, settings=[f"skill.train={name}"])
