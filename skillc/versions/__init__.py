"""Two versions of a program: what changed in meaning, what got weaker, and what no longer fits its lock.

`git.py` reads a tree at a commit without a checkout; `version.py` is a program there, planned. `compare/` makes
changes of two plans, `rules.py` names what got weaker. `locked.py` holds a folder against its lock, `resolve.py`
closes what a merge of two compiles left open. `candidate.py` decides whether a compiled skill is delivered, and keeps
the candidate: the one that was not.
"""
