"""Two versions of a program: changes in meaning, weaker gates, and mismatches with the lock.

`git.py` reads a tree at a commit without a checkout; `version.py` plans a program there. `compare/` finds the changes
between two plans, with the rules of `change.py`; `findings.py` reports them. `locked.py` checks a folder against its
lock, `resolve.py` resolves a merge of two compiles. `hand_edits.py` protects edited files, `taking.py` takes their
edits into the program. `candidate.py` keeps the candidate: a compiled skill that was not delivered.
"""
