"""A compiled skill on disk: which program owns it, its lock, its history as a table, loading and installing it."""
