"""Models that are functions: the prompts of a real compile are read, and the replies are understood."""

import base64
import json

from click.testing import CliRunner

from skillc import scripted
from skillc.cli import skillc as verbs

PROGRAM = """language 1
task {{
  input  animal: text
  output sound: text
  rollout = {rollout}
}}
skill imitate {{
  about = "Say what an animal says."
  trainable section rules {{ limit = 300 tokens }}
}}
model target    = "mine/player" {{ backend = python("farm:act") }}
model optimizer = "mine/editor" {{ backend = python("farm:improve") }}
data {{ source = "farm.jsonl"; split = 1 : 1 : 1 }}
goal right = exact_match(sound)
optimize {{ batch = 4 }}
budget {{ epochs = 2 }}
gate better = candidate.right > incumbent.right
"""
FARM = """
from skillc import scripted

SOUNDS = {"cow": "moo", "hen": "cluck", "pig": "oink"}


def act(messages, model, parameters):
    asked = scripted.read(messages)
    kind = asked.inputs["animal"].split()[0]
    return asked.answer(sound=SOUNDS[kind] if f"A {kind} says {SOUNDS[kind]}." in asked.skill else "nothing")


def improve(messages, model, parameters):
    return scripted.learn(messages, lambda case, skill: [f"A {case.inputs['animal'].split()[0]} says {case.gold}."])
"""


def compiled(folder, rollout):
    (folder / "farm.skill").write_text(PROGRAM.format(rollout=rollout))
    (folder / "farm.py").write_text(FARM)
    sounds = {"cow": "moo", "hen": "cluck", "pig": "oink"}
    rows = [{"animal": f"{kind} <{i}>", "sound": sound} for i in range(9) for kind, sound in sounds.items()]
    (folder / "farm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(verbs, ["compile", str(folder / "farm.skill"), "--json", "--quiet"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout), (folder / "skills/imitate/SKILL.md").read_text()


def test_a_compile_with_functions_learns_all_rules(tmp_path):
    summary, skill = compiled(tmp_path, "chain_of_thought")
    assert summary["validation"]["best"]["mean"] == 1
    assert summary["validation"]["initial"]["mean"] == 0
    for rule in ("A cow says moo.", "A hen says cluck.", "A pig says oink."):
        assert rule in skill


def test_images_of_a_prompt_are_read_in_their_order():
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(b'one').decode()}"}}
    other = {"type": "image_url", "image_url": {"url": "https://example.org/two.png"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "look"}, part, other, part]}]
    assert scripted.read(messages).images == (b"one", b"one")
    assert scripted.read([{"role": "user", "content": "look"}]).images == ()


def test_a_reply_reports_about_four_characters_a_token():
    sent = scripted.reply("12345678", [{"role": "user", "content": "x" * 400}])
    assert sent.usage == {"prompt_tokens": 101, "completion_tokens": 3}
