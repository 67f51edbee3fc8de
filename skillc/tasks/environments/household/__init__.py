"""Household games of ALFWorld: `rollout = environment("alfworld") { ... }`.

`games.py` makes games from seeds, `engine.py` plays them and the official ones with ALFWorld's engine, and
`interpreter.py` finds the interpreter that has the engine. The first two run in that interpreter, without skillc.
"""
