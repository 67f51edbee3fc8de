"""The object that `eval --json` prints."""

from __future__ import annotations

from fractions import Fraction

from pydantic import JsonValue

from skillc.evaluate.run import Evaluation
from skillc.evaluate.scores import Gain, ModelScores, Score
from skillc.metrics.cells import Mean


def summary(found: Evaluation) -> dict[str, JsonValue]:
    """All figures, as numbers of the goal's own unit with six digits; money in nano-dollars, null if unknown."""
    job, made_with = found.job, found.made_with
    reference = job.arms.reference
    return {
        "format_version": 1,
        "split": job.split,
        "selected_on": job.split == "validation",
        "goal": job.plan.goal.name,
        "examples": len(job.examples),
        "groups": len({example.group for example in job.examples}),
        "samples": job.plan.optimize.samples,
        "reference": reference.name if reference is not None else None,
        "compiled_with": None if made_with is None else made_with.model_dump(mode="json"),
        "models": [_model(model, job.split) for model in found.models],
        "baselines": {name: _number(mean) for name, mean in found.baselines.items()},
        "at_most": {"calls": job.bound.most.calls, "tokens": job.bound.most.tokens, "preflight": job.tried},
        "spent": found.spent,
        "served": [served.to_json() for served in found.served],
        "stopped": found.stopped,
        "lost": None if found.lost is None else found.lost.message,
        "notes": list[JsonValue](job.notes),
    }


def _model(found: ModelScores, split: str) -> JsonValue:
    return {
        "role": found.model.role,
        "model": found.model.model,
        "parameters": found.model.parameters,
        "compiled_with": found.made_here,
        "skills": [_skill(score) for score in found.scores],
        "pairs": [_pair(gain) for gain in found.gains],
        "compiled_over_none": None if found.over_none is None else _described(found.over_none, split),
    }


def _skill(score: Score) -> JsonValue:
    low, high = score.interval or (None, None)
    told = score.tally.as_json()
    return {
        "skill": score.arm.name,
        "digest": None if score.arm.skill is None else score.arm.digest,
        "file": None if score.arm.file is None else str(score.arm.file),
        "mean": _number(score.goal.value),
        "n": score.goal.n,
        "interval": None if low is None or high is None else [_number(low), _number(high)],
        "unmeasured": dict(score.unmeasured),
        "not_run": score.not_run,
        "metrics": {name: _mean(mean) for name, mean in score.metrics.items()},
        "calls": told["calls"],
        "tokens": told["tokens"],
        "cost_nano": told["cost_nano"],
    }


def _mean(mean: Mean) -> JsonValue:
    return {"mean": _number(mean.value), "n": mean.n}


def _pair(gain: Gain) -> JsonValue:
    """`verdict` is null where none may be claimed: the split is not the test split."""
    verdict = gain.verdict
    low, high = verdict.interval or (None, None)
    return {
        "skill": gain.arm.name,
        "gain": _number(verdict.gain),
        "interval": None if low is None or high is None else [_number(low), _number(high)],
        "level": _number(1 - verdict.alpha),
        "p": _number(verdict.p),
        "n": verdict.n,
        "groups": verdict.groups,
        "smallest_detectable": None if verdict.detectable is None else round(verdict.detectable, 6),
        "look": gain.look or None,
        "verdict": verdict.verdict if gain.look else None,
        "reason": verdict.reason,
    }


def _described(gain: Gain, split: str) -> JsonValue:
    """A pair that is not judged; on the test split, where it is no look, without interval and p-value."""
    interval = gain.verdict.interval if split != "test" else None
    return {
        "gain": _number(gain.verdict.gain),
        "interval": None if interval is None else [_number(end) for end in interval],
        "p": _number(gain.verdict.p) if split != "test" else None,
        "n": gain.verdict.n,
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else round(float(value), 6)
