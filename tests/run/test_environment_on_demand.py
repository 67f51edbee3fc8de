"""A skill that the target opens by itself in an environment, through the whole compile loop."""

import json
import re
from pathlib import Path

import pytest

import skillc
from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Job, compile_job
from skillc.trajectories.signals import opened_skills

pytestmark = pytest.mark.thorough

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "environments.md"
PLACES = {"lamp": "attic", "rope": "cellar", "apple": "kitchen", "chest": "attic", "wine": "cellar"}
PLAYER = '''
import json
import re


def act(messages, model, parameters):
    """Opens the skill by its description, and goes where the skill says; for errands of another kind that is wrong."""
    skill, now = messages[0]["content"], messages[-1]["content"]
    possible, errand = re.findall(r"^- (.*)$", now, re.MULTILINE), messages[1]["content"]
    thing = re.search(r"the (\\w+)\\.", errand)[1]
    about = re.search(r"- fetch-things: (.*)", skill)
    if "open_skill fetch-things" in possible and "Bring" in about[1] and "Bring" in errand:
        return "open_skill fetch-things"
    known = re.search(rf"The {thing} is in the (\\w+)", skill)
    turn = sum(message["role"] == "assistant" for message in messages)
    if f"take {thing}" in possible:
        return f"take {thing}"
    return f"go to {known[1] if known else ('kitchen', 'cellar', 'attic')[turn % 3]}"


def improve(messages, model, parameters):
    text = messages[-1]["content"]
    tags = re.findall(r'tag="(t\\d+)"', text)
    if any("section `about`" in message["content"] for message in messages):
        edits = [{"op": "add", "section": "about", "text": 'Bring, in "Bring Ada the lamp."', "cures": tags}]
        return json.dumps({"summary": "say when", "edits": edits, "unexplained": []})
    rules = {}
    for tag, steps in re.findall(r'tag="(t\\d+)".*?<steps>(.*?)</steps>', text, re.DOTALL):
        for place, thing in re.findall(r"You are in the (\\w+)\\. The (\\w+) is here", steps):
            rules.setdefault(f"The {thing} is in the {place}.", []).append(tag)
    edits = [{"op": "add", "section": "rules", "text": rule, "cures": cured} for rule, cured in rules.items()]
    return json.dumps({"summary": "things have a place", "edits": edits, "unexplained": []})
'''
PROGRAM = """language 1
task {
  input  errand: text
  output action: text
  rollout = environment("rooms:House") { turns = 3; processes = 2 }
}
skill fetch_things {
  trainable about = "How to find things."
  load = on_demand
  trainable section rules { limit = 300 tokens }
}
model target    = "mine/player" { backend = python("on_demand_player:act") }
model optimizer = "mine/improver" { backend = python("on_demand_player:improve") }
data { source = "games.jsonl"; field thing: text; field place: text; field kind: text; split = 1 : 1 : 1; seed = 3 }
goal   won   = 0.9 * reward() + 0.1 * (1 - turns() / 3 turns)
metric opens = opened(fetch_things)
optimize { batch = 10; edits = 4; drafts = 0; update = edits; meta_skill = off }
budget   { epochs = 3 }
gate better = candidate.won > incumbent.won
gate finds  = recall(opens, kind == "bring") >= 90%
gate narrow = precision(opens, kind == "bring") >= 90%
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("on_demand")
    house = GUIDE.read_text()
    (folder / "rooms.py").write_text(re.search(r'```python title="house.py"\n(.*?)```', house, re.DOTALL)[1])
    (folder / "on_demand_player.py").write_text(PLAYER)
    (folder / "fetch.skill").write_text(PROGRAM)
    rows = [
        {"errand": f"{verb} {who} the {thing}.", "thing": thing, "place": place, "kind": kind}
        for who in ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Ida", "Jon")
        for thing, known in PLACES.items()
        for verb, kind, place in (("Bring", "bring", known), ("Show", "show", "kitchen"))
    ]
    (folder / "games.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    planned = plan_file(folder / "fetch.skill")
    estimated = estimate(planned)
    with Client(planned.plan, root=folder) as client:
        done = compile_job(Job(planned, estimated, folder / "skills", folder / ".skillc"), SilentObserver(), client)
    return done, estimated.bounds, folder


def test_description_and_text_are_trained_in_an_environment(compiled) -> None:
    done, bounds, _ = compiled
    best = done.trained.state.best
    assert "Bring" in best.about
    assert best.sections[0].rules
    assert done.lock.charged.calls <= bounds.total.most.calls


def test_the_three_arms_are_measured_apart(compiled) -> None:
    done, _, _ = compiled
    validation = done.lock.validation
    assert validation.none.mean < validation.best.mean
    assert validation.always_read.mean < validation.best.mean
    engine, best = done.trained.engine, done.trained.state.best
    for example in engine.dataset.validation:
        opened = opened_skills(engine.rollouts.known(best, example).trajectory)
        assert opened == (("fetch-things",) if example.fields["kind"] == "bring" else ())
        assert not opened_skills(engine.always_read.known(best, example).trajectory)


def test_where_it_was_opened_is_in_the_lock(compiled) -> None:
    done, _, _ = compiled
    opened = done.lock.validation.opened
    assert (opened.precision, opened.recall) == (1, 1)


def test_the_compiled_skill_is_offered_where_its_folder_is_loaded(compiled) -> None:
    _, _, folder = compiled
    fetch = skillc.load(folder / "skills" / "fetch-things")
    for verb, opened in (("Bring", ("fetch-things",)), ("Show", ())):
        done = fetch(errand=f"{verb} Zoe the lamp.", thing="lamp", place="attic", kind="new")
        assert opened_skills(done.trajectory) == opened
