"""What a run leaves behind and shows while it goes: journal, history, progress."""
