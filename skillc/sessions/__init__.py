"""Sessions of agents: read recordings into one store, redacted and audited.

`session.py` defines one form of a session for every source. `readers` reads the formats in which agents and tracing
tools keep theirs. `audit.py` sets apart what is not an example of a person at work, `privacy.py` removes secrets and
personal data, `store.py` is the SQLite file, and `importing.py` goes from files to the store.
"""
