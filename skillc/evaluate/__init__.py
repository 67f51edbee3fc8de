"""Skills and models side by side on one split: `skillc eval`; `recheck` for one skill rule by rule, `judge_check` for
the judges of a program.

`skills.py` reads the compared skills and counts looks at the test split. All measurements, including `skillc noise`,
share `measuring.py` (models, examples, spend bound, retries, the end) and `reporting.py` (figures and lines of
reports). `job.py` resolves an evaluation, `run.py` measures it, `scores.py` scores it, `by_field.py` by parts too;
`report.py` prints it, `as_json.py` and `files.py` write it for programs, CI and tables, by the rows of `rows.py`.
`several.py` runs several under one budget: all splits, other rollouts and related programs (`places.py`); `one_shot.py`
writes the one-shot skill, and `transfer.py` computes the share of the gain that survives.
"""
