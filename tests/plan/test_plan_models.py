"""Models in the plan: names from the environment, commands, functions of the user's own, the price of a call."""

from __future__ import annotations

from fractions import Fraction

import pytest
from plan_samples import plan

from skillc.budget.spend import one_call
from skillc.diagnostics.codes.code import program
from skillc.errors import SkillcError
from skillc.frontend import check
from skillc.plan.digest import plan_digest, run_id, run_parts
from skillc.plan.models import override_models, put_offline, require_names, resolve_model_names
from skillc.plan.resolve import resolve
from skillc.plan.schema import AnswerPlan, ExecPlan, ModelPlan, Plan, PricePlan
from skillc.syntax.source import Source

COMMAND = """"exec/tool" {
  exec = "tool --json 'two words' {prompt}" {
    answer = json(".a[0].b"); folder = "ws"; environment = [env("B"), env("A")]
  }
  key = env("KEY"); timeout = 2 min; price { call = $0.05 }
}"""


def planned(target: str) -> Plan:
    text = program().replace('model target    = "rulebook/v1"', f"model target = {target}")
    found = resolve(check(Source("main.skill", text)))
    assert found.plan is not None, found.diagnostics
    return found.plan


def run_of(changed: Plan, **sources: str) -> str:
    return run_id(run_parts(changed, "d", "s", {}, "1", sources))


# ---- names from the environment -------------------------------------------------------------------


def test_a_name_from_the_environment_is_the_name() -> None:
    open_ = planned('env("TEAM_MODEL") { temperature = 0 }')
    assert (open_.models["target"].model, open_.models["target"].model_env) == ("", "TEAM_MODEL")
    found = resolve_model_names(open_, {"TEAM_MODEL": " openai/gpt-5.5 "})
    assert found == planned('"openai/gpt-5.5" { temperature = 0 }')
    assert plan_digest(found) == plan_digest(planned('"openai/gpt-5.5" { temperature = 0 }'))
    assert run_of(found) != run_of(resolve_model_names(open_, {"TEAM_MODEL": "openai/gpt-5.6"}))


def test_a_name_that_is_not_set_is_said_with_the_way_out() -> None:
    open_ = resolve_model_names(planned('env("TEAM_MODEL")'), {"TEAM_MODEL": ""})
    with pytest.raises(SkillcError, match="`TEAM_MODEL`, which is not set") as caught:
        require_names(open_)
    assert "--model target=" in str(caught.value.hint)
    require_names(put_offline(open_))
    chosen = override_models(open_, {"target": "openai/gpt-5.5"})
    require_names(chosen)
    assert chosen.models["target"].model == "openai/gpt-5.5"


def test_an_option_wins_over_the_environment() -> None:
    found = override_models(
        resolve_model_names(planned('env("M") { key = env("K") }'), {"M": "openai/a"}), {"target": "openai/b"}
    )
    assert (found.models["target"].model, found.models["target"].key_env) == ("openai/b", "K")


def test_what_names_no_provider_is_not_shown_for_it_may_be_a_key() -> None:
    with pytest.raises(SkillcError, match="`TEAM_MODEL`") as caught:
        resolve_model_names(planned('env("TEAM_MODEL")'), {"TEAM_MODEL": "sk-planted-0123456789"})
    assert "planted" not in caught.value.message + str(caught.value.hint)


# ---- commands and functions -----------------------------------------------------------------------


def test_a_command_is_read_into_words_and_an_answer() -> None:
    model = planned(COMMAND).models["target"]
    assert model.exec == ExecPlan(
        command=("tool", "--json", "two words", "{prompt}"),
        answer=AnswerPlan(kind="json", path=("a", 0, "b")),
        folder="ws",
        environment=("A", "B"),
    )
    assert (model.key_env, model.pacing.timeout, model.parameters) == ("KEY", 120, {})
    assert model.exec.shown == "tool --json 'two words' {prompt}"
    assert model.exec.places == {"prompt"}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", AnswerPlan()),
        ("{ answer = stdout }", AnswerPlan()),
        ('{ answer = after("A:") }', AnswerPlan(kind="after", text="A:")),
        ('{ answer = match("a+") }', AnswerPlan(kind="match", text="a+")),
        ('{ answer = file("last.txt") }', AnswerPlan(kind="file", text="last.txt")),
    ],
)
def test_the_ways_to_an_answer(text: str, answer: AnswerPlan) -> None:
    command = planned(f'"exec/tool" {{ exec = "tool" {text} }}').models["target"].exec
    assert command is not None
    assert command.answer == answer


def test_a_run_is_named_by_its_command_and_not_by_its_layout() -> None:
    same = COMMAND.replace("tool --json", "tool   --json").replace('[env("B"), env("A")]', '[env("A"), env("B")]')
    assert run_of(planned(same)) == run_of(planned(COMMAND))
    assert run_of(planned(COMMAND.replace("2 min", "3 min"))) == run_of(planned(COMMAND))
    for old, new in (("--json", "--text"), (".a[0].b", ".a[1].b"), ('"ws"', '"other"'), ('env("B")', 'env("C")')):
        assert run_of(planned(COMMAND.replace(old, new))) != run_of(planned(COMMAND))


def test_a_run_is_named_by_the_source_of_a_function() -> None:
    own = planned('"mine/large" { backend = python("own:answer") }')
    assert own.models["target"].backend == "own:answer"
    assert len({run_of(own), run_of(own, target="backend:mine@1"), run_of(own, target="backend:mine@2")}) == 3


def test_a_command_survives_json() -> None:
    assert Plan.model_validate_json(planned(COMMAND).model_dump_json()) == planned(COMMAND)


# ---- the price of a call --------------------------------------------------------------------------


def test_a_call_has_a_price_beside_its_tokens() -> None:
    price = planned(COMMAND).models["target"].price
    assert price == PricePlan(input=Fraction(0), output=Fraction(0), call=Fraction("0.05"))
    assert one_call(1000, 10, price).cost == Fraction("0.05")
    assert one_call(1_000_000, 0, PricePlan(input=Fraction(2), output=Fraction(0), call=Fraction(1))).cost == 3


def test_the_plan_shows_a_command_its_price_and_a_function() -> None:
    from plan_samples import SIZES

    from skillc.budget.bounds import bounds
    from skillc.budget.render import as_text

    models = {
        "optimizer": ModelPlan(role="optimizer", model="mine/large", backend="own:answer"),
        "target": planned(COMMAND).models["target"].model_copy(update={"role": "target"}),
    }
    changed = plan(models=models, budget={"epochs": 1})
    shown = as_text(changed, bounds(changed, SIZES, {}))
    assert "$0.05 a call" in shown
    assert "runs `tool --json 'two words' {prompt}`" in shown
    assert "answered by `own:answer`" in shown
