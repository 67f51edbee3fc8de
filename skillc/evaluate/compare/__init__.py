"""Two skills on the same examples: `skillc compare`.

`sides.py` finds the skills and checks that their programs have one task. `stored.py` reads outcomes that both compiles
have recorded. `job.py` resolves the comparison, which runs as an evaluation of two arms, and `report.py` prints it.
"""
