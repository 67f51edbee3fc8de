"""Recheck a compiled skill with a newer or different model, rule by rule: `skillc recheck`.

`parts.py` takes the skill apart, `job.py` resolves model, data and the spend bound before anything is sent, `run.py`
measures and judges, `report.py` prints.
"""
