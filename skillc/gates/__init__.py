"""Semantics of gates: terms, functions, intervals, proofs, evaluation on partial evidence, drawing.

`terms.py` defines the terms of expressions and `functions.py` the table of functions. A new function is an entry there
and an evaluator in `evaluate.py`. `normal.py` normalizes terms and converts a condition to alternatives of linear
inequalities. `prove.py` contains the axioms and proves that gates exclude or imply others, for `check` and `breaking`.
`evaluate.py` decides a gate over `intervals.py` and `evidence.py`. `draw.py` draws it and prints the value that it
requires. `stages.py` determines which evidence a gate reads.
"""
