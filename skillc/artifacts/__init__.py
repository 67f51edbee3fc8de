"""A compiled skill on disk: its owner, its history as a table, loading it as a module, installing it for an agent."""
