"""Checks of what a program needs to run, with the command that fixes what is missing.

`checks.py` has all checks in the order of the report, and `report.py` prints their findings. `reach.py` calls the
models. `servers.py` compares the servers that skillc would start (`weights.py`: their models) with the machine
(`machine.py`).
"""
