import json

import pytest
from conftest_cli import PROGRAM, skillc


def test_check_is_clean_and_says_so(shop):
    done = skillc("check", "things.skill", folder=shop)
    assert (done.returncode, done.stdout.strip()) == (0, "no findings")


def test_check_shows_every_mistake_with_its_place(shop):
    (shop / "bad.skill").write_text(
        PROGRAM.replace("batch = 12", "bach = 12")
        .replace("exact_match(kind)", "exact_mach(kind)")
        .replace("500 tokens", "500")
    )
    done = skillc("check", "bad.skill", "--json", folder=shop)
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["format_version"] == 1
    assert len(found["diagnostics"]) == 3
    concise = skillc("check", "bad.skill", "--format", "concise", folder=shop)
    assert all(line.startswith("bad.skill:") for line in concise.stdout.splitlines() if line)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "missing.skill"), "missing.skill"),
        (("plan", "."), "folder"),
        (("plan", "things.skill", "--set", "budget.cots=1"), "budget.cost"),
        (("plan", "things.skill", "--model", "targte=openai/x"), "target"),
        (("compile", "things.skill", "--require", "perfect"), "improved"),
        (("explain", "SK9999"), "SK9999"),
        (("chekc", "things.skill"), "chekc"),
        (("new", "missing.csv"), "missing.csv"),
    ],
)
def test_a_users_mistake_is_a_message_and_status_2(shop, arguments, said):
    done = skillc(*arguments, folder=shop)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_is_an_object_where_json_was_asked_for(shop):
    done = skillc("plan", "missing.skill", "--json", folder=shop)
    assert done.returncode == 2
    assert "missing.skill" in json.loads(done.stdout)["error"]["message"]


def test_plan_shows_stages_and_spends_nothing(shop):
    done = skillc("plan", "things.skill", folder=shop)
    assert done.returncode == 0
    assert "final test" in done.stdout
    assert not (shop / ".skillc").exists()
    plan = json.loads(skillc("plan", "things.skill", "--json", folder=shop).stdout)
    assert plan["format_version"] == 1


def test_explain_has_a_page_for_each_code_of_the_list(shop):
    codes = json.loads(skillc("explain", "--json", folder=shop).stdout)["codes"]
    assert len(codes) > 40
    page = skillc("explain", codes[0]["code"], folder=shop)
    assert page.returncode == 0
    assert codes[0]["title"] in page.stdout


def test_new_writes_a_program_that_compiles(shop):
    rows = [json.loads(line) for line in (shop / "things.jsonl").read_text().splitlines()]
    lines = ["text,kind,shop", *(f'"{row["text"]}",{row["kind"]},{row["shop"]}' for row in rows)]
    (shop / "fresh.csv").write_text("\n".join(lines) + "\n")
    done = skillc("new", "fresh.csv", folder=shop)
    assert done.returncode == 0, done.stderr
    assert skillc("check", "fresh.skill", folder=shop).returncode == 0
    assert skillc("new", "fresh.csv", folder=shop).returncode == 2
    compiled = skillc("compile", "fresh.skill", "--offline", "--set", "budget.steps=2", folder=shop)
    assert compiled.returncode == 0, compiled.stderr


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("gate ", "gate quick = latency(candidate) <= 1.1 * latency(incumbent)\ngate ", "`latency`"),
    ],
    ids=["latency"],
)
def test_every_verb_says_what_comes_with_a_later_version(shop, old, new, what):
    assert old in PROGRAM
    (shop / "later.skill").write_text(PROGRAM.replace(old, new, 1))
    for verb, status in (("check", 1), ("plan", 2), ("compile", 2)):
        done = skillc(verb, "later.skill", folder=shop)
        assert done.returncode == status, done.stdout + done.stderr
        said = done.stdout + done.stderr
        assert said.count("error[SK605]") == 1, said
        assert f"{what} needs skillc 0.3; this version can't compile it" in said


def test_a_library_for_a_later_version_is_clean(shop):
    library = "language 1\ngate quick(most: number) = latency(candidate) <= most * latency(incumbent)\n"
    (shop / "house.skill").write_text(library)
    done = skillc("check", "house.skill", folder=shop)
    assert (done.returncode, "SK605" in done.stdout) == (0, False)
    using = PROGRAM.replace("gate ", "gate quick = house.quick(1.1)\ngate ", 1)
    using = using.replace("language 1\n", 'language 1\nuse "./house.skill" as house\n')
    (shop / "using.skill").write_text(using)
    done = skillc("check", "using.skill", "--format", "concise", folder=shop)
    assert "using.skill:" in done.stdout
    assert "SK605" in done.stdout


def test_a_budget_that_cannot_pay_is_told_once(shop):
    (shop / "poor.skill").write_text(PROGRAM.replace("epochs = 2;", "epochs = 2; calls = 60;"))
    done = skillc("compile", "poor.skill", "--offline", folder=shop)
    assert done.returncode == 2
    assert done.stderr.count("error[SK501]") == 1, done.stderr
