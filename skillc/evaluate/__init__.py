"""Skills and models side by side on one split: `skillc eval`."""
