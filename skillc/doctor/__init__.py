"""Checks of what a program needs to run, with the command that fixes what is missing."""
