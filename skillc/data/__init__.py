"""Examples, their splits, and groups, which are never on two sides."""
