"""Rollouts in the places where a skill is used.

`kind.py` is the extension point, a class for each kind of rollout and the registry; `runner.py` runs any kind and
turns its failures into outcomes. `predict.py` and `function.py` are kinds; `answers.py` asks agents that reply in free
text for the task's outputs and reads them.
"""
