"""What a run leaves behind and shows while it goes: journal, history, progress.

`record.py` records every outcome and reply as it comes in, with what it was charged, and every decision;
`skillc/models/receipts.py` records what was paid. All of it is in the run's one file (`skillc/store`): SQLite in WAL
mode, `synchronous = FULL`, held exclusively by one process, written in group commits by one thread. A receipt is
committed before its attempt is sent, and a decision with all that it is based on. A resumed run starts at step 0 and
is answered by the record, so state is never saved, only recomputed; a decision that differs from the recorded one
stops it.

`progress.py` keeps the status of a run and shows it: live, as plain lines, or not at all; `json_lines.py` writes
events. `time_left.py` estimates. All three read what the observer hears and the ledger's snapshot; nothing comes
back.
"""
