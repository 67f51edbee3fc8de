"""Labels of sessions, from a person in the terminal: `terminal.py` is the view, `session_text.py` what it shows."""
