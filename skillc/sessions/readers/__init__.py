"""Readers of session formats: one file for each, found by the registry in `registry.py`.

A reader is a function from a file to its sessions, in constant memory: it yields a `Session`, or a `Problem` for a
record that cannot be read, and never stops at one. Readers read and never write; a database is opened read-only.
`records.py` reads lines, rows and messages, `spill.py` groups unordered records, and `calls.py` joins recorded model
calls to sessions.
"""
