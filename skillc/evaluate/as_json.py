"""An evaluation as JSON: what `skillc eval --json` prints."""

from __future__ import annotations

from fractions import Fraction

from pydantic import JsonValue

from skillc.evaluate.confidence import confidence_of
from skillc.evaluate.reporting import ending_json, interval
from skillc.evaluate.run import Evaluation
from skillc.evaluate.scores import Costs, Duel, Gain, ModelScores, Part, Score
from skillc.json_values import rounded


def eval_json(found: Evaluation) -> dict[str, JsonValue]:
    """Return the object that `eval --json` prints: goals to six digits, money in nano-dollars, null if unknown."""
    job, made_with = found.job, found.made_with
    reference = job.arms.reference
    return {
        "format_version": 1,
        "split": job.split,
        "by": job.by,
        "selected_on": job.split == "validation",
        "goal": job.plan.goal.name,
        "examples": len(job.examples),
        "groups": len({example.group for example in job.examples}),
        "samples": job.plan.optimize.samples,
        "reference": reference.name if reference is not None else None,
        "compiled_with": None if made_with is None else made_with.model_dump(mode="json"),
        "models": [_model(model, job.split) for model in found.models],
        "baselines": {name: rounded(mean) for name, mean in found.baselines.items()},
        "confidence": list[JsonValue](confidence_of(found)),
        **ending_json(found),
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
        "compiled_over_none": None if found.over_none is None else _unjudged_pair(found.over_none, split),
        "by": [_part(part) for part in found.parts],
    }


def _skill(score: Score) -> JsonValue:
    tally = score.tally.as_json()
    return {
        "skill": score.arm.name,
        "digest": None if score.arm.skill is None else score.arm.digest,
        "file": None if score.arm.file is None else str(score.arm.file),
        "mean": rounded(score.goal.mean),
        "n": score.goal.n,
        "interval": interval(score.interval),
        "unmeasured": dict(score.unmeasured),
        "not_run": score.not_run,
        "metrics": {name: {"mean": rounded(each.mean), "n": each.n} for name, each in score.metrics.items()},
        **{name: tally[name] for name in ("calls", "tokens", "cost_nano")},
        "per_rollout": costs_json(score.costs),
    }


def costs_json(costs: Costs) -> JsonValue:
    """Return latency in seconds, and tokens and nano-dollars for each rollout and each right answer."""
    return {
        "rollouts": costs.rollouts,
        "right": costs.right,
        "timed": costs.timed,
        "median_seconds": rounded(costs.median),
        "p95_seconds": rounded(costs.p95),
        "tokens": rounded(Fraction(costs.tokens, costs.rollouts)) if costs.rollouts else None,
        "cost_nano": rounded(costs.per_rollout),
        "cost_nano_per_right_answer": rounded(costs.per_right),
    }


def duel_json(duel: Duel) -> dict[str, JsonValue]:
    """Return the numbers of examples that a skill wins, loses and ties."""
    return {"wins": duel.wins, "losses": duel.losses, "ties": duel.ties}


def _part(part: Part) -> JsonValue:
    """Return the scores on the examples with one value of a field; gains are not tested."""
    skills: list[JsonValue] = []
    for score in part.scores:
        gain, duel = part.gains.get(score.arm.name, (None, Duel()))
        skills.append(
            {
                "skill": score.arm.name,
                "mean": rounded(score.goal.mean),
                "n": score.goal.n,
                "interval": interval(score.interval),
                "gain": rounded(gain),
                **duel_json(duel),
                "per_rollout": costs_json(score.costs),
            }
        )
    return {"value": part.value, "examples": part.examples, "skills": skills}


def _pair(gain: Gain) -> JsonValue:
    """Return the JSON of a pair; `verdict` is null unless the split is the test split."""
    verdict = gain.verdict
    return {
        "skill": gain.arm.name,
        "gain": rounded(verdict.gain),
        "interval": interval(verdict.interval),
        "level": rounded(1 - verdict.alpha),
        "p": rounded(verdict.p),
        "n": verdict.n,
        **duel_json(gain.duel),
        "groups": verdict.groups,
        "smallest_detectable": None if verdict.detectable is None else round(verdict.detectable, 6),
        "look": gain.look or None,
        "verdict": verdict.verdict if gain.look else None,
        "reason": verdict.reason,
    }


def _unjudged_pair(gain: Gain, split: str) -> JsonValue:
    """Return the JSON of a pair without a verdict; on the test split it has no interval and no p-value."""
    verdict, is_test = gain.verdict, split == "test"
    return {
        "gain": rounded(verdict.gain),
        "interval": None if is_test else interval(verdict.interval),
        "p": None if is_test else rounded(verdict.p),
        "n": verdict.n,
    }
