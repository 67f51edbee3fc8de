"""Sessions of agents as data: recorded elsewhere, read here into one store, redacted and audited.

`session.py` has one session in one form for every source. `readers` reads the formats in which agents and tracing
tools keep theirs. `audit.py` sets apart what is no example of a person at work, `privacy.py` removes secrets and
personal data, `store.py` is the SQLite file, and `importing.py` goes from files to the store.
"""
