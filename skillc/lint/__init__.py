"""Lint rules: advice over a checked program, its plan, and its examples.

`rules.py` is the registry: a rule is a function under `@rule(...)` that yields diagnostics, over what it needs: the
checked program (`declarations.py`, `limits.py`, `contradictions.py`), the plan (`plan.py`, `limits.py`) or the
examples (`examples.py`, `thresholds.py`). `skillc/frontend.py` runs them and takes out what comments
suppress.
"""
