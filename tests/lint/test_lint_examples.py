"""`check --data`: sides that share examples, labels, quotes, and what a data file may do to it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lint_samples import FILES, SIDES, codes, found, numbered, write

from skillc.diagnostics.diagnostic import Severity
from skillc.frontend import UnfitDataError, check_data
from skillc.lint.examples import normalise_inputs


def test_sound_data_gives_no_reason_to_say_anything(tmp_path):
    assert codes(write(tmp_path)) == []


# ---- sides ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "twin",
    [
        "TRAIN TICKET 3 NEEDS NOTHING",
        "train ticket 3 needs nothing!",
        "train  ticket\n3 — needs nothing",
        "«train ticket 3» needs nothing",
    ],
)
def test_inputs_that_differ_in_case_blanks_or_signs_stand_on_two_sides(tmp_path, twin):
    program = write(tmp_path, test=[*SIDES["test"], (twin, "billing")])
    ((code, message),) = found(program)
    assert code == "SK430"
    assert message == (
        "1 example is on two sides, case and punctuation aside: "
        "`test.jsonl` line 41 (test), `train.jsonl` line 4 (train)"
    )


@pytest.mark.parametrize(
    "other", ["train ticket 77 needs nothing", "train ticket 3 need nothing", "ticket 3 needs nothing"]
)
def test_inputs_that_differ_in_a_letter_or_digit_do_not(tmp_path, other):
    assert codes(write(tmp_path, test=[*SIDES["test"], (other, "billing")])) == []


def test_a_twin_on_validation_and_test_is_told_too_and_one_on_its_own_side_is_not(tmp_path):
    validation = [*SIDES["validation"], ("Val ticket 1 needs nothing", "billing")]
    assert codes(write(tmp_path, validation=validation)) == []
    assert codes(write(tmp_path, test=[*SIDES["test"], ("Val ticket 1 needs nothing", "billing")])) == ["SK430"]


def test_twins_in_one_source_are_named_by_their_lines(tmp_path):
    rows = numbered("any", 400)
    twins = [(ticket.upper(), team) for ticket, team in rows]
    ((code, message),) = found(write(tmp_path, source=[*rows, *twins]))
    assert code == "SK430"
    assert "`source.jsonl` line" in message


def test_a_group_keeps_twins_together(tmp_path):
    rows = [
        {"ticket": f"any ticket {i}", "team": "billing" if i % 2 else "shipping", "who": f"c{i}"} for i in range(200)
    ]
    twins = [{**row, "ticket": row["ticket"].upper()} for row in rows]
    program = write(tmp_path, source=[*rows, *twins], data=f"{FILES}; field who: text; group = who")
    assert codes(program) == []


_WORDS = st.lists(st.text("abcäß1", min_size=1, max_size=4), min_size=1, max_size=5)
_BETWEEN = st.sampled_from([" ", "\n", "  ", ", ", " - ", "!? ", "_"])


@given(_WORDS, st.data())
def test_words_in_one_order_are_the_same_whatever_stands_between(words, data):
    one, other = ("".join(word + data.draw(_BETWEEN) for word in words) for _ in range(2))
    assert (
        normalise_inputs({"a": one})
        == normalise_inputs({"a": other})
        == normalise_inputs({"a": one.upper().replace("SS", "ß")})
    )


@given(_WORDS, _WORDS)
def test_other_words_are_not_the_same(one, other):
    alike = [word.casefold() for word in one] == [word.casefold() for word in other]
    assert (normalise_inputs({"a": " ".join(one)}) == normalise_inputs({"a": " ".join(other)})) == alike


def test_signs_are_kept_where_there_is_nothing_else():
    assert normalise_inputs({"a": "???"}) != normalise_inputs({"a": "!!!"})
    assert normalise_inputs({"a": 1}) != normalise_inputs({"a": 2})
    assert normalise_inputs({"a": "x", "b": "y"}) != normalise_inputs({"a": "x y", "b": ""})


# ---- answers and labels ---------------------------------------------------------------------------


def test_twins_with_two_answers(tmp_path):
    program = write(tmp_path, train=[*SIDES["train"], ("Train ticket 3 needs nothing!", "shipping")])
    ((code, message),) = found(program)
    assert code == "SK431"
    assert message.endswith("`train.jsonl` line 4 (`billing`), `train.jsonl` line 41 (`shipping`)")


def test_answers_that_share_one_do_not_exclude_each_other(tmp_path):
    twin = {"ticket": "Train ticket 3 needs nothing!", "team": ["shipping", "billing"]}
    assert codes(write(tmp_path, train=[*SIDES["train"], twin])) == []


def test_labels_by_where_they_are_seen(tmp_path):
    labels = '"billing" | "shipping" | "account" | "legal" | "sales"'
    program = write(tmp_path, train=[*SIDES["train"], ("a", "sales")], test=[*SIDES["test"], ("b", "legal")])
    program.write_text(program.read_text().replace('"billing" | "shipping"', labels))
    said = {
        (each.code, each.severity): each.message for each in check_data(program).kept if each.code in ("SK434", "SK435")
    }
    assert said == {
        ("SK434", Severity.NOTE): "no example has the label `account`",
        (
            "SK435",
            Severity.WARNING,
        ): "the label `legal` is on test and not on train, so it cannot be learnt",
        ("SK435", Severity.NOTE): "the label `sales` is on train only, so it is never measured",
    }
    (at,) = {each.primary.source.slice(each.primary.span) for each in check_data(program).kept if each.code == "SK434"}
    assert at == "team"


def test_a_column_that_most_rows_leave_empty(tmp_path):
    rows = {
        side: [{"ticket": t, "team": team, "note": "x" if i < 10 else None} for i, (t, team) in enumerate(rows)]
        for side, rows in SIDES.items()
    }
    program = write(tmp_path, data=f"{FILES}; field note: text | none", **rows)
    assert ("SK436", "`note` is empty in 75 % of 120 rows") in found(program)
    full = {side: [{**row, "note": "x"} for row in examples] for side, examples in rows.items()}
    assert codes(write(tmp_path, data=f"{FILES}; field note: text | none", **full)) == []


# ---- quotes ---------------------------------------------------------------------------------------

_LONG = "My parcel was left with a neighbour whom nobody knows"


def quoting(tmp_path, text, **sides):
    return found(write(tmp_path, sections=f'frozen section role = "{text}";', **sides))


def test_a_section_that_quotes_a_test_example(tmp_path):
    ((code, message),) = quoting(
        tmp_path, "If a parcel was LEFT with a neighbour, it is shipping.", test=[*SIDES["test"], (_LONG, "shipping")]
    )
    assert code == "SK433"
    assert message.startswith("the section `role` has words of 1 example of test")
    assert message.endswith("is in `test.jsonl` line 41")


def test_a_section_that_quotes_train_is_noted(tmp_path):
    told = quoting(tmp_path, "a neighbour whom nobody knows", train=[*SIDES["train"], (_LONG, "shipping")])
    assert [code for code, _ in told] == ["SK432"]


@pytest.mark.parametrize(
    "text", ["with a neighbour whom", "a neighbour that nobody knows", "neighbour. Whom nobody knows? \\n\\n My parcel"]
)
def test_four_words_or_another_order_are_no_quote(tmp_path, text):
    assert quoting(tmp_path, text, test=[*SIDES["test"], (_LONG, "shipping")]) == []


def test_what_many_examples_say_is_no_quote_of_any(tmp_path):
    sides = {side: [(f"{t} and I would like to know", team) for t, team in rows] for side, rows in SIDES.items()}
    assert quoting(tmp_path, "Customers who would like to know: and I would like to know", **sides) == []


_ASK = "Answer with one of: billing, shipping."


@pytest.mark.parametrize("size", [2, 3, 4, 40, 400])
def test_an_instruction_that_rows_share_is_no_quote(tmp_path, size):
    sides = {side: [(f"{_ASK} {t}", team) for t, team in numbered(side, size)] for side in SIDES}
    assert [code for code, _ in quoting(tmp_path, f"{_ASK} Say no more.", **sides) if code in ("SK432", "SK433")] == []


def test_an_instruction_of_a_few_rows_among_many_is_no_quote(tmp_path):
    asked = [(f"{_ASK} Case {i} of many others", "billing") for i in range(3)]
    sides = {side: numbered(side, 300) for side in SIDES}
    assert quoting(tmp_path, _ASK, **{**sides, "test": [*sides["test"], *asked]}) == []


def test_a_word_that_follows_an_instruction_by_chance_is_no_quote(tmp_path):
    sides = {side: [(f"{_ASK} {t}", team) for t, team in rows] for side, rows in SIDES.items()}
    sides["test"].append((f"{_ASK} Never mind the box", "shipping"))
    assert quoting(tmp_path, f"{_ASK} Never mind what comes first.", **sides) == []


@pytest.mark.parametrize("text", [f"{_ASK} {_LONG}", f"{_LONG}. {_ASK}", f"My parcel was {_ASK} left with a neighbour"])
def test_a_quote_beside_an_instruction_is_found(tmp_path, text):
    sides = {side: [(f"{_ASK} {t}", team) for t, team in rows] for side, rows in SIDES.items()}
    sides["test"].append((text, "shipping"))
    ((code, message),) = quoting(tmp_path, text, **sides)
    assert code == "SK433"
    assert message.startswith("the section `role` has words of 1 example of test")
    assert "answer with one of billing`" not in message


def test_equal_rows_count_once(tmp_path):
    ((code, message),) = quoting(
        tmp_path, _LONG, test=[*SIDES["test"], *[(_LONG + "!" * i, "shipping") for i in range(4)]]
    )
    assert code == "SK433"
    assert "4 examples of test" in message


def test_no_quote_goes_from_one_rule_to_the_next(tmp_path):
    sections = 'frozen section role = """\n  - My parcel was left\n  - with a neighbour whom\n""";'
    program = write(tmp_path, sections=sections.replace(";", ""), test=[*SIDES["test"], (_LONG, "shipping")])
    program.write_text(program.read_text().replace('""" trainable', '"""\ntrainable'))
    assert codes(program) == []


def test_the_compiled_skill_beside_the_program_is_read_too(tmp_path):
    program = write(tmp_path, test=[*SIDES["test"], (_LONG, "shipping")])
    folder = tmp_path / "skills" / "route"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: route\ndescription: Route.\n---\n\n# Route\n\n## Rules\n\n- {_LONG}.\n"
    )
    ((code, message),) = found(program)
    assert code == "SK433"
    assert message.startswith("`skills/route/SKILL.md` has words of 1 example of test")
    (folder / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    assert [(each.code, each.message) for each in check_data(program).kept if each.severity is Severity.ERROR] == [
        ("SK437", "`skills/route/SKILL.md` can't be read")
    ]


# ---- data that can't be used ----------------------------------------------------------------------


def test_each_problem_of_the_data_is_a_finding_with_its_line(tmp_path):
    rows = [*SIDES["train"], ("a", "biling"), {"ticket": 3.5, "team": "billing"}, {"team": "billing"}]
    program = write(tmp_path, train=rows)
    told = [each for each in check_data(program).kept if each.code == "SK437"]
    assert [each.message.split(":")[0] for each in told] == [f"`train.jsonl` line {n}" for n in (41, 42, 43)]
    assert told[0].hint == "did you mean `billing`?"
    assert [each.primary.source.slice(each.primary.span) for each in told] == ["team", "ticket", "ticket"]


def test_rows_with_one_wrong_label_are_one_finding_at_the_labels(tmp_path):
    wrong = [(f"lost parcel {i}", "biling") for i in range(45)]
    program = write(tmp_path, train=[*SIDES["train"], *wrong], test=[*SIDES["test"], *wrong[:1]])
    told = [each for each in check_data(program).kept if each.code == "SK437"]
    message = "`biling` in `team` is not a declared label of `team`: `billing`, `shipping`"
    assert [each.message for each in told] == [
        f"`train.jsonl` (45 rows, first 41, 42, 43): {message}",
        f"`test.jsonl` line 41: {message}",
    ]
    assert {each.primary.span.start for each in told} == {program.read_text().index("team:")}


@pytest.mark.parametrize("verb", ["plan", "compile"])
def test_plan_and_compile_point_at_the_same_line(tmp_path, verb):
    from click.testing import CliRunner

    from skillc.cli import skillc

    wrong = [(f"lost parcel {i}", "biling") for i in range(45)]
    program = write(tmp_path, train=[*SIDES["train"], *wrong])
    problem = CliRunner().invoke(skillc, [verb, str(program)], standalone_mode=False).exception
    assert isinstance(problem, UnfitDataError)
    assert problem.message == f"the data of `{program}` does not fit the program"
    assert [(each.code, each.primary.source.slice(each.primary.span)) for each in problem.diagnostics] == [
        ("SK437", "team")
    ]


def test_of_many_problems_the_first_are_told_and_the_rest_counted(tmp_path):
    told = found(write(tmp_path, train=[("a", f"wrong {i}") for i in range(40)]))
    assert len(told) == 6
    assert told[-1] == ("SK437", "the data has 35 more such problems")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{", b"[1, 2]\n", b"null\n", "\ufeff".encode()])
def test_files_that_are_no_data(tmp_path, content):
    program = write(tmp_path)
    (tmp_path / "train.jsonl").write_bytes(content)
    assert set(codes(program)) == {"SK437"}


def test_a_file_that_is_not_there(tmp_path):
    program = write(tmp_path)
    (tmp_path / "test.jsonl").unlink()
    ((code, message),) = found(program)
    assert code == "SK437"
    assert "test.jsonl" in message


def test_a_program_with_errors_is_told_those_and_its_data_is_not_opened(tmp_path):
    program = write(tmp_path, "gate g = regressed(correct) <= 5\n")
    (tmp_path / "train.jsonl").unlink()
    assert [each.code for each in check_data(program).kept] == ["SK303"]


def test_a_library_has_no_data(tmp_path):
    library = tmp_path / "lab.skill"
    library.write_text("language 1\nbudget nightly { cost = $3 }\n")
    assert check_data(library).kept == ()


def test_what_plan_says_is_said_too(tmp_path):
    program = write(tmp_path)
    program.write_text(program.read_text().replace("epochs = 4", "epochs = 4; calls = 60"))
    assert "SK501" in [each.code for each in check_data(program).kept]


def test_the_verb_ends_by_what_was_found(tmp_path):
    from click.testing import CliRunner

    from skillc.cli.programs import check

    def ran(*options):
        return CliRunner().invoke(check, [*map(str, options)], standalone_mode=False)

    program = write(tmp_path, test=[*SIDES["test"], ("Train ticket 3 needs nothing", "billing")])
    assert ran(program).return_value == 0
    said = ran(program, "--data", "--format", "concise")
    assert said.return_value == 1
    assert "warning[SK430]" in said.stdout
    sent = json.loads(ran(program, "--data", "--json").stdout)
    assert "SK430" in json.dumps(sent)


def test_rows_in_any_order_are_told_the_same(tmp_path):
    rows = [*numbered("any", 60), *((t.upper(), team) for t, team in numbered("any", 60))]
    one = codes(write(tmp_path, source=rows))
    assert codes(write(tmp_path, source=rows[::-1])) == one
