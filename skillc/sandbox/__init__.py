"""Runs the code of others: commands of agents and tools, and code that a model wrote.

`policy` describes what a command may read, write, reach and use, and reads what a program declares. `run` finds out
which sandboxes work here and runs commands in one: namespaces by bubblewrap, Landlock and seccomp (`confined`), a
`container` of Docker or Podman, or none, which is declared as `unsafe`. `monitor` bounds all processes of a command
together. `hosts`, with `forward` inside the sandbox, lets a command without a network reach named addresses.
"""
