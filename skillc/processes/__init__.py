"""Processes that skillc starts, and how each of them ends.

`command` runs one command to its end; `guard` ends what is left of it, even if skillc itself is killed. `interpreters`
finds a Python interpreter with an optional package.
"""
