"""Servers of models that skillc starts with vLLM and stops.

`options.py` reads a `serve` block, `launch.py` resolves it to files, an identity in cache keys and a command line,
`installed.py` finds the Python that has vLLM, and decides on its batch-invariant kernels.
`servers.py` has the servers of a plan, `server.py` the life of one: found or started, restarted, stopped. `process.py`
is its guarded process, `records.py` how other runs find it, and `probe.py` asks ports and addresses.
"""
