"""Run dspy.GEPA on a program's task: same data, splits, models, initial skill and target prompt as `skillc compile`.

    python -m benchmarks.by_hand.gepa PROGRAM RESULT.json [--calls 600] [--ports TARGET OPTIMIZER]

RESULT.json receives the test scores of the initial and the best program, the metric calls and reflections of the
search, and the final instruction. The search counts training and validation rollouts; the test comes on top.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.parallelizer import ParallelExecutor

from skillc.data.dataset import load
from skillc.document.skill import for_target
from skillc.frontend import plan_file
from skillc.metrics.primitives import same
from skillc.outcomes import Example
from skillc.plan.initial import initial_document
from skillc.program.module import SkillModule
from skillc.program.names import field_names, instructions

THREADS = 32
MINIBATCH = 8
HOURS = 24


def lm(name: str, url: str) -> dspy.LM:
    """A model that may take a day for a reply."""
    return dspy.LM(name, api_base=url, api_key="none", timeout=HOURS * 3600, num_retries=3, max_tokens=4096)


class Metric:
    """The goal `exact_match` of the one output, with the right answer as feedback."""

    def __init__(self, field: str, output: str) -> None:
        self._field, self._output = field, output

    def right(self, gold: Any, prediction: Any) -> bool:
        """Whether the answer is the right one."""
        return same(getattr(prediction, self._output, None), gold[self._field])

    def __call__(
        self, gold: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """Score with feedback."""
        right = self.right(gold, prediction)
        feedback = f"{'Correct' if right else 'Wrong'}. The right answer is `{gold[self._field]}`."
        return dspy.Prediction(score=float(right), feedback=feedback)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--calls", type=int, default=600, help="max_metric_calls of the search")
    parser.add_argument("--ports", type=int, nargs=2, help="default: those of the program")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("FAKE_KEY", "none")
    given.result.parent.mkdir(parents=True, exist_ok=True)
    result = run(given.program, given.calls, given.ports, given.seed)
    given.result.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in result.items() if name != "instruction"}, indent=2))


class Bench:
    """A program's task as DSPy has it: examples by split, metric, models. Configures dspy for the target."""

    def __init__(self, program: Path, ports: Sequence[int] | None = None) -> None:
        self.plan = plan_file(program, runnable=True).plan
        task = self.plan.task
        if len(task.outputs) != 1:
            raise SystemExit("the task must have exactly one output")
        output = task.outputs[0].name
        data = load(task, self.plan.data, program.resolve().parent)
        self.train, self.validation, self.test = (_examples(s, task) for s in (data.train, data.validation, data.test))
        self.metric = Metric(output, field_names(task)[output])
        self.target, self.optimizer = (
            lm(
                self.plan.models[role].model,
                f"http://127.0.0.1:{ports[at]}/v1" if ports else self.plan.models[role].base_url,
            )
            for at, role in enumerate(("target", "optimizer"))
        )
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
        # Evaluate sends a call again after 120 s without an answer; a person takes longer.
        ParallelExecutor.__init__ = functools.partialmethod(ParallelExecutor.__init__, timeout=0)
        dspy.configure(lm=self.target, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False))

    def module(self, text: str) -> Any:
        """A module that answers under a skill's text."""
        return SkillModule(self.plan.task, self.plan.skill.name, instructions(self.plan.task, text))

    def tested(self, module: Any) -> list[int]:
        """Right (1) or wrong (0) for each test example; a reply that can't be parsed is wrong."""
        evaluate = dspy.Evaluate(
            devset=self.test,
            metric=lambda gold, prediction, trace=None: float(self.metric.right(gold, prediction)),
            num_threads=THREADS,
            display_progress=False,
            max_errors=len(self.test) + 1,
            failure_score=0.0,
        )
        return [int(score) for _, _, score in evaluate(module).results]


def run(program: Path, calls: int, ports: Sequence[int] | None, seed: int) -> dict[str, Any]:
    """Search, then test the initial and the best program."""
    bench = Bench(program, ports)
    student = bench.module(for_target(initial_document(bench.plan)))
    initial = student.answer.signature.instructions
    began = time.monotonic()
    search = dspy.GEPA(
        metric=bench.metric,
        max_metric_calls=calls,
        reflection_minibatch_size=MINIBATCH,
        reflection_lm=bench.optimizer,
        num_threads=THREADS,
        track_stats=True,
        warn_on_score_mismatch=False,
        seed=seed,
    )
    best = search.compile(student, trainset=bench.train, valset=bench.validation)
    found, searched = best.detailed_results, len(bench.target.history)
    text = best.answer.signature.instructions
    tested = {"initial": bench.tested(student)}
    tested["best"] = tested["initial"] if text == initial else bench.tested(best)
    return {
        "program": program.name,
        "examples": [len(bench.train), len(bench.validation), len(bench.test)],
        "test": {name: sum(right) / len(right) for name, right in tested.items()},
        "test_right": tested,
        "validation": list(found.val_aggregate_scores),
        "candidates": len(found.candidates),
        "metric_calls": found.total_metric_calls,
        "target_calls": searched,
        "reflections": len(bench.optimizer.history),
        "minibatch": MINIBATCH,
        "max_metric_calls": calls,
        "seconds": round(time.monotonic() - began),
        "initial_instruction": initial,
        "instruction": text,
        "all_instructions": [candidate.answer.signature.instructions for candidate in found.candidates],
    }


def _examples(side: Sequence[Example], task: Any) -> list[dspy.Example]:
    names = field_names(task)
    inputs = [names[field.name] for field in task.inputs]
    return [
        dspy.Example(**{names[name]: value for name, value in example.inputs.items()}, **example.gold).with_inputs(
            *inputs
        )
        for example in side
    ]


if __name__ == "__main__":
    main()
