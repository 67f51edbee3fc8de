"""Skills and models side by side on one split: `skillc eval`; `recheck` for one skill rule by rule, `judge_check` for
the judges of a program.

`skills.py` reads the compared skills and counts looks at the test split. `measuring.py` and `reporting.py` are what all
measurements share, `skillc noise` too: models, examples and the spend bound, retries and the end; figures and lines of
reports. `run.py` resolves, measures and scores an evaluation, `report.py` prints it.
"""
