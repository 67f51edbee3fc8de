"""A skill without each of its rules: `skillc ablate`.

`job.py` chooses and orders the rules and runs the loop of `optimize/strategies/ablate.py` as a tidying does,
`report.py` prints. Test, files, lock and history are those of `pipeline/tidy.py`.
"""
