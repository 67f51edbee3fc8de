"""OfficeQA: its files, where the official score and SkillOpt's differ, the tools, and text of office files."""

import csv
import json

import pytest
from benchmark import PROGRAMS, rows, split_of

from programs.frame.layout import module
from programs.frame.load import load
from skillc.errors import SkillcError

FOLDER = PROGRAMS / "officeqa"
scores = module("officeqa", "scores")
convert = module("officeqa", "convert")


@pytest.mark.parametrize(
    ("given", "gold", "official", "exact", "overlap"),
    [
        ("543", "543", True, True, 1),
        ("$1,234.50", "1234.5", True, False, 0),
        ("543 million", "543", True, True, 1),
        # Unit words do not multiply, and different ones differ.
        ("543000000", "543 million", False, False, 0),
        ("543 thousand", "543 million", False, False, pytest.approx(2 / 3)),
        ("544", "543", False, False, 0),
        ("543.0", "543", True, False, 0),
        # Years are ignored, unless the right answer has one.
        ("543 in 1944", "543", True, False, pytest.approx(1 / 2)),
        ("1945", "1944", False, False, 0),
        ("In 1944: 543 and 544", "543", False, False, pytest.approx(1 / 3)),
        ("March 1977", "March 1977", True, True, 1),
        ("April 1977", "March 1977", False, False, pytest.approx(1 / 2)),
        ("1977", "March 1977", False, False, pytest.approx(2 / 3)),
        ("(45)", "-45", True, False, 0),
        ("3.2%", "3.2", True, False, 0),
        ("12, 13", "12 and 13", False, False, pytest.approx(4 / 5)),
        ("13 and 12", "12 and 13", True, False, 1),
        # In brackets the order counts, and a comma may divide items.
        ("[8,152,260]", "[8, 152260]", True, False, 0),
        ("[152260, 8]", "[8, 152260]", False, False, 1),
        ("Treasury notes", "treasury notes (short)", True, False, pytest.approx(4 / 5)),
        ("Treasury notes, Series E", "Treasury notes", False, False, pytest.approx(2 / 3)),
        ("thinking\n543", "543", False, False, pytest.approx(2 / 3)),
        ("so <FINAL_ANSWER> 543 </FINAL_ANSWER>", "543", True, False, pytest.approx(2 / 5)),
        ("543 <b>", "543", False, False, pytest.approx(2 / 3)),
        ("unable to determine 543", "543", False, False, pytest.approx(2 / 5)),
        ("", "543", False, False, 0),
        (None, "0", False, False, 0),
        ("0", "0", True, True, 1),
    ],
)
def test_the_official_score_and_skillopt_s_differ_where_they_should(given, gold, official, exact, overlap):
    example, prediction = {"gold": {"answer": gold}}, {"answer": given}
    assert scores.official(example, prediction) is official
    assert scores.exact(example, prediction) is exact
    assert scores.overlap(example, prediction) == overlap


def test_a_tolerance_is_relative_to_the_right_number():
    assert scores.is_right("100.9", "100", 0.01) is True
    assert scores.is_right("101.1", "100", 0.01) is False
    assert scores.is_right("0.001", "0", 0.5) is False
    with pytest.raises(ValueError, match="right answer is empty"):
        scores.is_right("1", " ")


def test_a_long_list_is_read_without_trying_every_reading():
    assert scores.is_right(",".join(["111"] * 62), "[" + ", ".join(["111"] * 10) + "]") is False


# ---- data -----------------------------------------------------------------------------------------


def downloaded(folder, names):
    (folder / "docs/transformed").mkdir(parents=True)
    for year in (1941, 1942):
        (folder / f"docs/transformed/treasury_bulletin_{year}_01.txt").write_text(f"Bulletin {year}\n")
    with (folder / "officeqa_full.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["uid", "question", "answer", "source_docs", "source_files", "difficulty"])
        table.writeheader()
        for number in range(3):
            table.writerow(
                {"uid": f"UID{number}", "question": f"What is {number}?", "answer": number, "source_files": names}
            )
    return folder


def test_the_csv_file_joins_skillopt_s_ids_and_documents_are_copied(tmp_path):
    names = "treasury_bulletin_1941_01.txt\ntreasury_bulletin_1942_01.txt"
    source = downloaded(tmp_path / "from", names)
    ids = split_of(tmp_path / "ids", [{"id": "UID1"}], [{"id": "UID0"}], [{"id": "UID2"}])
    assert load("officeqa", source, ids, tmp_path / "out") == {"train": 1, "validation": 1, "test": 1}
    row = json.loads((tmp_path / "out/data/train.jsonl").read_text())
    assert (row["id"], row["answer"]) == ("UID1", "1")
    assert row["files"] == [f"files/transformed/treasury_bulletin_{year}_01.txt" for year in (1941, 1942)]
    assert (tmp_path / "out/data" / row["files"][1]).read_text() == "Bulletin 1942\n"


def test_a_document_that_is_missing_is_named(tmp_path):
    source = downloaded(tmp_path / "from", "treasury_bulletin_2001_01.txt")
    with pytest.raises(SkillcError, match=r"names `treasury_bulletin_2001_01\.txt`, which is not below"):
        load("officeqa", source, None, tmp_path / "out")


def test_source_files_are_read_in_each_form():
    names_of = module("officeqa", "rows").names_of
    for given in ('["a.txt", "b.txt"]', "a.txt\nb.txt", "a.txt, b.txt", ["a.txt", "b.txt"]):
        assert names_of(given) == ["a.txt", "b.txt"]
    assert names_of(None) == []


# ---- tools ----------------------------------------------------------------------------------------


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return module("officeqa", "tools")


def test_the_tools_find_search_and_read_the_documents(tools):
    file = f"data/{rows('officeqa', 'train')[0]['files'][0]}"
    assert file in tools.find_files("hallam")
    assert tools.find_files("nothing*") == "no file fits"
    found = tools.search_file(file, "^customs")
    assert "| " in found and found.split(":")[0].isdigit()
    assert tools.read_file(file, first=1, count=2).splitlines()[0] == "1: TREASURY OF THE HALLAM ISLES"
    assert tools.read_file(file, first=900).startswith("the file has")
    with pytest.raises(ValueError, match="no regular expression"):
        tools.search_file(file, "(")


@pytest.mark.parametrize("name", ["../searchqa/README.md", "/etc/passwd", "data/test.jsonl", "data", "rows.py"])
def test_answers_and_files_outside_the_data_are_not_read(tools, name):
    with pytest.raises(FileNotFoundError):
        tools.read_file(name)
    assert "jsonl" not in tools.find_files("*")


def test_a_workbook_and_a_word_file_become_text(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Debt"
    for line in (["Year", "Debt"], [1944, 12.5], ["a, b", None]):
        book.active.append(line)
    book.save(tmp_path / "debt.xlsx")
    assert convert.text_of(tmp_path / "debt.xlsx").splitlines() == ["[sheet Debt]", "Year,Debt", "1944,12.5", '"a, b",']
    (tmp_path / "broken.xlsx").write_text("no workbook")
    with pytest.raises(ValueError, match=r"`broken.xlsx` cannot be read"):
        convert.text_of(tmp_path / "broken.xlsx")


@pytest.mark.thorough
def test_word_slides_and_pdf_become_text(tmp_path):
    docx, pptx, pypdf = (pytest.importorskip(name) for name in ("docx", "pptx", "pypdf"))
    document = docx.Document()
    document.add_paragraph("Before")
    table = document.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Year", "1944"
    document.add_paragraph("After")
    document.save(str(tmp_path / "a.docx"))
    assert convert.text_of(tmp_path / "a.docx") == "Before\nYear | 1944\nAfter"
    slides = pptx.Presentation()
    slides.slides.add_slide(slides.slide_layouts[5]).shapes.title.text = "Debt of 1944"
    slides.save(str(tmp_path / "a.pptx"))
    assert convert.text_of(tmp_path / "a.pptx") == "[slide 1]\nDebt of 1944"
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(str(tmp_path / "a.pdf"))
    assert convert.text_of(tmp_path / "a.pdf") == "[page 1]\n"


def test_every_answer_of_the_sample_is_right_by_the_official_score_and_splits_share_no_document():
    seen = []
    for split in ("train", "validation", "test"):
        found = rows("officeqa", split)
        seen.append({file for row in found for file in row["files"]})
        for row in found:
            assert scores.is_right(row["answer"], row["answer"])
            assert all((FOLDER / "data" / file).is_file() for file in row["files"])
    assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]
