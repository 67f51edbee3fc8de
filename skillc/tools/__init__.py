"""Tools that an agent may call: Python functions and MCP servers, in one form.

`tool.py` is that form and one call within its limits; `docstrings.py` and `functions.py` read Python functions,
`servers.py` holds the sessions of MCP servers, and `toolbox.py` opens what a program declares. `source.py` checks
functions from their source text, without importing them.
"""
