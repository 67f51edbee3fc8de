"""`--set`, `--model`, `--offline`."""

from fractions import Fraction

import pytest
from plan_samples import plan

from skillc.errors import SkillcError
from skillc.language.loop import SchedulePlan
from skillc.plan.models import override_models, put_offline
from skillc.plan.schema import PricePlan
from skillc.plan.settings import override


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("budget.cost", "1", Fraction(1)),
        ("budget.cost", "$0.50", Fraction(1, 2)),
        ("budget.cost", "none", None),
        ("budget.time", "90 min", Fraction(5400)),
        ("budget.time", "8h", Fraction(28800)),
        ("budget.tokens", "31M", 31_000_000),
        ("budget.tokens", "2k tokens", 2000),
        ("budget.patience", "8 steps", 8),
        ("budget.patience", "8", 8),
        ("budget.epochs", "1_0", 10),
        ("budget.min_gain", "0.5%", Fraction(1, 200)),
        ("optimize.batch", "20 examples", 20),
        ("optimize.edits", "cosine(8, 4)", SchedulePlan(start=8, end=4)),
        ("optimize.edits", "3", SchedulePlan(kind="constant", start=3, end=3)),
        ("optimize.edits", "constant(3)", SchedulePlan(kind="constant", start=3, end=3)),
        ("optimize.edits", "model", SchedulePlan(kind="model")),
        ("optimize.sees", "[trajectory, gold]", ("gold", "trajectory")),
        ("optimize.sees", "gold, feedback", ("gold", "feedback")),
        ("optimize.trajectory_limit", "300", 300),
        ("optimize.meta_skill", "off", False),
        ("optimize.tidy", "on", True),
        ("optimize.method", "one_shot", "one_shot"),
        ("optimize.wave", "none", None),
        ("optimize.screen", "0", 0),
        ("optimize.control", "off", False),
        ("optimize.together", "off", False),
        ("optimize.replay", "0", 0),
        ("data.seed", "0", 0),
    ],
)
def test_settings_are_written_as_in_a_program(key, text, value):
    block, name = key.split(".")
    assert getattr(getattr(override(plan(), {key: text}), block), name) == value


@pytest.mark.parametrize(
    ("key", "text", "message", "hint"),
    [
        ("budget.cots", "1", "unknown setting `budget.cots`", "did you mean `budget.cost`?"),
        ("cost", "1", "unknown setting `cost`", "did you mean `budget.cost`?"),
        ("zzz.qqq", "1", "unknown setting `zzz.qqq`", "valid settings: `data.seed`, `optimize.method`, "),
        ("budget.time", "90", "`time` needs a unit, in `--set budget.time=90`", "write `90 min`"),
        ("budget.time", "90 minutes", "unknown unit `minutes`, in `--set budget.time=90 minutes`", "write `90 min`"),
        ("budget.cost", "-1", "`cost` must be at least 0, in `--set budget.cost=-1`", None),
        ("budget.epochs", "1.5", "`epochs` must be a whole number, in `--set budget.epochs=1.5`", "write `1` or `2`"),
        ("budget.epochs", "0", "`epochs` must be at least 1, in `--set budget.epochs=0`", None),
        ("budget.tokens", "5 s", "`tokens` takes `tokens`, not `s`, in `--set budget.tokens=5 s`", "number of tokens"),
        ("budget.cost", "", "no value follows the `=`, in `--set budget.cost=`", "write the value"),
        ("budget.cost", "1 }", "unmatched `}`, in `--set budget.cost=1 }`", "remove it"),
        (
            "budget.cost",
            "1; epochs = 4",
            "`epochs` is not allowed here, in `--set budget.cost=1; epochs = 4`",
            "`budget`",
        ),
        ("optimize.meta_skill", "yes", "`meta_skill` takes `on` or `off`, in `--set optimize.meta_skill=yes`", "`on`"),
        (
            "optimize.edits",
            "cosine(4)",
            "`cosine` takes 2 arguments, not 1, in `--set optimize.edits=cosine(4)`",
            "(4, 2)",
        ),
        ("optimize.rollback", "5", "`rollback` must be at most 1, in `--set optimize.rollback=5`", None),
    ],
)
def test_what_does_not_fit_is_an_error_with_the_fix(key, text, message, hint):
    with pytest.raises(SkillcError) as error:
        override(plan(), {key: text})
    assert error.value.message == message
    assert error.value.hint == hint if hint is None else hint in error.value.hint


def test_a_word_that_is_not_known_is_corrected_as_in_a_program():
    with pytest.raises(SkillcError) as error:
        override(plan(), {"optimize.method": "geppa"})
    assert "`method` takes `skillc`, `gepa`" in error.value.message
    assert error.value.hint == "did you mean `gepa`?"


def test_nothing_else_changes():
    changed = override(plan(), {"budget.cost": "1", "optimize.batch": "5"})
    assert changed == plan(budget={"cost": Fraction(1)}, optimize={"batch": 5})
    assert override(plan(), {}) == plan()


def full(model):
    return model.model_copy(
        update={
            "parameters": {"temperature": 0.2, "reasoning_effort": "low"},
            "key_env": "K",
            "base_url": "http://x",
            "price": PricePlan(input=Fraction(1), output=Fraction(1)),
            "serve": {},
            "max_reply": 99,
        }
    )


def test_a_model_of_the_same_provider_keeps_the_settings():
    program = plan(models={**plan().models, "target": full(plan().models["target"])})
    model = override_models(program, {"target": "openai/other"}).models["target"]
    assert model == full(plan().models["target"]).model_copy(update={"model": "openai/other", "price": None})
    assert override_models(program, {"target": "openai/small"}) == program


def test_a_model_of_another_provider_drops_what_belongs_to_the_old_one():
    program = plan(models={**plan().models, "target": full(plan().models["target"])})
    model = override_models(program, {"target": "anthropic/x"}).models["target"]
    assert model.parameters == {"temperature": 0.2}
    assert (model.key_env, model.base_url, model.price, model.serve) == (None, None, None, None)
    assert model.max_reply == 99
    assert override_models(program, {"target": "rulebook/v1"}).models["target"].parameters == {}


def test_unknown_roles_and_bare_names_are_errors():
    with pytest.raises(SkillcError) as error:
        override_models(plan(), {"traget": "a/b"})
    assert error.value.hint == "did you mean `target`?"
    with pytest.raises(SkillcError) as error:
        override_models(plan(), {"target": "gpt-5"})
    assert error.value.hint == "write `--model target=openai/gpt-5`"


def test_offline_puts_the_rulebook_in_place_of_every_model():
    program = plan(models={role: full(model) for role, model in plan().models.items()})
    changed = put_offline(program)
    assert {model.model for model in changed.models.values()} == {"rulebook/v1"}
    for model in changed.models.values():
        assert (model.parameters, model.key_env, model.base_url, model.price, model.serve) == (
            {},
            None,
            None,
            None,
            None,
        )
        assert model.max_reply == 99
    assert put_offline(changed) == changed
    assert changed.model_copy(update={"models": program.models}) == program


def test_offline_leaves_a_rulebook_as_it_is():
    noisy = plan().models["target"].model_copy(update={"model": "rulebook/v1", "parameters": {"noise": 0.1}})
    assert put_offline(plan(models={**plan().models, "target": noisy})).models["target"] == noisy
