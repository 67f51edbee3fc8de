"""A script in the document: kept byte for byte, and edited as code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.document.change import change
from skillc.document.edits import Add, Delete, Move, Replace, apply_edits, edit_to_json, rewrite
from skillc.document.folder import document_from, files_of, in_one, with_scripts
from skillc.document.markdown import Refusal
from skillc.document.rewrites import WantedRule, edits_to
from skillc.document.skill import Document, Section, digest, for_optimizer, for_target, tokens
from skillc.document.skill_md import as_declared, to_skill_md
from skillc.skill_files import write_folder

CODE = "import sys\r\n\n\tx = 1   \n\n- no rule\n# no heading\n```\nprint(x)  # é\n\n\n"
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)


def skill(code=CODE, **more):
    text = Section("rules", "trainable", "- Use the script.")
    script = Section("convert", "trainable", code, file="scripts/convert.py", about="To convert", **more)
    return Document("dates", "Dates.", (text, script))


def script_id(document):
    return document.section("convert").rules[0].id


@given(TEXTS)
def test_any_text_is_kept_byte_for_byte_and_read_back(code):
    document = skill(code)
    files = files_of(document)
    assert files["scripts/convert.py"] == code.encode()
    assert files_of(document_from(files)) == files
    assert document.section("convert").body == code
    assert code in for_optimizer(document)


@given(TEXTS, st.data())
def test_an_exact_edit_changes_one_place_only(code, data):
    start = data.draw(st.integers(0, len(code) - 1))
    old = code[start : start + data.draw(st.integers(1, len(code)))]
    after = apply_edits(skill(code), [Replace(script_id(skill(code)), "NEW", old=old)])
    at = [i for i in range(len(code)) if code.startswith(old, i)]
    text = after.document.section("convert").body
    assert text == (f"{code[:start]}NEW{code[start + len(old) :]}" if after.results[0].applied else code)
    assert len(at) == 1 or not after.results[0].applied


def test_the_target_reads_a_link_wherever_it_is_and_the_digest_knows_the_code():
    document = skill()
    assert "To convert: run [scripts/convert.py](scripts/convert.py)." in for_target(document)
    assert for_target(document) == for_target(document, linked=True)
    assert "x = 1" not in for_target(in_one(document))
    assert for_target(document) == for_target(skill("other"))
    assert digest(document) != digest(skill("other"))
    assert tokens(document) == tokens(skill("other"))


def test_the_optimizer_reads_the_code_in_a_fence_that_it_cannot_close():
    text = for_optimizer(skill())
    assert f"[{script_id(skill())}] the whole file:\n````\n{CODE}````" in text
    assert ", in scripts/convert.py)" in text


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Add("convert", "- more"), "is the script `scripts/convert.py`: replace"),
        (Delete("SCRIPT"), "can only be replaced"),
        (Move("SCRIPT", "RULE"), "can only be replaced"),
        (Move("RULE", "SCRIPT"), "where no rule can be"),
        (Replace("SCRIPT", "x", old="no such text"), "does not occur in it"),
        (Replace("SCRIPT", "x", old="\n"), "occurs in more than one place"),
        (Replace("SCRIPT", CODE), "has this text already"),
        (Replace("SCRIPT", " \n"), "would be empty"),
        (Replace("SCRIPT", "a\0b"), "invisible character"),
        (Replace("RULE", "x", old="Use"), "is no script"),
    ],
)
def test_other_edits_of_a_script_are_refused_with_a_reason(edit, reason):
    document = skill()
    names = {"SCRIPT": script_id(document), "RULE": document.section("rules").rules[0].id}
    places = [name for name in ("rule", "after") if hasattr(edit, name)]
    fields = {name: names.get(getattr(edit, name), getattr(edit, name)) for name in places}
    made = type(edit)(**{**{name: getattr(edit, name) for name in edit.__slots__}, **fields})
    done = apply_edits(document, [made])
    assert not done.results[0].applied
    assert reason in done.results[0].message
    assert done.document == document


def test_a_whole_text_is_taken_out_of_a_code_block_and_keeps_the_last_newline_and_the_limit():
    document = skill(limit=60)
    rule = script_id(document)
    for text in ("```python\nprint(2)\n```", "print(2)", "print(2)\n"):
        done = apply_edits(document, [Replace(rule, text)])
        assert done.document.section("convert").body == "print(2)\n"
        assert done.document.section("convert").rules[0].id == rule
    long = apply_edits(document, [Replace(rule, "print(2)\n" * 100)])
    assert "its limit is 60" in long.results[0].message
    assert rewrite(document, "convert", "print(3)\n").document.section("convert").body == "print(3)\n"


def test_a_rewritten_section_gives_the_whole_script():
    document = skill()
    (edit,) = edits_to(document, "convert", [WantedRule("print(2)\n")])
    assert edit == Replace(script_id(document), "print(2)\n")
    assert edits_to(document, "convert", [WantedRule(rule=script_id(document))]) == ()
    assert isinstance(edits_to(document, "convert", [WantedRule("a"), WantedRule("b")]), Refusal)


def test_a_change_of_code_counts_towards_the_trust_region():
    document = skill("x = 1\n" * 50)
    after = apply_edits(document, [Replace(script_id(document), "y = 2\n" * 50)]).document
    assert 0 < change(document, document.with_section(after.section("convert"))) <= 2
    assert change(document, document) == 0


def test_an_edit_has_old_in_the_history_only_if_it_names_a_part():
    assert "old" not in edit_to_json(Replace("a", "b"))
    assert edit_to_json(Replace("a", "b", old="c"))["old"] == "c"


def test_a_script_is_trainable_and_one_text():
    with pytest.raises(ValueError, match="not one trainable text"):
        Section("convert", "frozen", "x", file="scripts/convert.py")
    assert Section("notes", "trainable", "- a\n- b", file="scripts/notes.md").rules[1].text == "b"


def test_a_compiled_folder_fills_the_declared_script(tmp_path):
    write_folder(tmp_path, files_of(skill()))
    declared = as_declared(to_skill_md(skill()), skill("first\n"), own=True)
    assert declared.section("convert").body == "first\n"
    filled = with_scripts(declared, tmp_path)
    assert files_of(filled) == files_of(skill())
