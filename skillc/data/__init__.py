"""Examples, the splits they fall into, and the groups that never stand on two sides."""
