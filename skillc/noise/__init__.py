"""How much the same skill differs from itself on the same examples: `skillc noise`.

`run.py` resolves skill, data and the spend bound, and measures; `report.py` prints. The statistics are
`skillc/stats/noise.py`.
"""
