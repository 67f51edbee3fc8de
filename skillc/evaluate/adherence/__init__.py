"""Whether the target follows each rule of a skill where it applies, and whether that helps: `skillc adherence`.

`job.py` resolves skill, models and the spend bound before anything is sent. `marks.py` asks a model whether rules apply
and are followed in one rollout, `by_code.py` answers that for rules that code can check. `run.py` measures and marks,
`findings.py` judges, `report.py` prints.
"""
