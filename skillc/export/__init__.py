"""A run in the formats of other tools.

`rollouts.py` yields every recorded rollout as a row, `tables.py` writes rows as JSON lines or Parquet.

`evals.py` writes the examples of a program as `evals/evals.json` of Agent Skills, `benchmark.py` a run as its
`grading.json`, `timing.json` and `benchmark.json`; `assertions.py` has the statements that stand for the metrics of a
program, and `agent_skills.py` writes all of them. `mlflow.py` logs a run to MLflow.
"""
