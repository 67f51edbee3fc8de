"""Examples, their splits, groups, which are never on two sides, and what a skill copies from them."""
