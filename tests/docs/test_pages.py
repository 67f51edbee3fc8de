"""Every code block of every page does what the page says."""

import pytest
from page_run import PageRun
from page_session import ROOT

# Both programs of a page in docs/errors are run where the page is made: tests/language/test_codes.py.
ELSEWHERE = {"making", "errors"}
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    if not ELSEWHERE & set(path.parts)
)


LONG = ("docs/guides/", "docs/tutorial.md")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * name.startswith(LONG)) for name in PAGES]
)
def test_every_block_of_a_page_does_what_it_shows(name, tmp_path, update):
    path = ROOT / name
    page = path.read_text(encoding="utf-8")
    run = PageRun(name, page, tmp_path / "home", update=update)
    new = run.all()
    if update and new != page:
        path.write_text(new, encoding="utf-8")
