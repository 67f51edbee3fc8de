"""`skillc evolve`: keep a skill learning from the sessions of its users, night by night.

`harvest.py` turns new sessions into rows whose side of the split never changes. `night.py` runs one night: harvest,
measure, compile, test, stage. `spending.py` has the error budget over the nights, `drift.py` the sequential test of the
delivered skill against its lock. `locks.py` reads the scores in that lock, and writes the verdict into a challenger's.
`ledger.py` keeps what a night has done, so that a killed one resumes and is counted once. `schedule.py` writes the line
for cron and the units for systemd, `report.py` what is printed.
"""
