"""Statistics: the verdict's test, random subsets, intervals of means, and what chance alone does.

`verdict.py` judges the final test, `subsets.py` draws the subsets behind it and behind `confidence()`, `betting.py`
computes e-values, `power.py` what chance does, what gains a test can show, and intervals of means. They use the
standard library and numpy: draws and sums are exact, so that a decision is the same on every machine.
"""
