"""How much the same skill differs from itself on the same examples: `skillc noise`.

`job.py` resolves skill, data and the spend bound before anything is sent; `run.py` measures, `report.py` prints. The
statistics are `skillc/stats/noise.py`.
"""
