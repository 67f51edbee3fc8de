"""`skillc report`: one page that needs no network, and a summary in markdown."""

import base64
import gzip
import json
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from made_run import MARKUP, make_run

from skillc.cli import skillc as verbs
from skillc.items.record import Item, Measure, RunItems, Version
from skillc.outcomes import MICRO
from skillc.review.differences import by_lines, by_words
from skillc.review.packing import compared, pack
from skillc.review.report import LARGEST, html_report
from skillc.review.run_view import read_run
from skillc.review.summary import markdown_report, plain

# Without an end, which a page must never need of a browser's repairs.
VOID = {"meta", "br", "line", "path", "circle", "rect", "img", "input", "link"}


class Page(HTMLParser):
    """The elements of a page, and the text in each section."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts, self.policy = [], [], {}, ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "meta" and dict(attrs).get("http-equiv"):
            self.policy = dict(attrs)["content"]
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        section = next((name for tag, name in self.open if tag in ("section", "script") and name), "")
        self.texts[section] = self.texts.get(section, "") + data

    def tags(self, name):
        return [attributes for tag, attributes in self.elements if tag == name]


@pytest.fixture(scope="module")
def page(finished):
    return Page(html_report(read_run(finished.program)))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A run whose texts of data and models are full of markup."""
    return make_run(tmp_path_factory.mktemp("planted") / "run", steps=4, examples=40, markup=MARKUP)


def test_the_page_has_every_part(page):
    assert {"result", "curve", "items", "compare", "candidates", "skill", "spent"} <= set(page.texts)
    assert "selected on" in page.texts["result"]
    assert "held out" in page.texts["result"]
    assert "step 3/10" in page.texts["candidates"]
    assert "why: shorter" in page.texts["candidates"]
    assert "screen, alone on training examples: cured 1 of 1" in page.texts["candidates"]
    assert "? open" in page.texts["candidates"]
    assert "35 % to 81.25 %" in page.texts["candidates"]
    assert "before, from step 1/10: Rule 1" in page.texts["skill"]
    assert "newly solved" in page.texts["items"]
    assert "planned steps were not run (patience after decision 7)" in page.texts["spent"]
    assert "most frequent label (no model)" in page.texts["result"]


def test_the_page_loads_nothing_and_runs_only_its_own_script(page):
    assert not page.tags("link")
    assert not page.tags("img")
    assert all("src" not in each for each in page.tags("script"))
    assert [each.get("type") for each in page.tags("script")] == ["application/json", "application/octet-stream", None]
    assert all(each.get("href", "#").startswith("#") for each in page.tags("a"))
    assert page.policy.startswith("default-src 'none'")
    assert "unsafe" not in page.policy
    assert not any(name.startswith("on") or name == "style" for _, each in page.elements for name in each)


def test_all_that_is_from_data_or_a_model_is_escaped(planted):
    text = html_report(read_run(planted.program))
    page = Page(text)
    assert len(page.tags("script")) == 3
    assert not page.tags("img")
    assert "<script>planted" not in text
    assert "</script><!--" not in text
    assert "49" not in page.texts["skill"].replace("&#", "")
    visible = MARKUP.replace("\u2028", "").replace("\u2029", "").replace("<!--", "")
    for section in ("candidates", "skill"):
        assert visible in page.texts[section], section
    assert MARKUP in page.texts["candidates"]
    assert MARKUP in page.texts["items"]
    index = page.texts["index"]
    assert "<" not in index
    assert "\u2028" not in index
    assert any(MARKUP in each["name"] for each in json.loads(index)["examples"])


def unpacked(text):
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_the_packed_rollouts_are_those_of_the_run(finished):
    view = read_run(finished.program)
    found = compared(view)
    packed = pack(view, found, 1_000_000)
    assert packed.kept == packed.of == len(view.outcomes)
    all_ = unpacked(packed.text)
    skill, example = found.skills.index(view.best), 3
    rollout = all_["rollouts"][all_["places"][f"{skill} {example}"]]
    outcome = view.outcome(view.best, found.examples[example])
    assert rollout["steps"][0][1] == outcome.trajectory.steps[0].text
    assert rollout["facts"] == "2 turns, 200 tokens, 0.5 s"
    assert all_["examples"][example]["split"] == "validation"


def test_what_does_not_fit_is_left_out_beginning_with_rejected_candidates(finished):
    view = read_run(finished.program)
    found = compared(view)
    packed = pack(view, found, 3_000)
    assert 0 < packed.kept < packed.of
    assert len(packed.text) <= 3_000
    kept = {int(place.split()[0]) for place in unpacked(packed.text)["places"]}
    assert found.skills.index(view.initial) in kept
    assert len(kept) < len(found.skills)


@pytest.mark.thorough
def test_a_page_of_a_long_run_stays_small(tmp_path):
    made = make_run(tmp_path / "run", steps=40, examples=200, words=40)
    text = html_report(read_run(made.program))
    assert len(text.encode()) < LARGEST
    page = Page(text)
    assert len([each for each in page.tags("details") if "decision" in each.get("class", "")]) == 41


def test_a_fresh_clone_has_a_page_that_says_what_it_lacks(finished, tmp_path):
    copied = shutil.copytree(finished.folder, tmp_path / "run")
    shutil.rmtree(copied / ".skillc")
    page = Page(html_report(read_run(copied / "things.skill")))
    assert "not recorded here" in page.texts["items"]
    assert "Intervals need the recorded rollouts" in page.texts["curve"]
    assert "100 calls" in page.texts["spent"]
    assert "why: shorter" in page.texts["skill"]


def test_a_run_that_was_killed_has_a_page_without_a_verdict(finished, tmp_path):
    copied = shutil.copytree(finished.folder, tmp_path / "run")
    for path in (copied / "skills").glob("*.lock"):
        path.unlink()
    text = html_report(read_run(copied / "things.skill"))
    assert "no verdict yet" in text
    Page(text)


def test_the_same_run_makes_the_same_page(finished):
    assert html_report(read_run(finished.program)) == html_report(read_run(finished.program))


def test_the_summary_has_table_verdict_and_accepted_edits(finished):
    text = markdown_report(read_run(finished.program))
    assert text.startswith(
        "### sort-things: improved (delivered)\n\n| correct | validation (selected on) | test (held out) |"
    )
    assert "- gain +30.0 points on test (held out), 95 % interval +10.0 to +40.0" in text
    assert "- **step 3/10** replace " in text
    assert "step 2/10" not in text


def test_a_gain_that_vanishes_is_a_warning_in_both(finished):
    view = read_run(finished.program)
    right = Measure("correct", Fraction(0), Fraction(1), judged=False, truth=False, in_goal=True, in_gates=True)
    versions = (Version(view.initial, "start", 0), Version(view.best, "step 1/10", 1))
    items = [
        Item(f"{split}{i}", split, f"{split}{i}", "", {"correct": (0, MICRO if split == "train" else 0)})
        for split in ("train", "test")
        for i in range(30)
    ]
    items[-1] = replace(items[-1], cells={"correct": (0, MICRO)})
    found = RunItems(
        view.run, "correct", (right,), versions, ((1, (0, 1)),), 1, {"train": 30, "test": 30}, tuple(items)
    )
    doubted = replace(view, items=found)
    assert "- **warning**: vanishes &#96;correct&#96;: +100.0 on train" in markdown_report(doubted)
    assert "Warning: vanishes `correct`: +100.0 on train" in Page(html_report(doubted)).texts[""]


def test_nothing_in_the_summary_is_markup(planted):
    text = markdown_report(read_run(planted.program))
    own = re.sub(r"^</?details>(<summary>.*</summary>)?$", "", text, flags=re.MULTILINE)
    assert "<" not in own
    assert "[" not in own
    assert "planted" in own
    assert len(re.findall(r"^\|.*\|$", text, flags=re.MULTILINE)) == 5
    assert plain("@all see [x](http://a.b) www.a.b #12\n<b>") == (
        "&#64;all see &#91;x&#93;(http&#58;//a.b) www&#46;a.b &#35;12 &#60;b&#62;"
    )


def run(*words):
    done = CliRunner().invoke(verbs, ["report", *map(str, words)], standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.stdout


def test_the_verb_writes_a_file_or_prints(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(finished.program) == "wrote sort-things.report.html\n"
    assert run(finished.program, "--output", "-") == (tmp_path / "sort-things.report.html").read_text(encoding="utf-8")
    assert run(finished.program, "--format", "md").startswith("### sort-things")
    assert run(finished.folder / "skills/sort-things", "--format", "md", "-o", "a.md") == "wrote a.md\n"


def test_words_and_lines_are_compared():
    assert by_words("a b c", "a x c") == (("same", "a "), ("old", "b"), ("new", "x"), ("same", " c"))
    assert by_words("", "a") == (("new", "a"),)
    assert by_lines("a\nb\nc", "a\nx\nc") == (("same", "  a"), ("old", "- b"), ("new", "+ x"), ("same", "  c"))
    assert by_lines("a", "a") == ()
