"""Training examples that no rule explains are shown at the end of a compile: their answers may be wrong."""

import json
import re

import pytest
from click.testing import CliRunner
from workshop import KIND_OF

from skillc.cli import skillc

PROGRAM = """language 1
task {
  input  text: text
  output kind: KINDS
}
skill sort_texts {
  about = "Sort texts."
  trainable section rules
}
model target    = "rulebook/v1"
model optimizer = "own/author" { backend = python("author:write") }
data {
  train      = "train.jsonl"
  validation = "validation.jsonl"
}
goal correct = exact_match(kind)
budget { epochs = 2 }
gate better = candidate.correct > incumbent.correct
"""
AUTHOR = """
import json, re

KIND_OF = WORDS

def write(messages, model, parameters):
    prompt = messages[-1]["content"]
    wrong = []
    for part in re.split(r"(?=<(?:case|trajectory) tag=)", prompt)[1:]:
        tag, body = part.split('"')[1], part
        gold = re.search(r"<gold>(.*?)</gold>", body)
        kinds = {kind for word, kind in KIND_OF.items() if word in body.partition("<gold>")[0]}
        if NAMES and gold and gold[1].strip() not in kinds:
            wrong.append(tag)
    rules = [{"text": f"If the text has {word}, answer {kind}.", "topic": ""} for word, kind in KIND_OF.items()]
    if 'stage="draft"' in prompt:
        return json.dumps({"analysis": "", "sections": [{"section": "rules", "rules": rules}], "unexplained": wrong})
    return json.dumps({"summary": "", "edits": [], "unexplained": wrong})
"""
WRONG = (3, 11)


def rows(count, wrong=()):
    words = list(KIND_OF)
    for number in range(count):
        word = words[number % len(words)]
        kind = KIND_OF[word]
        if number in wrong:
            kind = next(each for each in sorted(set(KIND_OF.values())) if each != kind)
        yield {"text": f"note {number} on {word}", "kind": kind}


def compiled(folder, *options, names="True", wrong=WRONG):
    kinds = " | ".join(json.dumps(kind) for kind in sorted(set(KIND_OF.values())))
    (folder / "sort.skill").write_text(PROGRAM.replace("KINDS", kinds))
    (folder / "author.py").write_text(AUTHOR.replace("WORDS", repr(KIND_OF)).replace("NAMES", names))
    for name, marked in (("train", wrong), ("validation", ())):
        lines = "".join(json.dumps(row) + "\n" for row in rows(40 if name == "train" else 24, marked))
        (folder / f"{name}.jsonl").write_text(lines.replace("note", f"{name} note"))
    done = CliRunner().invoke(skillc, ["compile", str(folder / "sort.skill"), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(autouse=True)
def fresh_modules(monkeypatch):
    """Each test has an `author.py` of its own."""
    import sys

    monkeypatch.delitem(sys.modules, "author", raising=False)


def test_the_places_of_wrong_answers_are_shown(tmp_path):
    said = compiled(tmp_path)
    assert "look at   2 training examples for which the optimizer saw no rule: answers may be wrong" in said
    assert "`train.jsonl` line 4 and 12\n" in said


@pytest.mark.parametrize("more", [{"names": "False"}, {"wrong": ()}])
def test_nothing_is_shown_where_nothing_was_named_or_nothing_is_wrong(tmp_path, more):
    assert "look at" not in compiled(tmp_path, **more)


def test_the_ids_are_in_the_object(tmp_path):
    said = json.loads(compiled(tmp_path, "--json"))
    assert len(said["unexplained"]) == 2


def test_of_many_places_the_first_are_shown(tmp_path):
    said = compiled(tmp_path, wrong=range(0, 40, 2))
    assert re.search(r"^ {10}`train\.jsonl` line \d+(, \d+){6} and \d+ more$", said, re.MULTILINE)
