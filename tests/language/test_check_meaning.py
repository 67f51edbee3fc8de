"""Rules of the language that a golden program can't show: terms, ranges, scopes, and what stays silent."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from checking import clean, codes, entity, gate, metric, program, run

from skillc.diagnostics.diagnostic import Severity
from skillc.gates.terms import show_term
from skillc.language.checked import Amount
from skillc.syntax.source import Source

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("expression", "unit", "low", "high"),
    [
        ("exact_match(team)", "", 0, 1),
        ("1 - exact_match(team)", "", 0, 1),
        ("2 * exact_match(team) - 1", "", -1, 1),
        ("exact_match(team) * exact_match(team)", "", 0, 1),
        ("exact_match(team) / 2", "", 0, HALF),
        ("exact_match(team) / -2", "", -HALF, 0),
        ("1 / (1 + exact_match(team))", "", HALF, 1),
        ("-exact_match(team)", "", -1, 0),
        ("clamp(tokens(reply), 0 tokens, 3k tokens)", "tokens", 0, 3000),
        ("min(tokens(reply), 30 tokens)", "tokens", 0, 30),
        ("max(1 - tokens(reply) / 30 tokens, 0)", "", 0, 1),
        ('team == "billing"', "", 0, 1),
        ('(team == "billing") + urgent', "", 0, 2),
        ('team == "billing" and not urgent', "", 0, 1),
        ("clamp(worth, 0, 9)", "", 0, 9),
        ('python("m:f", low = 0 s, high = 1.5 min)', "s", 0, 90),
        ('python("m:f", high = 10)', "", 0, 10),
        ("turns() / 5 turns * 0", "", 0, 0),
    ],
)
def test_units_and_ranges_of_metrics(expression: str, unit: str, low: Fraction, high: Fraction) -> None:
    found = metric(clean(program(f"metric m = {expression}")), "m")
    assert (found.unit, found.low, found.high) == (unit, low, high)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("candidate.correct > incumbent.correct + 2%", None),
        ("candidate.correct > incumbent.correct + 0%", "candidate.correct > incumbent.correct"),
        ("tokens(candidate) <= 2k tokens", "tokens(candidate) <= 2000 tokens"),
        ("cost(candidate) <= 1.1 * cost(incumbent)", None),
        ("cost(candidate) <= $0.05", None),
        ("latency(candidate) < 2 min", "latency(candidate) < 120 s"),
        ("candidate.correct - (incumbent.correct - 1%) > 0", "candidate.correct - (incumbent.correct - 1%) > 0"),
        ("not (candidate.correct < 50% or regressed(correct) > 5%)", None),
        ("confidence(candidate.correct > incumbent.correct, over = run) >= 95%", None),
        ("e_value(candidate.correct > incumbent.correct, over = run) >= 20", None),
        ("regressed(correct, by = none) <= 5%", "regressed(correct) <= 5%"),
        ("improved(correct, by = product, on = batch) > 0", "improved(correct, on = batch, by = product) > 0"),
        ("regressed(0.9 * correct + 0.1 * urgent) <= 5%", "regressed(0.9 * correct + 0.1 * urgent) <= 5%"),
        ("worst(candidate.correct, by = product) >= 1 / 3", None),
    ],
)
def test_canonical_text_of_gates(expression: str, shown: str | None) -> None:
    found = gate(clean(program(f"gate g = {expression}")), "g")
    assert show_term(found.term) == (shown or expression)
    assert found.text == expression


def test_an_expression_in_a_gate_becomes_an_undeclared_metric() -> None:
    checked = clean(program("gate g = regressed(0.9 * correct + 0.1 * urgent) <= 5%\ngate h = improved(correct) > 0"))
    anonymous = [m for m in checked.metrics if not m.declared]
    assert [(m.name, m.low, m.high) for m in anonymous] == [("0.9 * correct + 0.1 * urgent", 0, 1)]
    assert checked.metrics.index(anonymous[0]) > checked.metrics.index(metric(checked, "correct"))


def test_metrics_stand_behind_those_that_they_read() -> None:
    checked = clean(program("metric a = b\nmetric b = correct"))
    assert [m.name for m in checked.metrics] == ["correct", "b", "a"]


def test_functions_are_expanded_by_substitution() -> None:
    checked = clean(
        program(
            "metric half(m: metric) = m / 2\n"
            "gate above(m: metric, least: share = 5%, by: field = none) = regressed(m, by = by) <= least\n"
            "gate both(m: metric, c: claim) = above(m, by = none) and confidence(c) >= 95%\n"
            "gate g = above(half(correct), by = product)\n"
            "gate h = both(correct, candidate.correct > best.correct)"
        )
    )
    assert show_term(gate(checked, "g").term) == "regressed(correct / 2, by = product) <= 5%"
    assert show_term(gate(checked, "h").term) == (
        "regressed(correct) <= 5% and confidence(candidate.correct > best.correct) >= 95%"
    )


def test_position_picks_the_namespace() -> None:
    text = program("metric max = exact_match(text)\ngate candidate = candidate.max > 50%").replace(
        "output reply: text", "output reply: text; output text: text; output candidate: text"
    )
    assert gate(clean(text), "candidate").name == "candidate"


def test_every_word_of_the_table_is_a_legal_name() -> None:
    from making import all_words

    for word in sorted(all_words() - {"and", "or", "not", "use"}):
        text = program(f"metric {word} = exact_match(team)\ngate {word} = candidate.{word} > 50%")
        assert codes(text) == [], word
        field = f'"tickets.jsonl"; field {word}: number'
        assert codes(program().replace('"tickets.jsonl"', field)) == [], word


def test_broken_names_give_one_error() -> None:
    more = "metric a = exact_match(tema)\nmetric b = a\nmetric c = b + a\ngate g = regressed(c) <= 5%\n"
    assert codes(program(more, goal="c")) == ["SK204"]


@pytest.mark.parametrize(
    "wrong",
    [
        "output team: txt",
        "ouput team: text",
        "output team text",
        "output team",
        'output team: "a" | text',
    ],
)
def test_a_broken_field_gives_one_error(wrong: str) -> None:
    text = program("metric m = exact_match(team)\ngate g = regressed(exact_match(team)) <= 5%")
    assert len(codes(text.replace('output team: "billing" | "shipping"', wrong))) == 1


@pytest.mark.parametrize(
    "wrong",
    ["metrik m = exact_match(team)", "metric m: text = f1(reply)", "metric m = (f1(reply)", "metric m := f1(reply)"],
)
def test_a_broken_metric_gives_one_error(wrong: str) -> None:
    assert len(codes(program(f"{wrong}\ngate g = candidate.m > 50%"))) == 1


def test_a_program_with_a_syntax_error_is_not_told_what_it_lacks() -> None:
    found = codes("language 1\n\ngoal correct = = exact_match(team)\n")
    assert all(code.startswith("SK0") for code in found)


def test_a_library_lacks_nothing() -> None:
    assert run("language 1\n\nbudget nightly { cost = $3 }\n").library
    assert codes("language 1\n\nbudget nightly { cost = $3 }\n") == []
    assert codes("language 1\n") == []
    assert codes("") == ["SK207"]
    assert not run(program()).library


def test_settings_are_in_base_units() -> None:
    text = program("optimize { batch = 40 examples; trajectory_limit = 2k tokens; wave = 16 }").replace(
        "epochs = 4", "epochs = 4 epochs; time = 1.5 h; min_gain = 1%; tokens = 31M"
    )
    checked = clean(text)
    budget = {name: s.value for name, s in entity(checked, "budget").settings.items()}
    assert budget == {
        "epochs": Amount(Fraction(4), "epochs"),
        "time": Amount(Fraction(5400), "s"),
        "min_gain": Amount(Fraction(1, 100)),
        "tokens": Amount(Fraction(31_000_000), "tokens"),
    }
    assert entity(checked, "optimize").settings["batch"].value == Amount(Fraction(40), "examples")


def test_parameters_of_models_pass_through() -> None:
    text = program().replace(
        'target = "rulebook/v1"',
        'target = "rulebook/v1" { noise = 0.1; stop = ["a"]; thinking = off; reasoning_effort = "low"; zzz { a = 1 } }',
    )
    settings = entity(clean(text), "model", "target").settings
    assert settings["noise"].value == Amount(Fraction(1, 10))
    assert settings["thinking"].value is False
    assert settings["zzz"].value is True
    assert settings["zzz"].block["a"].value == Amount(Fraction(1))


def test_comments_are_not_part_of_a_gate() -> None:
    checked = clean(program("gate g = candidate.correct > 50% # half\n  and regressed(correct) # some\n  <= 5%"))
    assert gate(checked, "g").text == "candidate.correct > 50% and regressed(correct) <= 5%"


def test_notes_stop_nothing() -> None:
    checked = run(
        program(
            "metric spare = f1(reply)\n"
            "gate fast = latency(candidate) <= 3 s\n"
            "gate short = tokens(candidate) <= 600 tokens"
        )
    )
    assert [(d.code, d.severity) for d in checked.diagnostics] == [
        ("SK409", Severity.NOTE),
        ("SK504", Severity.NOTE),
        ("SK605", Severity.ERROR),
        ("SK506", Severity.NOTE),
    ]
    assert not checked.broken


def test_patience_above_the_steps_there_are() -> None:
    text = program().replace("epochs = 4", "epochs = 2; patience = 4 steps")
    split = text.replace('"tickets.jsonl"', '"tickets.jsonl"; split = 80 examples : 40 examples')
    assert [d.code for d in run(split).diagnostics] == []
    assert [d.code for d in run(split.replace("4 steps", "5 steps")).diagnostics] == ["SK507"]
    assert [d.code for d in run(text.replace("4 steps", "60 steps")).diagnostics] == []


def test_a_limit_bounds_a_field() -> None:
    text = program("metric m = tokens(reply)").replace("output reply: text", "output reply: text { limit = 90 tokens }")
    assert metric(clean(text), "m").high == 90


def test_findings_point_into_the_file_and_say_the_fix() -> None:
    source = program("gate safe = regressed(correct) <= 5")
    (found,) = run(source).diagnostics
    assert found.primary.source.slice(found.primary.span) == "regressed(correct) <= 5"
    assert found.hint == "did you mean `5%`?"
    assert found.fix is not None
    mended = source[: found.fix.span.start] + found.fix.text + source[found.fix.span.end :]
    assert codes(mended) == []


def test_a_file_may_not_leave_the_folder_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.skill").write_text("language 1\n")
    (tmp_path / "inside" / "link.skill").symlink_to(tmp_path / "secret.skill")
    text = program(use='use "./link.skill" as lab')
    assert codes(text, tmp_path / "inside") == ["SK101"]


def test_files_use_files_relative_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.skill").write_text(
        'language 1\nuse "./b.skill" as b\nmodel target = b.target { seed = 3 }\n'
    )
    (tmp_path / "lib" / "b.skill").write_text('language 1\nmodel target = "openai/x" { temperature = 0 }\n')
    text = program(use='use "./lib/a.skill" as a').replace('target = "rulebook/v1"', "target = a.target { top_p = 1 }")
    found = entity(clean(text, tmp_path), "model", "target")
    assert (found.value, set(found.settings)) == ("openai/x", {"seed", "temperature", "top_p"})


def test_circles_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_text('language 1\nuse "./b.skill" as b\n')
    (tmp_path / "b.skill").write_text('language 1\nuse "./a.skill" as a\n')
    assert codes(program(use='use "./a.skill" as a'), tmp_path) == ["SK103"]


def test_a_used_file_with_errors_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_text("language 1\ngate g(m: metric = candidate.m > 0\n")
    text = program("gate x = a.g(correct)\ngate y = a.h(correct)", use='use "./a.skill" as a')
    found = run(text, tmp_path).diagnostics
    assert [d.code for d in found] == ["SK106"]
    assert found[0].secondary[0].source.name == str(tmp_path / "a.skill")


def test_an_error_in_another_file_points_there(tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_text("language 1\ngate g(m: metric) = candidate.m > more\n")
    text = program("gate x = a.g(correct)\ngate y = a.g(correct)", use='use "./a.skill" as a')
    (found,) = run(text, tmp_path).diagnostics
    assert (found.code, found.primary.source.name) == ("SK204", str(tmp_path / "a.skill"))


def test_the_default_loader_reads_beside_the_program(tmp_path: Path) -> None:
    from skillc.frontend import check

    (tmp_path / "a.skill").write_text('language 1\nmodel target = "openai/x"\n')
    text = program(use='use "./a.skill" as a').replace('target = "rulebook/v1"', "target = a.target")
    assert not check(Source(str(tmp_path / "main.skill"), text)).failed


def test_a_gate_that_keeps_is_no_gate_to_declare() -> None:
    found = run(program() + "\ngate rare for keep = candidate.correct > 10%\n")
    assert [(d.message, d.hint) for d in found.diagnostics if d.code == "SK201"] == [
        ("a gate can't be for `keep`", "write `for slow`")
    ]


@pytest.mark.parametrize("setting", ["parents = pareto", "merge = on"])
def test_a_removed_setting_gets_its_replacement_as_a_hint(setting: str) -> None:
    found = run(f"{program()}\noptimize {{ {setting} }}\n")
    (told,) = [d for d in found.diagnostics if d.code == "SK202"]
    assert "`method = gepa`" in str(told.hint)


# ---- what functions of a library may take ---------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "call", "shown"),
    [
        ("metric f(x: text, d: number) = numeric(x, within = d)", "f(reply, 0.5)", "numeric(reply, within = 50%)"),
        ("metric f(x: text, t: texts) = covers(x, t)", 'f(reply, ["a", "b"])', 'covers(reply, ["a", "b"])'),
        (
            "metric f(x: text, t: texts) = g(x, t)\nmetric g(y: text, u: texts) = mentions(y, u)",
            'f(reply, ["a"])',
            'mentions(reply, ["a"])',
        ),
        ("metric f(x: text, t: text) = mentions(x, t)", 'f(reply, "a")', 'mentions(reply, "a")'),
        ("metric f(x: text, t: text) = covers(t, x)", "f(reply, ticket)", "covers(ticket, reply)"),
        (
            "metric f(x: text, t: texts) = json_fields(x, fields = t)",
            'f(reply, ["a"])',
            'json_fields(reply, fields = ["a"])',
        ),
        (
            'metric f(x: text, n: number, t: text) = python("own:f", x, n, t, 2, "s")',
            'f(reply, 3, "u")',
            'python("own:f", reply, 3, "u", 2, "s")',
        ),
        (
            'metric f(x: text, top: number) = python("own:f", x, low = 0, high = top) / 5',
            "f(reply, 5)",
            'python("own:f", reply, low = 0, high = 5) / 5',
        ),
    ],
)
def test_a_parameter_stands_where_a_literal_may(declared: str, call: str, shown: str) -> None:
    found = metric(clean(program(f"{declared}\nmetric m = {call}")), "m")
    assert show_term(found.term) == shown
    assert (found.low, found.high) == (0, 1)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("metric m = relative_error(reply, scale = 0)", "SK311"),
        ("metric m = ordinal_error(team, most = -1)", "SK311"),
        ("metric m = ordinal_error(reply)", "SK310"),
        ("metric f(x: text) = ordinal_error(x)\nmetric m = f(reply)", "SK310"),
        ("metric f(x: text, s: number) = relative_error(x, scale = s)\nmetric m = f(reply, 0)", "SK311"),
        ('metric m = covers(worth, ["a"])', "SK311"),
        ("metric m = covers(reply, [reply])", "SK311"),
        ("metric m = covers(reply, nothing)", "SK204"),
        ("metric m = mentions(reply)", "SK310"),
        ('metric f(x: text, t: texts) = exact_match(t)\nmetric m = f(reply, ["a"])', "SK311"),
        ("metric f(x: text, t: texts) = covers(x, t)\nmetric m = f(reply, ticket)", "SK311"),
        ('metric m = python("own:f", correct)', "SK311"),
        ("metric m = words(reply)", "SK304"),
        ("metric m = judge(reply, nowhere.good, model = target)", "SK204"),
    ],
)
def test_what_the_new_functions_refuse(more: str, code: str) -> None:
    assert code in codes(program(more))


@pytest.mark.parametrize("name", ["選択_label", "répondre", "_"])
def test_a_skill_that_no_agent_can_load_is_found_by_check(name: str) -> None:
    assert codes(program().replace("skill route", f"skill {name}")) == ["SK563"]


@pytest.mark.parametrize("kind", ["frozen", "trainable", "slow"])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A.\\n```\\nb", ["SK420"]),
        ("A.\\n~~~ py\\nb\\n```", ["SK420"]),
        ("- ```\\n  b", ["SK420"]),
        ("A. <!-- b", ["SK420"]),
        ("A.\\n```\\n<!-- b\\n```", []),
        ("A `<!--` b", []),
        ("A.\\n```\\n# b\\n```\\n## C", []),
    ],
)
def test_a_text_that_would_swallow_the_next_section_is_an_error(kind: str, text: str, found: list[str]) -> None:
    assert codes(program().replace("trainable section", f'{kind} section extra = "{text}"; trainable section')) == found
