"""Lint rules: advice over a checked program, its plan, and its examples."""
