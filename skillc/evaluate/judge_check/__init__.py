"""Measure the reliability of a program's judges: `skillc judge check`.

`job.py` resolves judges, skill, models, labels and the spend bound before anything is sent; `labels.py` reads labels
and writes a sheet to fill in; `run.py` rolls out and asks, `report.py` prints. What is measured is in
`skillc/metrics/judging/check`.
"""
