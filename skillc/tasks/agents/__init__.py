"""Rollouts by the command line of an agent: one class each, in one file each.

`agent.py` is their base: it runs the command in a sandbox, charges what the agent reports, and tells failures of the
agent from answers. `workspace.py` makes the folders of one rollout and finds the changed files; `installed.py` finds an
agent's program and the folders that it consists of; `report.py` is what an agent reports of a rollout.
"""
