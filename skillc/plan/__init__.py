"""The resolved program: frozen data with every default filled in, its hash, and the bounds of what it may spend."""
