"""The site builds without a warning, and needs nothing from elsewhere."""

import re
import subprocess
import sys

import pytest
import yaml
from page_session import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_menu(site):
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    pages = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if "making" not in path.parts
    }
    assert pages <= built
    menu = (site / "index.html").read_text()
    assert [
        page for page in pages if "errors/SK" not in page and f'href="{page}"' not in menu and page != "index.html"
    ] == []


def test_no_page_loads_anything_from_elsewhere(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe|link)[^>]*?(?:src|href)="(https?:)?//[^"]*"', path.read_text())
        assert loaded == [], path


def test_what_makes_pages_is_no_part_of_the_site(site):
    assert not list(site.rglob("*.j2"))
    assert not list(site.rglob("*.py"))


def test_the_version_of_the_site_is_that_of_the_settings():
    assert yaml.safe_load((ROOT / "mkdocs.yml").read_text())["strict"] is True
