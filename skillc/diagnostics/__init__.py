"""Diagnostics: findings and their codes, and how they are suppressed, fixed and written."""
