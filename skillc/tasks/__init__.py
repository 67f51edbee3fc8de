"""Rollouts in the places where a skill is used.

`kind.py` is the extension point, a class for each kind of rollout and the registry. `runner.py` runs any kind, turns
its failures into outcomes, and makes a compiled skill a DSPy module. Kinds are `predict.py`, `react.py` with the turns
of its rollouts in `episodes.py`, `code.py`, `function.py` and those of `environments` and `agents`. `opening.py` lets
any of them open skills by itself, `answers.py` asks agents that reply in free text for the task's outputs and reads
them, and `cluster.py` runs any kind on a Ray cluster.

`script_tests.py` runs the tests of a skill's scripts, with `run_tests.py` inside the sandbox; `programs.py` is what
they share with `code.py`.
"""
