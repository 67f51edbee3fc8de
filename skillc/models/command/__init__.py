"""Commands of the user's own that answer for a model."""
