"""Tasks in the format of Harbor: `rollout = harbor { turns = 30 }`.

`recipe.py` reads a Dockerfile. `places.py` makes the files of a task's environment, once, and a copy of them for each
rollout: by the recipe in a sandbox, or from the task's image in a container. `verify.py` runs the tests of a task, and
its own solution, which shows that the tests can be trusted here. `play.py` is the kind of rollout: the target with a
shell.
"""
