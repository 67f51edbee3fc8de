"""The blocks that real skills hold: steps, nested items, definitions, examples, tables, a preamble. Each has an id."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.document.edits import Add, Delete, Move, Replace, apply_edits, edit_to_json, rewrite
from skillc.document.markdown import Mark
from skillc.document.rewrites import WantedRule, edits_to
from skillc.document.skill import Document, Rule, document_of, for_optimizer, new_id
from skillc.document.skill_md import from_skill_md, to_skill_md
from skillc.plan.existing import existing_skill

ROOT = Path(__file__).resolve().parents[2]
FILES = [*sorted((ROOT / "benchmarks" / "by_hand").glob("*/*/SKILL.md")), ROOT / "tests/by_hand/recorded/SKILL.md"]
PROCEDURE = """Decide in this order and stop at the first that fits.

1. If the item is damaged, answer Z9.
   - Does not count: damage to a bag.
   - Example: "my umbrella broke the book's spine" is Z9.
2. If it is needed today, answer J3.
3. Otherwise find who asks.

| who | code |
|---|---|
| student | K4 |
| tourist | W1 |

### Terms

- Townspeople: everyone else.

  For instance a tourist.
- Organisation: a company.

```text
a request -> a code
```

#### Numbers

1. First.
2. Second."""


def with_rules(text: str) -> Document:
    return document_of("x", "y", [("rules", "trainable", text, None), ("role", "frozen", "Be brief.", None)])


def texts(document: Document) -> list[str]:
    return [rule.text for rule in document.rules]


def test_a_procedure_keeps_its_text_and_each_block_has_an_id() -> None:
    document = with_rules(PROCEDURE)
    expected = PROCEDURE.replace("#### Numbers", "### Terms / Numbers")
    # A code block goes with the item before it, so it is within that item.
    code = "```text\na request -> a code\n```"
    expected = expected.replace(code, "\n".join(f"  {line}" for line in code.split("\n")))
    assert document.sections[0].body == expected
    assert [rule.mark for rule in document.rules] == ["", "1.", "1.", "1.", "", "-", "-", "1.", "1."]
    assert len({rule.id for rule in document.rules}) == 9
    again = with_rules(expected.replace("### Terms / Numbers", "#### Numbers"))
    assert again == document


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_real_skills_become_rules_to_the_letter(path: Path) -> None:
    text = path.read_text()
    assert to_skill_md(from_skill_md(text)) == text
    rules = next(section for section in existing_skill(path).sections if section.name == "rules")
    assert rules.mode == "trainable"
    document = with_rules(rules.text)
    assert document.sections[0].body == rules.text
    for rule in document.rules:
        rest = apply_edits(document, [Delete(rule.id)])
        assert rest.results[0].applied
        assert texts(rest.document) == [each for each in texts(document) if each != rule.text]
        changed = apply_edits(document, [Replace(rule.id, f"{rule.text} Always.")])
        assert changed.results[0].applied
        assert [(r.id, r.mark) for r in changed.document.rules] == [(r.id, r.mark) for r in document.rules]
        lines = zip(document.sections[0].body.split("\n"), changed.document.sections[0].body.split("\n"), strict=True)
        assert sum(before != after for before, after in lines) == 1


def test_steps_are_counted_anew_after_an_edit() -> None:
    document = with_rules("1. One.\n2. Two.\n   - deeper\n3. Three.")
    one, two, _ = (rule.id for rule in document.rules)

    def after(*edits: Add | Delete | Move | Replace) -> str:
        applied = apply_edits(document, edits)
        assert all(report.applied for report in applied.results)
        return applied.document.sections[0].body

    assert after(Delete(one)) == "1. Two.\n   - deeper\n2. Three."
    assert after(Move(two, "start")) == "1. Two.\n   - deeper\n2. One.\n3. Three."
    assert after(Add("rules", "New.", after=one)) == "1. One.\n2. New.\n3. Two.\n   - deeper\n4. Three."
    assert after(Add("rules", "4. Four.")).endswith("3. Three.\n4. Four.")
    assert after(Add("rules", "Four.")).endswith("3. Three.\n\n- Four.")
    assert after(Replace(two, "Both.")) == "1. One.\n2. Both.\n3. Three."
    assert after(Replace(two, "Both.", mark="-")) == "1. One.\n\n- Both.\n\n1. Three."
    ten = with_rules("\n".join(f"{i}. step {'abcdefghijk'[i]}" + "\n" + " " * 3 + "more" for i in range(1, 11)))
    assert ten.sections[0].body.endswith("10. step k\n    more")
    assert with_rules(ten.sections[0].body) == ten


def test_the_optimizer_sees_the_numbers() -> None:
    document = with_rules("Do:\n\n1. One.\n2. Two.")
    head, one, two = (rule.id for rule in document.rules)
    assert f"[{head}] Do:\n\n[{one}] 1. One.\n[{two}] 2. Two." in for_optimizer(document)


def test_marks_are_in_the_json_of_an_edit_where_it_has_one() -> None:
    for edit in (Add("rules", "x", mark="1."), Replace("a1", "x", mark=""), Add("rules", "x"), Replace("a1", "x")):
        assert ("mark" in edit_to_json(edit)) == (edit.mark is not None)


def test_a_whole_new_text_keeps_its_steps() -> None:
    document = with_rules("- One.\n- Two.")
    text = "Do this:\n\n1. Two.\n2. Three."
    applied = rewrite(document, "rules", text)
    assert applied.document.sections[0].body == text
    assert applied.document.rules[1].id == document.rules[1].id


BLOCKS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["-", "1.", ""]), st.sampled_from([None, "T"])),
    min_size=1,
    max_size=7,
    unique_by=lambda block: block[0],
)


def document_with(blocks: list[tuple[str, Mark, str | None]]) -> Document:
    ids: set[str] = set()
    rules = []
    for word, mark, topic in blocks:
        ids.add(new := new_id("rules", word, ids))
        rules.append(Rule(new, f"If {word},\nanswer {word}.", topic, mark=mark))
    empty = with_rules("")
    return empty.with_section(replace(empty.sections[0], rules=tuple(rules)))


@settings(max_examples=example_count(300), deadline=None)
@given(BLOCKS, BLOCKS, st.booleans())
def test_any_blocks_are_read_back_and_reached_by_edits(before, after, named) -> None:
    old, new = document_with(before), document_with(after)
    target = new.sections[0].rules
    assert [(r.text, r.mark, r.topic) for r in with_rules(new.sections[0].body).rules] == [
        (r.text, r.mark, r.topic) for r in target
    ]
    wanted = [WantedRule(r.text, r.topic or "", r.id if named else None, mark=r.mark) for r in target]
    edits = edits_to(old, "rules", wanted)
    assert isinstance(edits, tuple)
    applied = apply_edits(old, edits)
    assert all(report.applied for report in applied.results)
    assert [(r.text, r.mark, r.topic) for r in applied.document.rules] == [(r.text, r.mark, r.topic) for r in target]
