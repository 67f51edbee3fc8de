"""`compile --sanity`: cheap, writes nothing, and names the stage that is broken."""

import json

import pytest
from conftest_cli import PROGRAM, WORDS, rows, skillc

from skillc.errors import SkillcError
from skillc.frontend import estimate, plan_file
from skillc.models.calls import Completion, Usage
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.optimize.host import SilentObserver
from skillc.pipeline.report import sanity_text
from skillc.pipeline.sanity import CALLS, EXAMPLES, check_sanity, plan_for_sanity


class Replies(Client):
    """An optimizer that always says the same; a target that knows the words that the skill quotes, else says `tool`."""

    def __init__(self, plan, reply):
        super().__init__(plan, cache_folder=None)
        self._says = reply
        self.calls = []

    async def complete(self, call):
        self.calls.append(call)
        if call.role != "optimizer":
            return self._answered(str(call.messages[0].content), str(call.messages[-1].content))
        if self._says is None:
            raise CallFailed("transient", "the server is down")
        return Completion(self._says, "stop", Usage(1, 0, 1, 0), 0, "scripted", False)

    def _answered(self, skill, asked):
        kinds = {word: kind for kind, words in WORDS.items() for word in words}
        known = (kind for word, kind in kinds.items() if f'"{word}"' in skill and f" {word}" in asked)
        answer = f"[[ ## kind ## ]]\n{next(known, 'tool')}\n\n[[ ## completed ## ]]"
        return Completion(answer, "stop", Usage(1, 0, 1, 0), 0, "scripted", False)


def checked(folder, reply, program=PROGRAM):
    (folder / "things.skill").write_text(program)
    # `saw` is a tool here, and nothing else.
    clear = [{**row, "text": row["text"].replace("I saw", "I met")} for row in rows()]
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in clear))
    planned = plan_file(folder / "things.skill", runnable=True)
    estimated = estimate(planned)
    small = plan_for_sanity(planned, estimated)
    with Replies(small.plan, reply) as client:
        found = check_sanity(small, estimated, SilentObserver(), client)
    return found, client, estimated.dataset


def edits(*texts):
    made = [
        {"op": "add", "section": "rules", "text": text, "rationale": "why", "cures": ["t1", "t2"]} for text in texts
    ]
    return json.dumps({"edits": made})


def one_reflection(program):
    """The program with one reflection a step, so that nothing is merged and each edit keeps the cases that it names."""
    every = "batch = 12; drafts = 0; update = edits; successes = on;"
    return program.replace(every, "batch = 12; minibatch = 12; update = edits; successes = off;")


def unscreened(program):
    return one_reflection(program).replace("successes = off;", "successes = off; screen = 0;")


def said(found):
    return sanity_text(found, "correct").plain


def test_on_a_program_that_can_learn_it_says_so_and_writes_nothing(shop):
    before = sorted(shop.rglob("*"))
    done = skillc("compile", "things.skill", "--sanity", folder=shop)
    assert done.returncode == 0, done.stderr
    assert "unverified   feedback reaches the skill" in done.stdout
    assert "## Rules" in done.stdout
    assert sorted(shop.rglob("*")) == before


def test_a_compiled_skill_is_left_as_it_is(compiled, tmp_path):
    folder, _, _ = compiled
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    done = skillc("compile", "things.skill", "--sanity", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "unverified"
    assert found["changed"] is True
    assert found["after"] > found["before"]
    assert found["stages"]["accepted"] >= 1
    assert found["spent"]["charged"]["total"]["calls"] <= CALLS
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_it_asks_for_nothing_that_it_cannot_prove(shop):
    done = skillc("compile", "things.skill", "--sanity", "--require", "improved", folder=shop)
    assert done.returncode == 2
    assert "`--sanity` has no verdict" in done.stderr


def test_only_training_examples_are_used_and_the_same_ones_on_both_sides(tmp_path):
    found, client, dataset = checked(tmp_path, edits("no use"))
    assert found.examples == EXAMPLES
    shown = "\n".join(str(message.content) for call in client.calls for message in call.messages)
    hidden = [example.inputs["text"] for example in (*dataset.validation, *dataset.test)]
    assert not any(text in shown for text in hidden)


@pytest.mark.parametrize("reply", ["I would rather not.", "", None])
def test_replies_that_cannot_be_read_break_the_reflection(tmp_path, reply):
    found, _, _ = checked(tmp_path, reply)
    assert found.broken == "reflect"
    assert "reflections had a readable reply" in found.message
    assert "model optimizer" in found.hint
    assert not found.changed


def test_no_proposals(tmp_path):
    found, _, _ = checked(tmp_path, '{"edits": []}')
    assert (found.broken, found.funnel.answered > 0, found.funnel.edits) == ("reflect", True, 0)
    assert "proposed no edit" in found.message
    assert "`sees`" in found.hint


def test_edits_that_the_skill_does_not_take(tmp_path):
    reply = json.dumps({"edits": [{"op": "delete", "rule": "ffffff"}, {"op": "add", "section": "role", "text": "x y"}]})
    found, _, _ = checked(tmp_path, reply)
    assert found.broken == "edit"
    assert "there is no rule `ffffff`" in found.message


def test_edits_that_cure_nothing(tmp_path):
    found, _, _ = checked(tmp_path, edits("Think hard before you answer."), one_reflection(PROGRAM))
    assert found.broken == "screen"
    assert found.funnel.curing == 0
    assert "cured a failure" in found.message
    assert "check that the target follows the skill" in found.hint


CURE = 'If the text mentions "apple", "pear", "cherry" or "mango", answer fruit.'


def test_a_gate_that_lets_nothing_through(tmp_path):
    strict = PROGRAM + "gate no = tokens(candidate) <= 12 tokens\n"
    found, _, _ = checked(tmp_path, edits(CURE), unscreened(strict))
    assert found.broken == "gate"
    assert "gate `no` failed" in found.message
    assert "too strict" in found.hint
    assert said(found).count("0 of") >= 1


@pytest.mark.parametrize("test", ["confidence({}) >= 99.9%", "e_value({}) >= 1000"])
def test_sureness_is_not_asked_of_a_dozen_examples(tmp_path, test):
    claim = "candidate.correct > incumbent.correct"
    sure = PROGRAM.replace(claim, f"{test.format(claim)} and {claim}")
    found, _, _ = checked(tmp_path, edits(CURE), unscreened(sure))
    assert found.broken is None
    assert found.funnel.accepted == 1


def test_gates_that_nothing_could_pass(tmp_path):
    far = PROGRAM.replace("> incumbent.correct", "> incumbent.correct + 90%")
    found, _, _ = checked(tmp_path, edits(CURE), far)
    assert found.broken == "gate"
    assert found.message == "no candidate can pass the gates on 12 examples, so none was made"


def test_nothing_to_learn(tmp_path):
    known = "\n".join(
        f'  - If the text mentions "{a}", "{b}", "{c}" or "{d}", answer {kind}.' for kind, (a, b, c, d) in WORDS.items()
    )
    program = PROGRAM.replace("section rules { limit", f'section rules = """\n{known}\n  """ {{ limit')
    found, _, _ = checked(tmp_path, edits("no use"), program)
    assert found.broken is None
    assert found.message == "the initial skill is right on all 12 examples"


def test_the_cap_on_calls_is_small_and_a_smaller_one_of_the_program_stands(tmp_path):
    _, client, _ = checked(tmp_path, edits(CURE))
    assert len(client.calls) <= CALLS
    (tmp_path / "other").mkdir()
    small = PROGRAM.replace("patience = 6 steps", "patience = 6 steps; calls = 300")
    planned = plan_file(tmp_path / "things.skill")
    (tmp_path / "other" / "things.skill").write_text(small)
    (tmp_path / "other" / "things.jsonl").write_text((tmp_path / "things.jsonl").read_text())
    capped = plan_file(tmp_path / "other" / "things.skill", settings=("budget.calls=20",))
    assert plan_for_sanity(capped, estimate(planned)).plan.budget.calls == 20


def test_a_dead_target_is_an_error_with_its_own_words(tmp_path):
    class Dead(Replies):
        async def complete(self, call):
            raise CallFailed("transient", "the server is down")

    (tmp_path / "things.skill").write_text(PROGRAM)
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    planned = plan_file(tmp_path / "things.skill")
    estimated = estimate(planned)
    small = plan_for_sanity(planned, estimated)
    with Dead(small.plan, None) as client, pytest.raises(SkillcError, match="could not be measured"):
        check_sanity(small, estimated, SilentObserver(), client)
