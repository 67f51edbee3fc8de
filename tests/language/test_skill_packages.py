"""Installed packages that carry `.skill` files: found without running any of their code, and explained where not."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from checking import program, run
from distributions import install

from skillc.diagnostics.diagnostic import Diagnostic
from skillc.language.skill_packages import claims, locate, package_of

MOST = "language 1\ngate most(m: metric, least: share = 0%) = candidate.m >= incumbent.m + least\n"
POISON = "raise SystemExit('imported')\n"
FILES = {
    "acme_skills/__init__.py": POISON,
    "acme_skills/gates.skill": "# Gates of ours\n" + MOST,
    "acme_skills/judging/strict.skill": 'language 1\nuse "../gates.skill" as g\n' + MOST.partition("\n")[2],
    "acme_skills/judging/__init__.py": POISON,
    "acme_skills/SKILL.md": "## tone\n\nBe kind.\n",
    "secret.skill": MOST,
}
USE = "use acme.gates"
CALL = "gate g = gates.most(correct)"


@pytest.fixture(autouse=True)
def _nothing_is_imported() -> Iterator[None]:
    yield
    assert not [name for name in sys.modules if name.startswith(("acme_skills", "other_skills"))]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, on the path of imports."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def only(text: str, code: str, root: Path | None = None) -> Diagnostic:
    (found,) = [d for d in run(text, root).diagnostics if d.code == code]
    return found


def test_a_package_is_used_by_the_name_of_its_entry_point(site: Path) -> None:
    install(site, FILES)
    assert run(program(CALL, use=USE)).diagnostics == ()
    assert run(program("gate g = strict.most(correct)", use="use acme.judging.strict")).diagnostics == ()
    assert run(program("gate g = ours.most(correct)", use="use acme.gates as ours")).diagnostics == ()
    found = locate("acme", claims())
    assert (found.module, found.folder, found.distribution) == ("acme_skills", site / "acme_skills", "acme-skills 1.2")
    assert found.modules() == ("gates", "judging.strict")


def test_files_of_a_package_use_each_other_the_library_and_other_packages(site: Path) -> None:
    install(
        site,
        {
            **FILES,
            "acme_skills/all.skill": "language 1\nuse std.gates\nuse other.more\nuse acme.judging.strict\n"
            "gate a(m: metric) = gates.strict(m) and more.most(m) and strict.most(m)\n",
        },
    )
    install(site, {"other_skills/more.skill": MOST}, name="other", entry="other = other_skills")
    assert run(program("gate g = all.a(correct)", use="use acme.all")).diagnostics == ()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../secret.skill", "`../secret.skill` is outside the folder of the package `acme`"),
        ("judging/../../secret.skill", "is outside the folder of the package `acme`"),
        ("link.skill", "`link.skill` is a link that leads out of the package's folder"),
        ("missing.skill", "there is no file `missing.skill`"),
    ],
)
def test_a_package_reads_nothing_outside_its_folder(path: str, message: str, site: Path) -> None:
    install(site, {**FILES, "acme_skills/all.skill": f'language 1\nuse "{path}" as x\n' + MOST.partition("\n")[2]})
    try:
        (site / "acme_skills" / "link.skill").symlink_to(site / "secret.skill")
    except OSError:
        pytest.skip("no links can be made here")
    (found,) = run(program("gate g = all.most(correct)", use="use acme.all")).diagnostics
    assert message in found.message
    assert found.primary.source.name == str(site / "acme_skills" / "all.skill")


def test_a_package_does_not_see_the_files_of_the_program(site: Path, tmp_path: Path) -> None:
    (tmp_path / "lab.skill").write_text(MOST)
    install(site, {**FILES, "acme_skills/all.skill": 'language 1\nuse "lab.skill" as lab\n'})
    found = only(program(use="use acme.all"), "SK101", tmp_path)
    assert found.message == "there is no file `lab.skill`"


def test_a_file_of_the_program_and_one_of_a_package_may_have_one_name(site: Path, tmp_path: Path) -> None:
    (tmp_path / "gates.skill").write_text("language 1\ngate least(m: metric) = candidate.m > 0.5\n")
    install(site, FILES)
    text = program(
        "gate g = acme.most(correct)\ngate h = gates.least(correct)",
        use='use acme.gates as acme\nuse "gates.skill" as gates',
    )
    assert run(text, tmp_path).diagnostics == ()


def test_a_circle_of_packages(site: Path) -> None:
    install(site, {"acme_skills/gates.skill": "language 1\nuse other.more\n" + MOST.partition("\n")[2]})
    more = {"other_skills/more.skill": "language 1\nuse acme.gates\n"}
    install(site, more, name="other", entry="other = other_skills")
    found = only(program(use=USE), "SK103")
    assert found.message.endswith("`acme.gates` → `other.more` → `acme.gates`")
    assert [label.text for label in found.secondary] == ["`acme.gates` uses `other.more`"]


def test_a_module_of_a_package_called_like_a_file_of_the_program(site: Path) -> None:
    install(site, {"acme_skills/skill.skill": MOST, "acme_skills/md.skill": MOST})
    uses = "use acme.skill\nuse acme.md"
    text = program("gate g = skill.most(correct, 5%)\ngate h for slow = md.most(correct, 2%)", use=uses)
    text = text.replace("trainable section", "slow section guidance; trainable section")
    assert run(text).diagnostics == ()


# ---- what may be wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "message", "hint"),
    [
        ("use acme.gatez", "`acme-skills 1.2` has no module `acme.gatez`", "did you mean `acme.gates`?"),
        ("use acme.zzz", "has no module `acme.zzz`", "valid options: `acme.gates`, `acme.judging.strict`"),
        ("use acme.judging", "has no module `acme.judging`", "valid options: `acme.gates`"),
        ("use acme", "`acme` is a package: use one of its modules", "valid options: `acme.gates`"),
    ],
)
def test_a_module_that_the_package_has_not(use: str, message: str, hint: str, site: Path) -> None:
    install(site, FILES)
    found = only(program(use=use), "SK113")
    assert message in found.message
    assert hint in (found.hint or "")


def test_a_package_that_is_not_installed_is_looked_for_among_those_that_are(site: Path) -> None:
    install(site, FILES)
    assert only(program(use="use acne.gates"), "SK111").hint == "did you mean `acme`?"


def test_two_distributions_of_one_name(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, FILES)
    install(site, {"other_skills/gates.skill": MOST}, name="other", entry="acme = other_skills")
    found = only(program(use=USE), "SK114")
    assert found.message.startswith("several distributions declare a package `acme`: ")
    assert "`acme-skills 1.2`" in found.message
    assert "`other 1.2`" in found.message
    assert found.hint == "uninstall all but one"


def test_one_distribution_that_is_found_twice_is_one(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, FILES)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    assert run(program(CALL, use=USE)).diagnostics == ()


def test_a_package_called_std(site: Path) -> None:
    install(site, FILES, entry="std = acme_skills")
    assert run(program("gate g = gates.strict(correct)", use="use std.gates")).diagnostics == ()
    found = only(program(use="use std.judgin"), "SK115")
    assert "hides the package of `acme-skills 1.2`" in found.message


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("acme.skills", "finding `acme.skills` would run `acme`"),
        ("acme_skills:gates", "`acme_skills:gates` is a part of one"),
        ("acme_skills [extra]", "`acme_skills [extra]` is a part of one"),
        ("../../etc", "finding"),
        ("/etc", "`/etc`"),
        ("acme-skills", "`acme-skills`"),
    ],
)
def test_an_entry_point_that_names_no_package(value: str, part: str, site: Path) -> None:
    install(site, FILES, entry=f"acme = {value}")
    found = only(program(use=USE), "SK117")
    assert part in found.message
    assert (found.hint or "").startswith("its maintainer declares `acme = ")


def test_a_wrong_entry_point_is_told_also_where_others_read_them_strictly(site: Path) -> None:
    # Once imported it takes the place of the standard library's finder, for the whole process.
    pytest.importorskip("importlib_metadata")
    install(site, FILES, entry="acme = /etc")
    assert "`/etc`" in only(program(use=USE), "SK117").message


def test_a_package_without_a_folder(site: Path, tmp_path: Path) -> None:
    install(site, {}, entry="acme = acme_skills")
    assert "which is missing" in only(program(use=USE), "SK116").message
    (site / "acme_skills.py").write_text(POISON)
    assert "which is a file, not a folder" in only(program(use=USE), "SK116").message


def test_a_package_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "laid_out"
    install(site, FILES)
    with zipfile.ZipFile(tmp_path / "acme.zip", "w") as archive:
        for path in site.rglob("*"):
            archive.write(path, path.relative_to(site).as_posix())
    monkeypatch.syspath_prepend(str(tmp_path / "acme.zip"))
    found = only(program(use=USE), "SK116")
    assert "which is in an archive" in found.message
    assert found.hint == "install it again with pip, which unpacks it"


def test_a_package_in_several_folders(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one" / "acme_skills").mkdir(parents=True)
    (tmp_path / "two" / "acme_skills").mkdir(parents=True)
    install(site, {})
    monkeypatch.syspath_prepend(str(tmp_path / "one"))
    monkeypatch.syspath_prepend(str(tmp_path / "two"))
    assert "which is in several folders" in only(program(use=USE), "SK116").message


def test_an_editable_installation_is_found_where_its_path_leads(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, {})
    for path, text in FILES.items():
        place = tmp_path / "checkout" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "checkout"))
    assert run(program(CALL, use=USE)).diagnostics == ()


def test_a_damaged_installation_of_somebody_else_does_no_harm(site: Path) -> None:
    install(site, FILES)
    info = site / "broken-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_bytes(b"[skillc.modules]\n= =\n\xff\xfe")
    assert run(program(CALL, use=USE)).diagnostics == ()


def test_a_file_of_a_package_with_errors(site: Path) -> None:
    install(site, {"acme_skills/gates.skill": "language 1\ngate ][\n"})
    found = only(program(CALL, use=USE), "SK106")
    assert found.message == "`acme.gates` can't be used: it has errors"
    (site / "acme_skills" / "wrong.skill").write_text("language 1\ngate w(m: metric) = candidate.n\n")
    wrong = only(program("gate g = wrong.w(correct)", use="use acme.wrong"), "SK204")
    assert wrong.primary.source.name == str(site / "acme_skills" / "wrong.skill")


# ---- code -----------------------------------------------------------------------------------------


def test_a_package_calls_its_own_code_alone(site: Path) -> None:
    body = 'metric near(x: text, at: number) = python("{}:near", x, at, low = 0, high = 1)\n'
    install(site, {"acme_skills/metrics.skill": "language 1\n" + body.format("acme_skills.scoring")})
    assert run(program("metric m = metrics.near(reply, 3)", use="use acme.metrics"), None).failed is False
    (site / "acme_skills" / "metrics.skill").write_text("language 1\n" + body.format("os"))
    found = only(program("metric m = metrics.near(reply, 3)", use="use acme.metrics"), "SK120")
    assert found.message == "`os:near` is not part of the package `acme`"
    assert found.primary.source.name == str(site / "acme_skills" / "metrics.skill")


@pytest.mark.parametrize("hiding", ["acme_skills.py", "acme_skills/__init__.py"])
def test_a_file_beside_the_program_that_hides_the_package(hiding: str, site: Path, tmp_path: Path) -> None:
    install(site, FILES)
    root = tmp_path / "program"
    (root / hiding).parent.mkdir(parents=True)
    (root / hiding).write_text("")
    found = only(program(CALL, use=USE), "SK119", root)
    assert found.message == f"`{hiding}` beside the program hides the code of the package `acme`"


def test_a_package_that_is_developed_beside_its_program_hides_nothing(site: Path) -> None:
    install(site, FILES)
    assert run(program(CALL, use=USE), site).diagnostics == ()


def test_the_package_of_a_module(site: Path) -> None:
    install(site, FILES)
    found = package_of("acme_skills.judging.code")
    assert found is not None
    assert found.name == "acme"
    assert package_of("json") is None
