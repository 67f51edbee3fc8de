"""Makes the files of a finished compile without compiling: lock, history, store and items, of any size."""

import asyncio
import hashlib
import json
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import path_to
from skillc.data.dataset import load_data
from skillc.document.edits import Add, Replace, apply_edits, edit_to_json
from skillc.document.folder import files_of
from skillc.document.skill import Document, digest, tokens
from skillc.frontend import plan_file
from skillc.items.record import collect_items, write_items
from skillc.optimize.propose.proposals import wording
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Scored, Unmeasured
from skillc.plan.digest import plan_digest
from skillc.plan.initial import initial_skill
from skillc.plan.lock import (
    ArmLock,
    ChargedLock,
    DataLock,
    Lock,
    LookLock,
    ModelLock,
    NullArmLock,
    ProgramLock,
    SkillLock,
    TestLock,
    ValidationLock,
    write_lock,
)
from skillc.review.stored import NO_SKILL
from skillc.run.folder import RunFolder, RunInfo
from skillc.run.history import head_of, history_text, write_history
from skillc.store import RunStore
from skillc.tasks.kind import Skill
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall, Trajectory

PROGRAM = """language 1
task {
  input  text: text
  output kind: "fruit" | "tool" | "animal"
}
skill sort_things {
  about = "Say what kind of thing a text is about."
  frozen section role = "You sort texts."
  trainable section rules { limit = 60_000 tokens }
  slow section guidance { limit = 300 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "things.jsonl"; split = 2 : 1 : 2; seed = 3 }
goal correct = exact_match(kind)
optimize { batch = 12 }
budget { epochs = 2; steps = 60; patience = 6 steps }
gate better = candidate.correct > incumbent.correct
gate compact = tokens(candidate) <= 60_000 tokens
"""
KINDS = ("fruit", "tool", "animal")
RUN = "ab" * 32
# What must never reach a page as markup, and what ends a script or a line of one.
MARKUP = "<script>planted()</script><img src=x onerror=planted()></script><!--\u2028\u2029{{7*7}}&amp;'\"`|*_"


@dataclass(frozen=True)
class Made:
    """The files of a made run."""

    folder: Path
    program: Path
    paths: ArtifactPaths
    run: RunFolder
    best: Document
    initial: Document
    decisions: list


def make_run(folder, *, steps=6, examples=60, markup="", words=12):
    """Make a run in a folder: odd steps are accepted, the third rewrites a rule, the last rewrites the slow section.

    `markup` is planted into each text of data and models; `words` is the length of a rule and of a message.
    """
    folder.mkdir(parents=True, exist_ok=True)
    filler = " ".join(f"word{i}" for i in range(words))
    program = folder / "things.skill"
    program.write_text(PROGRAM)
    rows = [
        {"id": f"x{i}{markup}", "text": f"text {i} {markup} {filler}", "kind": KINDS[i % 3]} for i in range(examples)
    ]
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    planned = plan_file(program, complete=False)
    plan, dataset = planned.plan, load_data(planned.plan, folder)
    initial = initial_skill(plan, folder)
    made = _Making(plan, dataset, initial, markup, filler)
    for step in range(1, steps + 1):
        made.step(step, steps)
    made.slow()
    paths, run = ArtifactPaths.beside(folder, plan.skill.artifact), RunFolder(folder / ".skillc", RUN)
    outcomes = made.write(run)
    paths.folder.mkdir(parents=True)
    for name, content in files_of(made.best).items():
        (paths.folder / name).write_bytes(content)
    write_history(paths.history, history_text((), RUN, made.decisions))
    write_lock(paths.lock, made.lock(planned, paths, head_of(RUN, made.decisions)))
    recorded = SimpleNamespace(
        outcome=lambda skill, example, sample=0: outcomes.get((skill, example)) if sample == 0 else None,
        examples=lambda: frozenset(example for _, example in outcomes),
    )
    ends = {"initial": digest(initial), "best": digest(made.best)}
    write_items(run.path, collect_items(RUN, plan, dataset, recorded, made.decisions, **ends, tested=True))
    return Made(folder, program, paths, run, made.best, initial, made.decisions)


class _Making:
    def __init__(self, plan, dataset, initial, markup, filler):
        self.plan, self.dataset, self.markup, self.filler = plan, dataset, markup, filler
        # A rule has no invisible character and no open comment.
        self.visible = "".join(each for each in markup if each.isprintable()).replace("<!--", "")
        self.best = self.initial = initial
        self.skills, self.decisions = {digest(initial): initial}, []

    def step(self, number, steps):
        edits = [Add("rules", f"Rule {number} {self.visible} {self.filler}.", rationale=f"why {number} {self.markup}")]
        if number % 3 == 0:
            edits.append(Replace(self.best.rules[0].id, f"Instead {number} {self.visible}.", rationale="shorter"))
        applied = apply_edits(self.best, edits)
        assert all(each.applied for each in applied.results), applied.results
        accepted = number % 2 == 1
        screen = {"cured": [self.id("train", 0)], "broke": [], "chance": [], "counts": f"cured 1 of 1 {self.markup}"}
        rows = [
            {**edit_to_json(e), "report": r.message, "rule": r.rule, "screen": screen, "cures": [self.id("train", 0)]}
            for e, r in zip(edits, applied.results, strict=True)
        ]
        cured = {"cured": 1, "broke": 0, "examples": {"cured": [self.id("validation", 0)], "broke": []}}
        fate = {"edit": f"add to rules: not now {number} {self.markup}", "fate": "screened out", "why": self.markup}
        own = {"edit": wording(edits[0]), "fate": "accepted" if accepted else "rejected", "why": f"why {self.markup}"}
        record = {
            "edits": rows,
            "fates": [own, fate],
            "credit": {"association": [cured for _ in edits], "shared": cured},
            "proposed": len(edits) + 1,
        }
        self.decide(f"step {number}/{steps + 4}", "step", applied.document, accepted, record)

    def slow(self):
        from skillc.document.edits import rewrite

        text = f"Guidance {self.visible} {self.filler}."
        document = rewrite(self.best, "guidance", text).document
        self.decide("end of epoch 1", "slow update", document, True, {"guidance": text, "section": "guidance"})

    def decide(self, place, kind, document, accepted, record):
        of = len(self.dataset.validation)
        number, name = len(self.decisions) + 1, digest(document)
        if name not in self.skills:
            self.skills[name] = document
        mean, before = self.mean(name), self.mean(digest(self.best))
        drawn = f"candidate.correct > incumbent.correct {self.markup}\n|\n35 % to 81.25 %"
        self.decisions.append(
            {
                "decision": number,
                "place": place,
                "epoch": 1,
                "kind": kind,
                "incumbent": digest(self.best),
                "candidate": name,
                "tokens": tokens(document),
                "result": "accept" if accepted else "reject",
                "blame": None if accepted else "better",
                "reason": "all gates hold" if accepted else f"gate `better` failed {self.markup}",
                "evaluated": of if accepted else of // 2,
                "of": of,
                "gains": 2,
                "losses": 1,
                "gates": {"better": "true" if accepted else "false", "compact": "true" if accepted else "unknown"},
                "goal": {"incumbent": before, "candidate": mean if accepted else ["0.1", "0.3"]},
                **(
                    {"completed": mean} if accepted else {"drawn": {"better": drawn}, "brief": f"at best {self.markup}"}
                ),
                **record,
            }
        )
        if accepted:
            self.best = document

    def mean(self, name):
        """The mean of a skill on validation as a history has it."""
        version = [NO_SKILL, *self.skills].index(name)
        cells = [
            self.rollout(example, version, i).cells["correct"] for i, example in enumerate(self.dataset.validation)
        ]
        right = sum(isinstance(cell, Scored) and cell.value > 0 for cell in cells)
        lost = sum(isinstance(cell, Unmeasured) for cell in cells)
        low, high = (f"{count / len(cells):.6f}" for count in (right, right + lost))
        return low if low == high else [low, high]

    def id(self, side, number):
        return getattr(self.dataset, side)[number].id

    def rollout(self, example, version, number):
        """An outcome that depends on the example and the number of the version."""
        if (number * 5 + version) % 37 == 0:
            return Outcome({"correct": Unmeasured("transport")}, Trajectory(), f"transport: {self.markup}")
        right = (number * 7 + version * 3) % 20 < 6 + version
        steps = (
            Message(f"I look {number} under {version} {self.markup} {self.filler}"),
            ToolCall(f"search{self.markup}", {"query": f"{number} {self.markup}"}, f"find{self.markup}"),
            Observation(f"found {self.markup}", failed=not right),
            FileChange(f"notes{self.markup}.md", "added", f"noted {self.markup}"),
            Message(f"It is a tool. {self.markup}"),
        )
        trajectory = Trajectory(
            steps, {"kind": f"tool {self.markup}"}, self.markup or None, seconds=0.5, tokens=200, turns=2
        )
        return Outcome({"correct": Scored(MICRO if right else 0)}, trajectory, f"expected `fruit` {self.markup}")

    def write(self, folder):
        """Write the store of the run, and return its outcomes."""
        found = {}
        names = [NO_SKILL, *self.skills]
        folder.path.mkdir(parents=True)
        folder.write(RunInfo("things.skill", {}, finished=True))
        with closing(RunStore(folder.path / "run.db")) as store:

            def measure(name, sides):
                skill = None if name == NO_SKILL else Skill.of(self.skills[name]).digest(self.plan.skill.load)
                for side in sides:
                    for number, example in enumerate(getattr(self.dataset, side)):
                        outcome = found[name, example.id] = self.rollout(example, names.index(name), number)
                        key = json.dumps(["rollout", skill, example.id, 0], separators=(",", ":"))
                        stage = {"train": "rollout", "validation": "gate" if name in made else "baseline"}
                        charges = [["target", stage.get(side, side), [1, 500, 0, 0, 0], [300, 0, 20, 0], False, 2000]]
                        store.add_outcome(hashlib.sha256(key.encode()).digest(), outcome.to_json(), charges)

            made = {each["candidate"] for each in self.decisions}
            for name in (NO_SKILL, digest(self.initial)):
                measure(name, ("train", "validation"))
            for decision in self.decisions:
                if (decision["candidate"], self.id("train", 0)) not in found:
                    measure(decision["candidate"], ("train", "validation"))
                store.add_decision({name: value for name, value in decision.items() if name != "completed"})
                if "completed" in decision:
                    store.add_decision({"completed": decision["decision"], "goal": decision["completed"]})
            for name in dict.fromkeys((NO_SKILL, digest(self.initial), digest(self.best))):
                measure(name, ("test",))
            asyncio.run(store.add_attempt(0, "target", "gate", [1, 500, 0, 0, 0]))
            store.end_attempt(0, {"bound": False, "cost": 2000, "usage": [300, 0, 20, 0]})
        return found

    def lock(self, planned, paths, head):
        data, best = self.dataset, digest(self.best)
        names = (data.train, data.validation, data.test)
        return Lock(
            decision_version="1",
            run=RUN,
            program=ProgramLock(
                file=planned.path.name, path=path_to(planned.path, paths.base), plan=plan_digest(planned.plan)
            ),
            data=DataLock(
                **dict(zip(("train", "validation", "test"), map(len, names), strict=True)), digest=data.digest
            ),
            skill=SkillLock(initial=digest(self.initial), best=best),
            models={"target": ModelLock(model=f"rulebook/v1{self.markup}")},
            verdict="improved",
            reason=self.markup,
            test=TestLock(
                none=ArmLock(mean=Fraction(1, 4), n=len(data.test)),
                initial=ArmLock(mean=Fraction(3, 10), n=len(data.test)),
                best=ArmLock(mean=Fraction(6, 10), n=len(data.test)),
                gain=Fraction(3, 10),
                interval=(Fraction(1, 10), Fraction(4, 10)),
                p=Fraction(1, 1000),
                n=len(data.test),
                groups=len(data.test),
                look=1,
                alpha=Fraction(1, 20),
                smallest_detectable=Fraction(1, 10),
            ),
            validation=ValidationLock(
                initial=ArmLock(mean=Fraction(3, 10), n=len(data.validation)),
                best=ArmLock(mean=Fraction(7, 10), n=len(data.validation)),
                null_arm=NullArmLock(n=10, changed=3, difference=Fraction(1, 50), margin=Fraction(1, 25)),
            ),
            charged=ChargedLock(calls=100, prompt_tokens=1000, reply_tokens=100, cost=Fraction(1, 100)),
            stopped=f"patience after decision {len(self.decisions)}{self.markup}",
            looks=(LookLock(run=RUN, initial=digest(self.initial), best=best),),
            history=head,
        )
