"""How fast endpoints are called."""
