"""One SQLite file for each run."""
