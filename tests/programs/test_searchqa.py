"""SearchQA: its formats, and where SQuAD's scores and SkillOpt's differ."""

import json

import pytest
from benchmark import run, split_of

from programs.frame.layout import module
from programs.frame.load import load
from programs.frame.splits import draw
from skillc.errors import SkillcError
from skillc.metrics.primitives import PRIMITIVES, Subject
from skillc.plan.schema import TypePlan


def score(name, answer, *golds):
    return PRIMITIVES[name](Subject("answer", TypePlan(kind="text"), answer, list(golds), {})).score


@pytest.mark.parametrize(
    ("answer", "golds", "exact", "f1", "sub_em"),
    [
        ("the Loire", ["Loire"], 1, 1, 1),
        ("Loire River", ["Loire"], 0, pytest.approx(2 / 3), 1),
        ("J.R.R. Tolkien", ["jrr tolkien"], 1, 1, 1),
        ("van Gogh", ["Vincent van Gogh", "Gogh"], 0, pytest.approx(4 / 5), 1),
        # Punctuation is deleted, not replaced: `Saint-Exupéry` becomes one word.
        ("Saint Exupéry", ["Saint-Exupéry"], 0, 0, 0),
        ("theatre", ["atre"], 0, 0, 1),
        # SkillOpt gives `sub_em` 1 to an empty answer; SQuAD's F1 of two empty texts is 0, SkillOpt's 1.
        ("", ["Loire"], 0, 0, 0),
        ("The", ["Loire"], 0, 0, 0),
        ("", ["the"], 1, 0, 0),
    ],
)
def test_the_scores_are_squad_s_and_sub_em_is_no_gift(answer, golds, exact, f1, sub_em):
    assert score("squad_match", answer, *golds) == exact
    assert float(score("f1", answer, *golds)) == f1
    scores = module("searchqa", "scores")
    assert scores.sub_em({"gold": {"answer": golds}}, {"answer": answer}) == sub_em


ITEMS = [
    {"key": f"k{i}", "question": f"clue {i}", "context": f"[DOC] text {i}", "answers": [f"gold {i}"], "labels": []}
    for i in range(10)
]


def test_rows_of_the_data_set_join_skillopt_s_ids(tmp_path):
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "train.json").write_text(json.dumps(ITEMS))
    ids = split_of(tmp_path / "ids", [{"id": "k3"}, {"id": "k1"}], [{"id": "k0"}], [{"id": "k9"}, {"id": "k8"}])
    assert load("searchqa", tmp_path / "from", ids, tmp_path / "out") == {"train": 2, "validation": 1, "test": 2}
    first = json.loads((tmp_path / "out/data/train.jsonl").read_text().splitlines()[0])
    assert first == {"id": "k3", "question": "clue 3", "context": "[DOC] text 3", "answers": ["gold 3"]}
    assert not (tmp_path / "out/skills").exists()
    status, out = run("check", tmp_path / "out/paper.skill", "--format", "json")
    assert status == 0, out


def test_whole_items_need_no_other_files_and_all_items_are_drawn_as_skillopt_draws(tmp_path):
    whole = [{**item, "id": item["key"]} for item in ITEMS]
    splits = split_of(tmp_path / "splits", whole[:2], whole[2:3], whole[3:])
    assert load("searchqa", None, splits, tmp_path / "out") == {"train": 2, "validation": 1, "test": 7}
    (tmp_path / "all.json").write_text(json.dumps(ITEMS))
    assert load("searchqa", tmp_path / "all.json", None, tmp_path / "drawn") == {"train": 2, "validation": 1, "test": 7}
    # random.Random(42).shuffle of ten, as SkillOpt's loader does it.
    assert [each["key"] for each in draw(ITEMS)["train"]] == ["k7", "k3"]
    counts = {split: len(found) for split, found in draw([{"id": str(i)} for i in range(177)]).items()}
    assert counts == {"train": 35, "validation": 18, "test": 124}


@pytest.mark.parametrize(
    ("train", "test", "items", "message"),
    [
        ([{"id": "k1"}], [{"id": "k1"}], ITEMS, "item `k1` is in train and in test"),
        ([{"id": "k1"}], [{"id": "k77"}], ITEMS, "the benchmark's files lack 1 item of the splits: `k77`"),
        ([{"name": "k1"}], [{"id": "k2"}], ITEMS, "an item has no id"),
        ([{"id": "k1"}], [{"id": "k2"}], None, "item `k1` is an id alone"),
        ([{"id": "k1"}], [{"id": "k0"}], [{**ITEMS[0], "answers": [" "]}, *ITEMS[1:]], "item `k0` has no answer"),
    ],
)
def test_what_does_not_fit_is_an_error_and_nothing_is_written(train, test, items, message, tmp_path):
    source = None
    if items is not None:
        source = tmp_path / "all.json"
        source.write_text(json.dumps(items))
    splits = split_of(tmp_path / "splits", train, [{"id": "k5"}], test)
    with pytest.raises(SkillcError, match=message):
        load("searchqa", source, splits, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_used_folder_is_left_alone(tmp_path):
    (tmp_path / "note").write_text("mine")
    with pytest.raises(SkillcError, match="is not empty"):
        load("searchqa", tmp_path, None, tmp_path)
    assert (tmp_path / "note").read_text() == "mine"


def test_a_context_is_cut_between_snippets_at_6000_characters():
    cut = module("searchqa", "rows").cut
    parts = ["[DOC] " + "x" * 1_990 + " " for _ in range(4)]
    assert cut("".join(parts)) == "".join(parts[:3])
    assert cut("".join(parts[:3])) == "".join(parts[:3])
    assert len(cut("y" * 7_000)) == 6_000


def test_the_script_reads_better_with_each_rule_and_the_optimizer_finds_them():
    players = module("searchqa", "players")
    context = (
        "[DOC] Robert Scott came later. [DOC] In 1911 Amundsen reached the South Pole. [DOC] Amundsen was Norwegian."
    )
    question = "This Norwegian reached the South Pole in 1911"
    assert players.find(question, context, "") == "Robert Scott"
    assert players.find(question, context, players.REPEATED) == "Amundsen"
