"""Runs the code of others: commands of agents and tools, and code that a model wrote.

`policy` describes what a command may read, write, reach and use; `declared` reads a program's setting. `run` finds out
which sandboxes work here and runs commands in one: `bubblewrap` (namespaces), `confined` (Landlock and seccomp),
`container` (Docker or Podman), or none, which is declared as `unsafe`. `monitor` bounds all processes of a command
together. `hosts` lets a command without a network reach named addresses.
"""
