"""Publish compiled skills: manifest, staged updates, adoption and rollback.

`manifest.py` reads and writes `skills.toml`. `kept.py` keeps every adopted version by its digest, beside the manifest,
with an append-only log. `changes.py` compares two versions by meaning, `merging.py` merges edits by hand rule by rule.
`policy.py` decides what is adopted without a person. `destinations.py` finds the state of agents' folders; `staging.py`
stages, adopts, rejects and rolls back; `installing.py` brings destinations to the manifest, `uninstalling.py` and
`removing.py` take skills from them. `git_source.py` fetches skills of git repositories. `report.py` prints.
"""
