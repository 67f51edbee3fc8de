"""What reaches a server on this machine for a task with images, and what reaches the optimizer instead."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import dspy
import pytest
from drawn import png
from faulty_server import Asked, FaultyServer, Step, say
from whole_compiles import compile_here

from skillc.errors import SkillcError
from skillc.images import most_image_tokens
from skillc.models.roles import resolve_roles

PROGRAM = """language 1
task {
  input  question: text
  input  page: image
  input  more: list[image] | none
  output team: "billing" | "shipping"
}
skill sort_pages { about = "Sort a page."; trainable section rules }
model target    = "openai/gpt-4o" { base_url = env("SERVER"); key = env("TEAM_KEY"); max_reply = 100 }
model optimizer = "openai/gpt-5.5" { base_url = env("SERVER"); key = env("TEAM_KEY"); max_reply = 500 }
data { train = "data/train.jsonl"; validation = "data/validation.jsonl" }
budget { steps = 1 }
goal right = exact_match(team)
gate better = candidate.right > incumbent.right
"""


def shop(folder: Path) -> Path:
    (folder / "data/pages").mkdir(parents=True)
    (folder / "things.skill").write_text(PROGRAM)
    for side, first in (("train", 0), ("validation", 3)):
        rows = []
        for i in range(first, first + 3):
            (folder / f"data/pages/{i}.png").write_bytes(png(30, 20, shade=i))
            more = ["pages/0.png", f"pages/{i}.png"] if i % 2 else None
            team = "shipping" if i % 3 else "billing"
            rows.append({"question": f"question {i}", "page": f"pages/{i}.png", "more": more, "team": team})
        (folder / f"data/{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def answer(asked: Asked) -> Step:
    if asked.body["model"] == "gpt-5.5":
        return say("I see nothing.")
    return say("[[ ## team ## ]]\nbilling\n\n[[ ## completed ## ]]")


def uri(folder: Path, i: int) -> str:
    return "data:image/png;base64," + base64.b64encode((folder / f"data/pages/{i}.png").read_bytes()).decode()


def parts_of(asked: Asked) -> list[Any]:
    """The user's message: texts, and addresses of images."""
    content = asked.body["messages"][-1]["content"]
    return [part["text"] if part["type"] == "text" else part["image_url"]["url"] for part in content]


def test_images_are_sent_in_the_order_of_the_fields_and_the_optimizer_reads_their_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shop(tmp_path / "shop")
    # Paths are the program's, wherever a run is started.
    monkeypatch.chdir(tmp_path)
    with FaultyServer(answer) as server:
        compile_here(folder, server.url, "sk-1234567")
        asked = server.asked
        targets = [each for each in asked if each.body["model"] == "gpt-4o" and len(each.body["messages"]) > 1]
        seen = {}
        for each in targets:
            parts = parts_of(each)
            number = int(re.findall(r"question (\d)", parts[0])[0])
            images = [part for part in parts if part.startswith("data:")]
            seen[number] = images
            assert images == [uri(folder, number), *([uri(folder, 0), uri(folder, number)] if number % 2 else [])]
            text = "".join("<image>" if part.startswith("data:") else part for part in parts)
            assert text.index("[[ ## question ## ]]") < text.index("[[ ## page ## ]]\n<image>")
            assert text.index("[[ ## page ## ]]") < text.index("[[ ## more ## ]]")
        assert set(seen) == set(range(6))

        prompts = [json.dumps(each.body) for each in asked if each.body["model"] == "gpt-5.5"]
        told = [prompt for prompt in prompts if "question 1" in prompt]
        assert told
        for prompt in prompts:
            assert "base64" not in prompt
        size = len(png(30, 20, shade=1))
        assert any(f"[image data/pages/1.png, 30 x 20 pixels, {size} bytes]" in prompt for prompt in told)

        # Only the calls with the image that changed are new.
        before = len(asked)
        (folder / "data/pages/4.png").write_bytes(png(31, 20, shade=4))
        compile_here(folder, server.url, "sk-1234567")
        fresh = [
            each for each in server.asked[before:] if each.body["model"] == "gpt-4o" and "question" in str(each.body)
        ]
        assert fresh
        assert all(parts_of(each)[1] == uri(folder, 4) for each in fresh)


def test_an_image_is_reserved_by_its_pixels_and_not_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    from model_plans import model, plan_of

    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567")
    plan = plan_of(model(name="openai/gpt-4o", max_reply=10), model("optimizer"))
    role = resolve_roles(plan, environ={"OPENAI_API_KEY": "sk-1234567"})["target"]

    def reserved(*images: bytes) -> int:
        parts = [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(i).decode()}}
            for i in images
        ]
        content = [{"type": "text", "text": "what is it?"}, *parts]
        return role.reservation({"messages": [{"role": "user", "content": content}], "max_tokens": 10}).tokens

    small, noisy = png(600, 400), png(600, 400) + b"x" * 300_000
    assert reserved(small) == reserved(noisy)
    one = reserved(small) - reserved()
    assert one >= most_image_tokens("openai/gpt-4o", 600, 400)
    assert reserved(small, small) - reserved(small) == one
    assert reserved(small) < 3_000


def prompts_of(program: Any, **inputs: Any) -> list[Any]:
    """The content of the user's message that a program sends."""
    lm = dspy.utils.DummyLM([{"team": "billing"}])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        program(**inputs)
    return lm.history[-1]["messages"][-1]["content"]


def test_the_loaded_program_and_the_emitted_module_take_paths_of_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import sys

    import skillc.importer  # noqa: F401
    from skillc.artifact_paths import ArtifactPaths
    from skillc.frontend import plan_file
    from skillc.plan.initial import initial_document
    from skillc.program.artifact import artifact_files, write_artifact

    folder = shop(tmp_path / "shop")
    plan = plan_file(folder / "things.skill", complete=False).plan
    paths = ArtifactPaths.beside(folder, plan.skill.artifact)
    write_artifact(paths, artifact_files(paths, plan, initial_document(plan)))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(paths.module.parent))
    first, second = importlib.import_module("things"), importlib.import_module(paths.module.stem)
    for name in ("things", paths.module.stem):
        monkeypatch.delitem(sys.modules, name)
    inputs = {
        "question": "q",
        "page": "data/pages/1.png",
        "more": [Path("data/pages/2.png"), dspy.Image(uri(folder, 3))],
    }
    expected = prompts_of(first.program, **inputs)
    assert [uri(folder, i) in str(expected) for i in range(4)] == [False, True, True, True]
    assert prompts_of(second.program, **inputs) == expected
    assert prompts_of(second.program, question="q", page="https://a.org/1.png", more=None) == prompts_of(
        first.program, question="q", page="https://a.org/1.png", more=None
    )
    with pytest.raises(SkillcError, match=r"the image `data/none\.png` cannot be read"):
        prompts_of(first.program, question="q", page="data/none.png", more=None)
