"""Train a LoRA adapter from exported examples: `skillc distill`.

`checks.py` examines files and settings before anything is spent, `environment.py` finds the Python that has TRL,
`runner.py` is run by it, and `distill.py` goes from the files to the adapter.
"""
