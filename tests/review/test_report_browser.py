"""The page of `skillc report` in a real browser: colors, sizes, keyboard, and markup that must stay text."""

import pytest
from browser import browser
from made_run import MARKUP, make_run

from skillc.review.report import html_report
from skillc.review.run_view import read_run

pytestmark = pytest.mark.thorough
__all__ = ["browser"]

LUMINANCE = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (color) => {
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    const [r, g, b] = parts.map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "white";
  };
  const shown = "p, li, td, th, dd, dt, a, h1, h2, .tag, ins, del, .m, caption, summary";
  return [...document.querySelectorAll(shown)].map((each) => {
    const [a, b] = [light(getComputedStyle(each).color), light(back(each))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), each.className || each.tagName];
  }).sort((a, b) => a[0] - b[0])[0];
})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    made = make_run(folder / "run", steps=6, examples=60)
    (folder / "report.html").write_text(html_report(read_run(made.program)), encoding="utf-8")
    return folder / "report.html"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380], ids=["desktop", "phone"])
def test_it_is_readable(browser, page, width, dark, tmp_path):
    browser.errors.clear()
    browser.requests.clear()
    browser.open(page, width=width, dark=dark)
    browser.until("document.querySelector('#left .step') !== null")
    assert browser.errors == []
    assert browser.requests == [page.as_uri()]
    assert browser.read("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    browser.read("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.read("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    contrast, where = browser.read(LUMINANCE)
    assert contrast >= 4.5, where
    browser.picture(tmp_path / "page.png")


def test_a_table_is_sorted_and_filtered_by_keyboard(browser, page):
    browser.open(page)
    flips = "[...document.querySelectorAll('#grid-0 tbody tr')].map((row) => Number(row.children[2].textContent))"
    before = browser.read(flips)
    browser.tab_to("e.textContent === 'flips'")
    browser.press("Enter")
    assert browser.read(flips) == sorted(before, reverse=True)
    assert browser.read("document.activeElement.closest('th').getAttribute('aria-sort')") == "descending"
    browser.press("Enter")
    assert browser.read(flips) == sorted(before)


def test_details_open_and_examples_are_chosen_by_keyboard(browser, page):
    browser.open(page)
    browser.until("document.querySelector('#left .step') !== null")
    browser.tab_to("e.dataset.example !== undefined")
    wanted = browser.read("document.activeElement.textContent")
    browser.press("Enter")
    browser.until(f"document.querySelector('#pick-example').selectedOptions[0].textContent.endsWith(' {wanted}')")
    assert browser.read("document.activeElement.id") == "pick-example"
    browser.tab_to("e.id === 'pick-left'")
    shown = browser.read("document.querySelector('#left h3').textContent")
    browser.press("ArrowDown")
    browser.until(f"document.querySelector('#left h3').textContent !== {shown!r}")
    browser.tab_to("e.matches('.decision > summary')")
    browser.press("Enter")
    browser.until("document.activeElement.parentElement.open")


def test_markup_stays_text(browser, tmp_path):
    made = make_run(tmp_path / "run", steps=3, examples=30, markup=MARKUP)
    path = tmp_path / "report.html"
    path.write_text(html_report(read_run(made.program)), encoding="utf-8")
    browser.errors.clear()
    browser.requests.clear()
    browser.open(path)
    browser.until("document.querySelector('#left .step') !== null")
    assert browser.errors == []
    assert browser.requests == [path.as_uri()]
    assert browser.read("document.images.length + document.scripts.length") == 3
    text = browser.read("document.querySelector('#left .step').textContent")
    assert MARKUP.strip() in text
