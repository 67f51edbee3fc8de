"""What a gate means: terms, functions, intervals, proofs, evaluation on partial evidence, drawing.

`terms.py` defines what an expression means, `functions.py` the table of functions: a new one is an entry there and an
evaluator in `evaluate.py`. `normal.py` brings terms into one form and turns a condition into alternatives of linear
inequalities; `prove.py` contains the axioms and proves that gates exclude or imply others, for `check` and `breaking`.
`evaluate.py` decides a gate over `intervals.py` and `evidence.py`; `draw.py` draws it and prints what it needs.
`stages.py` determines which evidence a gate reads.
"""
