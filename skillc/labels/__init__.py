"""Label sessions: `terminal.py` is the view for a person, `session_text.py` its text, `judging.py` the judge."""
