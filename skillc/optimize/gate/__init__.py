"""Decide candidates by their gates, and credit their edits."""
