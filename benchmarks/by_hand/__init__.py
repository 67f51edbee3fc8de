"""Compiles whose models are people or language models that answer through files."""
