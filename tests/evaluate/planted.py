"""A compiled skill whose rules have known effects under a scripted target."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import load
from skillc.data.split import split_digest
from skillc.document.skill import digest, split_rules
from skillc.document.skill_md import to_skill_md
from skillc.evaluate.recheck.job import RecheckJob, RecheckOptions, prepare_recheck
from skillc.evaluate.recheck.run import PartResult, Recheck, recheck
from skillc.frontend import plan_file
from skillc.models.client import Client
from skillc.optimize.host import Observer, SilentObserver
from skillc.plan.digest import plan_digest
from skillc.plan.initial import initial_skill
from skillc.plan.lock import (
    ArmLock,
    DataLock,
    Lock,
    LookLock,
    ModelLock,
    ProgramLock,
    SkillLock,
    TestLock,
    ValidationLock,
    write_lock,
)
from skillc.run.stop import Stop

PAYS = "If the text mentions a hammer, a saw, a chisel or a wrench, answer tool."
HARMS = "If the text mentions a horse, an otter, a heron or a lynx, answer fruit."
NOTHING = "If the text is long, stay polite."
# It knows every kind but tools, and follows rules. With `noise` it errs by the digest of the whole prompt.
TARGET = f"""
import hashlib, re

import skillc

WORDS = {{"tool": "hammer|saw|chisel|wrench", "animal": "horse|otter|heron|lynx"}}

def answered(messages, noise):
    prompt = "\\n".join(message["content"] for message in messages)
    asked = messages[-1]["content"]
    kind = next((kind for kind, words in WORDS.items() if re.search(words, asked)), "fruit")
    if kind == "tool" and {PAYS!r} not in prompt:
        kind = "fruit"
    if kind == "animal" and {HARMS!r} in prompt:
        kind = "fruit"
    if hashlib.sha256(prompt.encode()).digest()[0] < 256 * noise:
        kind = {{"fruit": "animal", "animal": "tool", "tool": "fruit"}}[kind]
    text = f"[[ ## kind ## ]]\\n{{kind}}\\n\\n[[ ## completed ## ]]"
    return skillc.Reply(text, usage={{"prompt_tokens": len(prompt) // 4, "completion_tokens": 20}})

def planted(messages, model, parameters):
    return answered(messages, 0)

def noisy(messages, model, parameters):
    return answered(messages, 0.1)
"""
MODELS = (
    'model noisy = "own/noisy" { backend = python("mine:noisy") }\n'
    'model gone = "hosted_vllm/x/y" { base_url = "http://127.0.0.1:9/v1" }\n'
)
PROGRAM = f"""language 1
task {{
  input  text: text
  output kind: "fruit" | "tool" | "animal"
}}
skill sort_things {{
  about = "Say what kind of thing a text is about."
  trainable section rules {{ limit = 600 tokens }}
}}
model target    = "own/planted" {{ backend = python("mine:planted"); max_tokens = 40 }}
model optimizer = "rulebook/v1"
{MODELS}data {{ source = "things.jsonl"; split = 1 : 1 : 1; seed = 3 }}
goal correct = exact_match(kind)
budget {{ epochs = 1 }}
gate better = candidate.correct > incumbent.correct
"""
KINDS = {"fruit": "apple pear cherry mango", "tool": "hammer saw chisel wrench", "animal": "horse otter heron lynx"}
LOCK = "skills/sort-things.lock"


def rows(count: int) -> list[dict[str, str]]:
    """As many of each kind."""
    return [
        {"id": f"x{i}", "text": f"number {i} is a {words.split()[i // 3 % 4]}", "kind": kind}
        for i in range(count)
        for kind, words in [list(KINDS.items())[i % 3]]
    ]


def planted_in(folder: Path, *rules: str, mean: float = 1.0, count: int = 84) -> Path:
    """A program with a compiled skill of these rules, whose lock has a mean of the goal on validation and test."""
    paths = ArtifactPaths.beside(folder, "sort-things")
    paths.folder.mkdir(parents=True)
    (folder / "things.skill").write_text(PROGRAM)
    (folder / "mine.py").write_text(TARGET)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(count)))
    plan = plan_file(folder / "things.skill", complete=False).plan
    initial = initial_skill(plan, folder)
    (section,) = initial.sections
    skill = initial.with_section(replace(section, rules=split_rules("\n".join(f"- {rule}" for rule in rules), "rules")))
    paths.skill.write_text(to_skill_md(skill))
    data = load(plan.task, plan.data, folder)
    best = ArmLock(mean=Fraction(mean), n=len(data.validation))
    lock = Lock(
        decision_version="0",
        run="0" * 64,
        program=ProgramLock(file="things.skill", path="../things.skill", plan=plan_digest(plan)),
        data=DataLock(digest=data.digest, train=len(data.train), validation=len(data.validation), test=len(data.test)),
        skill=SkillLock(initial=digest(initial), best=digest(skill)),
        files={paths.key(paths.skill): hashlib.sha256(paths.skill.read_bytes()).hexdigest()},
        models={"target": ModelLock(model="own/planted", parameters=plan.models["target"].parameters)},
        verdict="improved",
        validation=ValidationLock(best=best),
        test=TestLock(best=ArmLock(mean=Fraction(mean), n=len(data.test))),
        stopped="epochs after decision 1",
        looks=(LookLock(run="0" * 64, initial=digest(initial), best=digest(skill), test=split_digest(data.test)),),
    )
    write_lock(paths.lock, lock)
    return folder


def job_of(folder: Path, *settings: str, skill: Path | None = None, **wanted: Any) -> RecheckJob:
    planned = plan_file(folder / "things.skill", settings=settings, runnable=True, complete=False)
    return prepare_recheck(planned, RecheckOptions(**wanted), skill)


def rechecked(
    folder: Path,
    *settings: str,
    client: Callable[..., Client] = Client,
    observer: Observer | None = None,
    stop: Stop | None = None,
    **wanted: Any,
) -> Recheck:
    job = job_of(folder, *settings, **wanted)
    with client(job.plan, cache_folder=folder / ".skillc" / "cache", root=folder) as door:
        return recheck(job, observer or SilentObserver(), door, stop)


def of(found: Recheck, text: str) -> PartResult:
    """The result of the rule with a text."""
    return next(each for each in found.parts if each.part is not None and each.part.text == text)
