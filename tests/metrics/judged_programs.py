"""Plans with judges, a client whose models answer as told, and verdicts of judges as they would write them."""

import asyncio
import json
import re

from model_plans import Scripted, reply

from skillc.frontend import plan_file
from skillc.metrics.judging.judges import Judges
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.pace import RetryPolicy
from skillc.outcomes import Example
from skillc.trajectories.trajectory import Message, Trajectory

PROGRAM = """language 1

task {{
  input  mail:  text
  output reply: text
}}

skill answers {{
  about = "Answers mails."
  trainable section rules
}}

rubric solves = \"\"\"
  5  the customer need not write again
  3  right, but something is left open
  1  wrong, or beside the question
\"\"\"

{rubrics}

model target    = "hosted_vllm/gpt-5.5-mini" {{ base_url = "http://localhost:9" }}
model optimizer = "hosted_vllm/gpt-5.5" {{ base_url = "http://localhost:9" }}
model referee   = "hosted_vllm/claude-opus-5" {{ base_url = "http://localhost:9" }}
model second    = "hosted_vllm/gemini-3" {{ base_url = "http://localhost:9" }}
model third     = "hosted_vllm/large" {{ base_url = "http://localhost:9" }}

data {{ source = "mails.csv"; split = 2 examples : 2 examples : 2 examples; {data} }}

{metrics}

{optimize}
budget {{ epochs = 1 }}
gate better = candidate.score > incumbent.score
"""

MAIL = Example("1", {"mail": "Where is my order?"}, {"reply": "It left on Monday."}, {}, "1")


def planned(folder, metrics, *, rubrics="", optimize="", data=""):
    """The plan of a program with these metrics, one of which is the goal `score`."""
    (folder / "mails.csv").write_text("mail,reply\n" + "".join(f"mail {i},reply {i}\n" for i in range(6)))
    path = folder / "mails.skill"
    path.write_text(PROGRAM.format(metrics=metrics, rubrics=rubrics, optimize=optimize, data=data))
    return plan_file(path, complete=False).plan


def parts_of(sent):
    """The code of a case and its texts by title, as a judge reads them."""
    text = sent["messages"][1]["content"]
    code = re.match(r"Case ([0-9a-f]{12})\n", text)[1]
    found = re.findall(rf"^BEGIN {code} ([^\n]*)\n(.*?)\n?^END {code}$", text, re.M | re.S)
    return code, dict(found)


def verdict(code, *levels, key="level", names=("",), reasons=(), **more):
    """A verdict as a model writes it."""
    entries = []
    for i, level in enumerate(levels):
        named = {"criterion": names[i]} if names[i] else {}
        entries.append({**named, "reason": reasons[i] if reasons else f"reason {i}", key: level})
    return json.dumps({"case": code, "instructions": False, **more, "verdicts": entries})


def saying(*levels, **more):
    """A model that gives the same verdict on each case."""
    return lambda sent: reply(verdict(parts_of(sent)[0], *levels, **more))


def by_model(**answers):
    """A transport that answers by the name of the model: `claude`, `gemini`, `large`."""

    def answer(sent):
        say = next(each for name, each in answers.items() if name in sent["model"])
        found = say(sent)
        if isinstance(found, Exception):
            raise found
        return found

    return Scripted(answer)


def judged(plan, transport, answer="It left on Monday.", *, example=MAIL, folder=None, initial=None, sample=(0, 0)):
    """Cells, feedback and failure of one rollout with this answer, after its judges were asked."""
    trajectory = Trajectory((Message("I looked it up"), Message(answer)), {"reply": answer})
    before = Trajectory((Message(initial),), {"reply": initial}) if initial is not None else None

    async def ask(client):
        return await Judges(plan, client).judge(example, trajectory, initial=before, sample=sample)

    retries = RetryPolicy(attempts=2, patience=0)
    with Client(plan, transport=transport, sleep=lambda seconds: asyncio.sleep(0), retries=retries) as client:
        verdicts = asyncio.run(ask(client))
    return Meter(plan, folder).measure(example, trajectory, verdicts)
