"""One compile against a server, and the same prompts by a plain load generator, in this process.

`python -m benchmarks.served.run CASE` prints a JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from skillc.frontend import estimate, plan_file
from skillc.models.backends import connections, openai
from skillc.models.calls import Call
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Job, compile_job

TICKETS = Path(__file__).resolve().parents[2] / "examples" / "tickets" / "tickets.jsonl"
TEAMS = ("billing", "shipping", "technical", "account", "returns", "sales", "security", "feedback")
PROGRAM = """language 1
task {
  input  ticket: text
  output team: TEAMS
}
skill route_tickets {
  about = "Route a support ticket to the team that can resolve it."
  frozen section role = "You route support tickets to exactly one team. (NONCE)"
  trainable section rules = <<<
RULES
>>>
}
model target = "hosted_vllm/MODEL" { base_url = "URL"; temperature = 0; max_tokens = 40 }
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl"; split = 2 : 1 : 2; seed = 7 }
goal correct = exact_match(team)
budget { steps = STEPS }
gate better = candidate.correct > incumbent.correct
"""
_QUERIES, _HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"
# Stages that ask for all their calls at once.
WAVES = ("baseline", "test")
_STAGE: ContextVar[str] = ContextVar("stage", default="")


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison: server, model, calls in flight, examples, and a mark that no other run's prompts have."""

    url: str
    model: str
    in_flight: int
    rows: int
    nonce: str
    steps: int = 2


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of the compile with its stage and when it was in flight, in seconds."""

    stage: str
    body: bytes
    began: float
    ended: float


def measure(case: Case) -> dict[str, Any]:
    """The figures of one comparison; the prompts of the plain run differ in the mark only, so that none is cached."""
    before = counters(case.url)
    sent = compiled(case)
    between = counters(case.url)
    ordered = sorted(sent, key=lambda each: each.began)
    waves = {wave: [each for each in ordered if each.stage == wave] for wave in WAVES}
    parts = {"all": ordered, **{wave: requests for wave, requests in waves.items() if requests}}
    found = {}
    plain_hits: dict[str, float | None] = {}
    for number, (name, requests) in enumerate(parts.items()):
        other = f"{case.nonce[:-1]}{'xyz'[number]}"
        bodies = [each.body.replace(case.nonce.encode(), other.encode()) for each in requests]
        start = counters(case.url)
        seconds = asyncio.run(plain(case, bodies))
        plain_hits[name] = share(start, counters(case.url))
        found[name] = {
            "calls": len(requests),
            "seconds": max(each.ended for each in requests) - requests[0].began,
            "plain": seconds,
            "busy": busy(requests, case.in_flight),
        }
    return {**asdict(case), "parts": found, "hits": share(before, between), "plain_hits": plain_hits["all"]}


def compiled(case: Case) -> list[Sent]:
    """The requests of a compile."""
    with tempfile.TemporaryDirectory(prefix="skillc-served-") as name:
        folder = Path(name)
        program = folder / "route.skill"
        program.write_text(_program(case))
        (folder / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _rows(case.rows)))
        planned = plan_file(program)
        job = Job(planned, estimate(planned), folder / "skills", folder / "home")
        with (
            recorded() as sent,
            Client(planned.plan, cache_folder=folder / "cache", concurrency=case.in_flight, root=folder) as client,
        ):
            client.preload()
            compile_job(job, SilentObserver(), client)
        return sent


def _program(case: Case) -> str:
    rules = "\n".join(
        f'If the ticket mentions "sign {number}", answer {TEAMS[number % len(TEAMS)]}.' for number in range(40)
    )
    replaced = {
        "RULES": rules,
        "TEAMS": " | ".join(f'"{team}"' for team in TEAMS),
        "NONCE": case.nonce,
        "MODEL": case.model,
        "URL": case.url,
        "STEPS": str(case.steps),
    }
    text = PROGRAM
    for word, value in replaced.items():
        text = text.replace(word, value)
    return text.replace("<<<\n", '"""\n').replace("\n>>>", '\n"""')


def _rows(count: int) -> Iterator[dict[str, str]]:
    """So many tickets, each with a text that no other has."""
    tickets = [json.loads(line) for line in TICKETS.read_text().splitlines()]
    for number, row in enumerate(islice(cycle(tickets), count)):
        yield {"id": str(number), "ticket": f"{row['ticket']} (ticket {number})", "team": row["team"]}


@contextmanager
def recorded() -> Iterator[list[Sent]]:
    """Record the requests that skillc's own transport sends inside, with the stage of the call."""
    sent: list[Sent] = []
    post, complete = openai.post, Client.complete

    async def recording(url: str, headers: Mapping[str, str], body: bytes) -> Any:
        began = time.perf_counter()
        response = await post(url, headers, body)
        sent.append(Sent(_STAGE.get(), body, began, time.perf_counter()))
        return response

    async def of_stage(self: Client, call: Call) -> Any:
        _STAGE.set(call.stage)
        return await complete(self, call)

    openai.post, Client.complete = recording, of_stage  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        openai.post, Client.complete = post, complete  # type: ignore[method-assign]


async def plain(case: Case, bodies: Iterable[bytes]) -> float:
    """The seconds that a plain load generator takes: so many workers, each with one request at a time."""
    url, headers = f"{case.url}/chat/completions", {"Content-Type": "application/json"}
    waiting = iter(bodies)

    async def work() -> None:
        for body in waiting:
            response = await connections.post(url, headers, body)
            assert response.status == 200, response.body[:300]

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(case.in_flight)))
    seconds = time.perf_counter() - began
    await connections.disconnect()
    return seconds


def busy(requests: list[Sent], limit: int) -> float:
    """The mean number in flight, as a share of the limit."""
    seconds = max(each.ended for each in requests) - min(each.began for each in requests)
    return sum(each.ended - each.began for each in requests) / seconds / limit


def counters(url: str) -> dict[str, float]:
    """Counters of the server by name; none where it has none."""
    parts = urlsplit(url)
    found: dict[str, float] = {}
    try:
        with urllib.request.urlopen(f"{parts.scheme}://{parts.netloc}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    except OSError:
        return found
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        if not line.startswith("#") and rest:
            found[name] = found.get(name, 0.0) + float(rest.rpartition(" ")[2])
    return found


def share(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """The share of prompt tokens that the server had cached, between two looks."""
    queries = after.get(_QUERIES, 0) - before.get(_QUERIES, 0)
    return (after.get(_HITS, 0) - before.get(_HITS, 0)) / queries if queries else None


if __name__ == "__main__":
    print(json.dumps(measure(Case(**json.loads(sys.argv[1])))))
