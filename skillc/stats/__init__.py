"""Statistics: the verdict's test, random subsets, intervals of means, and what chance alone does.

`verdict.py` judges the final test, `subsets.py` draws the subsets behind it and behind `confidence()`, `power.py`
computes e-values, false accepts, detectable gains and intervals of means. `agreement.py` compares two ratings of the
same items, `prediction_powered.py` corrects a judge's mean by labels, `sample_size.py` says how many
examples a judge needs. Draws and sums are exact, so a decision is
the same on every machine.
"""
