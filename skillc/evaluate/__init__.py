"""Skills and models side by side on one split: `skillc eval`; `recheck` for one skill rule by rule, `judge_check` for
the judges of a program.

`job.py` resolves models, data and the spend bound before anything is sent; `skills.py` reads the compared skills and
counts looks at the test split. `run.py` measures and scores, `report.py` prints.
"""
