"""Findings as they are written: text with the source under it, one line each, JSON, SARIF, annotations."""
