"""One decision on a 20,000-example validation split, wave by wave: evidence updated incrementally, and recomputed.

Time is that of deciding alone; rollouts answer at once, and what sending them takes is measured beside it. Prints a
table and writes `scale.md` beside this file.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from replay import STRICT, markdown
from world import Answers, engine_of, plan_of, state_of, stream

from skillc.gates.evaluate import decide_all
from skillc.optimize.gate.gate import evidence, measure_validation, skills_by_name, text_evidence
from skillc.optimize.gate.pool import race

EXAMPLES, WAVE, LEVEL = 20_000, 32, 0.8
READ_ANEW = 3
KINDS = {
    "strict `>`": STRICT,
    "strict and `regressed(by)`": f"{STRICT}\ngate safe = regressed(correct, by = product) <= 90%",
    "`confidence >= 95%`": "gate sure = confidence(candidate.correct > incumbent.correct) >= 95%",
}


async def measured(gates: str) -> tuple[str, int, float, float, float]:
    """Result, rollouts, seconds of the whole decision, of sending alone, and of recomputing the evidence once."""
    plan, world = plan_of(gates), stream(LEVEL, examples=EXAMPLES, patches=4)
    answers = Answers(world)
    run = engine_of(plan, world, answers, WAVE)
    incumbent, candidate, other = answers.document(-1), answers.document(0), answers.document(2)
    await measure_validation(run, incumbent, stage="baseline")
    before, began = answers.sent, time.perf_counter()
    (decision,) = await race(run, state_of(incumbent, {}), [candidate], ())
    raced, sent = time.perf_counter() - began, answers.sent - before
    began = time.perf_counter()
    for start in range(0, sent, WAVE):
        await run.rollouts.measure(other, run.dataset.validation[start : start + WAVE], stage="sending")
    sending = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(READ_ANEW):
        known = skills_by_name(state_of(incumbent, {}), candidate)
        decide_all(plan.gates, evidence(run, known, (), text_evidence(run, known, None)))
    return decision.result, sent, raced, sending, (time.perf_counter() - began) / READ_ANEW


def main() -> None:
    """Prints the figures and writes the page."""
    body = []
    for kind, gates in KINDS.items():
        result, sent, raced, sending, anew = asyncio.run(measured(gates))
        waves = -(-sent // WAVE)
        deciding = raced - sending
        row = [kind, result, f"{sent:,}", f"{waves:,}", f"{sending:.1f} s", f"{deciding:.1f} s"]
        row += [f"{deciding / max(1, waves) * 1000:.1f} ms", f"{anew * 1000:.0f} ms", f"{anew * waves:.0f} s"]
        body.append(row)
        print(" | ".join(row), flush=True)
    head = ["gates", "result", "rollouts", "waves", "sending", "deciding", "a wave", "read anew, a wave", "whole"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {memory} MB")
    page = f"""# One decision on {EXAMPLES:,} validation examples, waves of {WAVE}

Seconds of one process. `deciding` is what the gates add to sending the rollouts; the last two columns are what they
would add if each wave read all evidence anew. Peak memory of the whole process: {memory} MB.
`python benchmarks/gates/scale.py` makes this page.

{markdown(head, body)}"""
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
