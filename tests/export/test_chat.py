"""Chat examples and preference pairs of a run: the target's own prompts, right against wrong, and never of test."""

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc.cli import skillc
from skillc.data.split import input_marks
from skillc.errors import SkillcError
from skillc.export.chat import LENGTH_BIAS, Chats, RunChats
from skillc.export.manifest import manifest_path, read_manifest, write_chats
from skillc.models.client import Client

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A small compile, and the messages that its target got."""
    folder = tmp_path_factory.mktemp("chat")
    rows = (TICKETS / "tickets.jsonl").read_text().splitlines()[:120]
    (folder / "tickets.jsonl").write_text("\n".join(rows) + "\n")
    text = (TICKETS / "tickets.skill").read_text()
    (folder / "tickets.skill").write_text(text.replace("epochs   = 4", "epochs   = 1"))
    sent, complete = [], Client.complete

    async def recorded(self, call):
        sent.append((call.role, json.dumps([[each.role, each.content] for each in call.messages])))
        return await complete(self, call)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "complete", recorded)
        done = CliRunner().invoke(skillc, ["compile", str(folder / "tickets.skill"), "--offline", "--quiet"])
    assert done.exit_code in (0, 1), done.output
    return folder / "tickets.skill", [messages for role, messages in sent if role == "target"]


def as_sent(messages):
    return json.dumps([[each["role"], each["content"]] for each in messages])


def test_the_prompt_is_what_the_target_got_with_the_skill_of_the_rollout_and_without_one(compiled):
    program, sent = compiled
    keep, drop = (RunChats(program, skill=skill).sft() for skill in ("keep", "drop"))
    assert len(keep.rows) == len(drop.rows) > 10
    assert {as_sent(row["prompt"]) for row in keep.rows} <= set(sent)
    for row, without in zip(keep.rows, drop.rows, strict=True):
        assert row["completion"] == without["completion"]
        assert row["prompt"][-1] == without["prompt"][-1]
        assert "You route support tickets" in row["prompt"][0]["content"]
        assert "You route support tickets" not in without["prompt"][0]["content"]


def test_each_completion_is_right_and_no_row_is_of_test_or_validation(compiled):
    found = RunChats(compiled[0])
    chats = found.sft()
    places = {name: placed.split for name, placed in found.view.examples.items()}
    assert {places[example.id] for example in chats.examples} == {"train"}
    for row, example in zip(chats.rows, chats.examples, strict=True):
        assert f"\n{example.gold['team']}\n" in row["completion"][0]["content"]
        assert example.inputs["ticket"].strip() in row["prompt"][-1]["content"]
    counts = Counter(places.values())
    assert chats.left_out["of test"] == counts["test"]
    assert chats.left_out["of validation"] == counts["validation"]
    assert len(chats.rows) + sum(chats.left_out.values()) == len(places)
    both = RunChats(compiled[0], splits=("train", "validation")).sft()
    assert both.splits["validation"] > 0
    assert not {example.id for example in both.examples} & {name for name, side in places.items() if side == "test"}


def test_pairs_are_right_against_wrong_on_the_same_example_with_a_margin(compiled):
    found = RunChats(compiled[0])
    pairs = found.dpo()
    assert pairs.rows
    for row, example in zip(pairs.rows, pairs.examples, strict=True):
        right = f"\n{example.gold['team']}\n"
        assert right in row["chosen"][0]["content"]
        assert right not in row["rejected"][0]["content"]
    assert not found.dpo(margin=1.01).rows
    for margin in (0.0, -1.0, float("nan")):
        with pytest.raises(SkillcError, match="margin"):
            found.dpo(margin=margin)


def test_a_threshold_that_nothing_reaches_is_an_error_with_the_reasons(compiled, tmp_path):
    chats = RunChats(compiled[0], threshold=1.5).sft()
    with pytest.raises(SkillcError, match=r"no chat example to write: .*no right answer"):
        write_chats(chats, tmp_path / "none.jsonl")
    assert not list(tmp_path.iterdir())


def test_the_manifest_names_the_examples_and_notices_another_file(compiled, tmp_path):
    file, found = tmp_path / "sft.jsonl", RunChats(compiled[0])
    chats = found.sft()
    manifest = write_chats(chats, file, found.view)
    assert read_manifest(file) == manifest
    assert manifest["rows"] == len(file.read_text().splitlines()) == len(manifest["examples"])
    test = found.view.dataset.test
    marks = {manifest["used_inputs"][i : i + 10] for i in range(0, len(manifest["used_inputs"]), 10)}
    assert not marks & {input_marks([example]) for example in test}
    assert {input_marks([example]) for example in chats.examples} == marks
    before = file.read_bytes()
    write_chats(chats, file, found.view)
    assert file.read_bytes() == before
    file.write_bytes(before + b"{}\n")
    with pytest.raises(SkillcError, match="is not the file that its manifest describes"):
        read_manifest(file)
    manifest_path(file).unlink()
    assert read_manifest(file) is None


def test_a_difference_in_length_is_a_warning_and_equal_lengths_are_none():
    def pairs(chosen, rejected):
        return Chats("dpo", (), lengths={"chosen": chosen, "rejected": rejected}).warnings

    assert "longer instead of right" in pairs(100 * LENGTH_BIAS + 1, 100)[0]
    assert "shorter instead of right" in pairs(100, 100 * LENGTH_BIAS + 1)[0]
    assert pairs(100, 101) == ()
    assert Chats("sft", (), lengths={"completion": 5}).warnings == ()


def test_the_verbs_write_files_and_refuse_test(compiled, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(skillc, ["export", *arguments], standalone_mode=False)

    for kind in ("sft", "dpo"):
        file = tmp_path / f"{kind}.jsonl"
        done = run(kind, str(compiled[0]), "--out", str(file))
        assert "left out: " in done.output, done.exception
        assert json.loads(file.read_text().splitlines()[0]).keys() == (
            {"prompt", "completion"} if kind == "sft" else {"prompt", "chosen", "rejected"}
        )
        shown = run(kind, str(compiled[0]), "--out", str(file), "--json")
        assert json.loads(shown.output)["kind"] == kind
        refused = run(kind, str(compiled[0]), "--out", str(tmp_path / "test.jsonl"), "--split", "test")
        assert isinstance(refused.exception, SkillcError)
        assert "refused" in str(refused.exception)
    assert not (tmp_path / "test.jsonl").exists()
