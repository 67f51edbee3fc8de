"""From checked entities to a plan with every default filled in."""

from dataclasses import replace
from fractions import Fraction

import pytest
from plan_samples import BETTER, CORRECT, checked, entity, gate, metric, number, parts, plan, setting, settings

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.terms import Constant, MetricTerm, Operation
from skillc.language.checked import FieldType, Invocation, Items, Shares, Word
from skillc.language.loop import BudgetPlan, OptimizePlan, SchedulePlan
from skillc.plan.initial import initial_document
from skillc.plan.resolve import artifact_name, resolve, resolve_metrics
from skillc.plan.schema import SplitPlan


def resolved(**changes):
    return resolve(checked({**parts(), **changes}))


def codes(result):
    return [d.code for d in result.diagnostics]


def test_everything_has_its_default():
    found = resolved().plan
    assert found.task.rollout.kind == "predict"
    assert found.skill.load == "always"
    assert found.skill.present == "rules"
    assert found.data.split == SplitPlan(parts=(Fraction(2), Fraction(1), Fraction(2)))
    assert found.optimize == OptimizePlan()
    assert found.budget == BudgetPlan(epochs=4, cost=Fraction(3))
    assert found.models["optimizer"].max_reply == 4096
    assert found.task.inputs[0].column == "ticket"
    assert found.requires == ()


def test_the_skill_has_its_artifact_name_and_one_line_of_about():
    skill = plan().skill
    assert skill.artifact == "route-tickets"
    assert skill.about == "Route a ticket. Use it for each."
    assert [(s.name, s.mode, s.limit) for s in skill.sections] == [
        ("role", "frozen", None),
        ("rules", "trainable", 800),
        ("guidance", "slow", 300),
    ]
    assert not skill.about_trainable


def test_a_trainable_about_is_known_by_the_word_before_it():
    skill = parts()["skill"]
    about = entity("about", None, words=("trainable",), value="Route.")
    found = resolved(skill=replace(skill, settings=settings(about=setting("Route.")), children=(about,))).plan
    assert found is not None
    assert found.skill.about_trainable


@pytest.mark.parametrize(
    ("name", "artifact"), [("route_tickets", "route-tickets"), ("_a__b_", "a-b"), ("Answer", "answer"), ("a1", "a1")]
)
def test_artifact_names(name, artifact):
    assert artifact_name(name) == artifact


def test_the_initial_document_splits_trainable_text_into_rules():
    skill = parts()["skill"]
    sections = (
        skill.children[0],
        entity("section", "rules", words=("trainable",), value="- Greet by name.\n- Say what happens next."),
    )
    found = resolved(skill=replace(skill, children=sections)).plan
    document = initial_document(found)
    assert document.name == "route-tickets"
    assert [rule.text for rule in document.sections[1].rules] == ["Greet by name.", "Say what happens next."]
    assert document.sections[0].text == "You route tickets."


def test_models_keep_their_own_settings():
    target = entity(
        "model",
        "target",
        value="hosted_vllm/Qwen",
        settings=settings(
            temperature=number("0.7"),
            max_tokens=number(512, "tokens"),
            base_url=Invocation("env", ("SERVER",)),
            key=Invocation("env", ("KEY",)),
            serve=setting(Word("vllm"), max_len=setting(number(8192)), eager=setting(Word("on"))),
            price=setting(True, input=setting(number(1, "$")), output=setting(number("2.5", "$"))),
            thinking=Word("off"),
            stop=Items(("END",)),
        ),
    )
    model = resolved(target=target).plan.models["target"]
    assert model.parameters == {"temperature": 0.7, "max_tokens": 512, "thinking": False, "stop": ["END"]}
    assert (model.base_url, model.base_url_env, model.key_env) == (None, "SERVER", "KEY")
    assert model.max_reply == 512
    assert model.serve == {"max_len": 8192, "eager": True}
    assert model.price.output == Fraction(5, 2)
    assert model.price.cached is None


def test_a_declared_max_reply_wins_over_max_tokens():
    target = entity(
        "model", "target", value="a/b", settings=settings(max_tokens=number(512), max_reply=number(900, "tokens"))
    )
    assert resolved(target=target).plan.models["target"].max_reply == 900


@pytest.mark.parametrize(
    ("value", "split"),
    [
        (Shares((number(2), number(1))), SplitPlan(parts=(Fraction(2), Fraction(1), Fraction(0)))),
        (Shares((number(4), number(2), number(4))), SplitPlan(parts=(Fraction(2), Fraction(1), Fraction(2)))),
        (Shares((number("0.5"), number("0.25"), number("0.25"))), SplitPlan(parts=(2, 1, 1))),
        (
            Shares((number(80, "examples"), number(40, "examples"), number(280, "examples"))),
            SplitPlan(unit="examples", parts=(80, 40, 280)),
        ),
    ],
)
def test_splits_are_in_their_smallest_numbers(value, split):
    data = entity("data", settings=settings(source="t.jsonl", split=value))
    assert resolved(data=data).plan.data.split == split


def test_files_for_the_sides_need_no_split():
    whole = entity("data", settings=settings(train="a", validation="b", test="c"))
    assert resolved(data=whole).plan.data.split is None


def test_data_fields_stand_in_the_alphabets_order():
    assert [field.name for field in plan().data.fields] == ["customer", "product"]


def test_the_loops_settings():
    optimize = entity(
        "optimize",
        settings=settings(
            batch=number(10, "examples"),
            edits=Invocation("linear", (number(6), number(1))),
            sees=Items((Word("trajectory"), Word("feedback"))),
            slow_update=False,
            meta_skill=False,
            trajectory_limit=number(500, "tokens"),
            method=Word("gepa"),
        ),
    )
    found = resolved(optimize=optimize).plan.optimize
    assert found == OptimizePlan(
        batch=10,
        edits=SchedulePlan(kind="linear", start=6, end=1),
        sees=("feedback", "trajectory"),
        slow_update=False,
        meta_skill=False,
        trajectory_limit=500,
        method="gepa",
    )


@pytest.mark.parametrize(
    ("value", "edits"),
    [
        (number(3), SchedulePlan(kind="constant", start=3, end=3)),
        (Invocation("constant", (number(3),)), SchedulePlan(kind="constant", start=3, end=3)),
        (Word("model"), SchedulePlan(kind="model")),
    ],
)
def test_schedules(value, edits):
    assert resolved(optimize=entity("optimize", settings=settings(edits=value))).plan.optimize.edits == edits


def test_a_rollout_keeps_its_arguments_and_settings():
    rollout = setting(
        Invocation("environment", ("alfworld",)),
        agent=setting(Word("react"), tools=setting(Items((Invocation("python", ("house:act",)),)))),
        turns=setting(number(50, "turns")),
    )
    task = replace(parts()["task"], settings={"rollout": rollout})
    found = resolved(task=task).plan.task.rollout
    assert (found.kind, found.arguments) == ("environment", ("alfworld",))
    assert found.settings["turns"] == 50
    assert found.settings["agent"]["kind"] == "react"


def test_field_types_are_kept():
    listed = entity("output", "actions", type=FieldType("list", item=FieldType("text"), optional=True))
    task = parts()["task"]
    found = resolved(task=replace(task, children=(*task.children, listed))).plan.task.outputs[1].type
    assert found.item is not None
    assert found.item.kind == "text"
    assert found.optional


def test_metrics_stand_after_those_they_read_whatever_their_order():
    a, b = metric("a", MetricTerm("z")), metric("z", Constant(Fraction(1)))
    goal = metric("goal", Operation("+", (MetricTerm("a"), MetricTerm("z"))), goal=True)
    orders = [(goal, a, b), (b, a, goal), (a, goal, b)]
    found = [resolve(checked(metrics=order)).plan.metrics for order in orders]
    assert [m.name for m in found[0]] == ["z", "a", "goal"]
    assert found[0] == found[1] == found[2]


def test_gates_and_requires_are_kept_apart():
    result = resolve(checked(gates=(gate("slow", BETTER, for_="slow"), gate("sure", BETTER, kind="require"))))
    assert [(g.name, g.for_, g.stage) for g in result.plan.gates] == [("slow", "slow", "validation")]
    assert [r.name for r in result.plan.requires] == ["sure"]


def test_a_library_has_no_plan():
    result = resolve(checked({"target": parts()["target"]}, metrics=(), gates=(), library=True))
    assert result.plan is None
    assert codes(result) == ["SK559"]


def test_a_second_skill_is_company():
    plan = resolved(other=replace(parts()["skill"], name="other")).plan
    assert [other.name for other in plan.others] == ["other"]


def test_a_program_with_errors_has_no_plan_and_no_further_words():
    error = Diagnostic("SK201", "unknown", Label(checked().program.source, checked().program.span))
    result = resolve(checked({}, diagnostics=(error,)))
    assert result.plan is None
    assert result.diagnostics == ()


def test_pacing_is_kept_apart_from_what_is_sent():
    target = entity(
        "model",
        "target",
        value="a/b",
        settings=settings(rpm=number(60), tpm=number(9000, "tokens"), timeout=number(30, "s")),
    )
    model = resolved(target=target).plan.models["target"]
    assert (model.pacing.rpm, model.pacing.tpm, model.pacing.timeout, model.pacing.concurrency) == (60, 9000, 30, None)
    assert model.parameters == {}


def test_a_plan_orders_thousands_of_metrics():
    count = 3000
    rows = [metric(f"m{i}", MetricTerm(f"m{i + 1}")) for i in range(count)]
    metrics = (*rows, metric(f"m{count}", CORRECT, goal=True), metric("a", CORRECT), metric("z", CORRECT))
    found = resolve_metrics(metrics)
    assert [each.name for each in found] == ["a", *(f"m{i}" for i in range(count, -1, -1)), "z"]
