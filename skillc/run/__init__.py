"""One run: folder, record, progress, and the assembly of client, loop and observer.

`session.py` assembles a run and records every outcome with its charges, and every decision; `skillc/models/ledger.py`
records payments. All of it is in the run's one file (`skillc/store.py`): SQLite in WAL mode, `synchronous = FULL`, held
exclusively by one process, written in group commits by one thread. A receipt is committed before its attempt is sent. A
decision is committed together with everything that it is based on. A resumed run replays from step 0 and is answered
from the record, so state is recomputed and never saved. A decision that differs from the recorded one stops the run.

`progress.py` keeps the status of a run and prints it as plain lines or not at all. `json_lines.py` writes and reads
events, and `recording.py` stores them in the run's folder for `skillc watch`. `time_left.py` estimates the time left.
All of them only read the observer's reports and the ledger's snapshot; they never affect a decision.
"""
