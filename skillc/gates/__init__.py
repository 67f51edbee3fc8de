"""What a gate means: terms, functions, intervals, proofs, evaluation on partial evidence, drawing.

`terms.py` is what an expression means, `functions.py` the one table of functions: a new one is an entry there and an
evaluator in `evaluate.py`. `normal.py` gives terms one form and turns a condition into alternatives of linear
demands, `axioms.py` lists what always holds, `prove.py` proves that gates exclude or imply others, for `check` and
for `breaking`. `evaluate.py` decides a gate over `intervals.py` and `evidence.py`; `draw.py` draws it and prints what
it needs. `stages.py` knows which evidence a gate reads, `margins.py` how much better it wants a candidate to be.
"""
