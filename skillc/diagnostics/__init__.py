"""Diagnostics: findings and their codes, and how they are suppressed, fixed and written.

`diagnostic.py` is one finding and the report that collects them; `codes/` has an entry for each code, with the page
that `explain` shows (`skillc/code_pages.py` runs its examples). `suppress.py` takes out what comments name with a
reason, `fixing.py` applies fixes until none is left, `suggest.py` finds the name that was meant. `render.py` writes
findings for a terminal, `formats.py` as JSON, SARIF and annotations.
"""
