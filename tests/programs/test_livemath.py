"""LiveMathematicianBench: its files, the order of the choices, and where SkillOpt reads an answer more leniently."""

import json

import pytest
from benchmark import rows as sample
from benchmark import split_of

from programs.frame.layout import module
from programs.frame.load import load
from skillc.errors import SkillcError

scores = module("livemath", "scores")
rows = module("livemath", "rows")
ITEM = {
    "month": "202511",
    "no": 7,
    "paper_link": "http://arxiv.org/abs/2511.00000",
    "theorem": "Theorem 1",
    "theorem_type": ["topology", "algebra"],
    "mcq": {
        "question": "Which statement holds?",
        "choices": [{"label": label, "text": f"claim {label.lower()}"} for label in "BCDE"],
        "correct_choice": {"label": "A", "text": "the theorem"},
    },
}


@pytest.mark.parametrize(
    ("answer", "strict", "lenient"),
    [
        ("B", True, True),
        (" b. ", True, True),
        ("B):", True, True),
        ("A", False, False),
        # SkillOpt also takes the text of a choice, and a first word that is a label.
        ("it is open.", False, True),
        ("IT IS OPEN.", False, True),
        ("B because of the second condition", False, True),
        ("B. it is open.", False, True),
        ("It is open", False, False),
        ("the answer is B", False, False),
        ("", False, False),
        (None, False, False),
    ],
)
def test_a_label_counts_and_skillopt_takes_more(answer, strict, lenient):
    example = {"choices": "A. it is closed.\nB. it is open.\nC. neither,\nin general", "gold": {"answer": "B"}}
    assert scores.by_label(example, {"answer": answer})[0] is strict
    assert scores.lenient(example, {"answer": answer})[0] is lenient


def test_a_choice_of_several_lines_is_one_choice():
    example = {"choices": "A. it is\nB-minor\nB. no", "gold": {"answer": "A"}}
    assert scores.lenient(example, {"answer": "it is\nB-minor"})[0] is True


def test_choices_are_shuffled_by_a_hash_of_seed_and_id_and_the_label_follows():
    found = rows.row({**ITEM, "id": "202511:7"}, None)
    assert found["kind"] == "topology"
    lines = found["choices"].splitlines()
    assert sorted(line[3:] for line in lines) == ["claim b", "claim c", "claim d", "claim e", "the theorem"]
    assert lines["ABCDE".index(found["answer"])] == f"{found['answer']}. the theorem"
    # random.Random(int(sha256("42:202511:7")[:16], 16)).shuffle of A to E.
    assert [line[3:] for line in lines] == ["the theorem", "claim b", "claim e", "claim d", "claim c"]
    assert rows.row({**ITEM, "id": "202511:7"}, None) == found


@pytest.mark.parametrize(
    "given",
    [
        {"choices": {"A": "one", "B": "two"}, "correct_choice": "B"},
        {"choices": ["one", "two"], "correct_choice": {"label": "b)"}},
        {"choices": [{"content": "one"}, {"text": "two"}], "correct_choice": {"label": "B", "text": "two"}},
    ],
)
def test_choices_are_read_in_each_form_that_the_files_have(given):
    found = rows.row({"id": "1", "question": "Which?", **given}, None)
    assert dict(line.split(". ") for line in found["choices"].splitlines())[found["answer"]] == "two"


def test_monthly_files_join_skillopt_s_ids(tmp_path):
    folder = tmp_path / "data/202511"
    folder.mkdir(parents=True)
    items = [
        {**ITEM, "no": number, "mcq": {**ITEM["mcq"], "question": f"Which of {number}?"}} for number in range(1, 5)
    ]
    without = [{key: value for key, value in item.items() if key not in ("month", "no")} for item in items]
    (folder / "qa_202511_final.json").write_text(json.dumps(items))
    (folder / "qa_202512_final.json").write_text(json.dumps(without))
    ids = [{"id": "202511:3", "no": 3}], [{"id": "202512:2", "no": 2}], [{"id": "202511:1", "no": 1}]
    counts = load("livemath", tmp_path / "data", split_of(tmp_path / "ids", *ids), tmp_path / "out")
    assert counts == {"train": 1, "validation": 1, "test": 1}
    row = json.loads((tmp_path / "out/data/validation.jsonl").read_text())
    assert (row["id"], row["question"]) == ("202512:2", "Which of 2?")


def test_a_question_without_a_right_choice_is_an_error(tmp_path):
    with pytest.raises(SkillcError, match="item `9` names no right choice"):
        rows.row({"id": "9", "question": "Which?", "choices": ["one"], "correct_choice": {}}, None)
    with pytest.raises(SkillcError, match="has no file"):
        rows.items(tmp_path)


def test_no_label_wins_the_sample_by_itself():
    found = [row["answer"] for split in ("train", "validation", "test") for row in sample("livemath", split)]
    assert max(found.count(label) for label in "ABCDE") <= len(found) / 3
